"""Conversion of SQS responses into samples. No I/O."""

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
_INVALID_RESPONSE: Final = "invalid response from SQS"


def sample(url: str, response: Mapping[str, Any], measure: Collection[str], now: datetime) -> RawSample:
    """Return the sum of the measured attributes; a missing attribute makes the sum NaN instead of too low."""
    attributes = response.get("Attributes")
    if not isinstance(attributes, Mapping):
        raise BackendRejected(_INVALID_RESPONSE, detail="no Attributes")
    total = math.fsum(_number(attributes.get(ATTRIBUTES[name])) for name in measure)
    return RawSample(total, now, {"queue": url.rpartition("/")[2]})


def queue_urls(response: Mapping[str, Any]) -> list[str]:
    """Return the queue URLs of one page. SQS omits an empty list, so that its headers must identify the response."""
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    is_sqs = "x-amzn-requestid" in headers or "x-amz-json" in headers.get("content-type", "")
    urls = response.get("QueueUrls", [] if is_sqs else None)
    if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
        raise BackendRejected(_INVALID_RESPONSE, detail="no QueueUrls")
    return urls


def queue_url(response: Mapping[str, Any]) -> str:
    """Return the URL of one queue."""
    url = response.get("QueueUrl")
    if not isinstance(url, str) or not url:
        raise BackendRejected(_INVALID_RESPONSE, detail="no QueueUrl")
    return url


def _number(value: object) -> float:
    if value is None:
        return math.nan
    try:
        return float(str(value))
    except ValueError:
        raise BackendRejected(_INVALID_RESPONSE, detail="an attribute is not a number") from None
