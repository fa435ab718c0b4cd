"""``steadyscale``: parse the command line, load the configuration, run."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapter import app, log
from adapter.commands import check, metric
from adapter.errors import ConfigInvalid
from adapter.loading import ConfigFile
from autoscaler.kube.errors import KubeError
from autoscaler.settings import FLAGS, FlagsInvalid, operation

_BAD_CONFIG = 2
_DEMO = """steadyscale demo: not here yet. What works today:
  steadyscale serve --config FILE               serves external.metrics.k8s.io to a cluster, from fixed numbers
  python -m autoscaler conform tests/vectors    runs the decision core against cases computed by Kubernetes' own code
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="steadyscale", description="External metrics for Kubernetes.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve external.metrics.k8s.io")
    serve.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration, YAML")
    serve.add_argument("--port", type=int, help="listen on this port instead of serving.port")
    serve.add_argument("--address", help="listen on this address instead of serving.address")
    serve.add_argument("--kubeconfig", help="ask this cluster instead of auth.kubeconfig")
    serve.add_argument("--no-adapter", action="store_true", help="do not serve metrics, only scale")
    serve.add_argument("--no-autoscaler", action="store_true", help="do not scale, only serve metrics")
    for flag in FLAGS:
        serve.add_argument(f"--{flag.name}", metavar="VALUE", help=flag.help.replace("%", "%%"))
    commands.add_parser("demo", help="see it working, without a cluster")
    metric.add_arguments(commands.add_parser("metric", help="ask the running service what a metric is now, and why"))
    checking = commands.add_parser("check", help="find what is wrong with configuration, rules and autoscalers")
    checking.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML, with any number of documents")
    checking.add_argument("-o", "--output", choices=["text", "json"], default="text")
    options = parser.parse_args(arguments)
    return _COMMANDS[options.command](options)


def _demo(_: argparse.Namespace) -> int:
    sys.stdout.write(_DEMO)
    return 0


def _check(options: argparse.Namespace) -> int:
    return check.check(options.files, sys.stdout, form=options.output)


def _metric(options: argparse.Namespace) -> int:
    try:
        service = metric.Service.of(options)
        return asyncio.run(metric.metric(options, service, service.tls(), sys.stdout))
    except (metric.AskFailed, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return metric.UNREACHABLE


def _halves(options: argparse.Namespace) -> app.Halves:
    given = {flag.name: getattr(options, flag.name.replace("-", "_")) for flag in FLAGS}
    chosen = operation({name: value for name, value in given.items() if value is not None})
    return app.Halves(adapter=not options.no_adapter, operation=None if options.no_autoscaler else chosen)


def _serve(options: argparse.Namespace) -> int:
    flags = {"serving": {"port": options.port, "address": options.address}, "auth": {"kubeconfig": options.kubeconfig}}
    try:
        halves = _halves(options)
        file = ConfigFile(options.config, flags)
        loaded = file.start()
        log.configure(loaded.config.log.format, loaded.config.log.level)
        asyncio.run(app.serve(file, loaded, halves))
    except (ConfigInvalid, FlagsInvalid) as error:
        sys.stderr.writelines(f"{problem}\n" for problem in error.problems)
        return _BAD_CONFIG
    except KubeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


_COMMANDS: Final = {"serve": _serve, "demo": _demo, "metric": _metric, "check": _check}

if __name__ == "__main__":
    sys.exit(main())
