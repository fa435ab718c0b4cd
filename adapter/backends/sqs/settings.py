"""Which SQS, and which of its queues."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Final, Literal
from urllib.parse import urlsplit

from adapter.backends.connection.aws.settings import AwsSettings, region_problems
from adapter.backends.settings import Parameters, Price

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo")
_PREFIX: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_ACCOUNT: Final = re.compile(r"\d{12}")
_HOST: Final = re.compile(r"(?:sqs\.)?([a-z0-9-]+)\.(?:queue\.)?amazonaws\.com(?:\.cn)?")
_PRICE: Final = 0.40 / 1_000_000
"""Dollars for each request, by the price list of most regions."""


class SqsParameters(Parameters, frozen=True):
    """Which queues, and what of them."""

    queue: str = ""
    """One queue: its name, or its URL. The answer is one series with the label ``queue``, its name."""

    prefix: str = ""
    """Instead: how names begin. Each queue whose name does is a series."""

    reads: tuple[Literal["visible", "inFlight", "delayed"], ...] = ("visible", "inFlight")
    """What to add up: messages that wait to be received, those that a consumer has and did not delete yet, those that
    are put off."""

    account_id: str = ""
    """The account that owns the queue, if it is another's and ``queue`` is a name."""

    region: str = ""
    """Where. Left out: as the queue's URL says, or else the backend's region."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if bool(self.queue) == bool(self.prefix):
            yield f"{at}.queue: either this or prefix is needed"
        elif self.prefix and not _PREFIX.fullmatch(self.prefix):
            yield f"{at}.prefix: must be the beginning of a queue's name: letters, digits, - and _"
        elif self.queue and not (_NAME.fullmatch(self.queue) or self.is_url):
            yield f"{at}.queue: must be a name, or a URL as https://sqs.eu-west-1.amazonaws.com/123456789012/NAME"
        if not self.reads or len(set(self.reads)) < len(self.reads):
            yield f"{at}.reads: must name some of visible, inFlight, delayed, each once"
        if self.account_id and not _ACCOUNT.fullmatch(self.account_id):
            yield f"{at}.accountId: must be twelve digits, in quotes"
        elif self.account_id and (self.prefix or self.is_url):
            yield f"{at}.accountId: is for a queue by its name"
        yield from region_problems(self.region, f"{at}.region")

    @property
    def is_url(self) -> bool:
        """Whether the queue is named by its URL."""
        try:
            parts = urlsplit(self.queue)
        except ValueError:
            return False
        path = parts.path.split("/")
        is_path = len(path) == 3 and bool(_ACCOUNT.fullmatch(path[1])) and bool(_NAME.fullmatch(path[2]))
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and is_path and not parts.query

    @property
    def place(self) -> str:
        """The region to ask in; empty: the backend's."""
        if self.region or not self.is_url:
            return self.region
        found = _HOST.fullmatch(urlsplit(self.queue).hostname or "")
        return found[1] if found else ""


class Sqs(AwsSettings, frozen=True):
    """Amazon SQS."""

    opened_by: ClassVar[str] = "adapter.backends.sqs.backend:SqsBackend"
    asked_with: ClassVar[type[Parameters] | None] = SqsParameters
    rules_write_labels: ClassVar[bool] = True  # the one that there is, a queue's name, says nothing of who may see it

    def price_per_day(self, parameters: Parameters, interval: timedelta) -> Price | None:
        """Say what asking costs; how many queues begin with a prefix nobody knows before."""
        if not isinstance(parameters, SqsParameters):
            return None
        times = timedelta(days=1) / interval
        many = ", for each queue that it finds" if parameters.prefix else ""
        return Price(times * _PRICE, f"{times:,.0f} requests at $0.40 per 1,000,000{many}")
