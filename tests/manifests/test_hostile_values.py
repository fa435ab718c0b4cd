"""No string in the chart's values changes the structure of the rendered objects."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.manifests.rendered import Json, rejection, templated

pytestmark = pytest.mark.apiserver  # helm comes with the control plane

HOSTILE = (
    *(
        "true",
        "null",
        "~",
        "no",
        "1e3",
        "0x1F",
        "0o17",
        "010",
        "1_000",
        ".inf",
        ".nan",
        "12:30:45",
        "2026-01-01",
        "<<",
        "=",
    ),
    *(
        "a: b",
        "a #b",
        "- a",
        "{a: b}",
        "[x]",
        "&x",
        "*x",
        "!!int 3",
        "%YAML",
        "@x",
        "`x`",
        "'",
        '"',
        "\\",
        "\\n",
        "|",
        ">",
        "?",
    ),
    *("x\ny: z", "x\n---\nkind: Secret", "\n", "\r\n", "\t", " x", "x ", "---", "...", "system-x\nhostNetwork: true"),
    *(
        "{{ .Values }}",
        '{{ fail "x" }}',
        "$(x)",
        "é",
        "\u2028",
        "\x85",
        "\xa0",
        "\U0001f600",
        "\x00",
        "\x1b",
        "\x7f",
        "\ufeff",
    ),
)
PARTS = (
    "\n",
    " ",
    ":",
    "#",
    '"',
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "-",
    "&",
    "!",
    "|",
    "\t",
    "a",
    "0",
    "e",
    "\u2029",
    "\x00",
)
PLACEHOLDER = "placeholder"
NOT_IN_CONFIG = (
    "<<",
    "=",
    "\x7f",
    "\x85",
)  # Helm's toYaml does not quote them; the configuration file stays readable YAML
EVERYTHING = ("--set=serviceMonitor.enabled=true", "--set=alerts.enabled=true", "--set=dashboard.enabled=true")
SEED = random.SystemRandom().randrange(10**6)


def values(text: str) -> Json:
    """Return values with a string in every place that accepts any string."""
    labels = {f"x{text}": text}
    in_config = PLACEHOLDER if text in NOT_IN_CONFIG else text
    return {
        "image": {"repository": f"r{text}", "tag": f"t{text}", "pullSecrets": [{"name": text}]},
        "config": {"rules": [{"name": in_config, f"x{in_config}": [in_config, {"query": in_config}]}]},
        "flags": [f"--x={text}"],
        "volumes": [{"name": text, "secret": {"secretName": text}}],
        "volumeMounts": [{"name": text, "mountPath": text}],
        "resources": {"limits": {"memory": text}},
        "priorityClassName": f"system-{text}",
        "serviceAccountAnnotations": labels,
        "podAnnotations": labels,
        "podLabels": labels,
        "nodeSelector": labels,
        "tolerations": [{"key": text, "value": text}],
        "affinity": {"nodeAffinity": labels},
        "networkPolicy": {
            "egress": [{"to": [{"podSelector": {"matchLabels": labels}}]}],
            "ingressFrom": [{"podSelector": {"matchLabels": labels}}],
        },
        "serviceMonitor": {"enabled": True, "labels": labels},
        "alerts": {"enabled": True, "labels": labels},
        "dashboard": {"enabled": True, "labels": labels},
    }


def rendered(text: str, folder: Path) -> Any:
    """Render with the string everywhere; return the objects, with the configuration file as an object."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values(text), default_style='"'))
    made = templated(f"--values={file}")
    configuration = made["ConfigMap", "steadyscale", "steadyscale"]["data"]
    configuration["config.yaml"] = yaml.safe_load(configuration["config.yaml"])
    return list(made.values())


def substituted(node: Any, text: str) -> Any:
    """Return objects with the placeholder replaced in all keys and strings."""
    match node:
        case dict():
            return {key.replace(PLACEHOLDER, text): substituted(value, text) for key, value in node.items()}
        case list():
            return [substituted(item, text) for item in node]
        case str():
            return node.replace(PLACEHOLDER, text)
        case _:
            return node


def is_config(item: Json) -> bool:
    return (item["kind"], item["metadata"]["name"]) == ("ConfigMap", "steadyscale")


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return rendered(PLACEHOLDER, tmp_path_factory.mktemp("values"))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_rendered_objects_have_exactly_the_given_string(text: str, harmless: Any, tmp_path: Path) -> None:
    expected = substituted(harmless, text)
    if text in NOT_IN_CONFIG:
        expected = [next(old for old in harmless if is_config(old)) if is_config(one) else one for one in expected]
    assert rendered(text, tmp_path) == expected


def test_rendered_objects_have_exactly_the_generated_strings(harmless: Any, tmp_path: Path) -> None:
    generator = random.Random(SEED)  # noqa: S311 - test data
    for _ in range(20):
        text = "".join(generator.choices(PARTS, k=generator.randint(1, 12)))
        assert rendered(text, tmp_path) == substituted(harmless, text), f"seed {SEED}: {text!r}"


@pytest.mark.parametrize("namespace", ["true", "null", "123", "1e3", "0x1f", "no"])
def test_namespace_stays_a_string(namespace: str) -> None:
    made = templated(*EVERYTHING, namespace=namespace)
    assert {found for _, found, _ in made} == {"", namespace, "kube-system"}
    args = made["Deployment", namespace, "steadyscale"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args[-1] == f"--leader-elect-resource-namespace={namespace}"


def test_large_number_of_replicas_stays_an_integer() -> None:
    assert templated("--set=replicas=1000000")["Deployment", "steadyscale", "steadyscale"]["spec"]["replicas"] == 10**6


@pytest.mark.parametrize("value", ["podLabels", "alerts.labels", "serviceMonitor.labels", "dashboard.labels"])
def test_labels_of_the_chart_cannot_be_replaced(value: str) -> None:
    assert "invalid propertyName" in rejection(rf"--set={value}.app\.kubernetes\.io/name=other")
