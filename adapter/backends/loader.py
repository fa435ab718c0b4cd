"""From settings to the class that speaks with a metric system, whose library is imported only now."""

import importlib
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from adapter.backends.backend import Backend
from adapter.backends.settings import BackendSettings


def missing(settings: BackendSettings) -> str:
    """Say which library is not installed and how to get it; nothing if all are."""
    absent = [module for module in settings.library if not _is_installed(module)]
    return f"needs {', '.join(absent)}: pip install 'steadyscale[{settings.extra}]'" if absent else ""


def opened(name: str, settings: BackendSettings, clock: Callable[[], datetime]) -> Backend:
    """Open a backend; nothing is asked of it yet."""
    made: Backend = imported(settings.opened_by)(name, settings, clock)
    return made


def prepare(settings: BackendSettings) -> None:
    """Import what opening it will need; that reads many files, so where others wait do it in a thread."""
    imported(settings.opened_by)


def imported(place: str) -> Any:  # noqa: ANN401 - whatever is there
    """Give what is at ``package.module:name``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it would be inside of
        return False
