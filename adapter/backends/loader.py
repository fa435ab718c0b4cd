"""Creation of backends from their settings; client libraries are imported on demand."""

import importlib
from collections.abc import Callable
from datetime import datetime
from importlib.util import find_spec
from typing import Any

from adapter.backends.backend import Backend
from adapter.backends.settings import BackendSettings


def missing_modules(settings: BackendSettings) -> str:
    """Return which modules are not installed and how to install them; empty if none is missing."""
    missing = [module for module in settings.required_modules if not _is_installed(module)]
    return f"needs {', '.join(missing)}: pip install 'steadyscale[{settings.extra}]'" if missing else ""


def create_backend(name: str, settings: BackendSettings, clock: Callable[[], datetime]) -> Backend:
    """Create a backend; no request is sent yet."""
    backend: Backend = import_object(settings.backend_class)(name, settings, clock)
    return backend


def import_backend(settings: BackendSettings) -> None:
    """Import what ``create_backend`` needs; blocks on many files, so call it in a thread."""
    import_object(settings.backend_class)


def import_object(path: str) -> Any:  # noqa: ANN401 - any object
    """Return the object at ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent package is missing
        return False
