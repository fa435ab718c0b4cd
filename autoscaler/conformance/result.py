"""What running one case of a vector file gives: agreement, or the places where the two differ."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

Document: TypeAlias = Mapping[str, Any]
"""One vector file, as parsed from JSON."""


class Difference(Struct, frozen=True):
    """One place where upstream's answer and ours are not the same."""

    where: str
    expected: object
    got: object


class Case(NamedTuple):
    """One case, ready to be run."""

    name: str
    differences: Callable[[], Iterable[Difference]]


class Result(Struct, frozen=True):
    """One case, run. No differences means it passed."""

    case: str
    differences: tuple[Difference, ...] = ()


def run_case(case: Case) -> Result:
    """Run one case; if it crashes, that is its failure, and not the end of the others."""
    try:
        return Result(case.name, tuple(case.differences()))
    except Exception as error:  # noqa: BLE001 - whatever it was, the report names it
        return Result(case.name, (Difference("it crashed", "an answer", f"{type(error).__name__}: {error}"),))


class Runner(Protocol):
    """A module that knows one kind of vector file."""

    def sections(self, document: Document) -> tuple[str, ...]:
        """Name the keys of the document whose cases this runner runs; empty if it is not this runner's kind."""
        ...

    def cases(self, document: Document) -> Iterator[Case]:
        """Give every case of those sections, ready to be run."""
        ...


def compare(where: str, expected: object, got: object) -> Iterator[Difference]:
    """Yield the differences between two JSON-like values, each at the deepest place that still tells them apart."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key in [*expected, *(key for key in got if key not in expected)]:
            yield from compare(f"{where}.{key}" if where else str(key), expected.get(key), got.get(key))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from compare(f"{where}[{index}]", one, other)
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield Difference(where, expected, got)
