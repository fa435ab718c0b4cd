"""Why an ``ExternalMetric`` object is not in force, and the report of it."""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from cachetools import TTLCache

from adapter.decoding.problem import Problem

_log = logging.getLogger(__name__)
_LOG_INTERVAL: Final = 60.0
_MAX_LOGGED_NAMESPACES: Final = 10_000
_MAX_TEXT_LENGTH: Final = 1024

INVALID: Final = "Invalid"
BUDGET_EXCEEDED: Final = "BudgetExceeded"
REJECTION_REASONS: Final = frozenset({INVALID, BUDGET_EXCEEDED})


class Rejection(NamedTuple):
    """Why an object is not in force."""

    reason: str
    """The reason of its Ready condition."""

    problems: tuple[Problem, ...]

    @property
    def message(self) -> str:
        return "; ".join(map(str, self.problems))[:_MAX_TEXT_LENGTH]


class RejectionLog:
    """Counts rejections, and logs at most one a minute for each namespace: a tenant can cause any number of them."""

    def __init__(self, count: Callable[[str], None]) -> None:
        self._count = count
        self._logged: TTLCache[str, bool] = TTLCache(_MAX_LOGGED_NAMESPACES, _LOG_INTERVAL)

    def report(self, key: str, rejection: Rejection) -> None:
        self._count(rejection.reason)
        namespace = key.partition("/")[0]
        if namespace not in self._logged:
            self._logged[namespace] = True
            fields = {"externalmetric": key, "reason": rejection.reason, "error": rejection.message}
            _log.warning(
                "ExternalMetric is not in force; others of its namespace are not logged for a minute", extra=fields
            )
