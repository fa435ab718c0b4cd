import io
import json
from pathlib import Path

import pytest

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


def run(folder: Path, *contents: str, form: str = "text") -> tuple[int, str]:
    files = []
    for number, content in enumerate(contents):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(content)
    out = io.StringIO()
    code = check(files, out, form=form)
    return code, out.getvalue().replace(f"{folder}/", "")


def test_what_is_good_is_counted_and_the_exit_code_is_zero(tmp_path: Path):
    together = f"{EXTERNAL_METRIC}\n---\n{AUTOSCALER}\n---\n{POD_AUTOSCALER}"

    assert run(tmp_path, CONFIG, together) == (0, "4 checked, 0 problems\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(
            CONFIG.replace("backend: main", "backend: mian"),
            "0.yaml: rules[0].backend: there is no backend 'mian'; the backends are main",
            id="a rule's backend",
        ),
        pytest.param(
            CONFIG.replace("url:", "ulr:"),
            "0.yaml: backends.main.prometheus.ulr: unknown key; did you mean 'url'?",
            id="a key in a backend",
        ),
        pytest.param(
            EXTERNAL_METRIC.replace("sum(x)", "'sum(x'"),
            "0.yaml ExternalMetric/queue: spec.query: ')' is missing",
            id="a query",
        ),
        pytest.param(
            AUTOSCALER.replace("maxReplicas", "maxReplica"),
            "0.yaml HorizontalPodAutoscaler/web: spec.maxReplica: is not a field here; did you mean maxReplicas?",
            id="a key in an autoscaler",
        ),
        pytest.param(
            POD_AUTOSCALER.replace("maxReplicas: 5", "maxReplicas: 5, minReplicas: 9".replace(", ", "\n  ")),
            "0.yaml PodAutoscaler/web: spec.maxReplicas: Invalid value: 5:"
            " must be greater than or equal to `minReplicas`",
            id="a spec that Kubernetes would refuse",
        ),
        pytest.param(
            "kind: ConfigMap\nmetadata: {name: steadyscale}\ndata: {config.yaml: 'rules: [{name: a}]'}",
            "0.yaml ConfigMap/steadyscale: data[config.yaml]: rules[0].static: at least one series is needed",
            id="a configuration in a ConfigMap",
        ),
        pytest.param(
            AUTOSCALER.replace("autoscaling/v2", "autoscaling/v1"),
            "0.yaml HorizontalPodAutoscaler/web: apiVersion: must be autoscaling/v2 to be checked, is 'autoscaling/v1'",
            id="an old version",
        ),
    ],
)
def test_a_problem_has_its_file_its_object_and_its_path(tmp_path: Path, content: str, line: str):
    code, said = run(tmp_path, content)

    assert code == 1
    assert said.splitlines() == [line, "1 checked, 1 problem"]


def test_all_problems_of_all_files_are_told(tmp_path: Path):
    bad = CONFIG.replace("main, query", "mian, query")
    code, said = run(tmp_path, bad, "a: [", EXTERNAL_METRIC.replace("spec:", "spce:"))

    assert code == 1
    assert len(said.splitlines()) == 4


def test_a_field_that_is_none_hides_nothing_that_is_wrong_with_the_others(tmp_path: Path):
    _, said = run(tmp_path, POD_AUTOSCALER.replace("maxReplicas: 5", "mod: Paused\n  maxReplicas: 0"))

    assert "spec.mod: is not a field here; did you mean mode?" in said
    assert "spec.maxReplicas: Required value" in said


def test_the_second_document_of_a_file_is_said_to_be_the_second(tmp_path: Path):
    _, said = run(tmp_path, f"{CONFIG}\n---\n{AUTOSCALER.replace('maxReplicas: 5', 'maxReplicas: 0')}")

    assert said.startswith("0.yaml#2 HorizontalPodAutoscaler/web: spec.maxReplicas: ")


def test_advice_is_no_problem(tmp_path: Path):
    zero = EXTERNAL_METRIC.replace("query: sum(x)", "query: sum(x), onEmpty: zero")
    fallback = AUTOSCALER.replace('averageValue: "5"}', 'averageValue: "5"}, fallback: {replicas: 9}')
    code, said = run(tmp_path, zero, fallback, "kind: Deployment\nmetadata: {name: web}")

    assert code == 0
    assert said.count("note: ") == 4
    assert "spec.onEmpty: zero scales the workload down" in said
    assert "9 is more than maxReplicas, so 5 will be used" in said
    assert "released API servers drop it; use a PodAutoscaler" in said


def test_an_autoscaler_whose_metric_no_rule_defines_is_noted(tmp_path: Path):
    lost = AUTOSCALER.replace("name: queue}", "name: qeue}")
    code, said = run(tmp_path, CONFIG, lost)

    assert code == 0
    assert (
        "note: spec.metrics[0].external.metric.name: no rule in these files defines 'qeue' in namespace 'default';"
        " did you mean 'queue'?" in said
    )
    assert "no rule" not in run(tmp_path, lost)[1]  # without a configuration nobody can tell


def test_an_external_metric_defines_for_its_own_namespace(tmp_path: Path):
    nothing = "rules: []"
    here = AUTOSCALER.replace("{name: web}", "{name: web, namespace: shop}")

    assert "no rule" not in run(tmp_path, nothing, EXTERNAL_METRIC, here)[1]
    assert "no rule" in run(tmp_path, nothing, EXTERNAL_METRIC, AUTOSCALER)[1]


def test_a_list_is_checked_item_by_item(tmp_path: Path):
    items = json.dumps(
        {"kind": "List", "items": [{"kind": "ExternalMetric", "metadata": {"name": name}} for name in "ab"]}
    )

    assert run(tmp_path, items)[1].endswith("2 checked, 2 problems\n")


def test_prometheus_adapters_own_file_is_checked_for_who_moves_over(tmp_path: Path):
    code, said = run(tmp_path, "externalRules: [{seriesQuery: lag, metricsQuery: 'sum(<<.Nothing>>)'}]")

    assert code == 1
    assert "externalRules[0]" in said


def test_machines_get_json(tmp_path: Path):
    _, said = run(tmp_path, EXTERNAL_METRIC.replace("spec:", "spce:"), form="json")

    assert json.loads(said) == {
        "documents": 1,
        "problems": 1,
        "findings": [
            {
                "where": "0.yaml ExternalMetric/queue",
                "text": "spec.static: at least one series is needed",
                "problem": True,
            }
        ],
    }


def test_files_without_anything_to_check_are_an_error_of_their_own(tmp_path: Path):
    assert run(tmp_path, "")[0] == 2


def test_the_command_is_there_for_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "config.yaml").write_text(CONFIG)

    assert main(["check", str(tmp_path / "config.yaml")]) == 0
    assert main(["check", str(tmp_path / "nothing.yaml")]) == 1
    assert "nothing.yaml: No such file" in capsys.readouterr().out


PAID = """
backends: {cloud: {cloudwatch: {region: eu-west-1}, externalMetrics: {namespaces: [shop]}}}
rules: [{name: r, backend: cloud, interval: 1m, parameters: {namespace: N, metric: M, statistic: Sum}}]
"""
PAID_OBJECT = """
kind: ExternalMetric
metadata: {name: latency, namespace: shop}
spec: {backend: cloud, interval: 1s, parameters: {namespace: N, metric: M, statistic: Sum}}
"""


def test_what_asking_costs_is_told_of_rules_and_of_objects(tmp_path: Path):
    code, said = run(tmp_path, PAID, PAID_OBJECT)

    assert code == 0
    assert "0.yaml: note: rules[0]: asking costs about $0.01 a day while it is read: 1,440 times 1" in said
    assert "ExternalMetric/latency: note: spec: asking costs about $0.86 a day while it is read: 86,400 times 1" in said
    assert "asking costs less than $0.01 a day in all" in run(tmp_path, PAID.replace("1m", "1h"))[1]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("statistic", "statistik", "spec.parameters.statistik: unknown key; did you mean 'statistic'?"),
        ("shop", "other", "spec.backend: 'cloud' is not open to ExternalMetrics of this namespace"),
        ("backend: cloud", "backend: clod", "note: spec.backend: no configuration in these files has a backend 'clod'"),
    ],
)
def test_an_object_is_checked_by_the_configuration_beside_it(tmp_path: Path, before: str, after: str, line: str):
    wrong = PAID_OBJECT.replace(before, after)
    in_a_map = json.dumps({"kind": "ConfigMap", "data": {"steadyscale.yaml": PAID}})

    for configuration in (PAID, in_a_map):
        assert f"1.yaml ExternalMetric/latency: {line}\n" in run(tmp_path, configuration, wrong)[1]
    assert line not in run(tmp_path, wrong)[1]  # without a configuration nobody can tell
