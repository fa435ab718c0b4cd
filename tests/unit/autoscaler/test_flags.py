"""Flags with kube-controller-manager's names, and what is said of those that make no sense."""

from datetime import timedelta

import pytest

from autoscaler.settings import FLAGS, FeatureGates, FlagsInvalid, Operation, Settings, operation


def test_without_flags_everything_is_as_upstream():
    assert operation({}) == Operation()


def test_every_flag_reaches_its_field():
    assert operation(
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
    ) == Operation(
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
        ("horizontal-pod-autoscaler-sync-period", "15", "must be a duration such as 15s or 5m0s, is '15'"),
        ("horizontal-pod-autoscaler-sync-period", "0s", "must be more than nothing, is '0s'"),
        ("horizontal-pod-autoscaler-tolerance", "-0.1", "must be a number and not negative, is '-0.1'"),
        ("horizontal-pod-autoscaler-tolerance", "nan", "must be a number and not negative, is 'nan'"),
        ("concurrent-horizontal-pod-autoscaler-syncs", "0", "must be greater than 0, but got 0"),
        ("external-metrics", "elsewhere", "must be embedded or cluster, is 'elsewhere'"),
        ("leader-elect", "maybe", "must be true or false, is 'maybe'"),
        ("feature-gates", "HPAScaleToZero", "must be true or false, is ''"),
    ],
)
def test_a_flag_that_makes_no_sense_is_named_with_its_reason(flag, text, problem):
    with pytest.raises(FlagsInvalid) as caught:
        operation({flag: text})
    assert caught.value.problems == (f"--{flag}: {problem}",)


def test_an_unknown_gate_is_told_beside_those_there_are():
    with pytest.raises(FlagsInvalid, match="unrecognized feature gate: HPAScaleToZer0; known: HPAScaleToZero, "):
        operation({"feature-gates": "HPAScaleToZer0=true"})


def test_all_problems_are_told_at_once():
    with pytest.raises(FlagsInvalid) as caught:
        operation({"leader-elect": "x", "external-metrics": "y"})
    assert len(caught.value.problems) == 2


def test_leases_must_leave_room_for_a_renewal():
    with pytest.raises(FlagsInvalid, match="retry-period < renew-deadline < lease-duration"):
        operation({"leader-elect-renew-deadline": "20s"})


def test_every_flag_has_help_and_a_name_of_its_own():
    assert len({flag.name for flag in FLAGS}) == len(FLAGS)
    assert all(flag.help for flag in FLAGS)
