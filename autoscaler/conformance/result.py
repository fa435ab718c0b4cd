"""Cases of vector files, their results, and the comparison of expected and actual values."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

Document: TypeAlias = Mapping[str, Any]
"""One vector file, as parsed from JSON."""


class Difference(Struct, frozen=True):
    """A field in which upstream's result and ours differ."""

    path: str
    expected: object
    got: object


class Case(NamedTuple):
    """A case: its name and the function that runs it."""

    name: str
    differences: Callable[[], Iterable[Difference]]


class Result(Struct, frozen=True):
    """The result of a case; no differences means that it passed."""

    case: str
    differences: tuple[Difference, ...] = ()


def run_case(case: Case) -> Result:
    """Run one case; an exception is reported as a difference, so that the other cases still run."""
    try:
        return Result(case.name, tuple(case.differences()))
    except Exception as error:  # noqa: BLE001 - the report shows any exception
        return Result(case.name, (Difference("exception", None, f"{type(error).__name__}: {error}"),))


class Runner(Protocol):
    """A module that runs one kind of vector file."""

    def sections(self, document: Document) -> tuple[str, ...]:
        """Return the keys of the document whose cases this module runs; empty for other kinds of files."""
        ...

    def cases(self, document: Document) -> Iterator[Case]:
        """Yield every case of these sections."""
        ...


def compare(path: str, expected: object, got: object) -> Iterator[Difference]:
    """Yield the differences between two JSON values, each at its innermost path."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in [*expected, *(key for key in got if key not in expected)]:
            yield from compare(f"{path}.{key}" if path else str(key), expected.get(key), got.get(key))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from compare(f"{path}[{index}]", left, right)
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield Difference(path, expected, got)
