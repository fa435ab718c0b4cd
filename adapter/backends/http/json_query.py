"""JMESPath expressions with a limit on the work and on the size of every intermediate result.

JMESPath has no loops, but ``[@, @]`` doubles its input with each repetition. The interpreter shares the parts of such
a result, so that a small expression yields a value whose text would be of exponential size. Every value that an
expression creates is therefore measured as a tree, in which shared parts count each time.
"""

from collections.abc import Mapping
from typing import Any, Final

from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult, Parser
from jmespath.visitor import TreeInterpreter

from adapter.errors import BadQuery

MAX_WORK: Final = 100_000
"""Steps of one evaluation: visited nodes of the expression, and nodes of values that it creates, compares or passes to
a function. Reshaping three thousand series with three labels needs less; all steps need a tenth of a second."""

_MAX_DEPTH: Final = 100
_CREATING: Final = frozenset(
    {
        "multi_select_list",
        "multi_select_dict",
        "projection",
        "filter_projection",
        "value_projection",
        "flatten",
        "slice",
        "function_expression",
    }
)
_CHARACTERS_PER_STEP: Final = 16


def compile_expression(expression: str) -> ParsedResult:
    """Parse an expression; raise ``ValueError`` if it is invalid or nested too deeply."""
    try:
        parsed = Parser().parse(expression)
    except (JMESPathError, RecursionError, KeyError) as error:
        raise ValueError(str(error).splitlines()[0]) from None
    finally:
        Parser.purge()  # the syntax tree of 2048 characters has 266 KiB, and the library's cache has 512 entries
    nodes: list[tuple[Any, int]] = [(parsed.parsed, 1)]
    while nodes:
        node, depth = nodes.pop()
        if depth > _MAX_DEPTH:
            raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")
        nodes += [(child, depth + 1) for child in node.get("children", ()) if isinstance(child, dict)]
    return parsed


def search(expression: str, document: object) -> object:
    """Return what an expression selects in a document; raise ``BadQuery`` if it fails or needs too much work."""
    try:
        return _LimitedInterpreter().visit(compile_expression(expression).parsed, document)
    except RecursionError:
        raise BadQuery("the document is nested too deeply for the JMESPath expression") from None
    except (JMESPathError, ValueError) as error:
        raise BadQuery("the JMESPath expression failed on the document", detail=str(error)[:200]) from None


class _LimitedInterpreter(TreeInterpreter):
    """Evaluates one expression once."""

    def __init__(self) -> None:
        super().__init__()
        self._work = 0
        self._sizes: dict[int, tuple[object, int]] = {}
        """Size of each measured list and object by its ``id``; the reference keeps the ``id`` from being reused."""

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the base class
        self._spend(1)
        result = super().visit(node, *args, **kwargs)
        if node["type"] in _CREATING:
            self._size(result)
        return result

    def visit_function_expression(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        return super().visit_function_expression(self._with_measured_operands(node, value), value)

    def visit_comparator(self, node: Any, value: Any) -> Any:  # noqa: ANN401
        return super().visit_comparator(self._with_measured_operands(node, value), value)

    def _with_measured_operands(self, node: Any, value: object) -> Any:  # noqa: ANN401 - a node of the syntax tree
        """Return the node with its operands evaluated, after their sizes are added to the work."""
        operands = [self.visit(child, value) for child in node["children"]]
        self._spend(sum(map(self._size, operands)))
        return {**node, "children": [{"type": "literal", "value": operand} for operand in operands]}

    def _size(self, value: object) -> int:
        """Return the size of a value as a tree."""
        if isinstance(value, str):
            return self._checked(1 + len(value) // _CHARACTERS_PER_STEP)
        if not isinstance(value, list | Mapping):
            return 1
        if id(value) not in self._sizes:
            self._spend(1 + len(value))
            inner = value.values() if isinstance(value, Mapping) else value
            self._sizes[id(value)] = value, self._checked(1 + sum(map(self._size, inner)))
        return self._sizes[id(value)][1]

    def _spend(self, steps: int) -> None:
        self._work = self._checked(self._work + steps)

    @staticmethod
    def _checked(steps: int) -> int:
        if steps > MAX_WORK:
            message = (
                f"the JMESPath expression needs more than {MAX_WORK} steps: simplify it, or read a smaller document"
            )
            raise BadQuery(message)
        return steps
