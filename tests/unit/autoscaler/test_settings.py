"""The knobs have kube-controller-manager's names and defaults."""

from datetime import timedelta

import msgspec
import pytest

from autoscaler.settings import FeatureGates, Settings


def test_the_defaults_are_kubernetes_own():
    assert msgspec.structs.asdict(Settings()) == {
        "tolerance": 0.1,
        "downscale_stabilization": timedelta(minutes=5),
        "cpu_initialization_period": timedelta(minutes=5),
        "initial_readiness_delay": timedelta(seconds=30),
        "sync_period": timedelta(seconds=15),
        "fallback_floor": timedelta(seconds=180),
    }


def test_every_gate_is_on_and_has_its_name_of_kubernetes_on_the_wire():
    gates = ("HPAScaleToZero", "HPAConfigurableTolerance", "HPAExternalMetricFallback", "HPAGeneration")

    assert msgspec.structs.asdict(FeatureGates()) == dict.fromkeys((*gates, "PodLevelResources"), True)
    assert [field.encode_name for field in msgspec.structs.fields(FeatureGates)] == [*gates, "PodLevelResources"]


def test_settings_cannot_be_changed_in_passing():
    with pytest.raises(AttributeError):
        Settings().tolerance = 0.2
