"""Hostile texts for regular expressions, and the measurement of the time that a function needs for them.

A backtracking matcher needs more than linear time if a part of the text can be matched in several ways, or if a search
starts again at every position and fails late. Both are found by repeating short texts: every repetition is built from
one character of each class that the expression distinguishes, between the start of a match and a text that fails.
"""

import importlib
import random
import re
import string
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, Final

_parser: Any = importlib.import_module("re._parser")  # the only representation of a parsed expression
sre: Any = importlib.import_module("re._constants")

ALPHABET: Final = (*string.printable, "\0", "é", "\u2028")
MAX_PUMPS: Final = 60
MAX_LENGTH: Final = 4096
"""Longer texts would only take longer: quadratic time shows at this length."""

FACTOR: Final = 100
"""How much more processor time than a loop over its characters in Python a text may take."""

_CATEGORIES: Final[dict[Any, Callable[[str], bool]]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_NOT_DIGIT: lambda each: not each.isdigit(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda each: not each.isspace(),
    sre.CATEGORY_WORD: lambda each: each.isalnum() or each == "_",
    sre.CATEGORY_NOT_WORD: lambda each: not (each.isalnum() or each == "_"),
}


def hostile_texts(pattern: str, flags: int, seed: int = 0) -> Iterator[Callable[[int], str]]:
    """Yield functions that return a hostile text with a given number of repetitions."""
    tree = _parser.parse(pattern, flags)
    matchers = list(_matchers(tree))
    representatives: dict[tuple[bool, ...], str] = {}
    for character in ALPHABET:
        representatives.setdefault(tuple(matcher(character) for matcher in matchers), character)
    characters = list(representatives.values())[:24]
    words = [*characters, *_words(tree)]
    pumps = [*words, *("".join(pair) for pair in product(words, repeat=2))]
    generator = random.Random(seed)  # noqa: S311 - a test
    if len(pumps) > MAX_PUMPS:
        pumps = [*words, *generator.sample(pumps, MAX_PUMPS), *("".join(generator.sample(words, 3)) for _ in range(20))]
    start = _shortest(tree)
    for pump in dict.fromkeys(pumps):
        for prefix in dict.fromkeys(("", start, start[:-1])):
            for suffix in ("", "\0"):
                yield partial(_pumped, prefix, pump, suffix)


def _pumped(prefix: str, pump: str, suffix: str, count: int) -> str:
    return f"{prefix}{pump * count}{suffix}"


def _matchers(tree: Any) -> Iterator[Callable[[str], bool]]:
    """Yield the tests of single characters in a parsed expression."""
    for operation, argument in tree:
        if operation in {sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY}:
            yield partial(_accepts, (operation, argument))
        else:
            for inner in _inner(operation, argument):
                yield from _matchers(inner)


def _accepts(node: tuple[Any, Any], character: str) -> bool:
    match node:
        case sre.LITERAL, value:
            return ord(character) == value
        case sre.NOT_LITERAL, value:
            return ord(character) != value
        case sre.RANGE, (low, high):
            return bool(low <= ord(character) <= high)
        case sre.CATEGORY, category:
            return _CATEGORIES[category](character)
        case sre.IN, items:
            is_negated = items[0][0] is sre.NEGATE
            return is_negated != any(_accepts(item, character) for item in items[is_negated:])
        case _:
            return character != "\n"


def _inner(operation: Any, argument: Any) -> list[Any]:
    """Return the expressions inside a node."""
    match operation:
        case sre.SUBPATTERN:
            return [argument[-1]]
        case sre.BRANCH:
            return list(argument[1])
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            return [argument[2]]
        case sre.ASSERT | sre.ASSERT_NOT:
            return [argument[1]]
        case sre.ATOMIC_GROUP:
            return [argument]
        case _:
            return []


def _words(tree: Any) -> set[str]:
    """Return the literal texts of an expression that have several characters."""
    found, word = set(), ""
    for operation, argument in [*tree, (None, None)]:
        if operation is sre.LITERAL:
            word += chr(argument)
            continue
        found |= {word} if len(word) > 1 else set()
        word = ""
        for inner in _inner(operation, argument):
            found |= _words(inner)
    return found


def _shortest(tree: Any) -> str:
    """Return a text that the expression, or most of it, matches."""
    text = ""
    for operation, argument in tree:
        match operation:
            case sre.LITERAL | sre.NOT_LITERAL | sre.IN | sre.ANY:
                text += next((each for each in ALPHABET if _accepts((operation, argument), each)), "")
            case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
                text += _shortest(argument[2]) * max(1, argument[0])
            case sre.BRANCH:
                text += min((_shortest(each) for each in argument[1]), key=len)
            case sre.SUBPATTERN | sre.ATOMIC_GROUP:
                text += "".join(map(_shortest, _inner(operation, argument)))
            case _:
                pass
    return text


def is_slow(function: Callable[[str], object], text: Callable[[int], str], bound: int) -> str:
    """Return a text of at most ``bound`` characters for which a function is slow; empty if there is none.

    The text grows slowly at first, so that exponential time is noticed before it becomes hours.
    """
    unit = max(1, len(text(2)) - len(text(1)))
    largest = max(1, (min(bound, MAX_LENGTH) - len(text(0))) // unit)
    for count in [*(count for count in (16, 22, 28, 200) if count < largest), largest]:
        candidate = text(count)
        if _ratio(function, candidate) > FACTOR and min(_ratio(function, candidate) for _ in range(4)) > FACTOR:
            return candidate
    return ""


def _ratio(function: Callable[[str], object], text: str) -> float:
    started = time.thread_time()
    for _ in text:
        pass
    between = time.thread_time()
    function(text)
    return (time.thread_time() - between) / (between - started + 20e-6)  # a fixed part for short texts


def all_matches(pattern: re.Pattern[str], method: str) -> Callable[[str], object]:
    """Return a function that applies a method of an expression to a text as callers do."""
    if method in {"finditer", "findall", "sub", "split"}:
        return pattern.findall
    applied: Callable[[str], object] = getattr(pattern, method)
    return applied
