"""Parameters of any size, depth or type are reported as problems; they never crash the process."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from adapter.backends import limits
from adapter.backends.configuration import BackendEntry, query_problems
from adapter.backends.settings import BackendSettings, Parameters
from adapter.custom_resources.external_metric import rule_from_object
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.rules.rule import Rule

SETTINGS: dict[str, dict[str, Any]] = {
    "http": {"url": "http://x"},
    "upstream": {"url": "http://x"},
    "rabbitmq": {"url": "http://x"},
    "postgresql": {"host": "x", "database": "x", "username": "x"},
    "datadog": {"api_key_file": "x", "application_key_file": "x"},
    "newrelic": {"account": 1, "api_key_file": "x"},
    "azure": {"region": "x"},
    "google": {"project": "x"},
    "cloudwatch": {},
    "sqs": {},
    "redis": {"addresses": ("x",)},
    "nats": {"addresses": ("x",)},
    "kafka": {"bootstrap_servers": ("x",)},
}


def fields(record: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    shape = inspect.type_info(record)
    assert isinstance(shape, inspect.StructType)
    return shape.fields


def kinds() -> Iterator[tuple[str, type[BackendSettings], type[Parameters]]]:
    """Return each backend kind with parameters, its settings and the type of its parameters."""
    for field in fields(BackendEntry):
        for option in getattr(field.type, "types", ()):
            parameters = getattr(getattr(option, "cls", None), "parameters_type", None)
            if parameters is not None:
                yield field.name, option.cls, parameters


KINDS = {kind: (settings_type, parameters) for kind, settings_type, parameters in kinds()}


def problems(kind: str, parameters: dict[str, Any]) -> list[Problem]:
    """Validate the parameters of a rule as when an object or a configuration file is loaded."""
    configured: dict[str, Any] = {kind: KINDS[kind][0](**SETTINGS[kind])}
    entry = BackendEntry(**configured)
    return list(query_problems(Rule(name="m", backend="it", parameters=parameters), entry, "spec"))


def leaves(shape: inspect.Type, path: str = "") -> Iterator[tuple[str, inspect.Type]]:
    """Return all types in a type, with their paths."""
    yield path, shape
    match shape:
        case inspect.StructType(fields=inner_fields):
            for field in inner_fields:
                yield from leaves(field.type, f"{path}.{field.encode_name}")
        case inspect.VarTupleType(item_type=inner):
            yield from leaves(inner, f"{path}[]")
        case inspect.DictType(key_type=key, value_type=inner):
            yield from leaves(key, f"{path}.KEY")
            yield from leaves(inner, f"{path}.VALUE")
        case inspect.UnionType(types=types):
            for option in types:
                yield from leaves(option, path)
        case _:
            pass


def oversized(shape: inspect.Type) -> list[object]:
    """Return values that are just above and far above the limit of a type."""
    maximum = limits.maximum(shape)
    match shape:
        case inspect.IntType():
            return [maximum + 1, 10**4000]
        case inspect.VarTupleType():
            return [["x"] * (maximum + 1), ["x"] * 100_000]
        case inspect.DictType():
            return [{f"k{number}": "x" for number in range(count)} for count in (maximum + 1, 100_000)]
        case inspect.StructType():
            return [{f"k{number}": "x" for number in range(count)} for count in (maximum + 1, 100_000)]
        case inspect.BoolType() | inspect.NoneType():
            return []
        case _:
            return ["x" * (maximum + 1), "x" * 1_000_000]


def nested(depth: int, *, is_list: bool) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value] if is_list else {"x": value}
    return value


def test_every_backend_kind_with_parameters_is_tested() -> None:
    assert KINDS.keys() == SETTINGS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_has_a_limit_and_a_larger_value_is_a_problem_that_names_it(kind: str) -> None:
    for field in fields(KINDS[kind][1]):
        for path, shape in leaves(field.type, field.encode_name):
            if path != field.encode_name:
                assert limits.maximum(shape) > 0, path
                continue
            for value in oversized(shape):
                found = problems(kind, {field.encode_name: value})
                mine = [str(problem) for problem in found if problem.path == f"spec.parameters.{path}"]
                assert any("must" in text or "expected" in text for text in mine), (path, mine)
                assert all(len(text) < 1000 for text in mine), path


@pytest.mark.parametrize("is_list", [True, False])
@pytest.mark.parametrize(
    ("kind", "depth"),
    [*((kind, depth) for kind in KINDS for depth in (10, 3000)), ("redis", 200_000), ("http", 200_000)],
)
def test_deep_values_are_problems(kind: str, depth: int, is_list: bool) -> None:  # noqa: FBT001
    value = nested(depth, is_list=is_list)
    for name in (*(field.encode_name for field in fields(KINDS[kind][1])), "unknown"):
        assert problems(kind, {name: value}), name


def test_total_size_is_limited() -> None:
    dimensions = {f"name{number}": "v" * 1000 for number in range(30)}
    metrics = {f"m{number}": {"namespace": "n", "metric": "m", "dimensions": dimensions} for number in range(10)}
    (problem,) = problems("cloudwatch", {"expression": "+".join(metrics), "metrics": metrics})
    assert str(problem).startswith("spec.parameters: must have at most 32768 bytes as JSON, has 3")


def test_many_unknown_keys_are_one_problem() -> None:
    (problem,) = problems("redis", {f"keyy{number}": "x" for number in range(10_000)})
    assert str(problem) == "spec.parameters: must have at most 64 keys, has 10000; remove keys or write a second rule"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=50)
    | st.just("1m")
    | st.just("x" * 5000),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=20,
)


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_value_of_any_parameter_is_accepted_or_a_problem(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    names = st.sampled_from([field.encode_name for field in fields(KINDS[kind][1])]) | st.text(max_size=8)
    problems(kind, data.draw(st.dictionaries(names, JSON, max_size=8)))


XPATH_PROGRAM = """
from adapter.backends.http.settings import Http
from adapter.backends.configuration import BackendEntry, query_problems
from adapter.rules.rule import Rule
path = {path}
rule = Rule(name="m", backend="it", parameters={{"format": "xml", "value": path}})
found = [str(each) for each in query_problems(rule, BackendEntry(http=Http(url="http://x")), "spec")]
print(found[0][:100])
"""


@pytest.mark.parametrize("path", ["'/'.join(['a'] * 40_000)", "'//'.join(['a'] * 40_000)", "'a' + '[1]' * 40_000"])
def test_xml_path_with_40000_segments_does_not_crash_the_process(path: str) -> None:
    program = XPATH_PROGRAM.format(path=path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("spec.parameters.value: must have at most 2048 characters")


@pytest.mark.parametrize("name", [".", ".."])
def test_name_that_changes_the_requested_path_is_a_problem(name: str) -> None:
    assert [str(problem.path) for problem in problems("rabbitmq", {"queue": name, "vhost": name})] == [
        "spec.parameters.queue",
        "spec.parameters.vhost",
    ]
    assert problems("upstream", {"namespace": name, "metric": "m"})


@pytest.mark.parametrize(
    "query",
    [
        '<<printf "%999999999s" "x">>',
        "<<" + "(" * 5000 + "1" + ")" * 5000 + ">>",
        '<<$x := "aaaaaaaaaaaaaaaa">>' + "<<$x = print $x $x>>" * 40,
        "<<if 1>>" * 1000 + "<<end>>" * 1000,
    ],
)
def test_template_of_a_tenant_is_not_rendered(query: str) -> None:
    spec = {"backend": "b", "query": query}
    with pytest.raises(ConfigInvalid, match="the only template action allowed here"):
        rule_from_object({"metadata": {"name": "m", "namespace": "shop"}, "spec": spec}, None)


@pytest.mark.parametrize("kind", KINDS)
def test_duration_that_would_overflow_a_time_is_a_problem(kind: str) -> None:
    for field in fields(KINDS[kind][1]):
        if isinstance(field.type, inspect.TimeDeltaType):
            for text in ("87601h", "999999999999h", "9" * 12 + "h" + "9" * 12 + "h"):
                found = [str(problem) for problem in problems(kind, {field.encode_name: text})]
                assert any(each.startswith(f"spec.parameters.{field.encode_name}: ") for each in found), text
