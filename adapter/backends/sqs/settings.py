"""Settings of the SQS backend and the parameters of its rules."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final, Literal
from urllib.parse import urlsplit

from adapter.backends.connection.aws.settings import AwsSettings, region_problems
from adapter.backends.settings import Parameters, Price
from adapter.decoding.problem import Problem

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_ACCOUNT: Final = re.compile(r"\d{12}")
_HOST: Final = re.compile(r"(?:sqs\.)?([a-z0-9-]+)\.(?:queue\.)?amazonaws\.com(?:\.cn)?")
_DOLLARS_PER_REQUEST: Final = 0.40 / 1_000_000
"""Price of one request in most regions."""


class SqsParameters(Parameters, frozen=True):
    """One or more queues, and what to measure."""

    selecting: ClassVar[tuple[str, ...]] = ("queue", "prefix", "account_id", "region")

    queue: str = ""
    """Name or URL of one queue. The result is one series with the label ``queue``, the name of the queue."""

    prefix: str = ""
    """Instead of ``queue``: prefix of queue names. Each queue whose name starts with it is a series."""

    measure: tuple[Literal["visible", "inFlight", "delayed"], ...] = ("visible", "inFlight")
    """The message counts to add up: ``visible``, messages that can be received; ``inFlight``, messages that a consumer
    received and did not delete yet; ``delayed``, messages that are not visible yet. The default counts all work that
    is not finished."""

    account_id: str = ""
    """ID of the account that owns the queue, if ``queue`` is the name of a queue of another account."""

    region: str = ""
    """Region of the queue. Default: the region in the URL of the queue, or the region of the backend."""

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.queue) == bool(self.prefix):
            yield Problem(f"{path}.queue", "exactly one of queue and prefix is required")
        elif self.prefix and not _PREFIX.fullmatch(self.prefix):
            yield Problem(f"{path}.prefix", "must be the start of a queue name: letters, digits, - and _")
        elif self.queue and not (_NAME.fullmatch(self.queue) or self.is_url):
            message = "must be a name, or a URL such as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME"
            yield Problem(f"{path}.queue", message)
        if not self.measure or len(set(self.measure)) < len(self.measure):
            yield Problem(f"{path}.measure", "must contain visible, inFlight or delayed, each at most once")
        if self.account_id and not _ACCOUNT.fullmatch(self.account_id):
            yield Problem(f"{path}.accountId", "must be a string of twelve digits", hint="quote it in YAML")
        elif self.account_id and (self.prefix or self.is_url):
            yield Problem(f"{path}.accountId", "only valid if queue is a name")
        yield from region_problems(self.region, f"{path}.region")

    @property
    def is_url(self) -> bool:
        """Whether ``queue`` is a URL."""
        try:
            parts = urlsplit(self.queue)
        except ValueError:
            return False
        path = parts.path.split("/")
        is_path = len(path) == 3 and bool(_ACCOUNT.fullmatch(path[1])) and bool(_NAME.fullmatch(path[2]))
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and is_path and not parts.query

    @property
    def effective_region(self) -> str:
        """The region to query; empty: the region of the backend."""
        if self.region or not self.is_url:
            return self.region
        match = _HOST.fullmatch(urlsplit(self.queue).hostname or "")
        return match[1] if match else ""


class Sqs(AwsSettings, frozen=True):
    """Amazon SQS."""

    backend_class: ClassVar[str] = "adapter.backends.sqs.backend:SqsBackend"
    parameters_type: ClassVar[type[Parameters] | None] = SqsParameters
    labels_controlled_by_rules: ClassVar[bool] = True  # the only label, the queue name, does not identify a tenant

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Return the price; the number of queues with a prefix is not known in advance."""
        if not isinstance(parameters, SqsParameters):
            return None
        requests = timedelta(days=1) / interval
        per_queue = ", for each queue with the prefix" if parameters.prefix else ""
        return Price(requests * _DOLLARS_PER_REQUEST, f"{requests:,.0f} requests at $0.40 per 1,000,000{per_queue}")
