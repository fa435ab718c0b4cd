"""Settings have the defaults of kube-controller-manager."""

from datetime import timedelta

import msgspec
import pytest

from autoscaler.settings import FeatureGates, Settings


def test_defaults_are_those_of_kubernetes():
    assert msgspec.structs.asdict(Settings()) == {
        "tolerance": 0.1,
        "downscale_stabilization": timedelta(minutes=5),
        "cpu_initialization_period": timedelta(minutes=5),
        "initial_readiness_delay": timedelta(seconds=30),
        "sync_period": timedelta(seconds=15),
        "fallback_floor": timedelta(seconds=180),
    }


def test_feature_gates_are_enabled_and_have_the_names_of_kubernetes():
    gates = ("HPAScaleToZero", "HPAConfigurableTolerance", "HPAExternalMetricFallback", "HPAGeneration")

    assert msgspec.structs.asdict(FeatureGates()) == dict.fromkeys((*gates, "PodLevelResources"), True)
    assert [field.encode_name for field in msgspec.structs.fields(FeatureGates)] == [*gates, "PodLevelResources"]


def test_settings_are_immutable():
    with pytest.raises(AttributeError):
        Settings().tolerance = 0.2  # type: ignore[misc]
