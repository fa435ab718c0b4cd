"""Rendering of parsed templates."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from adapter.rules.go_template.functions import FUNCTIONS, format_value
from adapter.rules.go_template.nodes import (
    NO_VALUE,
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
    Value,
)

_MAX_STEPS = 100_000
Variables: TypeAlias = dict[str, Value]
Scope: TypeAlias = list[Variables]
"""Variables by name, one table per nested block, the innermost last."""


def render(template: tuple[Node, ...], data: Mapping[str, object]) -> str:
    """Return the text of a template for this data; raise ``TemplateError`` where Go reports an error."""
    rendering = _Rendering(data)
    rendering.nodes(template, data, [{"$": data}])
    return "".join(rendering.out)


class _Rendering:
    """One rendering of a template."""

    def __init__(self, data: Mapping[str, object]) -> None:
        self.out: list[str] = []
        self._data = data
        self._steps = 0

    def nodes(self, nodes: tuple[Node, ...], dot: object, scope: Scope) -> None:
        for node in nodes:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise TemplateError(f"the template takes more than {_MAX_STEPS} steps")
            match node:
                case Text():
                    self.out.append(node.text)
                case Output():
                    value = self._pipeline(node.pipeline, dot, scope)
                    if not node.pipeline.variables:
                        self.out.append(format_value(value) if value is not None else str(NO_VALUE))
                case Block():
                    self._block(node, dot, [*scope, {}])

    def _block(self, block: Block, dot: object, scope: Scope) -> None:
        value = self._pipeline(block.pipeline, dot, scope)
        if not value:
            self.nodes(block.otherwise, dot, scope)
        elif block.keyword == "range":
            self._range(block, value, scope)
        else:
            self.nodes(block.body, value if block.keyword == "with" else dot, scope)

    def _range(self, block: Block, value: Value, scope: Scope) -> None:
        if isinstance(value, Mapping):
            pairs = [(key, value[key]) for key in sorted(value)]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            pairs = list(enumerate(value))
        else:
            raise TemplateError("range: the value is neither a list nor a map")
        for key, each in pairs:
            names = block.pipeline.variables
            named = zip(names, (each,) if len(names) == 1 else (key, each), strict=False)
            self.nodes(block.body, each, [*scope, dict(named)])

    def _pipeline(self, pipeline: Pipeline, dot: object, scope: Scope) -> Value:
        value: Value = NO_VALUE
        for number, command in enumerate(pipeline.commands):
            value = self._command(command, () if not number else (value,), dot, scope)
        for name in pipeline.variables[-1:]:
            table = scope[-1] if pipeline.declares else _table_with(scope, name)
            table[name] = value
        return value

    def _command(self, command: tuple[Operand, ...], piped: tuple[Value, ...], dot: object, scope: Scope) -> Value:
        first, *rest = command
        if not isinstance(first, Call):
            if rest or piped:
                raise TemplateError("can't give argument to non-function")
            return self._operand(first, dot, scope)
        arguments = [*(self._operand(each, dot, scope) for each in rest), *piped]
        try:
            return FUNCTIONS[first.name](*arguments)
        except (TypeError, ValueError, IndexError) as error:
            raise TemplateError(f"{first.name}: {error}") from None

    def _operand(self, operand: Operand, dot: object, scope: Scope) -> Value:
        match operand:
            case Literal():
                return operand.value
            case Call():
                return self._command((operand,), (), dot, scope)
            case Path():
                return self._field(operand, dot, scope)

    def _field(self, path: Path, dot: object, scope: Scope) -> Value:
        if isinstance(path.root, Pipeline):
            value = self._pipeline(path.root, dot, scope)
        else:
            value = dot if path.root == "." else _table_with(scope, path.root)[path.root]
        for name in path.fields:
            if not isinstance(value, Mapping):
                raise TemplateError(f"can't evaluate field {name}")
            if value is self._data and name not in value:
                raise TemplateError(f"can't evaluate field {name}; available fields: {', '.join(sorted(value))}")
            value = value.get(name, NO_VALUE)
        return value


def _table_with(scope: Scope, name: str) -> Variables:
    for table in reversed(scope):
        if name in table:
            return table
    raise TemplateError(f"undefined variable {name!r}")
