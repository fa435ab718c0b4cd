"""Random PromQL queries: valid ones from a grammar, mutations of valid ones, and sequences of random tokens."""

import random
import re
from typing import Final

from tests.security.promql import vocabulary as words

_TOKEN: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`|\w+|\s+|[=!<>]=|[=!]~|.", re.DOTALL)
_ARITHMETIC: Final = ("+", "-", "*", "/", "%", "^", "atan2")
_COMPARISONS: Final = ("==", "!=", "<", ">", "<=", ">=")
_SET_OPERATORS: Final = ("and", "or", "unless", "AND", "Or")
_MAX_DEPTH: Final = 4


class QueryGenerator:
    """A source of queries; equal seeds yield equal queries."""

    def __init__(self, seed: int, names: tuple[str, ...] = words.NAMES, *, is_plain: bool = False) -> None:
        """``is_plain``: without keywords as names, unusual spaces and syntax that few servers support."""
        self._random = random.Random(seed)  # noqa: S311 - not for cryptography
        self._names, self._is_plain = names, is_plain

    def query(self) -> str:
        """Return a query that may be invalid."""
        kind = self._random.random()
        if kind < 0.65:
            return self.valid()
        if kind < 0.9:
            return self._mutation(self._pick(words.CORPUS) if self._chance(0.4) else self.valid())
        return "".join(self._pick(words.SOUP) + self._pick(("", " ", " ")) for _ in range(self._random.randint(1, 12)))

    def valid(self) -> str:
        """Return a query from the grammar."""
        tokens = self._scalar(1) if self._chance(0.05) else self._vector(0)
        return self._join(tokens)

    def _pick(self, choices):
        return self._random.choice(choices)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _unusual(self, probability: float) -> bool:
        return not self._is_plain and self._chance(probability)

    def _mutation(self, query: str) -> str:
        tokens = _TOKEN.findall(query)
        for _ in range(self._random.randint(1, 3)):
            position = self._random.randrange(len(tokens) + 1)
            change = self._random.random()
            if change < 0.3:
                del tokens[position : position + self._random.randint(1, 3)]
            elif change < 0.7:
                tokens.insert(position, f" {self._pick(words.SOUP)} ")
            elif tokens:
                tokens[position % len(tokens)] = self._pick(words.KEYWORDS if self._chance(0.6) else words.SOUP)
            if not tokens:
                break
        return "".join(tokens)

    def _join(self, tokens: list[str]) -> str:
        text = ""
        for token in tokens:
            is_word = re.match(r"[\w:.]", token) and re.search(r"[\w:.]$", text)
            space = self._pick(words.SPACES) if not self._is_plain else " "
            text += (space if is_word or self._chance(0.3) else "") + token
        return text

    def _vector(self, depth: int) -> list[str]:
        if depth >= _MAX_DEPTH or self._chance(0.25):
            return self._selector(depth)
        choices = (
            self._binary, self._binary, self._aggregation, self._aggregation, self._function, self._range_function,
            self._special_function, self._parentheses, self._minus,
        )  # fmt: skip
        return self._pick(choices)(depth + 1)

    def _parentheses(self, depth: int) -> list[str]:
        return ["(", *self._vector(depth), ")"]

    def _minus(self, depth: int) -> list[str]:
        return [self._pick("-+"), *self._vector(depth)]

    def _scalar(self, depth: int) -> list[str]:
        kind = self._random.random()
        if depth >= _MAX_DEPTH or kind < 0.6:
            return [self._pick(words.NUMBERS[:7] if self._is_plain else words.NUMBERS)]
        if kind < 0.75:
            return ["scalar", "(", *self._vector(depth + 1), ")"]
        if kind < 0.85:
            return ["(", *self._scalar(depth + 1), self._pick(_ARITHMETIC), *self._scalar(depth + 1), ")"]
        return [self._pick(("time", "pi")), "(", ")"]

    def _selector(self, _depth: int = 0) -> list[str]:
        return [*self._bare_selector(), *self._time_modifiers()]

    def _bare_selector(self) -> list[str]:
        name = self._pick(words.KEYWORDS) if self._unusual(0.3) else self._pick(self._names)
        matchers = [self._matcher() for _ in range(self._pick((0, 0, 1, 1, 2)))]
        if self._unusual(0.1):
            return ["{", self._string(name), *(token for each in matchers for token in (",", *each)), "}"]
        if self._chance(0.1):
            matchers, name = [["__name__", self._pick(("=", "=~")), self._string(name)], *matchers], ""
        inside = [token for each in matchers for token in (*each, ",")]
        if inside and not self._unusual(0.2):
            inside.pop()  # a trailing comma is valid
        braces = ["{", *inside, "}"] if inside or self._chance(0.2) else []
        return [*([name] if name else []), *braces]

    def _matcher(self) -> list[str]:
        label = self._pick(words.QUOTED_LABELS) if self._unusual(0.1) else self._pick(words.LABELS[:4])
        if self._unusual(0.1):
            label = self._pick(words.LABELS)
        value = self._pick(("shop", "bank", "a|b", ".+", "", "1") if self._is_plain else words.VALUES)
        return [label, self._pick(("=", "=", "!=", "=~", "!~")), self._string(value)]

    def _string(self, value: str) -> str:
        style = self._random.random()
        if style < 0.15 and "`" not in value:
            return f"`{value}`"
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
        if self._unusual(0.1):
            return '"' + "".join(f"\\u{ord(each):04x}" if ord(each) < 0xFFFF else each for each in value) + '"'
        if self._unusual(0.1) and value.isascii():
            return '"' + "".join(f"\\x{ord(each):02x}" for each in value) + '"'
        if style < 0.4:
            return "'" + escaped.replace("'", "\\'") + "'"
        return '"' + escaped.replace('"', '\\"') + '"'

    def _time_modifiers(self) -> list[str]:
        offset = [self._pick(("offset", "OFFSET")), self._pick(("", "", "-")) + self._duration()]
        at = ["@", self._pick(words.TIMES)]
        kind = self._random.random()
        if self._is_plain:
            return offset if kind > 0.9 else []
        return offset if kind > 0.93 else at if kind > 0.9 else [*at, *offset] if kind > 0.88 else []

    def _duration(self) -> str:
        return self._pick(("5m", "10m", "1h") if self._is_plain else words.DURATIONS)

    def _range(self, depth: int) -> list[str]:
        if depth < _MAX_DEPTH and self._chance(0.3):
            step = [] if self._chance(0.5) else ["1m"]
            operand = self._selector() if self._chance(0.3) else self._parentheses(depth + 1)
            return [*operand, "[", self._duration(), ":", *step, "]", *self._time_modifiers()]
        return [*self._bare_selector(), "[", self._duration(), "]", *self._time_modifiers()]

    def _function(self, depth: int) -> list[str]:
        functions = words.METRICSQL_FUNCTIONS if self._unusual(0.03) else words.VECTOR_FUNCTIONS
        return [self._pick(functions), "(", *self._vector(depth), ")"]

    def _range_function(self, depth: int) -> list[str]:
        return [self._pick(words.RANGE_FUNCTIONS), "(", *self._range(depth), ")"]

    def _special_function(self, depth: int) -> list[str]:
        vector, number = self._vector(depth), self._scalar(depth)
        return self._pick(
            (
                ["vector", "(", *number, ")"],
                ["label_replace", "(", *vector, ",", '"a"', ",", "'$1'", ",", self._string("b"), ",", "`(.*)`", ")"],
                ["label_join", "(", *vector, ",", '"a"', ",", '"-"', ",", '"b"', ",", '"pod"', ")"],
                ["clamp", "(", *vector, ",", *number, ",", *self._scalar(depth), ")"],
                ["clamp_min", "(", *vector, ",", *number, ")"],
                ["round", "(", *vector, ",", *number, ")"],
                ["histogram_quantile", "(", *number, ",", *vector, ")"],
                ["quantile_over_time", "(", *number, ",", *self._range(depth), ")"],
                ["predict_linear", "(", *self._range(depth), ",", *number, ")"],
                ["sort_by_label", "(", *vector, ",", '"a"', ")"],
            )
        )

    def _aggregation(self, depth: int) -> list[str]:
        kind, operand = self._random.random(), self._vector(depth)
        operator, arguments = self._pick(words.AGGREGATIONS), operand
        if kind < 0.15:
            operator = self._pick(words.AGGREGATIONS_WITH_NUMBER[: 3 if self._is_plain else None])
            arguments = [*self._scalar(depth), ",", *operand]
        elif kind < 0.2:
            operator, arguments = "count_values", [self._string("a"), ",", *operand]
        clause = self._clause(("by", "without")) if self._chance(0.5) else []
        arguments = ["(", *arguments, ")"]
        return [operator, *clause, *arguments] if self._chance(0.5) else [operator, *arguments, *clause]

    def _clause(self, keywords: tuple[str, ...]) -> list[str]:
        labels: list[str] = []
        for _ in range(self._pick((0, 1, 1, 2))):
            labels += [self._pick(words.QUOTED_LABELS if self._unusual(0.1) else words.LABELS[:7]), ","]
        if labels and not self._unusual(0.1):
            labels.pop()
        return [self._pick(keywords), "(", *labels, ")"]

    def _binary(self, depth: int) -> list[str]:
        left, right = self._vector(depth), self._vector(depth)
        kind = self._random.random()
        if kind < 0.15:
            left = self._scalar(depth)
        elif kind < 0.3:
            right = self._scalar(depth)
        if kind >= 0.7:
            clause = self._clause(("on", "ignoring")) if self._chance(0.4) else []
            return [*left, self._pick(_SET_OPERATORS), *clause, *right]
        is_comparison = self._chance(0.4)
        operator = self._pick(_COMPARISONS if is_comparison else _ARITHMETIC)
        bool_ = [self._pick(("bool", "BOOL"))] if is_comparison and self._chance(0.5) else []
        return [*left, operator, *bool_, *(self._matching() if kind >= 0.3 else []), *right]

    def _matching(self) -> list[str]:
        if self._chance(0.4):
            return []
        tokens = self._clause(("on", "ignoring"))
        if self._chance(0.5):
            group = self._clause(("group_left", "group_right"))
            tokens += group if self._chance(0.7) else group[:1]
        if self._unusual(0.15):
            fills = (["fill"], ["fill_left"], ["fill_right"], ["fill_left", "fill_right"])
            tokens += [part for each in self._pick(fills) for part in (each, "(", self._pick(("0", "-1", "NaN")), ")")]
        return tokens
