"""What ``--help`` teaches of each command: what it is for, and how people use it."""

from typing import Final, NamedTuple


class Lesson(NamedTuple):
    """What a command is for, and examples, each with what it does."""

    about: str
    examples: tuple[tuple[str, str], ...]

    @property
    def epilog(self) -> str:
        """Write the examples as they are shown below the options."""
        width = max(len(command) for command, _ in self.examples)
        return "\n".join(["examples:", *(f"  {command:<{width}}  {does}" for command, does in self.examples)])


ALL: Final = Lesson(
    "External metrics for Kubernetes, and an autoscaler that fails safely and explains itself.",
    (
        ("steadyscale demo", "see it working, on this machine, without a cluster"),
        ("steadyscale check *.yaml", "find mistakes before they are applied"),
        ("steadyscale explain shop/orders", "why has it this many replicas?"),
        ("steadyscale metric shop/orders-waiting", "why is my metric missing?"),
    ),
)

LESSONS: Final = {
    "serve": Lesson(
        "Serves external.metrics.k8s.io and scales PodAutoscalers, until told to stop; manifests/base runs it in\n"
        "a cluster. Flags that kube-controller-manager has for HPAs keep its names and defaults.",
        (
            ("steadyscale serve --config=config.yaml", "in a pod"),
            ("steadyscale serve --config=config.yaml --kubeconfig=admin.conf", "from elsewhere"),
            ("steadyscale serve --config=config.yaml --no-autoscaler", "metrics only, for HPAs"),
        ),
    ),
    "demo": Lesson(
        "Plays a day of a shop's queue in a minute: rush, outage, fallback, recovery, zero, and awake again.\n"
        "No cluster is needed; no replica count is made up. It prints where to look, with commands to try.",
        (
            ("steadyscale demo", "until Ctrl-C"),
            ("steadyscale demo --once --speed=60", "one day, twice as fast, then end"),
            ("steadyscale demo --prometheus", "with a real Prometheus"),
        ),
    ),
    "metric": Lesson(
        "Shows what a metric is now and the whole way there: the rule, the query, the series found, what the\n"
        "selector left of them, and what an HPA hears.\n"
        "Exit code 0 if it has a value, 1 if not, 2 if the service could not be asked.",
        (
            ("steadyscale metric shop/orders-waiting", "all series"),
            ("steadyscale metric shop/orders-waiting -l queue=orders", "as an autoscaler with a selector asks"),
            ("steadyscale metric shop/orders-waiting -o json", "for scripts"),
        ),
    ),
    "explain": Lesson(
        "Shows the last decision for an autoscaler step by step: what went in, what bound it (marked with >),\n"
        "and when it may change. Ask the process that leads: only that one decides. Reach it first, as with\n"
        "kubectl port-forward -n steadyscale POD 6443, or run this in the pod with kubectl exec.",
        (
            ("steadyscale explain shop/orders --kubeconfig=admin.conf", "as you"),
            ("steadyscale explain shop/orders -o json", "for scripts"),
        ),
    ),
    "debug": Lesson(
        "Shows the debugging page at http://localhost:PORT, as you: every request goes to the service with your\n"
        "own credentials. Reach the service first, as with\n"
        "kubectl port-forward -n steadyscale deploy/steadyscale 6443.",
        (
            ("steadyscale debug --kubeconfig=admin.conf", "at http://localhost:8080"),
            ("steadyscale debug --port=9000 --token-file=token", "elsewhere, with a token"),
        ),
    ),
    "check": Lesson(
        "Reads configuration, ConfigMaps that hold one, ExternalMetrics, PodAutoscalers and HPAs, and names\n"
        "every mistake with its place. Asks nobody.\n"
        "Exit code 0 if there is none, 1 if there is, 2 if nothing in the files can be checked.",
        (
            ("steadyscale check manifests/*.yaml", "in CI"),
            ("steadyscale check config.yaml -o json", "for scripts"),
        ),
    ),
}
