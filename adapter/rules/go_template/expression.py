"""Expressions of actions: a recursive descent parser whose result is a function that evaluates the expression."""

import ast
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Final, NamedTuple, TypeAlias

from adapter.rules.go_template.functions import FUNCTIONS, Value
from adapter.rules.go_template.lexer import TemplateError, TemplateToken

_MAX_TEXT_LENGTH: Final = 128 * 1024
_CONSTANTS: Final = {"true": True, "false": False, "nil": None}
_END: Final = TemplateToken("end", "")


class Output:
    """The rendered text; its length is limited."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0

    def append(self, text: str) -> None:
        self._length += len(text)
        _check_length(self._length)
        self._parts.append(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)


class Frame(NamedTuple):
    """The state of a rendering inside one block."""

    data: Mapping[str, object]
    dot: Value
    variables: ChainMap[str, Value]
    """Variables by name with their ``$``, one table per nested block."""

    out: "Output"
    steps: Iterator[int]

    def nested(self, dot: Value, variables: Mapping[str, Value]) -> "Frame":
        return self._replace(dot=dot, variables=self.variables.new_child(dict(variables)))

    def table_with(self, variable: str) -> MutableMapping[str, Value]:
        for table in self.variables.maps:
            if variable in table:
                return table
        raise TemplateError(f"undefined variable {variable!r}")


Evaluate: TypeAlias = Callable[[Frame], Value]


class Pipeline(NamedTuple):
    """An expression, and the variables to which it assigns its value."""

    evaluate: Evaluate
    variables: tuple[str, ...]


def parse_pipeline(tokens: list[TemplateToken]) -> Pipeline:
    """Parse the tokens of an action; raise ``TemplateError`` if they are not a pipeline."""
    action = _ActionParser(tokens)
    pipeline = action.pipeline()
    if action.peek() is not _END:
        raise TemplateError(f"unexpected {action.peek().text!r}")
    return pipeline


class _ActionParser:
    def __init__(self, tokens: list[TemplateToken]) -> None:
        self._tokens = tokens
        self._position = 0

    def peek(self, ahead: int = 0) -> TemplateToken:
        position = self._position + ahead
        return self._tokens[position] if position < len(self._tokens) else _END

    def pipeline(self) -> Pipeline:
        variables, is_declaration = self._variables()
        commands = [self._command()]
        while self._is_at_sign("|"):
            self._take()
            commands.append(self._command())

        def evaluate(frame: Frame) -> Value:
            value = commands[0](frame)
            for command in commands[1:]:
                value = command(frame, value)
            for name in variables[-1:]:
                (frame.variables if is_declaration else frame.table_with(name))[name] = value
            return value

        return Pipeline(evaluate, variables)

    def _take(self) -> TemplateToken:
        token = self.peek()
        self._position += 1
        return token

    def _is_at_sign(self, signs: str) -> bool:
        return self.peek().kind == "sign" and self.peek().text in signs

    def _variables(self) -> tuple[tuple[str, ...], bool]:
        """Parse ``$x :=`` or ``$x, $y :=``; the second result is False for an assignment with ``=``."""
        if self.peek().kind != "variable":
            return (), True
        for count in (1, 2):
            sign = self.peek(2 * count - 1)
            if sign.kind == "sign" and sign.text in {":=", "="}:
                names = tuple(self.peek(2 * each).text for each in range(count))
                self._position += 2 * count
                return names, sign.text == ":="
            if sign.text != ",":
                break
        return (), True

    def _command(self) -> Callable[..., Value]:
        """Parse a function with its arguments, or one operand. The value of the previous command is an argument."""
        is_call = self.peek().kind == "word" and self.peek().text not in _CONSTANTS
        function = _function(self._take().text) if is_call else None
        operands: list[Evaluate] = []
        while self.peek() is not _END and not self._is_at_sign("|)"):
            operands.append(self._operand())
        if function is None and not operands:
            raise TemplateError("missing command")

        def evaluate(frame: Frame, *piped: Value) -> Value:
            arguments = (*(operand(frame) for operand in operands), *piped)
            if function is not None:
                return function(*arguments)
            if len(arguments) > 1:
                raise TemplateError("can't give argument to non-function")
            return arguments[0]

        return evaluate

    def _operand(self) -> Evaluate:
        token, fields = self._take(), []
        match token.kind, token.text:
            case (("string" | "number" | "word"), _):
                return _literal_or_call(token)
            case "sign", ".":
                return lambda frame: frame.dot
            case "variable", name:
                root: Evaluate = lambda frame: frame.table_with(name)[name]  # noqa: E731
            case "field", name:
                root, fields = lambda frame: frame.dot, [name[1:]]
            case "sign", "(":
                root = self.pipeline().evaluate
                if self._take().text != ")":
                    raise TemplateError("unclosed parenthesis")
            case _:
                raise TemplateError(f"unexpected {token.text!r}")
        while self.peek().kind == "field" and self.peek().adjacent:
            fields.append(self._take().text[1:])
        return lambda frame: _select(frame.data, root(frame), fields)


def _literal_or_call(token: TemplateToken) -> Evaluate:
    if token.kind == "word" and token.text not in _CONSTANTS:
        function = _function(token.text)
        return lambda _: function()
    value = _CONSTANTS[token.text] if token.kind == "word" else _literal(token.text)
    return lambda _: value


def _literal(text: str) -> str | int | float:
    if text.startswith("`"):
        return text[1:-1]
    try:
        value: str | int | float = ast.literal_eval(text)  # Go's strings and numbers are also valid in Python
    except (SyntaxError, ValueError):
        raise TemplateError(f"invalid literal: {text[:50]}") from None
    return value


def _function(name: str) -> Callable[..., Value]:
    if name not in FUNCTIONS:
        raise TemplateError(f"function {name!r} not defined")

    def call(*arguments: Value) -> Value:
        try:
            value = FUNCTIONS[name](*arguments)
        except (TypeError, ValueError, IndexError) as error:
            raise TemplateError(f"{name}: {error}") from None
        _check_length(len(value) if isinstance(value, str) else 0)
        return value

    return call


def _check_length(length: int) -> None:
    if length > _MAX_TEXT_LENGTH:
        raise TemplateError(f"the result has more than {_MAX_TEXT_LENGTH} characters")


def _select(data: Mapping[str, object], value: Value, fields: list[str]) -> Value:
    """Return a field of a field of a value; a missing key of a map is None."""
    for name in fields:
        if not isinstance(value, Mapping):
            raise TemplateError(f"can't evaluate field {name}")
        if value is data and name not in value:
            raise TemplateError(f"can't evaluate field {name}; available fields: {', '.join(sorted(value))}")
        value = value.get(name)
    return value
