"""``steadyscale``: parse the command line, run the command.

A command's module is imported when the command is given: who checks a file need not wait for what only serving needs.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from adapter.commands.help_texts import ALL, LESSONS, Lesson
from autoscaler.settings import FLAGS

_FORMS = ("text", "json")
_INTERRUPTED = 128 + signal.SIGINT


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = import_module(f"adapter.commands.{options.command}").run(options)
    except KeyboardInterrupt:  # before a command was ready to hear it
        return _INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="steadyscale", **_taught(ALL))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (arguments, summary) in _COMMANDS.items():
        arguments(commands.add_parser(name, help=summary, **_taught(LESSONS[name])))
    return parser


def _taught(lesson: Lesson) -> dict[str, Any]:
    """Show a lesson as it is written, around the options."""
    form = argparse.RawDescriptionHelpFormatter
    return {"description": lesson.about, "epilog": lesson.epilog, "formatter_class": form}


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration, YAML")
    parser.add_argument("--port", type=int, help="listen on this port instead of serving.port")
    parser.add_argument("--address", help="listen on this address instead of serving.address")
    parser.add_argument("--kubeconfig", help="ask this cluster instead of auth.kubeconfig")
    parser.add_argument("--no-adapter", action="store_true", help="do not serve metrics, only scale")
    parser.add_argument("--no-autoscaler", action="store_true", help="do not scale, only serve metrics")
    for flag in FLAGS:
        parser.add_argument(f"--{flag.name}", metavar="VALUE", help=flag.help.replace("%", "%%"))


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=int, help="serve metrics on this port; 8443 if left out, or another if that is taken"
    )
    parser.add_argument("--speed", type=_speed, default=30.0, help="how fast time runs; %(default)g if left out")
    parser.add_argument("--once", action="store_true", help="play the day once and end")
    parser.add_argument("--no-page", action="store_true", help="leave out the debugging page")
    parser.add_argument("--prometheus", action="store_true", help="ask a real Prometheus, which must be installed")
    parser.add_argument("--keep", action="store_true", help="leave the log, the kubeconfig and the like behind")


def _speed(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 300:
        raise argparse.ArgumentTypeError(f"must be between 1 and 300, is {text}")
    return value


def _metric(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("metric", metavar="NAMESPACE/NAME", help="which metric, such as shop/orders-waiting")
    parser.add_argument("-l", "--selector", default="", help="the label selector that the autoscaler uses")
    parser.add_argument("-o", "--output", choices=_FORMS, default="text")
    _service(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("autoscaler", metavar="NAMESPACE/NAME", help="which PodAutoscaler, such as shop/orders")
    parser.add_argument("-o", "--output", choices=_FORMS, default="text")
    _service(parser)


def _debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=8080, help="show it on this port; %(default)s if left out")
    _service(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML, with any number of documents")
    parser.add_argument("-o", "--output", choices=_FORMS, default="text")


def _service(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes that asks the running service."""
    parser.add_argument("--server", default="https://localhost:6443", help="the service; %(default)s if left out")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="ask as the user of this kubeconfig")
    parser.add_argument("--token-file", type=Path, help="a bearer token; in a pod, its own if left out")
    parser.add_argument("--ca-file", type=Path, help="who signed the service's certificate")


_COMMANDS = {
    "serve": (_serve, "serve external.metrics.k8s.io, and scale"),
    "demo": (_demo, "see it working, without a cluster"),
    "metric": (_metric, "ask the running service what a metric is now, and why"),
    "explain": (_explain, "ask the running service why an autoscaler has the size it has"),
    "debug": (_debug, "show the debugging page of the running service on this machine"),
    "check": (_check, "find what is wrong with configuration, rules and autoscalers"),
}

if __name__ == "__main__":
    sys.exit(main())
