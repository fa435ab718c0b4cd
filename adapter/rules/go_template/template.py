"""Templates: text and actions, parsed into functions that render them."""

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias

from adapter.rules.go_template.expression import Frame, Output, Pipeline, parse_pipeline
from adapter.rules.go_template.functions import Value, format_value
from adapter.rules.go_template.lexer import TemplateError, TemplateToken, split

_BLOCKS: Final = frozenset({"if", "range", "with"})
_UNSUPPORTED: Final = frozenset({"define", "template", "block", "break", "continue"})
_MAX_STEPS: Final = 100_000

Node: TypeAlias = Callable[[Frame], None]
Stream: TypeAlias = Iterator[str | list[TemplateToken]]


class Template:
    """A parsed template; the constructor raises ``TemplateError`` for invalid text and unsupported actions."""

    def __init__(self, text: str) -> None:
        try:
            self._nodes, terminator = _nodes(split(text))
        except RecursionError:
            raise TemplateError("nested too deeply") from None
        if terminator:
            raise TemplateError(f"unexpected {terminator[0].text!r}")

    def render(self, data: Mapping[str, object]) -> str:
        """Return the text for this data; raise ``TemplateError`` where Go reports an error."""
        frame = Frame(data, data, ChainMap({"$": data}), Output(), count())
        try:
            _run(self._nodes, frame)
        except RecursionError:
            raise TemplateError("nested too deeply") from None
        return frame.out.text


def _run(nodes: list[Node], frame: Frame) -> None:
    for node in nodes:
        if next(frame.steps) >= _MAX_STEPS:
            raise TemplateError(f"the template takes more than {_MAX_STEPS} steps")
        node(frame)


def _nodes(stream: Stream) -> tuple[list[Node], list[TemplateToken]]:
    """Parse nodes up to ``end`` or ``else``; return them and the tokens of that action, if any."""
    nodes: list[Node] = []
    for piece in stream:
        if isinstance(piece, str):
            nodes.append(lambda frame, text=piece: frame.out.append(text))  # type: ignore[misc]
            continue
        if not piece:
            raise TemplateError("empty action")
        keyword = piece[0].text
        if keyword in {"end", "else"}:
            return nodes, piece
        if keyword in _UNSUPPORTED:
            raise TemplateError(f"{keyword!r} is not supported")
        nodes.append(_block(keyword, piece[1:], stream) if keyword in _BLOCKS else _output(parse_pipeline(piece)))
    return nodes, []


def _output(pipeline: Pipeline) -> Node:
    def render(frame: Frame) -> None:
        value = pipeline.evaluate(frame)
        if not pipeline.variables:
            frame.out.append("<no value>" if value is None else format_value(value))

    return render


def _block(keyword: str, head: list[TemplateToken], stream: Stream) -> Node:
    pipeline = parse_pipeline(head)
    body, terminator = _nodes(stream)
    otherwise: list[Node] = []
    if [token.text for token in terminator] == ["else"]:
        otherwise, terminator = _nodes(stream)
    elif terminator and terminator[0].text == "else":  # "else if" is a nested block that shares the "end"
        if terminator[1].text != keyword or keyword == "range":
            raise TemplateError(f"unexpected {terminator[1].text!r} after 'else'")
        otherwise, terminator = [_block(keyword, terminator[2:], stream)], [TemplateToken("word", "end")]
    if not terminator or terminator[0].text != "end":
        raise TemplateError(f"{keyword!r} has no 'end'")

    def render(frame: Frame) -> None:
        inside = frame.nested(frame.dot, {})
        value = pipeline.evaluate(inside)
        if not value:
            _run(otherwise, inside)
        elif keyword == "range":
            _render_range(pipeline.variables, value, body, inside)
        else:
            _run(body, inside._replace(dot=value) if keyword == "with" else inside)

    return render


def _render_range(variables: tuple[str, ...], value: Value, body: list[Node], frame: Frame) -> None:
    if isinstance(value, Mapping):
        pairs = [(key, value[key]) for key in sorted(value)]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        pairs = list(enumerate(value))
    else:
        raise TemplateError("range: the value is neither a list nor a map")
    for key, item in pairs:
        named = zip(variables, (item,) if len(variables) == 1 else (key, item), strict=False)
        _run(body, frame.nested(item, dict(named)))
