"""Arguments of ``steadyscale simulate`` and ``steadyscale drill``."""

import argparse
from pathlib import Path


def add_simulate(parser: argparse.ArgumentParser) -> None:
    help_text = "YAML file with PodAutoscalers or HPAs, or - for stdin"
    parser.add_argument("files", nargs="+", type=Path, metavar="SPEC", help=help_text)
    variant = (
        "also simulate the first spec with this change; several with commas: spec.minReplicas=2,spec.maxReplicas=9"
    )
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help=variant)
    parser.add_argument("--outage", action="append", default=[], metavar="TIME/DURATION", help="no metric can be read")
    formats = ("table", "json", "csv", "html")
    parser.add_argument("-o", "--output", choices=formats, default="table", help="output format (default: table)")
    _add_common(parser)


def add_drill(parser: argparse.ArgumentParser) -> None:
    help_text = "YAML file with a PodAutoscaler, or - for stdin"
    parser.add_argument("files", nargs=1, type=Path, metavar="SPEC", help=help_text)
    parser.add_argument("--length", default="1h", metavar="DURATION", help="of each outage (default: %(default)s)")
    samples = "number of outages, spread over the history (default: %(default)s)"
    parser.add_argument("--samples", type=int, default=100, metavar="N", help=samples)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="output format")
    parser.set_defaults(outage=[])
    _add_common(parser)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, metavar="FILE", help="write to this file instead of standard output")
    parser.add_argument(
        "--replicas", type=int, metavar="N", help="at the start (default: what the first values ask for)"
    )
    parser.add_argument("--period", default="15s", metavar="DURATION", help="sync period (default: %(default)s)")
    _add_history(parser.add_argument_group("history"))
    _add_model(parser.add_argument_group("model of the workload"))


def _add_history(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--history", required=True, metavar="FILE", help="CSV file, - for stdin, or prometheus: the rules of --config")
    config = "prometheus: configuration file with rules and backends (default: /etc/steadyscale/config.yaml)"
    add("--config", type=Path, default=Path("/etc/steadyscale/config.yaml"), metavar="FILE", help=config)
    add("--step", default="60s", metavar="DURATION", help="prometheus: distance of the values (default: %(default)s)")
    add(
        "--from",
        dest="start",
        metavar="TIME",
        help="start of the period (default: the first sample; prometheus: 7d ago)",
    )
    add("--to", dest="end", metavar="TIME", help="end of the period (default: the last sample; prometheus: now)")
    add("--timezone", default="UTC", metavar="ZONE", help="of timestamps without one (default: %(default)s)")
    add("--scale", default="1", metavar="FACTOR", help="multiply all values, such as 0.0166667 for counts per minute")
    gaps = "missing values: the metric cannot be read, or the file is refused (default: %(default)s)"
    add("--gaps", choices=("outage", "error"), default="outage", help=gaps)
    default = "(default: 5m, or three times the median distance)"
    add("--max-gap", metavar="DURATION", help=f"a longer distance between samples is a gap {default}")


def _add_model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    models = ("recorded", "queue", "per-pod", "mixed")
    text = (
        "recorded: values as they were; queue: arrivals per second; per-pod: totals; mixed: totals for metrics of pods"
    )
    add("--model", choices=models, default="recorded", help=f"{text} (default: %(default)s)")
    rate = "queue: items per second that one ready replica processes (default: %(default)s)"
    add("--service-rate", type=float, default=1.0, metavar="N", help=rate)
    add("--startup", default="0s", metavar="DURATION", help="until a new pod is ready (default: %(default)s)")
    request = "request of each pod, such as cpu=500m, for utilizations"
    add("--request", action="append", default=[], metavar="RESOURCE=QUANTITY", help=request)
