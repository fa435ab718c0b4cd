"""Which RabbitMQ, and which of its queues."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters, at_least_one

ANY_VHOST: Final = "*"
_MOST_ON_A_PAGE: Final = 500  # RabbitMQ refuses more


class RabbitMqParameters(Parameters, frozen=True):
    """Which queues, and what of them."""

    queue: str = ""
    """The name of one queue; the answer is one series, with the labels ``vhost`` and ``queue``."""

    queues: str = ""
    """Instead: a regular expression that whole names must match, in RabbitMQ's own syntax; each queue is a series."""

    vhost: str = "/"
    """Where the queue is. With ``queues`` it may be ``*``: in any."""

    reads: Literal["messages", "ready", "unacknowledged", "publishRate", "deliverRate"] = "messages"
    """How many messages there are in all, wait to be delivered, or are delivered and not yet acknowledged; or how many
    a second come in, or go out to consumers."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them."""
        if bool(self.queue) == bool(self.queues):
            yield f"{at}.queue: either this or queues is needed"
        if not self.vhost:
            yield f"{at}.vhost: must not be empty; the one that is always there is /"
        elif self.vhost == ANY_VHOST and not self.queues:
            yield f"{at}.vhost: * is for queues; a queue is in one"


class RabbitMq(HttpSettings, frozen=True):
    """A RabbitMQ with the management plugin."""

    opened_by: ClassVar[str] = "adapter.backends.rabbitmq.backend:RabbitMqBackend"
    asked_with: ClassVar[type[Parameters] | None] = RabbitMqParameters

    page_size: int = 500
    """Queues in one answer, where a rule asks for many; all pages are read within the rule's deadline."""

    def problems(self, at: str) -> Iterator[str]:
        """Say everything that is wrong with them and that no type can say, each problem with its path."""
        yield from super().problems(at)
        yield from at_least_one({"pageSize": self.page_size}, at)
        if self.page_size > _MOST_ON_A_PAGE:
            yield f"{at}.pageSize: must be at most {_MOST_ON_A_PAGE}, is {self.page_size}"
