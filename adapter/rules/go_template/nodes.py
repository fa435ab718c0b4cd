"""What a template is made of once it is parsed."""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Value: TypeAlias = Any
"""Types are found out while a template is filled, as in Go."""


class TemplateError(ValueError):
    """The template cannot be read, or cannot be filled."""


class _NoValue:
    """What a map does not have; printed, it says so, as Go does."""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "<no value>"


NO_VALUE: Final = _NoValue()


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, a number, true, false or nil."""

    value: object


@dataclass(frozen=True, slots=True)
class Path:
    """``.A.B``, ``$x.A``, ``(pipeline).A`` or a bare dot: where it starts, and the fields after it."""

    root: "str | Pipeline"
    """A variable's name with its dollar, ``.`` for the dot, or what is in parentheses."""

    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A function's name where an operand may be."""

    name: str


Operand: TypeAlias = Literal | Path | Call


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands, each given the result of the one before as its last argument."""

    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    declares: bool = True
    """Whether the variables are new here, ``:=``, or set, ``=``."""


@dataclass(frozen=True, slots=True)
class Text:
    """What is copied."""

    text: str


@dataclass(frozen=True, slots=True)
class Output:
    """An action that prints."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Block:
    """``if``, ``range`` or ``with``, up to its ``end``."""

    word: str
    pipeline: Pipeline
    body: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]" = ()


Node: TypeAlias = Text | Output | Block
