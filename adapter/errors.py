"""The errors of the adapter, each with its HTTP status code, its reason and a constant message.

::

    AdapterError
    ├── ConfigInvalid                         a configuration file or object is invalid (``adapter.decoding.problem``)
    ├── CannotListen                          the serving address or port is not available
    ├── RequestRejected
    │   ├── InvalidRequest               400  a selector, limit or timeout cannot be parsed
    │   ├── Unauthenticated              401  the credentials are invalid
    │   ├── AccessDenied                 403  the caller is not authorized
    │   ├── PathNotFound                 404  unknown URL
    │   ├── MetricNotFound               404  no rule defines the metric in this namespace
    │   ├── AutoscalerNotFound           404  the process has no decision for the autoscaler
    │   ├── MethodNotAllowed             405  the API is read-only
    │   ├── NotAcceptable                406  no common media type
    │   ├── SpecInvalid                  422  the spec of a replay has problems
    │   ├── TooManyReplays               429  the limit of concurrent replays is reached
    │   ├── TooManyConcurrentRequests    429  the limit of concurrent requests is reached
    │   └── TooManyReviews               429  the client has caused too many reviews
    ├── ReviewUnavailable                500  a SubjectAccessReview failed
    ├── RuleRefused                      503  the rule that defines the metric is invalid
    ├── HistoryUnavailable           503  the decision history is disabled or cannot be read
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
            ├── OverBudget               503  the namespace has reached one of its limits
            └── BackendTimeout           504  no response before the deadline

An HPA copies the message into its condition and its event, and Kubernetes aggregates events by their text. So a message
names the metric, the backend and the failure class, and contains no time, identifier or other value that varies.
"""

from http import HTTPStatus
from typing import ClassVar, Final, Self

from autoscaler.types.observation import FailureClass

_REASONS: Final = {422: "Invalid", 500: "InternalError", 504: "Timeout"}
"""The reasons that are not the HTTP status phrase."""


class AdapterError(Exception):
    """The base of all errors; subclasses set the class variables by keywords."""

    code: ClassVar[int] = 500
    failure: ClassVar[FailureClass | None] = None

    def __init_subclass__(cls, *, code: int | None = None, failure: FailureClass | None = None) -> None:
        super().__init_subclass__()
        cls.code, cls.failure = code or cls.code, failure or cls.failure

    def __init__(self, message: str, *, group: str = "", resource: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        """API group of the request, for ``details.group``."""
        self.resource = resource
        """Resource of the request, which is the metric, for ``details.kind``."""

    @property
    def reason(self) -> str:
        """The reason of the ``Status`` that Kubernetes uses with the code."""
        return _REASONS.get(self.code) or HTTPStatus(self.code).phrase.replace(" ", "")

    def detach(self) -> Self:
        """Drop the traceback and the chained errors before the error is stored; return the error.

        Their frames would keep local variables, such as the body of a response, in memory for as long as the error.
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self


class CannotListen(AdapterError):
    """The serving address or port is not available."""


class RequestRejected(AdapterError):
    """The request itself is the reason."""


class InvalidRequest(RequestRejected, code=400):
    """A parameter cannot be parsed."""


class Unauthenticated(RequestRejected, code=401):
    """The credentials are invalid. The response omits the cause; it is for the log."""

    def __init__(self, cause: str) -> None:
        super().__init__("Unauthorized")
        self.cause = cause


class AccessDenied(RequestRejected, code=403):
    """The caller is not authorized."""


class PathNotFound(RequestRejected, code=404):
    """The URL is unknown."""

    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource")


class MetricNotFound(RequestRejected, code=404, failure=FailureClass.UNKNOWN_METRIC):
    """No rule defines the metric in this namespace."""


class AutoscalerNotFound(RequestRejected, code=404):
    """The process has no decision for an autoscaler of that name."""


class MethodNotAllowed(RequestRejected, code=405):
    """Metrics can only be read, not written or watched."""


class NotAcceptable(RequestRejected, code=406):
    """The caller accepts none of the supported media types."""


class SpecInvalid(RequestRejected, code=422):
    """The spec of a replay has problems: pairs of a path, which can be empty, and a message."""

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{path}: {message}" if path else message for path, message in problems))
        self.problems = problems


class TooManyReplays(RequestRejected, code=429):
    """The limit of concurrent replays is reached."""

    def __init__(self) -> None:
        super().__init__("another replay is running, please try again in some seconds")


class TooManyConcurrentRequests(RequestRejected, code=429):
    """The limit of concurrent requests is reached."""

    def __init__(self) -> None:
        super().__init__("too many requests, please try again later")


class TooManyReviews(RequestRejected, code=429):
    """The caller, or the source address of an unauthenticated client, has caused too many reviews."""

    def __init__(self) -> None:
        super().__init__("too many new tokens or denied requests, please try again later")


class ReviewUnavailable(AdapterError):
    """A SubjectAccessReview failed, so the request is denied. A failed TokenReview is ``Unauthenticated``."""


class RuleRefused(AdapterError, code=503, failure=FailureClass.REFUSED):
    """The rule or object that defines the metric is invalid, so it is not in force."""


class HistoryUnavailable(AdapterError, code=503):
    """The decision history is disabled or cannot be read."""


class DeadlineExceeded(AdapterError, code=504):
    """The response was not ready in time."""


class MetricUnavailable(AdapterError):
    """The metric exists and has no value now."""

    code = 503
    failure: ClassVar[FailureClass] = FailureClass.UNREACHABLE

    def __init__(self, message: str = "", *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail
        """The metric system's own text, for the log and for debugging; it may vary."""

    def with_context(self, metric: str, backend: str) -> Self:
        """Return the error for callers, with the names of the metric and of the backend in its message."""
        parts = (f"metric {metric!r}", backend, self.failure.value, self.message)
        return type(self)(": ".join(part for part in parts if part), detail=self.detail)


class NoSeries(MetricUnavailable, failure=FailureClass.NO_SERIES):
    """No series matches. This is an error and not an empty list or zero, because zero scales down."""


class NotANumber(MetricUnavailable, failure=FailureClass.NOT_A_NUMBER):
    """The value is NaN or infinite."""


class OutOfRange(MetricUnavailable, failure=FailureClass.OUT_OF_RANGE):
    """The value is negative or so large that an HPA's arithmetic overflows, which would scale to a limit."""


class TooOld(MetricUnavailable, failure=FailureClass.TOO_OLD):
    """The value is older than the rule allows. An HPA itself ignores timestamps."""


class BackendError(MetricUnavailable):
    """The query to the backend failed."""

    affects_all_queries: ClassVar[bool] = False
    """Whether other queries to the same backend would fail, too."""

    was_sent: bool = True
    """Whether a request was sent; False if the error repeats the result of an earlier one."""


class BackendRejected(BackendError, failure=FailureClass.REFUSED):
    """The backend responded with an error, or with something unexpected."""


class BackendBusy(BackendRejected):
    """The backend's limit of requests is exceeded."""

    affects_all_queries = True


class BackendUnreachable(BackendError, failure=FailureClass.UNREACHABLE):
    """There is no connection or no response."""

    affects_all_queries = True


class BackendUnauthorized(BackendError, failure=FailureClass.UNAUTHORIZED):
    """The backend did not accept the credentials, or they lack a permission."""


class BadQuery(BackendError, failure=FailureClass.BAD_QUERY):
    """The rule's query is invalid."""


class BackendMetricUnknown(BackendError, code=404, failure=FailureClass.UNKNOWN_METRIC):
    """The backend has no such metric."""


class Ambiguous(BackendError, failure=FailureClass.AMBIGUOUS):
    """The backend has several values where the rule needs one."""


class OverBudget(BackendError, failure=FailureClass.OVER_BUDGET):
    """The namespace has reached one of its limits. It says nothing about the backend."""

    was_sent = False


class BackendTimeout(BackendError, code=504, failure=FailureClass.TIMED_OUT):
    """There was no response before the deadline."""

    affects_all_queries = True
