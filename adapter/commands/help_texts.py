"""Help texts of the commands: summary, description and examples."""

from typing import Final, NamedTuple


class HelpText(NamedTuple):
    """The help of a command."""

    summary: str
    description: str
    examples: tuple[tuple[str, str], ...]
    """Command lines, each with what it does."""

    @property
    def epilog(self) -> str:
        width = max(len(command) for command, _ in self.examples)
        return "\n".join(["examples:", *(f"  {command:<{width}}  {effect}" for command, effect in self.examples)])


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
    "explain": HelpText(
        "explain the replica count of a PodAutoscaler",
        "Shows the last decision for a PodAutoscaler step by step; the decisive step is marked with >. Only the\n"
        "leader makes decisions: connect to that pod with kubectl port-forward -n steadyscale POD 6443, or run\n"
        "this command in it with kubectl exec.\n"
        "Exit code: 0 if there is a decision, 2 if there is none or if the request failed.",
        (
            ("steadyscale explain shop/orders --kubeconfig=admin.conf", "as the user of a kubeconfig"),
            ("steadyscale explain shop/orders -o json", "for scripts"),
        ),
    ),
    "debug": HelpText(
        "serve the debugging page of the running service on this machine",
        "Serves the debugging page of the running service at http://localhost:PORT, with your credentials.\n"
        "Connect to the service first, with kubectl port-forward -n steadyscale deploy/steadyscale 6443.",
        (
            ("steadyscale debug --kubeconfig=admin.conf", "at http://localhost:8080"),
            ("steadyscale debug --port=9000 --token-file=token", "on another port, with a token"),
        ),
    ),
    "check": HelpText(
        "validate configuration, rules and autoscalers",
        "Validates configuration files, ConfigMaps that contain one, ExternalMetrics, PodAutoscalers and HPAs, and\n"
        "prints every problem with its path. It needs no cluster.\n"
        "Exit code: 0 if there is no problem, 1 if there are problems, 2 if the files contain nothing to check.",
        (
            ("steadyscale check manifests/*.yaml", "in CI"),
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
}
