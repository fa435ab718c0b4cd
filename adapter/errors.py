"""Every way to be refused or to fail. Each error knows its HTTP code, its reason and a message that stays the same.

::

    AdapterError
    ├── ConfigInvalid                         the file or a flag is wrong; never served, it stops the start
    ├── RequestRejected
    │   ├── BadRequest                   400  a selector, limit or timeout that does not parse
    │   ├── Unauthenticated              401  credentials were shown and are no good
    │   ├── Forbidden                    403  known, and not allowed
    │   ├── PathNotFound                 404  no such URL here
    │   ├── MetricNotFound               404  no rule of that name in this namespace
    │   ├── AutoscalerNotFound           404  nothing was decided here for an autoscaler of that name
    │   ├── MethodNotAllowed             405  reading is all there is
    │   ├── NotAcceptable                406  no media type in common
    │   └── TooManyRequests              429  as many requests are being answered as may be
    ├── ReviewUnavailable                500  who it is or whether they may could not be found out: the answer is no
    ├── DeadlineExceeded                 504  the answer was not ready in the time given
    └── MetricUnavailable                     the metric exists and has no number now; ``failure`` says why
        ├── NoSeries                     503
        ├── NotANumber                   503
        ├── OutOfRange                   503
        ├── TooOld                       503
        └── BackendError
            ├── BackendRejected           503
            │   └── BackendBusy          503
            ├── BackendUnreachable       503
            ├── BackendUnauthorized      503
            ├── BadQuery                 503
            ├── BackendMetricUnknown           404
            ├── Ambiguous                503
            └── BackendTimeout          504

An HPA copies the message word for word into its condition and its event, and events are counted by their text. So a
message names the metric, the hop and the class of failure, and never a time, an identifier or a number that changes.
"""

from collections.abc import Iterable
from typing import ClassVar, Self

from autoscaler.types.observation import FailureClass


class AdapterError(Exception):
    """The root of the tree."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"
    failure: ClassVar[FailureClass | None] = None

    def __init__(self, message: str, *, group: str = "", resource: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        """API group of what was asked for, for ``details.group``."""
        self.resource = resource
        """Resource that was asked for, here the metric, for ``details.kind``."""


class ConfigInvalid(AdapterError):
    """The configuration has problems, each with its path."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class RequestRejected(AdapterError):
    """The caller's doing, not ours."""


class BadRequest(RequestRejected):
    """A parameter does not parse."""

    code = 400
    reason = "BadRequest"


class Unauthenticated(RequestRejected):
    """Credentials were shown and are no good. The answer says no more than that; ``why`` is for the log."""

    code = 401
    reason = "Unauthorized"

    def __init__(self, why: str) -> None:
        super().__init__("Unauthorized")
        self.why = why


class Forbidden(RequestRejected):
    """The caller may not."""

    code = 403
    reason = "Forbidden"


class PathNotFound(RequestRejected):
    """There is nothing at this URL."""

    code = 404
    reason = "NotFound"

    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource")


class MetricNotFound(RequestRejected):
    """No rule defines this metric in this namespace."""

    code = 404
    reason = "NotFound"
    failure = FailureClass.UNKNOWN_METRIC


class AutoscalerNotFound(RequestRejected):
    """Nothing was decided here for an autoscaler of that name."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(RequestRejected):
    """Metrics are read, never written or watched."""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(RequestRejected):
    """The caller accepts nothing that we can send."""

    code = 406
    reason = "NotAcceptable"


class TooManyRequests(RequestRejected):
    """As many requests are in flight as may be."""

    code = 429
    reason = "TooManyRequests"

    def __init__(self) -> None:
        super().__init__("too many requests are being answered, please try again later")


class ReviewUnavailable(AdapterError):
    """Who is calling, or whether they may, could not be found out. Then the answer is no."""


class DeadlineExceeded(AdapterError):
    """The answer was not ready in the time given."""

    code = 504
    reason = "Timeout"


class MetricUnavailable(AdapterError):
    """The metric is known and has no number now; the caller is told why."""

    code = 503
    reason = "ServiceUnavailable"
    failure: ClassVar[FailureClass] = FailureClass.UNREACHABLE

    def __init__(self, message: str = "", *, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail
        """What the metric system said, word for word, for the log and for debugging; it may change each time."""

    def of(self, metric: str, hop: str) -> Self:
        """Make the error that callers see: who raised this one knew the cause, and neither the metric nor the hop."""
        told = ": ".join(part for part in (f"metric {metric!r}", hop, self.failure.value, self.message) if part)
        return type(self)(told, detail=self.detail)


class NoSeries(MetricUnavailable):
    """Nothing matches. An error and not an empty list or a zero, because a zero scales down."""

    failure = FailureClass.NO_SERIES


class NotANumber(MetricUnavailable):
    """NaN or infinity."""

    failure = FailureClass.NOT_A_NUMBER


class OutOfRange(MetricUnavailable):
    """Negative, or so large that an HPA's arithmetic overflows; it would scale to the maximum or to nothing."""

    failure = FailureClass.OUT_OF_RANGE


class TooOld(MetricUnavailable):
    """Older than the rule allows. An HPA never looks at the time, so we must."""

    failure = FailureClass.TOO_OLD


class BackendError(MetricUnavailable):
    """The metric system failed us."""

    affects_all_queries: ClassVar[bool] = False
    """Whether whoever asks anything else would hear the same: nobody answers, or nobody is to ask."""

    was_sent: bool = True
    """Whether it is news; else nobody was asked this time, and this is what came of asking before."""


class BackendRejected(BackendError):
    """It answered, with a refusal."""

    failure = FailureClass.REFUSED


class BackendBusy(BackendRejected):
    """It answered that it is asked too often, or by too many."""

    affects_all_queries = True


class BackendUnreachable(BackendError):
    """It did not answer."""

    failure = FailureClass.UNREACHABLE
    affects_all_queries = True


class BackendUnauthorized(BackendError):
    """It does not believe or does not admit us."""

    failure = FailureClass.UNAUTHORIZED


class BadQuery(BackendError):
    """It does not understand the rule's query."""

    failure = FailureClass.BAD_QUERY


class BackendMetricUnknown(BackendError):
    """It answered that it knows no such metric."""

    code = 404
    reason = "NotFound"
    failure = FailureClass.UNKNOWN_METRIC


class Ambiguous(BackendError):
    """It has more than one answer where the rule asks for one."""

    failure = FailureClass.AMBIGUOUS


class BackendTimeout(BackendError):
    """It was too slow."""

    code = 504
    reason = "Timeout"
    failure = FailureClass.TIMED_OUT
    affects_all_queries = True
