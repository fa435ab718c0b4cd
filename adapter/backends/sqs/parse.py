"""From what SQS says of a queue to a sample; pure."""

import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from adapter.errors import BackendRejected
from adapter.sample import RawSample

ATTRIBUTES: Final = {
    "visible": "ApproximateNumberOfMessages",
    "inFlight": "ApproximateNumberOfMessagesNotVisible",
    "delayed": "ApproximateNumberOfMessagesDelayed",
}
_NOT_AS_SQS: Final = "it answers, but not as SQS does"


def sample(url: str, answer: Mapping[str, Any], reads: Collection[str], now: datetime) -> RawSample:
    """Add up what is wanted of a queue; a number that SQS does not tell makes the sum unknown, and not smaller."""
    told = answer.get("Attributes")
    if not isinstance(told, Mapping):
        raise BackendRejected(_NOT_AS_SQS, detail="no Attributes")
    total = math.fsum(_number(told.get(ATTRIBUTES[each])) for each in reads)
    return RawSample(total, now, {"queue": url.rpartition("/")[2]})


def urls(answer: Mapping[str, Any]) -> list[str]:
    """List the queues on one page. SQS leaves the list out if it is empty; so does anything that is not SQS."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    is_sqs = "x-amzn-requestid" in headers or "x-amz-json" in headers.get("content-type", "")
    found = answer.get("QueueUrls", [] if is_sqs else None)
    if not isinstance(found, list) or not all(isinstance(url, str) for url in found):
        raise BackendRejected(_NOT_AS_SQS, detail="no QueueUrls")
    return found


def url(answer: Mapping[str, Any]) -> str:
    """Read the URL of one queue."""
    found = answer.get("QueueUrl")
    if not isinstance(found, str) or not found:
        raise BackendRejected(_NOT_AS_SQS, detail="no QueueUrl")
    return found


def _number(told: object) -> float:
    if told is None:
        return math.nan
    try:
        return float(str(told))
    except ValueError:
        raise BackendRejected(_NOT_AS_SQS, detail="an attribute is no number") from None
