"""Command-line flags of the controller, and messages for invalid ones."""

from datetime import timedelta

import pytest

from autoscaler.flags import FLAGS, InvalidFlags, parse_flags
from autoscaler.settings import ControllerOptions, FeatureGates, Settings


def test_no_flags_give_the_default_options():
    assert parse_flags({}) == ControllerOptions()


def test_every_flag_sets_its_field():
    assert parse_flags(
        {
            "horizontal-pod-autoscaler-sync-period": "2s",
            "horizontal-pod-autoscaler-tolerance": "0.05",
            "horizontal-pod-autoscaler-downscale-stabilization": "0",
            "horizontal-pod-autoscaler-cpu-initialization-period": "1h2m3s",
            "horizontal-pod-autoscaler-initial-readiness-delay": "250ms",
            "concurrent-horizontal-pod-autoscaler-syncs": "50",
            "fallback-floor": "5s",
            "feature-gates": "HPAScaleToZero=false, HPAExternalMetricFallback=True",
            "external-metrics": "cluster",
            "leader-elect": "false",
            "leader-elect-lease-duration": "30s",
            "leader-elect-renew-deadline": "20s",
            "leader-elect-retry-period": "5s",
            "leader-elect-resource-name": "mine",
            "leader-elect-resource-namespace": "ops",
        }
    ) == ControllerOptions(
        settings=Settings(
            tolerance=0.05,
            downscale_stabilization=timedelta(0),
            cpu_initialization_period=timedelta(hours=1, minutes=2, seconds=3),
            initial_readiness_delay=timedelta(milliseconds=250),
            sync_period=timedelta(seconds=2),
            fallback_floor=timedelta(seconds=5),
        ),
        gates=FeatureGates(HPAScaleToZero=False),
        concurrent_syncs=50,
        external_metrics="cluster",
        leader_elect=False,
        lease_duration=timedelta(seconds=30),
        renew_deadline=timedelta(seconds=20),
        retry_period=timedelta(seconds=5),
        lease_name="mine",
        lease_namespace="ops",
    )


@pytest.mark.parametrize(
    ("flag", "text", "problem"),
    [
        ("horizontal-pod-autoscaler-sync-period", "15", "must be a duration such as 15s or 5m0s, got '15'"),
        ("horizontal-pod-autoscaler-sync-period", "0s", "must be greater than 0, got '0s'"),
        ("horizontal-pod-autoscaler-tolerance", "-0.1", "must be a number greater than or equal to 0, got '-0.1'"),
        ("horizontal-pod-autoscaler-tolerance", "nan", "must be a number greater than or equal to 0, got 'nan'"),
        ("concurrent-horizontal-pod-autoscaler-syncs", "0", "must be greater than 0, got 0"),
        ("external-metrics", "elsewhere", "must be embedded or cluster, got 'elsewhere'"),
        ("leader-elect", "maybe", "must be true or false, got 'maybe'"),
        ("shards", "257", "must be at most 256, got 257"),
        ("shards", "0", "must be greater than 0, got 0"),
        ("feature-gates", "HPAScaleToZero", "must be true or false, got ''"),
    ],
)
def test_invalid_value_is_reported_with_flag_and_reason(flag, text, problem):
    with pytest.raises(InvalidFlags) as caught:
        parse_flags({flag: text})
    assert caught.value.problems == (f"--{flag}: {problem}",)


def test_unknown_feature_gate_is_reported_with_the_known_ones():
    with pytest.raises(InvalidFlags, match="unrecognized feature gate: HPAScaleToZer0; known: HPAScaleToZero, "):
        parse_flags({"feature-gates": "HPAScaleToZer0=true"})


def test_all_problems_are_reported_at_once():
    with pytest.raises(InvalidFlags) as caught:
        parse_flags({"leader-elect": "x", "external-metrics": "y"})
    assert len(caught.value.problems) == 2


def test_lease_durations_must_be_ordered():
    with pytest.raises(InvalidFlags, match="retry-period < renew-deadline < lease-duration"):
        parse_flags({"leader-elect-renew-deadline": "20s"})


def test_every_flag_has_help_and_a_unique_name():
    assert len({flag.name for flag in FLAGS}) == len(FLAGS)
    assert all(flag.help for flag in FLAGS)


def test_shards_require_leader_election():
    assert parse_flags({"shards": "16"}).shards == 16
    with pytest.raises(InvalidFlags, match="--leader-elect=false"):
        parse_flags({"shards": "16", "leader-elect": "false"})
