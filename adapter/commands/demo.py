"""``steadyscale demo``: says what there is to see until there is more."""

import argparse
import sys

_DEMO = """steadyscale demo: not here yet. What works today:
  steadyscale serve --config FILE               serves external.metrics.k8s.io to a cluster
  python -m autoscaler conform tests/vectors    runs the decision core against cases computed by Kubernetes' own code
"""


def run(_: argparse.Namespace) -> int:
    """Say it."""
    sys.stdout.write(_DEMO)
    return 0
