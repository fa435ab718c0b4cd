"""Who a token belongs to and who may do what, answered from a table."""

from collections.abc import Callable
from dataclasses import dataclass, field

from adapter.fakecluster.kinds import Json


@dataclass
class Reviews:
    """Whom the cluster knows."""

    tokens: dict[str, Json] = field(default_factory=dict)
    """Who each good token belongs to, as a TokenReview says it."""

    allows: Callable[[Json], bool] = lambda _spec: False
    """Whether a SubjectAccessReview's spec is allowed."""

    reviewed: list[Json] = field(default_factory=list)
    """Every review that was asked for, newest last."""

    def answer(self, path: str, body: Json) -> Json | None:
        """Answer a review; None: the path is no review's."""
        match path:
            case "/apis/authentication.k8s.io/v1/tokenreviews":
                self.reviewed.append(body)
                user = self.tokens.get(body["spec"]["token"])
                unknown: Json = {"user": {}, "error": "invalid bearer token"}
                return {**body, "status": {"authenticated": True, "user": user} if user else unknown}
            case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
                self.reviewed.append(body)
                return {**body, "status": {"allowed": self.allows(body["spec"])}}
            case _:
                return None
