"""The errors of the adapter, each with its HTTP status code, its reason and a constant message.

::

    AdapterError
    ├── ConfigInvalid                         a configuration file or object is invalid (``adapter.decoding.problem``)
    ├── RequestRejected
    │   ├── InvalidRequest               400  a selector, limit or timeout cannot be parsed
    │   ├── Unauthenticated              401  the credentials are invalid
    │   ├── AccessDenied                 403  the caller is not authorized
    │   ├── PathNotFound                 404  unknown URL
    │   ├── MetricNotFound               404  no rule defines the metric in this namespace
    │   ├── AutoscalerNotFound           404  the process has no decision for the autoscaler
    │   ├── MethodNotAllowed             405  the API is read-only
    │   ├── NotAcceptable                406  no common media type
    │   └── TooManyConcurrentRequests    429  the limit of concurrent requests is reached
    ├── ReviewUnavailable                500  a review by the API server failed
    ├── DeadlineExceeded                 504  the response was not ready in time
    └── MetricUnavailable                     the metric exists and has no value now; ``failure`` is the reason
        ├── NoSeries                     503  no series matches
        ├── NotANumber                   503  NaN or infinite
        ├── OutOfRange                   503  negative or too large
        ├── TooOld                       503  older than the rule allows
        └── BackendError
            ├── BackendRejected          503  the backend rejected the query
            │   └── BackendBusy          503  the backend's rate limit is exceeded
            ├── BackendUnreachable       503  no connection or no response
            ├── BackendUnauthorized      503  the backend did not accept the credentials
            ├── BadQuery                 503  the query is invalid
            ├── BackendMetricUnknown     404  the backend has no such metric
            ├── Ambiguous                503  several values where the rule needs one
            └── BackendTimeout           504  no response before the deadline

An HPA copies the message into its condition and its event, and Kubernetes aggregates events by their text. So a message
names the metric, the backend and the failure class, and contains no time, identifier or other value that varies.
"""

from typing import ClassVar, Self

from autoscaler.types.observation import FailureClass


class AdapterError(Exception):
    """The base of all errors."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"
    failure: ClassVar[FailureClass | None] = None

    def __init__(self, message: str, *, group: str = "", resource: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        """API group of the request, for ``details.group``."""
        self.resource = resource
        """Resource of the request, which is the metric, for ``details.kind``."""


class RequestRejected(AdapterError):
    """The request itself is the reason."""


class InvalidRequest(RequestRejected):
    """A parameter cannot be parsed."""

    code = 400
    reason = "BadRequest"


class Unauthenticated(RequestRejected):
    """The credentials are invalid. The response omits the cause; it is for the log."""

    code = 401
    reason = "Unauthorized"

    def __init__(self, cause: str) -> None:
        super().__init__("Unauthorized")
        self.cause = cause


class AccessDenied(RequestRejected):
    """The caller is not authorized."""

    code = 403
    reason = "Forbidden"


class PathNotFound(RequestRejected):
    """The URL is unknown."""

    code = 404
    reason = "NotFound"

    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource")


class MetricNotFound(RequestRejected):
    """No rule defines the metric in this namespace."""

    code = 404
    reason = "NotFound"
    failure = FailureClass.UNKNOWN_METRIC


class AutoscalerNotFound(RequestRejected):
    """The process has no decision for an autoscaler of that name."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(RequestRejected):
    """Metrics can only be read, not written or watched."""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(RequestRejected):
    """The caller accepts none of the supported media types."""

    code = 406
    reason = "NotAcceptable"


class TooManyConcurrentRequests(RequestRejected):
    """The limit of concurrent requests is reached."""

    code = 429
    reason = "TooManyRequests"

    def __init__(self) -> None:
        super().__init__("too many requests, please try again later")


class ReviewUnavailable(AdapterError):
    """A TokenReview or SubjectAccessReview failed, so the request is denied."""


class DeadlineExceeded(AdapterError):
    """The response was not ready in time."""

    code = 504
    reason = "Timeout"


class MetricUnavailable(AdapterError):
    """The metric exists and has no value now."""

    code = 503
    reason = "ServiceUnavailable"
    failure: ClassVar[FailureClass] = FailureClass.UNREACHABLE

    def __init__(self, message: str = "", *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail
        """The metric system's own text, for the log and for debugging; it may vary."""

    def with_context(self, metric: str, backend: str) -> Self:
        """Return the error for callers, with the names of the metric and of the backend in its message."""
        parts = (f"metric {metric!r}", backend, self.failure.value, self.message)
        return type(self)(": ".join(part for part in parts if part), detail=self.detail)


class NoSeries(MetricUnavailable):
    """No series matches. This is an error and not an empty list or zero, because zero scales down."""

    failure = FailureClass.NO_SERIES


class NotANumber(MetricUnavailable):
    """The value is NaN or infinite."""

    failure = FailureClass.NOT_A_NUMBER


class OutOfRange(MetricUnavailable):
    """The value is negative or so large that an HPA's arithmetic overflows, which would scale to a limit."""

    failure = FailureClass.OUT_OF_RANGE


class TooOld(MetricUnavailable):
    """The value is older than the rule allows. An HPA itself ignores timestamps."""

    failure = FailureClass.TOO_OLD


class BackendError(MetricUnavailable):
    """The query to the backend failed."""

    affects_all_queries: ClassVar[bool] = False
    """Whether other queries to the same backend would fail, too."""

    was_sent: bool = True
    """Whether a request was sent; False if the error repeats the result of an earlier one."""


class BackendRejected(BackendError):
    """The backend responded with an error, or with something unexpected."""

    failure = FailureClass.REFUSED


class BackendBusy(BackendRejected):
    """The backend's limit of requests is exceeded."""

    affects_all_queries = True


class BackendUnreachable(BackendError):
    """There is no connection or no response."""

    failure = FailureClass.UNREACHABLE
    affects_all_queries = True


class BackendUnauthorized(BackendError):
    """The backend did not accept the credentials, or they lack a permission."""

    failure = FailureClass.UNAUTHORIZED


class BadQuery(BackendError):
    """The rule's query is invalid."""

    failure = FailureClass.BAD_QUERY


class BackendMetricUnknown(BackendError):
    """The backend has no such metric."""

    code = 404
    reason = "NotFound"
    failure = FailureClass.UNKNOWN_METRIC


class Ambiguous(BackendError):
    """The backend has several values where the rule needs one."""

    failure = FailureClass.AMBIGUOUS


class BackendTimeout(BackendError):
    """There was no response before the deadline."""

    code = 504
    reason = "Timeout"
    failure = FailureClass.TIMED_OUT
    affects_all_queries = True
