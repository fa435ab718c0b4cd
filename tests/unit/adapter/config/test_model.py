from datetime import timedelta
from pathlib import Path

import pytest

from adapter.config import model
from adapter.errors import ConfigInvalid

RULE = {"name": "queue", "static": [{"value": 3}]}


def problems(document: object) -> tuple[str, ...]:
    with pytest.raises(ConfigInvalid) as refused:
        model.decode(document)
    return refused.value.problems


def test_nothing_at_all_is_a_configuration():
    assert model.decode({}) == model.Config()


def test_a_whole_file(tmp_path: Path):
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
    read = model.load(file, {})

    assert read.serving.port == 7443
    assert read.serving.tls.files == model.TlsFiles("tls.crt", "tls.key")
    assert read.auth.authorized_ttl == timedelta(minutes=1)
    assert read.limits.request_timeout == timedelta(seconds=2.5)
    assert read.rules[0].max_sample_age == timedelta(seconds=90)
    assert read.rules[0].static[1].age == timedelta(minutes=1)


def test_a_flag_that_is_given_lies_over_the_file(tmp_path: Path):
    file = tmp_path / "config.yaml"
    file.write_text("serving: {port: 7443, address: 127.0.0.1}")
    read = model.load(file, {"serving": {"port": 1, "address": None}, "auth": {"kubeconfig": None}})

    assert (read.serving.port, read.serving.address, read.auth.kubeconfig) == (1, "127.0.0.1", "")


MAIN = {"main": {"prometheus": {"url": "http://prometheus:9090"}}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            {"servng": {}},
            "servng: unknown key; did you mean 'serving'?",
            id="an unknown key, and the nearest right one",
        ),
        pytest.param(
            {"rules": [RULE, {**RULE, "name": "b", "statc": []}]},
            "rules[1].statc: unknown key; did you mean 'static'?",
            id="deep in a list",
        ),
        pytest.param(
            {"serving": {"tls": {"zzz": 1}}},
            "serving.tls.zzz: unknown key; known here: files, selfManaged",
            id="nothing near",
        ),
        pytest.param({"serving": {"port": "x"}}, "serving.port: expected `int`, got `str`", id="a wrong type"),
        pytest.param(
            {"limits": {"drain": "soon"}}, "limits.drain: 'soon' is not a duration such as 10s or 1m30s", id="time"
        ),
        pytest.param({"serving": {"port": 70000}}, "serving.port: must be between 0 and 65535, is 70000", id="a port"),
        pytest.param(
            {"limits": {"connections": 0}},
            "limits.connections: must be more than nothing, is 0",
            id="a limit of nothing",
        ),
        pytest.param(
            {"limits": {"requestTimeout": "0"}},
            "limits.requestTimeout: must be more than nothing, is 0:00:00",
            id="no time at all",
        ),
        pytest.param([], "the file: expected `object`, got `array`", id="not a mapping"),
        pytest.param({"log": {"level": "loud"}}, "log.level: invalid enum value 'loud'", id="a level that is none"),
        pytest.param(
            {
                "serving": {
                    "tls": {"files": {"certFile": "a", "keyFile": "b"}, "selfManaged": {"namespace": "c"}},
                }
            },
            "serving.tls: files and selfManaged exclude each other",
            id="two certificates",
        ),
        pytest.param(
            {"backends": MAIN, "rules": [{"name": "a", "backend": "main", "query": "x{<<.LabelMatcher>>}"}]},
            "rules[0].query: the template is wrong: can't evaluate field LabelMatcher; there are GroupBy, "
            "GroupBySlice, LabelMatchers, LabelValuesByName, Series",
            id="a template with a misspelt field",
        ),
        pytest.param(
            {"rules": [{"name": "a"}]}, "rules[0].static: at least one series is needed", id="a rule of nothing"
        ),
    ],
)
def test_a_problem_has_its_path_and_the_way_out(document: object, expected: str):
    assert problems(document) == (expected,)


def test_every_wrong_value_is_told_at_once_by_the_names_that_its_backend_and_rule_have():
    backends = {
        "logs": {"newrelic": {"account": "12", "apiKeyFile": "/k"}},
        "jobs": {"redis": {"addresses": [1]}},
        "web": {"http": {}},
        "nothing": 7,
    }
    assert problems({"backends": backends, "rules": [{"name": 3}]}) == (
        "backends.logs.newrelic.account: expected `int`, got `str`",
        "backends.jobs.redis.addresses[0]: expected `str`, got `int`",
        "backends.web.http: object missing required field `url`",
        "backends.nothing: expected `object`, got `int`",
        "rules[0].name: expected `str`, got `int`",
    )


def test_what_is_asked_with_parameters_is_not_said_to_need_a_query():
    document = {"backends": {"q": {"sqs": {"region": "eu-west-1"}}}, "rules": [{"name": "x", "backend": "q"}]}
    assert problems(document) == ("rules[0].query: this or parameters is needed with a backend",)


def test_every_unknown_key_is_told_at_once():
    assert len(problems({"a": 1, "b": {"c": 1}, "serving": {"prt": 1}})) == 3


@pytest.mark.parametrize("name", ["status", "finalize", "Status"])
def test_a_name_that_the_api_server_would_authorize_as_something_else_is_refused(name: str):
    (problem,) = problems({"rules": [{**RULE, "name": name}]})

    assert problem.startswith(f"rules[0].name: {name!r} cannot be a metric's name")
    assert f"namespace's own {name.lower()!r} subresource" in problem


@pytest.mark.parametrize(
    ("content", "says"),
    [("a: [", "not YAML"), ("a: 1\na: [}", "not YAML"), ("\x00", "not YAML"), (b"\xff\xfe\xfa", "not YAML")],
)
def test_what_is_no_yaml_is_refused(tmp_path: Path, content: str | bytes, says: str):
    file = tmp_path / "config.yaml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigInvalid, match=says):
        model.load(file, {})


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ConfigInvalid, match=r"nothing\.yaml: No such file"):
        model.load(tmp_path / "nothing.yaml", {})
