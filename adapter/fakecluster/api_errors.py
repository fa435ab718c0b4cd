"""The API server's refusals, with its codes, reasons and words."""

from adapter.fakecluster.kinds import Json, Kind


class Refused(Exception):
    """A request is answered with a Status instead of what was asked for."""

    def __init__(self, code: int, reason: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after = retry_after

    def status(self) -> Json:
        """Give the body of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }


REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def on_request(code: int) -> Refused:
    """Refuse because a test or a demonstration wants it so."""
    return Refused(code, REASONS.get(code, "Unknown"), "refused on request", retry_after=1 if code == 429 else None)


def not_found(kind: Kind, name: str) -> Refused:
    """Say that there is no such object."""
    return Refused(404, "NotFound", f'{kind.full_name} "{name}" not found')


def no_such_path() -> Refused:
    """Say that there is no such kind, or no such version of it."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def already_exists(kind: Kind, name: str) -> Refused:
    """Say that somebody was first."""
    return Refused(409, "AlreadyExists", f'{kind.full_name} "{name}" already exists')


def modified(kind: Kind, name: str) -> Refused:
    """Say that somebody wrote in between."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.full_name} "{name}": {why}')


def another_uid(kind: Kind, name: str, wanted: str, found: str) -> Refused:
    """Say that this is another object of the same name."""
    met = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    where = f"Key: /registry/{kind.plural}/{name}, ResourceVersion: 0"
    why = f"StorageError: invalid object, Code: 4, {where}, AdditionalErrorMsg: {met}"
    return Refused(409, "Conflict", f'Operation cannot be fulfilled on {kind.full_name} "{name}": {why}')


def invalid(kind: Kind, name: str, problems: list[str]) -> Refused:
    """Say what is wrong with an object."""
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    what = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Refused(422, "Invalid", f'{what} "{name}" is invalid: {listed}')


def too_old(version: int, oldest: int) -> Refused:
    """Say that a watch cannot go on from there."""
    return Refused(410, "Expired", f"too old resource version: {version} ({oldest})")


def continue_too_old() -> Refused:
    """Say that the pages of a list can no longer be turned."""
    return Refused(410, "Expired", "The provided continue parameter is too old to display a consistent list result.")


def misplaced(kind: Kind, forbidden: str, detail: str) -> Refused:
    """Say that a request may not be made."""
    return Refused(403, "Forbidden", f"{kind.full_name} is forbidden: {forbidden} {detail}".strip())
