"""Help texts of the commands: summary, description and examples."""

import re
from textwrap import TextWrapper, fill
from typing import Final, NamedTuple

_WIDTH: Final = 80
_PARAGRAPH: Final = re.compile(r"\n(?=Exit code:)")


class HelpText(NamedTuple):
    """The help of a command."""

    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    """Command lines, each with what it does."""

    @property
    def wrapped_description(self) -> str:
        """The description in lines of at most 80 columns."""
        return "\n".join(fill(paragraph, _WIDTH) for paragraph in _PARAGRAPH.split(self.description))

    @property
    def epilog(self) -> str:
        """The examples: commands and effects in two columns, or one below the other if 80 columns are too few."""
        width = max(len(command) for command, _ in self.examples)
        lines = [f"  {command:<{width}}  {effect}" for command, effect in self.examples]
        if max(map(len, lines)) > _WIDTH:
            lines = [f"  # {effect}\n{_continued(command)}" for command, effect in self.examples]
        return "\n".join(["examples:", *lines])


def _continued(command: str) -> str:
    """Return a command in lines that end with backslashes, so that it can be pasted."""
    wrapper = TextWrapper(_WIDTH - 2, "  ", "      ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(wrapper.wrap(command))


PROGRAM: Final = HelpText(
    "",
    "External metrics for Kubernetes HPAs, and an HPA-compatible autoscaler with fallbacks,\n"
    "scale to zero and explanations of its decisions.",
    (
        ("steadyscale demo", "run a demo on this machine, without a cluster"),
        ("steadyscale check *.yaml", "validate configuration and manifests"),
        ("steadyscale explain shop/orders", "explain the replica count of an autoscaler"),
        ("steadyscale metric shop/orders-waiting", "read a metric and show each step of the read"),
    ),
)

COMMANDS: Final = {
    "serve": HelpText(
        "serve external.metrics.k8s.io and run the autoscaler",
        "Serves external.metrics.k8s.io and scales the targets of PodAutoscalers, until SIGTERM or SIGINT. To run it\n"
        "in a cluster, apply manifests/base. The autoscaler has the HPA flags of kube-controller-manager under the\n"
        "same names; docs/configuration.md lists the few whose defaults differ.\n"
        "Exit code: 0 after a signal, 1 if the cluster cannot be reached, 2 if configuration or flags are invalid.",
        (
            ("steadyscale serve --config=config.yaml", "in a pod"),
            ("steadyscale serve --config=config.yaml --kubeconfig=admin.conf", "outside the cluster"),
            ("steadyscale serve --config=config.yaml --no-autoscaler", "only metrics, for HPAs"),
        ),
    ),
    "demo": HelpText(
        "run a demo on this machine, without a cluster",
        "Runs the service against an in-memory Kubernetes API and a simulated order queue. The scenario covers 29\n"
        "minutes and takes about one: rush, metrics outage, fallback, recovery, scale to zero, scale from zero. It is\n"
        "the same autoscaler as in a cluster. The demo prints commands to try in another terminal.",
        (
            ("steadyscale demo", "run until Ctrl-C"),
            ("steadyscale demo --once --speed=60", "run the scenario once, at double the default speed"),
            ("steadyscale demo --prometheus", "with a real Prometheus"),
        ),
    ),
    "metric": HelpText(
        "read a metric from the running service and show each step",
        "Reads a metric and shows each step: rule, query, series, matching series, value, and the response that an\n"
        "HPA gets.\n"
        "Exit code: 0 if the metric has a value, 1 if it has none, 2 if the request to the service failed.",
        (
            ("steadyscale metric shop/orders-waiting", "without a selector"),
            ("steadyscale metric shop/orders-waiting -l queue=orders", "with the selector of an autoscaler"),
            ("steadyscale metric shop/orders-waiting -o json", "for scripts"),
        ),
    ),
    "metrics": HelpText(
        "list the metrics that can be read, with value, age and health",
        "Lists the metrics of the running service. Nothing is fetched: a metric that nothing reads is idle and has no\n"
        "value; steadyscale metric reads it.\n"
        "Exit code: 0, or 2 if the request failed.",
        (
            ("steadyscale metrics", "of all namespaces"),
            ("steadyscale metrics -n shop", "of one namespace"),
            ("steadyscale metrics -o json", "for scripts"),
        ),
    ),
    "explain": HelpText(
        "explain the replica count of a PodAutoscaler",
        "Shows the last decision for a PodAutoscaler step by step; the decisive step is marked with >. Any\n"
        "replica serves the request: it forwards it to the leader, which makes the decisions.\n"
        "With --at, it shows the decision that was in force at a moment, from the decision history, which every\n"
        "replica can read. A time of day is the last one before now, in UTC as all times that are printed.\n"
        "Exit code: 0 if there is a decision, 1 if nothing is known about the moment, 2 if the request failed.",
        (
            ("kubectl steadyscale explain shop/orders", "as a plugin of kubectl"),
            ("steadyscale explain shop/orders --at=03:12", "why it did not scale at 03:12 UTC"),
            ("steadyscale explain shop/orders -o json", "for scripts"),
        ),
    ),
    "history": HelpText(
        "show the recorded decisions of a PodAutoscaler",
        "Shows every decision of a PodAutoscaler in a period that changed something or had another reason, and the\n"
        "periods in which nothing was recorded. Every replica can read the decision history. Times are in UTC.\n"
        "Exit code: 0, or 2 if the request failed.",
        (
            ("steadyscale history shop/orders", "the last 24 hours"),
            ("steadyscale history shop/orders --since=03:00 --until=04:00", "one hour of the last night"),
            ("steadyscale history shop/orders --since=7d -o csv", "replicas and metric values as a table"),
        ),
    ),
    "debug": HelpText(
        "serve the debugging page of the running service on this machine",
        "Serves the debugging page of the running service at http://localhost:PORT, with your credentials,\n"
        "through the API server.",
        (
            ("steadyscale debug", "at http://localhost:8080"),
            ("kubectl steadyscale debug --port=9000 --context=test", "on another port, of another cluster"),
        ),
    ),
    "check": HelpText(
        "validate configuration, rules and autoscalers",
        "Validates configuration files, ConfigMaps that contain one, ExternalMetrics, PodAutoscalers and HPAs, and\n"
        "prints every problem with its path. It needs no cluster, and rejects what the API server rejects.\n"
        "Exit code: 0 if there is no problem, 1 if there are problems, 2 if there is nothing to check.",
        (
            ("steadyscale check manifests/", "all YAML and JSON files below a directory, as in CI"),
            ("kubectl kustomize overlay | steadyscale check -", "the output of another program"),
            ("steadyscale check --from-cluster", "the objects and the configuration of a cluster"),
            ("steadyscale check config.yaml -o json", "for scripts"),
        ),
    ),
    "autoscale": HelpText(
        "print or create a PodAutoscaler for a workload",
        "Prints a PodAutoscaler as YAML, or creates it with --apply, as kubectl autoscale does for an HPA. It is\n"
        "validated as by steadyscale check. Without a metric, the default of an HPA applies: cpu at 80 %.\n"
        "Exit code: 0 if it is valid, 1 if there are problems, 2 if the request to the cluster failed.",
        (
            ("steadyscale autoscale deployment/orders --max=40 --external=orders-waiting --average=30", "print it"),
            (
                "steadyscale autoscale deployment/web --min=2 --max=9 --cpu=70 --apply --kubeconfig=admin.conf",
                "create it",
            ),
        ),
    ),
    "simulate": HelpText(
        "show what autoscalers would have done on recorded load",
        "Runs one or several PodAutoscalers or HPAs on the history of their metrics, with the algorithm of the\n"
        "controller, and compares replicas, shortages and cost. Nothing is changed in a cluster.\n"
        "Exit code: 0, 1 if the specs, the history or the options have problems, 2 if Prometheus cannot be read.",
        (
            ("steadyscale simulate orders.yaml --history=load.csv", "a table of measures"),
            (
                "steadyscale simulate orders.yaml --history=load.csv --set=spec.maxReplicas=9 --set=spec.minReplicas=3",
                "two variants beside it",
            ),
            (
                "steadyscale simulate orders.yaml --history=load.csv -o html --file=report.html",
                "a report with pictures",
            ),
        ),
    ),
    "drill": HelpText(
        "find the fallback that covers outages of the metrics",
        "Replays outages that begin throughout the history of the metrics, without a fallback, with the configured\n"
        "one and with others, and proposes replicas and strategy of the fallback. Nothing is changed in a cluster.\n"
        "Exit code: 0, 1 if the spec, the history or the options have problems, 2 if Prometheus cannot be read.",
        (
            ("steadyscale drill orders.yaml --history=load.csv", "outages of one hour"),
            ("steadyscale drill orders.yaml --history=load.csv --length=4h --samples=300", "longer ones, and more"),
            ("steadyscale drill orders.yaml --history=load.csv -o json", "for scripts"),
        ),
    ),
    "completion": HelpText(
        "print the script that completes commands and options in a shell",
        "Prints a script for the shell. It contains all commands and options of this version: print it again after an "
        "upgrade.",
        (
            ('eval "$(steadyscale completion bash)"', "in ~/.bashrc"),
            ('eval "$(steadyscale completion zsh)"', "in ~/.zshrc, after compinit"),
            ("steadyscale completion fish > ~/.config/fish/completions/steadyscale.fish", "once"),
        ),
    ),
}
