"""The version of the program. Its only source is pyproject.toml."""

from importlib import metadata


def package_version() -> str:
    """Return the version of the installed package; 0.0.0 in a source tree that is not installed."""
    try:
        return metadata.version("steadyscale")
    except metadata.PackageNotFoundError:
        return "0.0.0"
