"""Who scales what, and who hears of a rival."""

from msgspec.structs import replace

from autoscaler.controller.owners import NATIVE, POD_AUTOSCALER, Owners
from autoscaler.kube.targets import TargetKey
from autoscaler.types.spec import ObjectReference
from tests.builders import make_autoscaler, make_spec

WEB = TargetKey("apps", "Deployment", "shop", "web")


def of(target="web", mode=None):
    reference = ObjectReference("Deployment", target, "apps/v1")
    return make_autoscaler(replace(make_spec(), scale_target_ref=reference, mode=mode))


def test_a_target_of_its_own_has_no_rival():
    owners = Owners()
    assert owners.note(POD_AUTOSCALER, "shop/web", of()) == ()
    assert owners.rivals("shop/web") == ()
    assert owners.keys(WEB) == ("shop/web",)


def test_each_of_two_is_told_of_the_other():
    owners = Owners()
    owners.note(POD_AUTOSCALER, "shop/web", of())
    assert owners.note(POD_AUTOSCALER, "shop/twin", of()) == ("shop/web",)
    assert owners.rivals("shop/web") == ("PodAutoscaler/shop/twin",)
    assert owners.rivals("shop/twin") == ("PodAutoscaler/shop/web",)


def test_a_native_autoscaler_is_a_rival_and_is_not_told():
    owners = Owners()
    owners.note(POD_AUTOSCALER, "shop/web", of())
    assert owners.note(NATIVE, "shop/web", of()) == ("shop/web",)
    assert owners.rivals("shop/web") == ("HorizontalPodAutoscaler/shop/web",)
    assert owners.note(NATIVE, "shop/web", of()) == ()


def test_when_a_rival_goes_or_turns_elsewhere_the_other_is_told():
    owners = Owners()
    owners.note(POD_AUTOSCALER, "shop/web", of())
    owners.note(NATIVE, "shop/web", of())
    assert owners.note(NATIVE, "shop/web", of("api")) == ("shop/web",)
    assert owners.rivals("shop/web") == ()
    owners.note(NATIVE, "shop/web", of())
    assert owners.note(NATIVE, "shop/web", None) == ("shop/web",)
    assert owners.rivals("shop/web") == ()
    assert owners.note(NATIVE, "shop/web", None) == ()


def test_who_only_rehearses_is_no_rival_and_has_none():
    owners = Owners()
    owners.note(POD_AUTOSCALER, "shop/web", of())
    owners.note(POD_AUTOSCALER, "shop/shadow", of(mode="DryRun"))
    assert owners.rivals("shop/web") == ()
    assert owners.rivals("shop/shadow") == ()
    assert owners.note(POD_AUTOSCALER, "shop/shadow", of()) == ("shop/web",)
    assert owners.rivals("shop/web") == ("PodAutoscaler/shop/shadow",)


def test_nobody_is_left_behind():
    owners = Owners()
    owners.note(POD_AUTOSCALER, "shop/web", of())
    owners.note(POD_AUTOSCALER, "shop/web", None)
    assert owners.keys(WEB) == ()
    assert owners.rivals("shop/web") == ()
