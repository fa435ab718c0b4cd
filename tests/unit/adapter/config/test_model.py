from datetime import timedelta
from pathlib import Path

import pytest

from adapter.config import loading, model
from adapter.decoding.problem import ConfigInvalid

RULE = {"name": "queue", "static": [{"value": 3}]}


def problems(document: object) -> tuple[str, ...]:
    with pytest.raises(ConfigInvalid) as raised:
        loading.decode(document)
    return raised.value.messages


def test_empty_document_is_the_default_configuration():
    assert loading.decode({}) == model.Config()


def test_file_with_all_sections_is_loaded(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text(
        """
        serving:
          address: 127.0.0.1
          port: 7443
          tls:
            files: {certFile: tls.crt, keyFile: tls.key}
        auth: {kubeconfig: admin.conf, authorizedTTL: 1m}
        limits: {requestTimeout: 2s500ms, maxConcurrentRequests: 10}
        log: {format: text, level: debug}
        rules:
        - name: queue-depth
          namespaces: [shop]
          maxSampleAge: 90s
          static:
          - {labels: {queue: orders}, value: 12.5}
          - {value: 3, age: 1m}
        """
    )
    read = loading.load(file, {})

    assert read.serving.port == 7443
    assert read.serving.tls.files == model.ServingTlsFiles("tls.crt", "tls.key")
    assert read.auth.authorized_ttl == timedelta(minutes=1)
    assert read.limits.request_timeout == timedelta(seconds=2.5)
    assert read.rules[0].max_sample_age == timedelta(seconds=90)
    assert read.rules[0].static[1].age == timedelta(minutes=1)


def test_given_flag_overrides_the_file(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text("serving: {port: 7443, address: 127.0.0.1}")
    read = loading.load(file, {"serving": {"port": 1, "address": None}, "auth": {"kubeconfig": None}})

    assert (read.serving.port, read.serving.address, read.auth.kubeconfig) == (1, "127.0.0.1", "")


MAIN = {"main": {"prometheus": {"url": "http://prometheus:9090"}}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            {"servng": {}},
            "servng: unknown key; did you mean 'serving'?",
            id="unknown key with a similar known key",
        ),
        pytest.param(
            {"rules": [RULE, {**RULE, "name": "b", "statc": []}]},
            "rules[1].statc: unknown key; did you mean 'static'?",
            id="unknown key in a list item",
        ),
        pytest.param(
            {"serving": {"tls": {"zzz": 1}}},
            "serving.tls.zzz: unknown key; known here: files, selfManaged",
            id="unknown key without a similar one",
        ),
        pytest.param({"serving": {"port": "x"}}, "serving.port: expected `int`, got `str`", id="wrong type"),
        pytest.param(
            {"limits": {"drainTimeout": "soon"}},
            "limits.drainTimeout: 'soon' is not a duration such as 10s or 1m30s",
            id="invalid duration",
        ),
        pytest.param(
            {"serving": {"port": 70000}}, "serving.port: must be between 0 and 65535, is 70000", id="port out of range"
        ),
        pytest.param(
            {"limits": {"maxConnections": 0}},
            "limits.maxConnections: must be greater than 0, is 0",
            id="limit of zero",
        ),
        pytest.param(
            {"limits": {"requestTimeout": "0"}},
            "limits.requestTimeout: must be greater than 0, is 0s",
            id="duration of zero",
        ),
        pytest.param([], "expected `object`, got `array`", id="not a mapping"),
        pytest.param(
            {"log": {"level": "loud"}},
            "log.level: invalid enum value 'loud'; one of debug, info, warning, error",
            id="invalid enum value",
        ),
        pytest.param(
            {
                "serving": {
                    "tls": {"files": {"certFile": "a", "keyFile": "b"}, "selfManaged": {"namespace": "c"}},
                }
            },
            "serving.tls: files and selfManaged are mutually exclusive",
            id="two certificate sources",
        ),
        pytest.param(
            {"backends": MAIN, "rules": [{"name": "a", "backend": "main", "query": "x{<<.LabelMatcher>>}"}]},
            "rules[0].query: invalid template: can't evaluate field LabelMatcher; available fields: GroupBy, "
            "GroupBySlice, LabelMatchers, LabelValuesByName, Series",
            id="template with an unknown field",
        ),
        pytest.param(
            {"rules": [{"name": "a"}]},
            "rules[0].static: at least one series is required if no backend is set",
            id="rule without a source",
        ),
    ],
)
def test_problem_has_its_path_and_a_hint(document: object, expected: str):
    assert problems(document) == (expected,)


def test_all_wrong_types_are_reported_at_once():
    backends = {
        "logs": {"newrelic": {"account": "12", "apiKeyFile": "/k"}},
        "jobs": {"redis": {"addresses": [1]}},
        "web": {"http": {}},
        "nothing": 7,
    }
    assert problems({"backends": backends, "rules": [{"name": 3}]}) == (
        "backends.logs.newrelic.account: expected `int`, got `str`",
        "backends.jobs.redis.addresses[0]: expected `str`, got `int`",
        "backends.web.http.url: is required",
        "backends.nothing: expected `object`, got `int`",
        "rules[0].name: expected `str`, got `int`",
    )


def test_rule_without_query_and_parameters_is_reported():
    document = {"backends": {"q": {"sqs": {"region": "eu-west-1"}}}, "rules": [{"name": "x", "backend": "q"}]}
    assert problems(document) == ("rules[0].query: query or parameters is required with a backend",)


def test_unknown_keys_wrong_types_and_missing_keys_are_reported_at_once():
    document = {
        "zzz": 1,
        "serving": {"prt": 1, "address": 5},
        "limits": {"drainTimeout": "soon"},
        "rules": [{"static": []}, {"nam": "x"}],
    }
    assert [problem.partition(";")[0] for problem in problems(document)] == [
        "zzz: unknown key",
        "serving.prt: unknown key",
        "serving.address: expected `str`, got `int`",
        "limits.drainTimeout: 'soon' is not a duration such as 10s or 1m30s",
        "rules[0].name: is required",
        "rules[1].nam: unknown key",
    ]


@pytest.mark.parametrize("name", ["status", "finalize", "Status"])
def test_reserved_metric_name_is_rejected(name: str):
    (problem,) = problems({"rules": [{**RULE, "name": name}]})

    assert problem.startswith(f"rules[0].name: {name!r} cannot be a metric's name")
    assert f"namespace's own {name.lower()!r} subresource" in problem


@pytest.mark.parametrize(
    ("content", "message"),
    [("a: [", "not YAML"), ("a: 1\na: [}", "not YAML"), ("\x00", "not YAML"), (b"\xff\xfe\xfa", "not YAML")],
)
def test_file_that_is_not_yaml_is_rejected(tmp_path: Path, content: str | bytes, message: str):
    file = tmp_path / "config.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigInvalid, match=message):
        loading.load(file, {})


def test_missing_file_is_named_in_the_error(tmp_path: Path):
    with pytest.raises(ConfigInvalid, match=r"nothing\.yaml: No such file"):
        loading.load(tmp_path / "nothing.yaml", {})
