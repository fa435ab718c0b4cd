"""Parser for templates."""

import ast
from collections.abc import Iterator
from typing import Final

from adapter.rules.go_template.functions import FUNCTIONS
from adapter.rules.go_template.lexer import TemplateToken, split
from adapter.rules.go_template.nodes import (
    Block,
    Call,
    Literal,
    Node,
    Operand,
    Output,
    Path,
    Pipeline,
    TemplateError,
    Text,
)

_BLOCKS: Final = frozenset({"if", "range", "with"})
_UNSUPPORTED: Final = frozenset({"define", "template", "block", "break", "continue"})
_CONSTANTS: Final = {"true": True, "false": False, "nil": None}
_END = TemplateToken("end", "")


def parse(template: str) -> tuple[Node, ...]:
    """Parse a template; raise ``TemplateError`` if it is invalid or uses an unsupported action."""
    stream = split(template)
    nodes, terminator = _nodes(stream)
    if terminator:
        raise TemplateError(f"unexpected {terminator[0].text!r}")
    return nodes


def _nodes(stream: Iterator[str | list[TemplateToken]]) -> tuple[tuple[Node, ...], list[TemplateToken]]:
    """Parse nodes up to ``end`` or ``else``; return them and the tokens of that action, if any."""
    nodes: list[Node] = []
    for piece in stream:
        if isinstance(piece, str):
            if piece:
                nodes.append(Text(piece))
            continue
        if not piece:
            raise TemplateError("empty action")
        keyword = piece[0].text
        if keyword in {"end", "else"}:
            return tuple(nodes), piece
        if keyword in _UNSUPPORTED:
            raise TemplateError(f"{keyword!r} is not supported")
        nodes.append(_block(keyword, piece[1:], stream) if keyword in _BLOCKS else Output(_pipeline(piece)))
    return tuple(nodes), []


def _block(keyword: str, head: list[TemplateToken], stream: Iterator[str | list[TemplateToken]]) -> Block:
    pipeline = _pipeline(head)
    body, terminator = _nodes(stream)
    otherwise: tuple[Node, ...] = ()
    if terminator and terminator[0].text == "else":
        if len(terminator) > 1:  # "else if" is a nested block that shares the "end"
            inner = terminator[1].text
            if inner != keyword or keyword == "range":
                raise TemplateError(f"unexpected {inner!r} after 'else'")
            return Block(keyword, pipeline, body, (_block(keyword, terminator[2:], stream),))
        otherwise, terminator = _nodes(stream)
    if not terminator or terminator[0].text != "end":
        raise TemplateError(f"{keyword!r} has no 'end'")
    return Block(keyword, pipeline, body, otherwise)


def _pipeline(tokens: list[TemplateToken]) -> Pipeline:
    action = _ActionParser(tokens)
    result = action.pipeline()
    if action.peek() is not _END:
        raise TemplateError(f"unexpected {action.peek().text!r}")
    return result


class _ActionParser:
    """A recursive descent parser for the tokens of one action."""

    def __init__(self, tokens: list[TemplateToken]) -> None:
        self._tokens = tokens
        self._position = 0

    def peek(self, ahead: int = 0) -> TemplateToken:
        """Return a token without consuming it."""
        position = self._position + ahead
        return self._tokens[position] if position < len(self._tokens) else _END

    def take(self) -> TemplateToken:
        """Consume and return the next token."""
        token = self.peek()
        self._position += 1
        return token

    def pipeline(self) -> Pipeline:
        """Parse the variables and the commands of a pipeline."""
        variables, declares = self._variables()
        commands = [self._command()]
        while self.peek().text == "|" and self.peek().kind == "sign":
            self.take()
            commands.append(self._command())
        return Pipeline(tuple(commands), variables, declares)

    def _variables(self) -> tuple[tuple[str, ...], bool]:
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

    def _command(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while self.peek() is not _END and not (self.peek().kind == "sign" and self.peek().text in {"|", ")"}):
            operands.append(self._operand())
        if not operands:
            raise TemplateError("missing command")
        return tuple(operands)

    def _operand(self) -> Operand:
        token = self.take()
        match token.kind:
            case "string":
                return Literal(_unquoted(token.text))
            case "number":
                return Literal(_number(token.text))
            case "variable":
                return Path(token.text, self._fields())
            case "field":
                return Path(".", (token.text[1:], *self._fields()))
            case "word":
                return _constant_or_function(token.text)
            case _:
                return self._sign(token)

    def _sign(self, token: TemplateToken) -> Operand:
        if token.text == ".":
            return Path(".")
        if token.text != "(":
            raise TemplateError(f"unexpected {token.text!r}")
        inside = self.pipeline()
        if self.take().text != ")":
            raise TemplateError("unclosed parenthesis")
        return Path(inside, self._fields())

    def _fields(self) -> tuple[str, ...]:
        fields = []
        while self.peek().kind == "field" and self.peek().adjacent:
            fields.append(self.take().text[1:])
        return tuple(fields)


def _constant_or_function(text: str) -> Operand:
    if text in _CONSTANTS:
        return Literal(_CONSTANTS[text])
    if text not in FUNCTIONS:
        raise TemplateError(f"function {text!r} not defined")
    return Call(text)


def _unquoted(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]
    try:
        return str(ast.literal_eval(text))  # the escape sequences of Go strings are also valid in Python
    except (SyntaxError, ValueError):
        raise TemplateError(f"invalid string: {text}") from None


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)
