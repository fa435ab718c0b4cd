"""Expressions of the HTTP backend on hostile documents: bounded work, bounded results, no crash, no other error.

Documents and expressions are hostile at the same time: a tenant chooses the path, the format and the expression.
"""

import contextlib
import json
import random
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

import jmespath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.backends.http.json_query import MAX_WORK, search
from adapter.backends.http.parse import MAX_SERIES, expression_problems, samples
from adapter.backends.http.settings import HttpParameters
from adapter.backends.http.xml_path import XmlPath
from adapter.errors import BackendError, BackendRejected, BadQuery

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TOO_MUCH_WORK = "the JMESPath expression needs more than"


def read(body: bytes, format_: str, value: str) -> tuple[object, ...]:
    return samples(body, HttpParameters(format=format_, value=value), NOW)  # type: ignore[arg-type]


def problems(format_: str, value: str) -> list[str]:
    wanted = HttpParameters(format=format_, value=value)  # type: ignore[arg-type]
    return [str(problem) for problem in expression_problems(wanted, "parameters")]


# --- JMESPath ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("|".join(["[@,@][]"] * 40), id="doubled list"),
        pytest.param("|".join(["[@,@]"] * 60) + "|to_string(@)", id="text of a shared list"),
        pytest.param("|".join(["{a:@,b:@}"] * 60) + "|to_string(@)", id="text of a shared object"),
        pytest.param("|".join(["[@,@]"] * 60), id="returned shared list"),
        pytest.param("|".join(["[@,@]"] * 60) + "|[0]==[1]", id="compared shared lists"),
        pytest.param("to_string(@)|" + "|".join(["join('',[@,@])"] * 40), id="doubled text"),
        pytest.param("|".join(["[@,@]"] * 20) + "|" + "|".join(["[]"] * 20), id="shared lists flattened"),
        pytest.param("|".join(["[@,@][]"] * 15) + "|[*].[@,@,@,@,@,@,@,@]|[]", id="projection"),
        pytest.param("|".join(["[@,@][]"] * 15) + "|map(&[@,@,@,@,@,@,@,@], @)|[]", id="map"),
        pytest.param("[" + ",".join(["sum(@)"] * 300) + "]", id="many functions"),
    ],
)
def test_jmespath_that_grows_its_input_is_aborted(expression: str) -> None:
    document = list(range(10_000))
    with pytest.raises(BadQuery, match=TOO_MUCH_WORK):
        search(expression, document)


@pytest.mark.parametrize(
    "expression",
    ["(" * 500 + "a" + ")" * 500, "!" * 1000 + "a", "[" * 900, "a" + "|a" * 1000, "`" + "[" * 2000],
)
def test_deep_jmespath_is_a_problem(expression: str) -> None:
    (problem,) = problems("json", expression)
    assert problem.startswith("parameters.value: invalid expression: ")


def test_deep_document_is_rejected() -> None:
    deep = b"[" * 900 + b"1" + b"]" * 900
    for expression in ("to_string(@)", "[@]", "@ == `1`", "@"):
        with pytest.raises(BackendError):
            read(deep, "json", expression)
    with contextlib.suppress(BackendError):
        read(b'[{"value":1,"labels":{"a":' + deep + b"}}]", "json", "")


def test_usual_reshaping_of_a_document_with_thousands_of_series_is_possible() -> None:
    item = {"name": "queue-0000", "labels": {"a": "b" * 20, "c": "d" * 20}, "depth": 3, "note": "x" * 220}
    document = {"queues": [item] * 3_000}
    assert len(json.dumps(document)) > 900_000
    body = json.dumps(document).encode()
    assert len(read(body, "json", "queues[].{labels: {queue: name, a: labels.a, c: labels.c}, value: depth}")) == 3_000
    assert len(read(body, "json", "queues[?depth > `2`] | [*].depth")) == 3_000
    assert len(read(body, "json", "sum(queues[*].depth)")) == 1


def test_number_of_series_is_limited() -> None:
    for format_, value, body in (
        ("json", "", b"[" + b"0," * MAX_SERIES + b"0]"),
        ("xml", "a", b"<x>" + b"<a>0</a>" * (MAX_SERIES + 1) + b"</x>"),
        ("text", r"\d", b"0" * (MAX_SERIES + 1)),
    ):
        with pytest.raises(BackendRejected, match=f"more than {MAX_SERIES} series"):
            read(body, format_, value)


TERMS = (
    "@",
    "a",
    "[0]",
    "[]",
    "[*]",
    "*",
    "[@,@]",
    "{a:@,b:@}",
    "[?@]",
    "[1:]",
    "to_string(@)",
    "to_array(@)",
    "[*].a",
)


def tree_size(value: Any, limit: int) -> int:
    """Return the number of nodes of a value, up to a limit."""
    size, pending = 0, [value]
    while pending and size <= limit:
        size, node = size + 1, pending.pop()
        pending += node if isinstance(node, list) else node.values() if isinstance(node, dict) else ()
    return size


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(TERMS), min_size=1, max_size=30), st.integers(0, 200))
def test_result_of_any_jmespath_is_bounded_and_equals_the_libraries(terms: list[str], length: int) -> None:
    document = {"a": [{"a": [number]} for number in range(length)], "b": "x"}
    expression = "|".join(terms)
    try:
        result = search(expression, document)
    except BadQuery:
        return
    assert tree_size(result, MAX_WORK) <= MAX_WORK
    if tree_size(result, 10_000) <= 10_000 and len(terms) <= 8:
        assert result == jmespath.search(expression, document)


# --- XML paths --------------------------------------------------------------------------------------------------------

WIDE = b"<x>" + b"<a><b>1</b></a>" * 60_000 + b"</x>"
NESTED = b"<a>" * 150 + b"1" + b"</a>" * 150


@pytest.mark.parametrize(
    ("body", "path"),
    [
        pytest.param(WIDE, "a[last()]/b", id="position among many siblings"),
        pytest.param(WIDE, "a[2]", id="one position"),
        pytest.param(NESTED, ".//" + "//".join(["*"] * 20), id="chains of descendants"),
        pytest.param(WIDE, "a/../" * 10 + "a[1]", id="parents"),
        pytest.param(WIDE, ".//a[b='2']", id="text of children"),
    ],
)
def test_xml_path_takes_linear_time(body: bytes, path: str) -> None:
    """ElementTree needs minutes to centuries for these paths."""
    program = (
        "import sys; from adapter.backends.http.xml_path import XmlPath; from xml.etree import ElementTree as ET;"
        " print(len(XmlPath(sys.argv[1]).find(ET.fromstring(sys.stdin.buffer.read()))))"
    )
    command = [sys.executable, "-c", program, path]
    done = subprocess.run(command, input=body, capture_output=True, timeout=60, check=True)  # noqa: S603
    assert int(done.stdout) <= 60_000


@pytest.mark.parametrize(
    "path",
    [
        "/a",
        "a//",
        "a[",
        "a[]",
        "a[0]",
        "a]",
        "a[@]",
        "a[@b=c]",
        "ns:a",
        "a b",
        "a/@",
        "a/@b/c",
        "a" + "/a" * 32,
        "a" + "[1]" * 9,
    ],
)
def test_invalid_xml_path_is_a_problem(path: str) -> None:
    (problem,) = problems("xml", path)
    assert problem.startswith("parameters.value: invalid expression: ")


def test_text_of_an_element_is_compared_without_the_text_of_its_children() -> None:
    root = ET.fromstring("<x><a>1<b>2</b></a><a>3</a></x>")  # noqa: S314 - a constant
    assert [element.text for element in XmlPath("a[.='1']").find(root)] == ["1"]
    assert [element.text for element in XmlPath("a[b='2']").find(root)] == ["1"]


def random_tree(seed: random.Random, depth: int = 0) -> ET.Element:
    element = ET.Element(seed.choice("abc"), {name: seed.choice("12") for name in "xy" if seed.random() < 0.5})
    element.text = seed.choice(["1", "2", None])
    element.extend([random_tree(seed, depth + 1) for _ in range(seed.randrange(4 if depth < 4 else 1))])
    return element


STEPS = ("a", "b", "*", ".", "..", "a[1]", "b[last()]", "*[@x]", "a[@x='1']", "*[@y!='1']", "*[b]", "*[last()-1]")


@settings(deadline=None, max_examples=500)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(STEPS), min_size=1, max_size=4), st.sampled_from(["/", "//"]))
def test_xml_path_selects_what_element_tree_selects(seed: int, steps: list[str], separator: str) -> None:
    root, path = random_tree(random.Random(seed)), separator.join(steps)  # noqa: S311 - a test
    if ".." in steps or (separator == "//" and "." in steps):
        return  # ElementTree cannot leave the root, and selects nothing for //.
    expected = list(dict.fromkeys(root.findall(path)))  # without the duplicates of //
    assert set(XmlPath(path).find(root)) == set(expected)


# --- regular expressions ----------------------------------------------------------------------------------------------

PATTERN_PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from adapter.errors import BackendError
from adapter.backends.http.text_pattern import matches
try:
    print(sum(1 for _ in matches(sys.argv[1], "a" * 1_000_000)))
except (BackendError, ValueError) as error:
    print(error)
"""


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{999}){999}){999}",
        "(?:(?:a{10}){10}){10}b",
        "(a+)+b",
        "(a|a|aa)+$b",
        "(.*)*b",
        "(?s)a.*z|a",
        "(" * 900 + "a" + ")" * 900,
        "".join(f"(?:a{{0,{number}}})" for number in range(150)) + "b",
        r"\pL{0,900}b",
    ],
)
def test_hostile_pattern_ends_with_bounded_memory(pattern: str) -> None:
    command = [sys.executable, "-c", PATTERN_PROGRAM, pattern]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")


# --- paths ------------------------------------------------------------------------------------------------------------

BAD_PATHS = (
    *("a", "//host/x", "/a//b", "/..", "/../a", "/a/..", "/./a", "/a/.", "/..;/a", "/..;x=1/a", "/.;/a", "/;/a"),
    *("/%2e%2e/a", "/%2E./a", "/.%2e", "/..%2fa", "/a%2f..%2fb", "/..%5ca", "/a\\..\\b", "/%252e%252e/a", "/..%3b/a"),
    *("/a b", "/a\nb", "/a%0ab", "/a%00", "/..%00/a", "/..%20/a", "/%c0%ae%c0%ae/a", "/%ef%bc%8e%ef%bc%8e/a", "/é"),
    *("/a#b", "/%", "/%g0", "/a?b c", "/a?b#c", "/a?b\r\nX: y", "?a", "/%e2%80%a5/a", "@host/a", ":80/a", "/a\x7f"),
)
GOOD_PATHS = (
    "/",
    "/a",
    "/a/",
    "/a/b?c=d&e=..",
    "/a%2Fb",
    "/api/queues/%2F/q",
    "/a.b/..c",
    "/...",
    "/a?x=/../y",
    "/%C3%BC",
)


@pytest.mark.parametrize("path", BAD_PATHS)
def test_path_that_may_leave_the_url_is_a_problem(path: str) -> None:
    (problem,) = HttpParameters(path=path).problems("parameters")
    assert problem.path == "parameters.path"


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_usual_path_is_accepted(path: str) -> None:
    assert list(HttpParameters(path=path).problems("parameters")) == []
