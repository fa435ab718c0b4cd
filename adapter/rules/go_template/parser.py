"""From a template's text to its nodes."""

import ast
from collections.abc import Iterator
from typing import Final

from adapter.rules.go_template.functions import FUNCTIONS
from adapter.rules.go_template.lexer import Token, pieces
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
_REFUSED: Final = frozenset({"define", "template", "block", "break", "continue"})
_CONSTANTS: Final = {"true": True, "false": False, "nil": None}
_END = Token("end", "")


def parse(template: str) -> tuple[Node, ...]:
    """Read a template; raise ``TemplateError`` if it is none, or uses what is not supported here."""
    stream = pieces(template)
    nodes, stopped_at = _nodes(stream)
    if stopped_at:
        raise TemplateError(f"unexpected {stopped_at[0].text!r}")
    return nodes


def _nodes(stream: Iterator[str | list[Token]]) -> tuple[tuple[Node, ...], list[Token]]:
    """Read nodes up to an ``end`` or ``else``; return that action's tokens too, none at the end of the text."""
    found: list[Node] = []
    for piece in stream:
        if isinstance(piece, str):
            if piece:
                found.append(Text(piece))
            continue
        if not piece:
            raise TemplateError("an action is empty")
        word = piece[0].text
        if word in {"end", "else"}:
            return tuple(found), piece
        if word in _REFUSED:
            raise TemplateError(f"{word!r} is not supported")
        found.append(_block(word, piece[1:], stream) if word in _BLOCKS else Output(_pipeline(piece)))
    return tuple(found), []


def _block(word: str, head: list[Token], stream: Iterator[str | list[Token]]) -> Block:
    pipeline = _pipeline(head)
    body, stopped_at = _nodes(stream)
    otherwise: tuple[Node, ...] = ()
    if stopped_at and stopped_at[0].text == "else":
        if len(stopped_at) > 1:  # else if: a block inside, sharing the end
            inner = stopped_at[1].text
            if inner != word or word == "range":
                raise TemplateError(f"unexpected {inner!r} after 'else'")
            return Block(word, pipeline, body, (_block(word, stopped_at[2:], stream),))
        otherwise, stopped_at = _nodes(stream)
    if not stopped_at or stopped_at[0].text != "end":
        raise TemplateError(f"{word!r} has no 'end'")
    return Block(word, pipeline, body, otherwise)


def _pipeline(found: list[Token]) -> Pipeline:
    reader = _Reader(found)
    result = reader.pipeline()
    if reader.peek() is not _END:
        raise TemplateError(f"unexpected {reader.peek().text!r}")
    return result


class _Reader:
    """Reads the tokens of one action from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self._found = found
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        """Look at a token without taking it."""
        at = self._at + ahead
        return self._found[at] if at < len(self._found) else _END

    def take(self) -> Token:
        """Take the next token."""
        token = self.peek()
        self._at += 1
        return token

    def pipeline(self) -> Pipeline:
        """Read commands and the bars between them, and the variables in front."""
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
                self._at += 2 * count
                return names, sign.text == ":="
            if sign.text != ",":
                break
        return (), True

    def _command(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while self.peek() is not _END and not (self.peek().kind == "sign" and self.peek().text in {"|", ")"}):
            operands.append(self._operand())
        if not operands:
            raise TemplateError("a command is missing")
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
                return _word(token.text)
            case _:
                return self._sign(token)

    def _sign(self, token: Token) -> Operand:
        if token.text == ".":
            return Path(".")
        if token.text != "(":
            raise TemplateError(f"unexpected {token.text!r}")
        inside = self.pipeline()
        if self.take().text != ")":
            raise TemplateError("a parenthesis is not closed")
        return Path(inside, self._fields())

    def _fields(self) -> tuple[str, ...]:
        fields = []
        while self.peek().kind == "field" and self.peek().glued:
            fields.append(self.take().text[1:])
        return tuple(fields)


def _word(text: str) -> Operand:
    if text in _CONSTANTS:
        return Literal(_CONSTANTS[text])
    if text not in FUNCTIONS:
        raise TemplateError(f"function {text!r} not defined")
    return Call(text)


def _unquoted(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]
    try:
        return str(ast.literal_eval(text))  # the escapes of a Go string are also Python's
    except (SyntaxError, ValueError):
        raise TemplateError(f"not a string: {text}") from None


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        return float(text)
