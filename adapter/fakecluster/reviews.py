"""TokenReview and SubjectAccessReview requests, answered from a table of tokens and a function."""

from collections.abc import Callable
from dataclasses import dataclass, field

from adapter.fakecluster.kinds import Json


@dataclass
class Reviews:
    """The users and permissions of the cluster."""

    tokens: dict[str, Json] = field(default_factory=dict)
    """The user of each valid token, as in the status of a TokenReview."""

    authorize: Callable[[Json], bool] = lambda _spec: False
    """Decides whether the spec of a SubjectAccessReview is allowed."""

    requests: list[Json] = field(default_factory=list)
    """Every review that was requested, oldest first."""

    def handle(self, path: str, body: Json) -> Json | None:
        """Return the response to a review; None if the path is not a review."""
        match path:
            case "/apis/authentication.k8s.io/v1/tokenreviews":
                self.requests.append(body)
                user = self.tokens.get(body["spec"]["token"])
                unknown: Json = {"user": {}, "error": "invalid bearer token"}
                return {**body, "status": {"authenticated": True, "user": user} if user else unknown}
            case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
                self.requests.append(body)
                return {**body, "status": {"allowed": self.authorize(body["spec"])}}
            case _:
                return None
