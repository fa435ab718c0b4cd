"""API server errors, with the codes, reasons and messages of kube-apiserver."""

from adapter.fakecluster.kinds import Json, Kind


class ApiError(Exception):
    """A request that is answered with a Status object."""

    def __init__(self, code: int, reason: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.retry_after = retry_after

    def status(self) -> Json:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.full_name} "{name}" not found')


def unknown_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def conflict(kind: Kind, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {kind.full_name} "{name}": {why}')


def uid_mismatch(kind: Kind, name: str, requested: str, stored: str) -> ApiError:
    precondition = f"Precondition failed: UID in precondition: {requested}, UID in object meta: {stored}"
    key = f"Key: /registry/{kind.plural}/{name}, ResourceVersion: 0"
    why = f"StorageError: invalid object, Code: 4, {key}, AdditionalErrorMsg: {precondition}"
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {kind.full_name} "{name}": {why}')


def invalid(kind: Kind, name: str, problems: list[str]) -> ApiError:
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    group_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return ApiError(422, "Invalid", f'{group_kind} "{name}" is invalid: {listed}')
