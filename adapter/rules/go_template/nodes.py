"""Syntax tree of a parsed template."""

from typing import Any, Final, NamedTuple, TypeAlias

Value: TypeAlias = Any
"""Values are typed dynamically, as in Go templates."""


class TemplateError(ValueError):
    """The template cannot be parsed or rendered."""


class _NoValue:
    """The result of a missing map key, printed as Go prints it."""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return "<no value>"


NO_VALUE: Final = _NoValue()


class Literal(NamedTuple):
    """A string, a number, true, false or nil."""

    value: object


class Path(NamedTuple):
    """A field path: ``.A.B``, ``$x.A``, ``(pipeline).A`` or the dot itself."""

    root: "str | Pipeline"
    """Name of a variable with its ``$``, ``.`` for the dot, or the pipeline in parentheses."""

    fields: tuple[str, ...] = ()


class Call(NamedTuple):
    """A function name in the position of an operand."""

    name: str


Operand: TypeAlias = Literal | Path | Call


class Pipeline(NamedTuple):
    """Commands; each gets the result of the previous command as its last argument."""

    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    declares: bool = True
    """True: the variables are declared (``:=``); False: assigned (``=``)."""


class Text(NamedTuple):
    """Literal text."""

    text: str


class Output(NamedTuple):
    """An action that prints the value of a pipeline."""

    pipeline: Pipeline


class Block(NamedTuple):
    """An ``if``, ``range`` or ``with`` action with its body."""

    keyword: str
    pipeline: Pipeline
    body: "tuple[Node, ...]"
    otherwise: "tuple[Node, ...]" = ()


Node: TypeAlias = Text | Output | Block
