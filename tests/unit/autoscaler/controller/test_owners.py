"""Conflicts between autoscalers of the same target."""

from msgspec.structs import replace

from autoscaler.controller.owners import HPA, POD_AUTOSCALER, TargetOwners
from autoscaler.kube.targets import TargetKey
from autoscaler.types.spec import ObjectReference
from tests.builders import make_autoscaler, make_spec

WEB = TargetKey("apps", "Deployment", "shop", "web")


def autoscaler(target="web", mode=None):
    reference = ObjectReference("Deployment", target, "apps/v1")
    return make_autoscaler(replace(make_spec(), scale_target_ref=reference, mode=mode))


def test_autoscaler_with_a_target_of_its_own_has_no_conflict():
    owners = TargetOwners()
    assert owners.update(POD_AUTOSCALER, "shop/web", autoscaler()) == ()
    assert owners.conflicts("shop/web") == ()
    assert owners.keys(WEB) == ("shop/web",)


def test_two_podautoscalers_of_one_target_conflict():
    owners = TargetOwners()
    owners.update(POD_AUTOSCALER, "shop/web", autoscaler())
    assert owners.update(POD_AUTOSCALER, "shop/other", autoscaler()) == ("shop/web",)
    assert owners.conflicts("shop/web") == ("PodAutoscaler/shop/other",)
    assert owners.conflicts("shop/other") == ("PodAutoscaler/shop/web",)


def test_hpa_conflicts_with_a_podautoscaler_of_the_same_target():
    owners = TargetOwners()
    owners.update(POD_AUTOSCALER, "shop/web", autoscaler())
    assert owners.update(HPA, "shop/web", autoscaler()) == ("shop/web",)
    assert owners.conflicts("shop/web") == ("HorizontalPodAutoscaler/shop/web",)
    assert owners.update(HPA, "shop/web", autoscaler()) == ()


def test_conflict_ends_when_the_other_autoscaler_is_deleted_or_changes_its_target():
    owners = TargetOwners()
    owners.update(POD_AUTOSCALER, "shop/web", autoscaler())
    owners.update(HPA, "shop/web", autoscaler())
    assert owners.update(HPA, "shop/web", autoscaler("api")) == ("shop/web",)
    assert owners.conflicts("shop/web") == ()
    owners.update(HPA, "shop/web", autoscaler())
    assert owners.update(HPA, "shop/web", None) == ("shop/web",)
    assert owners.conflicts("shop/web") == ()
    assert owners.update(HPA, "shop/web", None) == ()


def test_dry_run_autoscaler_has_no_conflicts():
    owners = TargetOwners()
    owners.update(POD_AUTOSCALER, "shop/web", autoscaler())
    owners.update(POD_AUTOSCALER, "shop/shadow", autoscaler(mode="DryRun"))
    assert owners.conflicts("shop/web") == ()
    assert owners.conflicts("shop/shadow") == ()
    assert owners.update(POD_AUTOSCALER, "shop/shadow", autoscaler()) == ("shop/web",)
    assert owners.conflicts("shop/web") == ("PodAutoscaler/shop/shadow",)


def test_deleted_autoscaler_is_removed():
    owners = TargetOwners()
    owners.update(POD_AUTOSCALER, "shop/web", autoscaler())
    owners.update(POD_AUTOSCALER, "shop/web", None)
    assert owners.keys(WEB) == ()
    assert owners.conflicts("shop/web") == ()
