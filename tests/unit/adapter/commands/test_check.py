"""``steadyscale check`` on configuration files and manifests."""

import io
import json
from pathlib import Path

import pytest
import yaml

from adapter.__main__ import main
from adapter.commands.check import check

CONFIG = """
backends: {main: {prometheus: {url: "http://prometheus:9090"}, externalMetrics: {}}}
rules:
- {name: queue, backend: main, query: sum by (namespace) (x)}
"""
EXTERNAL_METRIC = """
apiVersion: steadyscale.dev/v1beta1
kind: ExternalMetric
metadata: {name: queue, namespace: shop}
spec: {backend: main, query: sum(x)}
"""
AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
  metrics:
  - type: External
    external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "5"}}
"""
POD_AUTOSCALER = AUTOSCALER.replace("autoscaling/v2", "steadyscale.dev/v1beta1").replace(
    "HorizontalPodAutoscaler", "PodAutoscaler"
)


def run(folder: Path, *contents: str, output: str = "text") -> tuple[int, str]:
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(content)
    out = io.StringIO()
    code = check(files, out, output=output)
    return code, out.getvalue().replace(f"{folder}/", "")


def test_valid_documents_are_counted(tmp_path: Path):
    together = f"{EXTERNAL_METRIC}\n---\n{AUTOSCALER}\n---\n{POD_AUTOSCALER}"

    assert run(tmp_path, CONFIG, together) == (0, "4 documents checked, 0 problems\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(
            CONFIG.replace("backend: main", "backend: mian"),
            "0.yaml: rules[0].backend: backend 'mian' is not configured; configured backends: main",
            id="unknown backend of a rule",
        ),
        pytest.param(
            CONFIG.replace("url:", "ulr:"),
            "0.yaml: backends.main.prometheus.ulr: unknown key; did you mean 'url'?",
            id="misspelled key of a backend",
        ),
        pytest.param(
            EXTERNAL_METRIC.replace("sum(x)", "'sum(x'"),
            "0.yaml ExternalMetric/queue: spec.query: invalid PromQL: unclosed left parenthesis",
            id="invalid query",
        ),
        pytest.param(
            AUTOSCALER.replace("maxReplicas", "maxReplica"),
            "0.yaml HorizontalPodAutoscaler/web: spec.maxReplica: unknown field; did you mean maxReplicas?",
            id="misspelled field of an autoscaler",
        ),
        pytest.param(
            POD_AUTOSCALER.replace("maxReplicas: 5", "maxReplicas: 5, minReplicas: 9".replace(", ", "\n  ")),
            "0.yaml PodAutoscaler/web: spec.maxReplicas: Invalid value: 5:"
            " must be greater than or equal to `minReplicas`",
            id="spec that Kubernetes rejects",
        ),
        pytest.param(
            "kind: ConfigMap\nmetadata: {name: steadyscale}\ndata: {config.yaml: 'rules: [{name: a}]'}",
            "0.yaml ConfigMap/steadyscale: data[config.yaml].rules[0].static:"
            " at least one series is required if no backend is set",
            id="configuration in a ConfigMap",
        ),
        pytest.param(
            AUTOSCALER.replace("autoscaling/v2", "autoscaling/v1"),
            "0.yaml HorizontalPodAutoscaler/web: apiVersion: only autoscaling/v2 can be checked, is 'autoscaling/v1'",
            id="HPA of an unsupported version",
        ),
    ],
)
def test_problem_is_printed_with_file_object_and_path(tmp_path: Path, content: str, line: str):
    code, output = run(tmp_path, content)

    assert code == 1
    assert output.splitlines() == [line, "1 document checked, 1 problem"]


def test_problems_of_all_files_are_printed(tmp_path: Path):
    bad = CONFIG.replace("main, query", "mian, query")
    code, output = run(tmp_path, bad, "a: [", EXTERNAL_METRIC.replace("spec:", "spce:"))

    assert code == 1
    assert len(output.splitlines()) == 4


def test_unknown_field_does_not_hide_problems_of_other_fields(tmp_path: Path):
    _, output = run(tmp_path, POD_AUTOSCALER.replace("maxReplicas: 5", "mod: Paused\n  maxReplicas: 0"))

    assert "spec.mod: unknown field; did you mean mode?" in output
    assert "spec.maxReplicas: Required value" in output


def test_second_document_of_a_file_has_its_number(tmp_path: Path):
    _, output = run(tmp_path, f"{CONFIG}\n---\n{AUTOSCALER.replace('maxReplicas: 5', 'maxReplicas: 0')}")

    assert output.startswith("0.yaml#2 HorizontalPodAutoscaler/web: spec.maxReplicas: ")


def test_notes_are_not_problems(tmp_path: Path):
    zero = EXTERNAL_METRIC.replace("query: sum(x)", "query: sum(x), onEmpty: zero")
    fallback = AUTOSCALER.replace('averageValue: "5"}', 'averageValue: "5"}, fallback: {replicas: 9}')
    code, output = run(tmp_path, zero, fallback, "kind: Deployment\nmetadata: {name: web}")

    assert code == 0
    assert output.count("note: ") == 4
    assert "spec.onEmpty: zero scales the workload down" in output
    assert "9 is more than maxReplicas: 5 is used" in output
    assert "released API servers drop this field; use a PodAutoscaler" in output


def test_metric_without_a_rule_is_noted(tmp_path: Path):
    misspelled = AUTOSCALER.replace("name: queue}", "name: qeue}")
    code, output = run(tmp_path, CONFIG, misspelled)

    assert code == 0
    assert (
        "note: spec.metrics[0].external.metric.name: no rule in these files defines 'qeue' in namespace 'default';"
        " did you mean 'queue'?" in output
    )
    assert "no rule" not in run(tmp_path, misspelled)[1]  # the rules are unknown without a configuration


def test_external_metric_defines_a_metric_in_its_namespace(tmp_path: Path):
    nothing = "rules: []"
    here = AUTOSCALER.replace("{name: web}", "{name: web, namespace: shop}")

    assert "no rule" not in run(tmp_path, nothing, EXTERNAL_METRIC, here)[1]
    assert "no rule" in run(tmp_path, nothing, EXTERNAL_METRIC, AUTOSCALER)[1]


def test_items_of_a_list_are_checked(tmp_path: Path):
    items = json.dumps(
        {
            "kind": "List",
            "items": [{**yaml.safe_load(EXTERNAL_METRIC), "metadata": {"name": name}, "spec": {}} for name in "ab"],
        }
    )

    assert run(tmp_path, items)[1].endswith("2 documents checked, 2 problems\n")


def test_prometheus_adapter_file_is_checked(tmp_path: Path):
    code, output = run(tmp_path, "externalRules: [{seriesQuery: lag, metricsQuery: 'sum(<<.Nothing>>)'}]")

    assert code == 1
    assert "externalRules[0]" in output


def test_json_output(tmp_path: Path):
    _, output = run(tmp_path, EXTERNAL_METRIC.replace("spec:", "spce:"), output="json")

    assert json.loads(output) == {
        "documents": 1,
        "problems": 1,
        "messages": [
            {
                "location": "0.yaml ExternalMetric/queue",
                "text": "spce: unknown field; did you mean spec?",
                "severity": "error",
            }
        ],
    }


def test_files_without_documents_have_their_own_exit_code(tmp_path: Path):
    code, output = run(tmp_path, "")

    assert code == 2
    assert output.startswith("there is no configuration, ExternalMetric, PodAutoscaler or ")


def test_invalid_yaml_is_reported_with_line_and_column(tmp_path: Path):
    _, output = run(tmp_path, "a: [1\nb: }")

    assert output.splitlines()[0] == "0.yaml: line 2, column 2: invalid YAML: expected ',' or ']', but got ':'"


def test_metric_is_defined_by_a_configuration_in_a_config_map(tmp_path: Path):
    config = json.dumps({"kind": "ConfigMap", "metadata": {"name": "steadyscale"}, "data": {"config.yaml": CONFIG}})

    assert "no rule" not in run(tmp_path, config, AUTOSCALER)[1]
    assert "no rule" in run(tmp_path, config, AUTOSCALER.replace("name: queue}", "name: qeue}"))[1]


def test_command_returns_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "config.yaml").write_text(CONFIG)

    assert main(["check", str(tmp_path / "config.yaml")]) == 0
    assert main(["check", str(tmp_path / "nothing.yaml")]) == 1
    assert "nothing.yaml: cannot read the file: No such file" in capsys.readouterr().out


PAID = """
backends: {cloud: {cloudwatch: {region: eu-west-1}, externalMetrics: {namespaces: [shop]}}}
rules: [{name: r, backend: cloud, interval: 1m, parameters: {namespace: N, metric: M, statistic: Sum}}]
"""
PAID_OBJECT = """
apiVersion: steadyscale.dev/v1beta1
kind: ExternalMetric
metadata: {name: latency, namespace: shop}
spec: {backend: cloud, interval: 5s, parameters: {namespace: N, metric: M, statistic: Sum}}
"""


def test_price_of_rules_and_objects_is_noted(tmp_path: Path):
    code, output = run(tmp_path, PAID, PAID_OBJECT)

    assert code == 0
    assert (
        "0.yaml: note: rules[0]: about $0.01 per day while the metric is read: 1,440 metrics at $0.01 per 1,000"
        in output
    )
    assert "ExternalMetric/latency: note: spec: about $0.17 per day while the metric is read: 17,280 metrics" in output
    assert "less than $0.01 per day in total" in run(tmp_path, PAID.replace("1m", "1h"))[1]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("namespace: N, ", "", "spec.parameters.namespace: must not be empty"),
        ("shop", "other", "spec.backend: backend 'cloud' is not available to ExternalMetrics in namespace 'other'"),
        ("backend: cloud", "backend: clod", "note: spec.backend: no configuration in these files has a backend 'clod'"),
    ],
)
def test_object_is_checked_against_the_configuration_in_the_same_files(
    tmp_path: Path, before: str, after: str, line: str
):
    wrong = PAID_OBJECT.replace(before, after)
    in_a_map = json.dumps({"kind": "ConfigMap", "data": {"steadyscale.yaml": PAID}})

    for configuration in (PAID, in_a_map):
        assert f"1.yaml ExternalMetric/latency: {line}" in run(tmp_path, configuration, wrong)[1]
    assert line not in run(tmp_path, wrong)[1]  # the rules are unknown without a configuration
