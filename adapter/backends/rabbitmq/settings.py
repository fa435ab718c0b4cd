"""Settings of the RabbitMQ backend and the parameters of its rules."""

from collections.abc import Iterator
from typing import ClassVar, Final, Literal

from adapter.backends.connection.http_settings import HttpSettings
from adapter.backends.settings import Parameters, count_problems
from adapter.decoding.problem import Problem

ANY_VHOST: Final = "*"
_MAX_PAGE_SIZE: Final = 500  # the limit of RabbitMQ


class RabbitMqParameters(Parameters, frozen=True):
    """One or more queues, and what to measure."""

    selecting: ClassVar[tuple[str, ...]] = ("queue", "queues", "vhost")

    queue: str = ""
    """Name of one queue. The result is one series with the labels ``vhost`` and ``queue``."""

    queues: str = ""
    """Instead of ``queue``: a regular expression in RabbitMQ's syntax that matches whole names. Each matching queue is
    a series."""

    vhost: str = "/"
    """Virtual host of the queue. With ``queues`` it can be ``*``: all virtual hosts."""

    measure: Literal["messages", "ready", "unacknowledged", "publishRate", "deliverRate"] = "messages"
    """What to measure: ``messages``, all messages; ``ready``, messages that are ready for delivery; ``unacknowledged``,
    messages that are delivered and not acknowledged; ``publishRate`` and ``deliverRate``, messages per second that are
    published or delivered. The default counts all work that is not finished."""

    def problems(self, path: str) -> Iterator[Problem]:
        if bool(self.queue) == bool(self.queues):
            yield Problem(f"{path}.queue", "exactly one of queue and queues is required")
        for key, name in (("queue", self.queue), ("vhost", self.vhost)):
            if name in {".", ".."}:
                yield Problem(f"{path}.{key}", "must not be . or ..", hint="it would be a different path of the API")
        if not self.vhost:
            yield Problem(f"{path}.vhost", "must not be empty", hint="the default virtual host is /")
        elif self.vhost == ANY_VHOST and not self.queues:
            yield Problem(f"{path}.vhost", "* requires queues")


class RabbitMq(HttpSettings, frozen=True):
    """A RabbitMQ server with the management plugin."""

    backend_class: ClassVar[str] = "adapter.backends.rabbitmq.backend:RabbitMqBackend"
    parameters_type: ClassVar[type[Parameters] | None] = RabbitMqParameters
    has_adaptive_interval: ClassVar[bool] = True

    page_size: int = 500
    """Queues per response for rules with ``queues``. All pages are read within the deadline of the rule. The default is
    the maximum of RabbitMQ."""

    def problems(self, path: str) -> Iterator[Problem]:
        yield from super().problems(path)
        yield from count_problems({"pageSize": self.page_size}, path)
        if self.page_size > _MAX_PAGE_SIZE:
            yield Problem(f"{path}.pageSize", f"must be at most {_MAX_PAGE_SIZE}", value=self.page_size)
