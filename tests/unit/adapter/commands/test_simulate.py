"""``steadyscale simulate``: variants, output formats, refused input, and files that are complete or absent."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest

from adapter.__main__ import main
from adapter.commands.output_file import write_output

SPEC = """
apiVersion: steadyscale.dev/v1beta1
kind: PodAutoscaler
metadata: {name: orders, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: orders}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - type: External
    external:
      metric: {name: waiting}
      target: {type: AverageValue, averageValue: "10"}
"""


@pytest.fixture(autouse=True)
def commands_may_read_files(blocking_calls_fail) -> None:
    blocking_calls_fail.deactivate()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    spec, history = tmp_path / "orders.yaml", tmp_path / "load.csv"
    spec.write_text(SPEC)
    values = [30] * 20 + [90] * 20 + [30] * 40
    rows = (f"{1772366400 + 60 * minute},{value}" for minute, value in enumerate(values))
    history.write_text("\n".join(["timestamp,value", *rows]))
    return str(spec), f"--history={history}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["simulate", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["simulate", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_table_has_a_column_for_each_variant(files, capsys):
    text = run(capsys, *files, "--set", "spec.behavior.scaleDown.stabilizationWindowSeconds=0")
    header, hours = (line.split() for line in text.splitlines()[2:4])
    assert text.startswith("2026-03-01T12:00:00Z to 2026-03-01T13:19:15Z, 317 decisions, model recorded\n")
    assert header == ["orders", "stabilizationWindowSeconds=0"]
    assert hours[0] == "replica-hours"
    assert float(hours[1]) > float(hours[2])


def test_json_has_measures_and_rescales(files, capsys):
    (variant,) = json.loads(run(capsys, *files, "-o", "json"))["variants"]
    assert variant["rescales"][0] == {"at": "2026-03-01T12:20:00Z", "before": 3, "after": 6}
    assert variant["measures"]["rescales"] == len(variant["rescales"]) == 3


def test_csv_has_every_decision_of_every_variant(files, capsys):
    rows = list(csv.DictReader(run(capsys, *files, "-o", "csv", "--set=spec.maxReplicas=5").splitlines()))
    assert [len([row for row in rows if row["variant"] == name]) for name in ("orders", "maxReplicas=5")] == [317, 317]
    last = rows[317 + 90]
    assert (last["waiting value"], last["demand"], last["replicas"], last["limitingFactor"]) == (
        "90",
        "9",
        "5",
        "maxReplicas",
    )


def test_period_outage_and_first_replicas_are_chosen(files, capsys):
    arguments = ("--from=2026-03-01T12:10Z", "--to=2026-03-01T12:40Z", "--outage=2026-03-01T12:15Z/10m", "--replicas=8")
    rows = list(csv.DictReader(run(capsys, *files, "-o", "csv", *arguments).splitlines()))
    assert (rows[0]["time"], rows[0]["replicas"], len(rows)) == ("2026-03-01T12:10:00Z", "8", 120)
    assert {row["limitingFactor"] for row in rows[20:60]} == {"unavailable metrics"}


def test_queue_model_has_the_backlog(files, capsys):
    text = run(capsys, *files, "--model=queue", "--service-rate=10", "--scale=0.5", "--startup=30s")
    assert "peak backlog" in text


def test_report_is_one_file_without_references_to_others(files, capsys):
    change = "--set=spec.metrics[0].external.metric.name='<script><b>'"
    page = run(capsys, *files, "-o", "html", change)
    assert not re.findall(r"(?:src|href)=\"(?!data:)|url\((?!#)|@import|^import ", page)
    assert page.count("</script>") == 2
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    assert [variant["name"] for variant in data["variants"]] == ["orders", "name='<script><b>'"]
    assert len(data["variants"][0]["time"]) == 317
    assert data["variants"][0]["explained"][1]["steps"][0].startswith("target: spec 3 replicas")
    assert data["measures"][0]["label"] == "replica-hours"
    assert data["variants"][0]["under"] == [[1772367600000, 1772367615000, 1.0]]


def test_report_of_a_long_history_is_reduced_but_keeps_the_shortages(files, capsys, tmp_path):
    rows = (f"{1772366400 + 15 * step},{900 if step == 3333 else 30}" for step in range(6000))
    (tmp_path / "load.csv").write_text("\n".join(["timestamp,value", *rows, "1772456460,"]))
    page = run(capsys, *files, "-o", "html")
    (variant,) = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])["variants"]
    assert 600 < len(variant["time"]) <= 1802
    assert 90 in variant["demand"]
    ((start, end, share),) = variant["under"]
    assert (end - start, share) == (150_000, 0.1)  # one of ten decisions
    assert variant["demand"][-1] is None


def test_variants_with_the_same_name_are_numbered(files, capsys):
    spec, history = files
    assert "orders#1  orders#2" in run(capsys, spec, spec, history)


def test_elements_of_lists_are_set(files, capsys):
    change = "spec.metrics[0].external.target.averageValue=5,spec.minReplicas=3"
    assert "averageValue=5, minReplicas=3" in run(capsys, *files, f"--set={change}", "-o", "csv")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set=spec.maxReplicas=0",), "maxReplicas=0 spec.maxReplicas: Required value"),
        (("--set=spec.maxReplica=9",), "unknown field"),
        (("--set=spec.metrics[3].type=Pods",), "the spec has no 3"),
        (("--set=spec.metrics[0].nothing.else=1",), "unknown field"),
        (("--set=spec.minReplicas.x=1",), "the spec has no x"),
        (("--set=spec",), "must be PATH=VALUE"),
        (("--set=spec..x=1",), "must be a path"),
        (("--set=spec.x={",), "the value is not YAML"),
        (("--model=per-pod", "--request=cpu=many"), "--request: must be RESOURCE=QUANTITY"),
        (("--from=2030-01-01",), "the history has no values in this period: it is from 2026-03-01 12:00:00 UTC"),
        (("--from=never",), "--from: 'never' is not"),
        (("--startup=fast",), "--startup: 'fast' is not a duration"),
        (("--timezone=Nowhere/Else",), "--timezone or --scale is invalid"),
        (("--outage=1h",), "--outage: must be TIME/DURATION"),
        (("--period=0s",), "orders: the sync period must be at least one second"),
        (("--to=2060-03-01T13:00Z", "--period=1s", "--max-gap=10d"), "orders: more than 5,000,000 decisions"),
        (tuple(f"--set=spec.maxReplicas={count}" for count in range(5, 20)), "16 variants, at most 12 are compared"),
    ],
)
def test_problem_is_printed_and_nothing_is_simulated(files, capsys, arguments, message):
    assert message in refused(capsys, *files, *arguments)


def test_metric_that_the_history_lacks_is_refused(files, capsys, tmp_path):
    (tmp_path / "load.csv").write_text("timestamp,other,more\n0,1,2\n")
    assert "spec.metrics[0]: the history has no column waiting; it has: more, other" in refused(capsys, *files)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot read the file: No such file"), (b"\xff\xfe", "not UTF-8"), (b"", "load.csv: the history is empty")],
)
def test_unreadable_history_is_refused(files, capsys, tmp_path, content, message):
    history = tmp_path / "load.csv"
    history.unlink()
    if content is not None:
        history.write_bytes(content)
    assert message in refused(capsys, *files)


def test_file_without_an_autoscaler_is_refused(files, capsys, tmp_path):
    (tmp_path / "orders.yaml").write_text("kind: Service\nmetadata: {name: x}")
    assert "no PodAutoscaler or HorizontalPodAutoscaler in" in refused(capsys, *files)


def test_output_is_written_to_a_file(files, capsys, tmp_path):
    assert run(capsys, *files, "-o", "json", f"--file={tmp_path / 'out.json'}") == ""
    assert json.loads((tmp_path / "out.json").read_text())["model"] == "recorded"


def test_interrupt_leaves_the_previous_file_and_no_other(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("previous")

    def chunks():
        yield "half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_output(file, chunks())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert file.read_text() == "previous"


def test_progress_is_shown_on_a_terminal_and_removed(files, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["simulate", *files]) == 0
    assert capsys.readouterr().err == "\r\x1b[Ksimulating orders: 0%\r\x1b[K"
