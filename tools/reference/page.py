"""The page: the configuration file key by key, then the flags."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final, get_args

from msgspec.structs import fields

from adapter.backends.configuration import BackendEntry
from adapter.config.model import Config
from autoscaler.settings import FLAGS, FeatureGates, Flag, Operation, Settings
from autoscaler.types.record import Record
from tools.reference.fields import duration, plain, settings, texts

UPSTREAM: Final = {
    "horizontal-pod-autoscaler-sync-period": "15s",
    "horizontal-pod-autoscaler-tolerance": "0.1",
    "horizontal-pod-autoscaler-downscale-stabilization": "5m0s",
    "horizontal-pod-autoscaler-cpu-initialization-period": "5m0s",
    "horizontal-pod-autoscaler-initial-readiness-delay": "30s",
    "concurrent-horizontal-pod-autoscaler-syncs": "5",
    "feature-gates": "",
    "leader-elect": "true",
    "leader-elect-lease-duration": "15s",
    "leader-elect-renew-deadline": "10s",
    "leader-elect-retry-period": "2s",
    "leader-elect-resource-name": "kube-controller-manager",
    "leader-elect-resource-namespace": "kube-system",
}
"""The flags that kube-controller-manager has, too, with its defaults; a test asks it."""

_HEAD: Final = """\
# Configuration

<!-- Made from the types by `make manifests`, and held to them by a test. Edit the texts below the fields instead. -->

`steadyscale serve --config FILE` reads one YAML file. What is not written has its default; what is misspelt is
refused, with its path. `steadyscale check FILE` says everything that is wrong, before it is applied.

```yaml
serving: {tls: {selfManaged: {namespace: steadyscale}}}
backends:
  main: {prometheus: {url: "http://prometheus.monitoring:9090"}}
rules:
- {name: queue_depth, backend: main, query: "sum by (namespace, queue) (rabbitmq_queue_messages_ready)"}
```

`backends`, `rules` and `prometheusAdapter` are taken over within seconds when the file changes; the other parts wait
for a restart, and the log names them. Durations are written `250ms`, `15s`, `1m30s`, `2h`.
"""
_FLAGS: Final = """
## Flags of `steadyscale serve`

Those that kube-controller-manager has, too, have its names, meanings and, unless the last column says otherwise, its
defaults: a cluster's settings can be copied.

| flag | default | meaning | in kube-controller-manager |
|---|---|---|---|
| `--config FILE` | required | The configuration file | |
| `--port`, `--address`, `--kubeconfig` | | Instead of `serving.port`, `serving.address` and `auth.kubeconfig` | |
| `--no-adapter` | | Do not serve metrics, only scale | |
| `--no-autoscaler` | | Do not scale, only serve metrics | |
"""
_GATES: Final = """
### Feature gates

All on. `--feature-gates=HPAScaleToZero=false` switches one off.

| gate | meaning |
|---|---|
"""


def page() -> str:
    """Write the page."""
    flags = "".join(f"{_flag(flag)}\n" for flag in FLAGS)
    gates = "".join(f"| `{name}` | {_cell(text)} |\n" for name, text in texts(FeatureGates).items())
    written: dict[type[Record], str] = {}
    parts = "".join((*_sections(Config, "", written), *_parameters(written)))
    return f"{_HEAD}{parts}{_FLAGS}{flags}{_GATES}{gates}"


def _sections(of: type[Record], at: str, written: dict[type[Record], str]) -> Iterator[str]:
    """Write a record as a table, then each record in it; what was written before is only named."""
    yield f"\n## {f'`{at}`' if at else 'The file'}\n\n"
    if of in written:
        yield f"The same as `{written[of]}`.\n"
        return
    written[of] = at
    here = list(settings(of))
    yield f"{plain(of.__doc__ or '')}\n\n"
    yield "| key | default | meaning |\n|---|---|---|\n"
    for one in here:
        yield f"| `{one.key}` | {one.default} | {_cell(one.meaning)} |\n"
    for one in here:
        if one.inner is not None:
            yield from _sections(one.inner, f"{at}.{one.key}{one.many}".lstrip("."), written)


def _parameters(written: dict[type[Record], str]) -> Iterator[str]:
    """Write what a rule's parameters are for each kind of backend that has some."""
    for kind in fields(BackendEntry):
        for settings_of in get_args(kind.type):
            asked_with = getattr(settings_of, "asked_with", None)
            if asked_with is not None:
                yield from _sections(asked_with, f"rules[].parameters ({kind.encode_name})", written)


def _flag(flag: Flag) -> str:
    part, _, name = flag.field.rpartition(".")
    holder = Settings if part else Operation
    default = _written(getattr(holder(), name))
    meaning = re.sub(r"\s*Upstream: --\S+", "", texts(holder).get(name, ""))
    meaning = meaning or re.sub(r" \([^)]*\)$", "", flag.help[0].upper() + flag.help[1:])
    return f"| `--{flag.name}` | {default} | {_cell(meaning)} | {_upstream(flag.name, default)} |"


def _upstream(name: str, default: str) -> str:
    if name not in UPSTREAM:
        return ""
    if not UPSTREAM[name]:
        return "same names"
    theirs = UPSTREAM[name].removesuffix("0s") if UPSTREAM[name].endswith("m0s") else UPSTREAM[name]
    return "same" if default.strip("`") == theirs else f"`{theirs}`"


def _written(default: object) -> str:
    if isinstance(default, timedelta):
        return f"`{duration(default)}`"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "" if isinstance(default, Record) else f"`{default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").removesuffix(".")
