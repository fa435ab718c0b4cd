"""Arguments of ``steadyscale autoscale`` that describe external metrics: each belongs to the --external before it."""

import argparse
from collections.abc import Sequence
from typing import Any


class ExternalMetricOption(argparse.Action):
    """Starts a metric (``--external``), or sets a property of the last one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del parser
        metrics: list[dict[str, Any]] = options.external
        if self.dest == "external":
            options.external = [*metrics, {"external": values}]
        elif metrics:
            metrics[-1][self.dest] = values
        else:
            options.misplaced = [*options.misplaced, option_string]


def add_metric_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of external metrics; ``options.external`` is a list with one dictionary for each."""
    parser.set_defaults(misplaced=[])
    group = parser.add_argument_group(
        "external metrics", "repeat --external for several, each followed by its own options"
    )
    add = group.add_argument
    add("--external", action=ExternalMetricOption, default=[], metavar="NAME", help="external metric")
    add("--average", action=ExternalMetricOption, metavar="QUANTITY", help="target for the average per replica")
    add("--value", action=ExternalMetricOption, metavar="QUANTITY", help="target for the total value")
    add("--selector", action=ExternalMetricOption, metavar="LABELS", help="labels of the series, such as queue=orders")
    number: Any = {"action": ExternalMetricOption, "type": int}
    add("--fallback-replicas", **number, metavar="N", help="replicas while the metric cannot be read")
    add("--fallback-after", **number, metavar="SECONDS", help="failureDurationSeconds of the fallback (default: 180)")
    strategies = ("Static", "UseMax", "UseMin")
    add("--fallback-strategy", action=ExternalMetricOption, choices=strategies, help="strategy of the fallback")
