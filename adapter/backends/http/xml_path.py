"""Paths to elements of an XML tree: the XPath subset of ``xml.etree.ElementTree``, in linear time.

ElementTree itself evaluates a path with nested generators: many steps overflow the C stack, ``//`` steps yield an
element once for each chain of its ancestors, and a position is searched among all siblings for each element. Here each
step maps a list of different elements to a list of different elements, so that it visits each element at most once.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from xml.etree.ElementTree import Element

_MAX_STEPS: Final = 32
_MAX_PREDICATES: Final = 8
_NAME: Final = r"(?!\d)[^\s/\[\]@'\"=!<>():*|{}]++"
_STEP: Final = re.compile(rf"(?P<axis>//?)(?P<name>\*|{_NAME})")
_PREDICATE: Final = re.compile(
    rf"\[\s*+(?:(?P<position>[1-9]\d{{0,5}})|(?P<last>last\(\))(?:\s*+-\s*+(?P<offset>\d{{1,6}}))?"
    rf"|(?P<subject>@?{_NAME})\s*+(?:(?P<operator>!?=)\s*+(?:'(?P<single>[^']*+)'|\"(?P<double>[^\"]*+)\"))?)\s*+\]",
    re.ASCII,
)


class _Predicate(NamedTuple):
    subject: str = ""
    """An attribute (``@name``), a child element, or ``.``, the element itself; empty for a position."""

    operator: str = ""
    text: str = ""
    position: int = 0
    """Index among the siblings with the same name; negative: from the end."""


class _Step(NamedTuple):
    is_descendant: bool
    name: str
    predicates: tuple[_Predicate, ...]


class XmlPath:
    """A parsed path; raises ``ValueError`` if the text is not one."""

    def __init__(self, text: str) -> None:
        elements, is_attribute, self.attribute = text.rpartition("/@") if "/@" in text else (text, "", "")
        self._steps = tuple(_steps(elements or "."))
        """The path of the elements."""

        if is_attribute and not re.fullmatch(_NAME, self.attribute):
            raise ValueError(f"{self.attribute!r} is not the name of an attribute")
        if len(self._steps) > _MAX_STEPS:
            raise ValueError(f"more than {_MAX_STEPS} steps")
        if sum(len(step.predicates) for step in self._steps) > _MAX_PREDICATES:
            raise ValueError(f"more than {_MAX_PREDICATES} predicates")

    def find(self, root: Element) -> list[Element]:
        """Return the elements that the path selects below a root element, in document order."""
        parents = {child: parent for parent in root.iter() for child in parent}
        found = [root]
        for step in self._steps:
            found = _select(step, found, parents)
            for predicate in step.predicates:
                found = _filter(predicate, found, parents)
        return found


def _steps(text: str) -> Iterator[_Step]:
    if text.startswith("/"):
        raise ValueError("must be relative: start with a name, * or .//")
    text, position = f"/{text}", 0
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise ValueError(f"unexpected {text[position : position + 20]!r}")
        position, predicates = step.end(), []
        while predicate := _PREDICATE.match(text, position):
            predicates.append(_predicate(predicate))
            position = predicate.end()
        yield _Step(step["axis"] == "//", step["name"], tuple(predicates))


def _predicate(match: re.Match[str]) -> _Predicate:
    if match["position"]:
        return _Predicate(position=int(match["position"]) - 1)
    if match["last"]:
        return _Predicate(position=-1 - int(match["offset"] or 0))
    return _Predicate(match["subject"], match["operator"] or "", match["single"] or match["double"] or "")


def _select(step: _Step, elements: Iterable[Element], parents: dict[Element, Element]) -> list[Element]:
    match step.name:
        case "." if not step.is_descendant:
            return list(elements)
        case "..":
            return list(dict.fromkeys(parents[element] for element in elements if element in parents))
        case name:
            candidates = (
                _descendants(elements) if step.is_descendant else (child for each in elements for child in each)
            )
            return [element for element in candidates if name in {"*", ".", element.tag}]


def _descendants(elements: Iterable[Element]) -> Iterator[Element]:
    """Return the descendants of elements once each. Ancestors precede descendants in document order."""
    seen: set[Element] = set()
    for element in elements:
        if element not in seen:
            below = list(element.iter())[1:]
            seen.update(below)
            yield from below


def _filter(predicate: _Predicate, elements: list[Element], parents: dict[Element, Element]) -> list[Element]:
    if not predicate.subject:
        return list(_at_position(predicate.position, elements, parents))
    return [element for element in elements if _holds(predicate, element)]


def _at_position(position: int, elements: Iterable[Element], parents: dict[Element, Element]) -> Iterator[Element]:
    selected: dict[Element, set[Element]] = {}
    for element in elements:
        parent = parents.get(element)
        if parent is None:
            continue
        if parent not in selected:
            by_name: dict[str, list[Element]] = {}
            for child in parent:
                by_name.setdefault(child.tag, []).append(child)
            selected[parent] = {each[position] for each in by_name.values() if -len(each) <= position < len(each)}
        if element in selected[parent]:
            yield element


def _holds(predicate: _Predicate, element: Element) -> bool:
    subject = predicate.subject
    if subject.startswith("@"):
        values = [value] if (value := element.get(subject[1:])) is not None else []
    else:
        matching = [element] if subject == "." else [child for child in element if child.tag == subject]
        values = [each.text or "" for each in matching]
    if not predicate.operator:
        return bool(values)
    return any((value == predicate.text) == (predicate.operator == "=") for value in values)
