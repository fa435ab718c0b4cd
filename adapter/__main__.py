"""The command line ``steadyscale``: parses the arguments and runs a command.

The module of a command is imported when the command runs, because importing the service takes much longer than
checking a file.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from adapter.commands.help_texts import COMMANDS, PROGRAM, HelpText
from adapter.commands.metric_options import add_metric_options
from adapter.commands.simulation_options import add_drill, add_simulate
from adapter.commands.standard_streams import escape_unencodable_characters, with_checked_output
from adapter.version import package_version
from autoscaler.flags import FLAGS

_Number = TypeVar("_Number", int, float)
_INTERRUPTED = 128 + signal.SIGINT


def _between(low: int, high: int, convert: Callable[[str], _Number]) -> Callable[[str], _Number]:
    """Return a parser of numbers in a range, for ``type`` of an argument."""

    def parse(text: str) -> _Number:
        with suppress(ValueError):
            if low <= (value := convert(text)) <= high:
                return value
        raise argparse.ArgumentTypeError(f"must be between {low} and {high}, is {text}")

    return parse


_PORT = _between(0, 65535, int)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; without a command, print the help."""
    escape_unencodable_characters()
    try:
        return with_checked_output(lambda: _run(arguments))
    except KeyboardInterrupt:  # before the command has installed its own signal handler
        return _INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments, argparse.Namespace(parser=parser))
    if options.command is None:
        parser.print_help()
        return 0
    return int(import_module(f"adapter.commands.{options.command}").run(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_program(), **_help(PROGRAM))
    parser.add_argument("--version", action="version", version=f"steadyscale {package_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, add_arguments in _ARGUMENTS.items():
        add_arguments(commands.add_parser(name, help=COMMANDS[name].summary, **_help(COMMANDS[name])))
    return parser


def _program() -> str:
    """Return the name in usages: kubectl runs the plugin as kubectl-steadyscale."""
    return "kubectl steadyscale" if Path(sys.argv[0]).name == "kubectl-steadyscale" else "steadyscale"


def _help(text: HelpText) -> dict[str, Any]:
    formatter = argparse.RawDescriptionHelpFormatter
    return {"description": text.wrapped_description, "epilog": text.epilog, "formatter_class": formatter}


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.usage = "steadyscale serve [OPTION ...]"  # the names of the flags do not fit into the columns of a usage
    default = "default: /etc/steadyscale/config.yaml, if it exists"
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"configuration file (YAML; {default})")
    parser.add_argument("--port", type=_PORT, help="listen on this port; overrides serving.port")
    parser.add_argument("--address", help="listen on this address; overrides serving.address")
    parser.add_argument("--kubeconfig", metavar="FILE", help="connect to this cluster; overrides auth.kubeconfig")
    components = parser.add_mutually_exclusive_group()
    components.add_argument("--no-adapter", action="store_true", help="run only the autoscaler, not the metrics API")
    components.add_argument("--no-autoscaler", action="store_true", help="run only the metrics API, not the autoscaler")
    for flag in FLAGS:
        parser.add_argument(f"--{flag.name}", metavar="VALUE", help=flag.help.replace("%", "%%"))


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=_PORT, help="serve metrics on this port (default: 8443, if it is free)")
    speed = _between(1, 300, float)
    parser.add_argument("--speed", type=speed, default=30.0, help="times faster than real time, 1 to 300 (default: 30)")
    parser.add_argument("--once", action="store_true", help="exit at the end of the scenario")
    parser.add_argument("--no-page", action="store_true", help="do not serve the debugging page")
    parser.add_argument("--prometheus", action="store_true", help="use a real Prometheus, which must be installed")
    parser.add_argument("--keep", action="store_true", help="keep the temporary directory: log, kubeconfig, token")


def _add_metric(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("metric", metavar="NAMESPACE/NAME", help="metric, such as shop/orders-waiting")
    _add_namespace(parser, "the namespace, if the argument is only a name")
    parser.add_argument("-l", "--selector", default="", help="label selector, such as queue=orders")
    _add_output(parser)
    _add_service(parser)


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    _add_namespace(parser, "only the metrics of this namespace (default: all namespaces)")
    _add_output(parser)
    _add_service(parser)


def _add_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("autoscaler", metavar="NAMESPACE/NAME", help="PodAutoscaler, such as shop/orders")
    _add_namespace(parser, "the namespace, if the argument is only a name")
    parser.add_argument(
        "--at", metavar="TIME", help="explain a moment in the past: 03:12 (UTC), 2h ago, or a timestamp"
    )
    _add_output(parser)
    _add_service(parser)


def _add_history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("autoscaler", metavar="NAMESPACE/NAME", help="PodAutoscaler, such as shop/orders")
    _add_namespace(parser, "the namespace, if the argument is only a name")
    parser.add_argument("--since", metavar="TIME", default="24h", help="start of the period (default: %(default)s ago)")
    parser.add_argument("--until", metavar="TIME", default="now", help="end of the period (default: %(default)s)")
    parser.add_argument("-o", "--output", choices=("text", "json", "csv"), default="text", help="output format")
    _add_service(parser)


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=_PORT, default=8080, help="listen on this local port (default: %(default)s)")
    _add_service(parser)


def _add_check(parser: argparse.ArgumentParser) -> None:
    help_text = "YAML file with one or more documents, directory of such files, or - for stdin"
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=help_text)
    parser.add_argument(
        "--from-cluster", action="store_true", help="check the objects and the configuration of a cluster"
    )
    parser.add_argument("-n", "--namespace", help="with --from-cluster: only the objects of this namespace")
    kubeconfig = "with --from-cluster: kubeconfig (default: that of kubectl)"
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help=kubeconfig)
    _add_output(parser)


def _add_autoscale(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="KIND/NAME", help="workload to scale, such as deployment/orders")
    parser.add_argument(
        "--api-version", metavar="VERSION", help="apiVersion of the workload, if it is a custom resource"
    )
    parser.add_argument("-n", "--namespace", help="namespace of the workload")
    parser.add_argument("--name", help="name of the PodAutoscaler (default: that of the workload)")
    replicas, percent = _between(0, 2**31 - 1, int), _between(1, 2**31 - 1, int)
    parser.add_argument("--min", type=replicas, default=1, metavar="N", help="minReplicas (default: %(default)s)")
    parser.add_argument("--max", type=replicas, required=True, metavar="N", help="maxReplicas")
    parser.add_argument("--cpu", type=percent, metavar="PERCENT", help="target for the cpu utilization")
    parser.add_argument("--memory", type=percent, metavar="PERCENT", help="target for the memory utilization")
    parser.add_argument("--mode", choices=("Active", "DryRun", "Paused"), help="spec.mode (default: Active)")
    add_metric_options(parser)
    parser.add_argument("--apply", action="store_true", help="create the PodAutoscaler instead of printing it")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="with --apply: connect to this cluster")


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that runs the script")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="output format")


def _add_service(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that connect to the running service."""
    add = parser.add_argument_group("connection", "by default through the API server, as kubectl").add_argument
    add("--kubeconfig", type=Path, metavar="FILE", help="kubeconfig (default: that of kubectl; in a pod its account)")
    add("--context", metavar="NAME", help="context of the kubeconfig")
    add("--server", metavar="URL", help="connect to the service directly, such as https://localhost:6443")
    add("--token-file", type=Path, metavar="FILE", help="with --server: file with a bearer token")
    ca = "with --server: CA of its certificate (default: the system's CAs; on localhost the caBundle of the APIService)"
    add("--ca-file", type=Path, metavar="FILE", help=ca)


def _add_namespace(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAME", help=help_text)


_ARGUMENTS = {
    "serve": _add_serve,
    "demo": _add_demo,
    "metric": _add_metric,
    "metrics": _add_metrics,
    "explain": _add_explain,
    "history": _add_history,
    "debug": _add_debug,
    "check": _add_check,
    "autoscale": _add_autoscale,
    "simulate": add_simulate,
    "drill": add_drill,
    "completion": _add_completion,
}

if __name__ == "__main__":
    sys.exit(main())
