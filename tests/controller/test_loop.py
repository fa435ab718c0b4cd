"""When an autoscaler is looked at, in which order things are written, and what that costs."""

import asyncio
import logging
from datetime import timedelta

import pytest
from msgspec.structs import replace

from adapter.fakecluster.cluster import loop_clock
from tests.controller.harness import ALONE, AUTOSCALERS, DEPLOYMENTS, NATIVE, queue, settings
from tests.controller.widgets import WIDGETS

pytestmark = pytest.mark.looptime


def now():
    return asyncio.get_running_loop().time()


async def test_a_queue_is_followed_up(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=5)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(1)
    assert stage.replicas() == 8
    assert stage.events() == ["SuccessfulRescale"]
    assert stage.condition("AbleToScale") == ("True", "SucceededRescale")


async def test_and_down_again_when_the_window_has_passed(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(60)
    stage.numbers.set("queue", 10)
    await asyncio.sleep(280)
    assert (stage.replicas(), stage.condition("AbleToScale")) == (8, ("True", "ScaleDownStabilized"))
    await asyncio.sleep(40)
    assert stage.replicas() == 2


async def test_the_scale_is_written_before_the_event_and_the_event_before_the_status(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=5)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(1)
    written = [one.split("/")[-1] for one in stage.asked() if one.split()[0] in ("update", "patch", "create")]
    assert written[0] == "scale"
    assert sorted(written[1:]) == ["events", "status"]


async def test_a_pass_with_nothing_new_asks_the_api_server_nothing(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(20)
    stage.cluster.asked.clear()
    stage.numbers.reads = 0
    await asyncio.sleep(150)
    assert stage.numbers.reads == 10
    assert stage.asked() == []


async def test_nor_does_one_that_cannot_read_its_metric_once_it_has_said_so(stage):
    stage.numbers.set("queue", "connection refused")
    stage.deployment()
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(20)
    stage.cluster.asked.clear()
    await asyncio.sleep(150)
    assert [one for one in stage.asked() if "/events" not in one] == []


async def test_an_edit_is_seen_at_once(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(20)
    stage.edit(maxReplicas=4)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 4


async def test_a_metric_that_changes_is_seen_at_once(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(20)
    stage.numbers.set("queue", 60)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 12


async def test_a_target_that_somebody_resizes_is_seen_at_once(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(20)
    stage.resize(30)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 20


async def test_a_target_that_appears_is_seen_at_once(stage):
    stage.numbers.set("queue", 40)
    stage.deployment("other")
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(1)
    assert stage.condition("AbleToScale") == ("False", "FailedGetScale")
    assert stage.message("AbleToScale").endswith('deployments.apps "web" not found')
    stage.deployment(replicas=8)
    await asyncio.sleep(0.5)
    assert stage.condition("AbleToScale") == ("True", "ReadyForNewScale")


async def test_what_it_did_itself_is_no_news(stage):
    """Without behavior a pass may double the size: two passes in a row would double it twice."""
    stage.numbers.set("queue", 100)
    stage.deployment(replicas=3)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(10)
    assert stage.replicas() == 6
    stage.numbers.set("queue", 100)
    await asyncio.sleep(4)
    assert stage.replicas() == 6
    await asyncio.sleep(2)
    assert stage.replicas() == 12


async def test_one_that_is_deleted_is_forgotten_and_its_twin_starts_afresh(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    control = stage.start()
    await asyncio.sleep(60)
    stage.cluster.delete(f"{AUTOSCALERS}/web")
    await asyncio.sleep(1)
    assert control.decisions() == {}
    stage.numbers.set("queue", 10)
    stage.autoscaler(behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})
    await asyncio.sleep(1)
    assert stage.replicas() == 2


async def test_first_visits_are_at_once_and_later_ones_are_spread_over_the_period(stage):
    stage.numbers.set("queue", 40)
    for index in range(60):
        stage.deployment(f"web-{index}", replicas=8)
        stage.autoscaler(f"web-{index}")
    control = stage.start()
    await asyncio.sleep(1)
    assert len(control.decisions()) == 60
    await asyncio.sleep(30)
    seconds = {decision.at.second for decision in control.decisions().values()}
    assert len(seconds) >= 10


async def test_one_slow_metric_delays_nobody_else(stage):
    stage.numbers.set("queue", 40)
    stage.numbers.set("hanging", 40)
    stage.numbers.slow["hanging"] = 3600
    for index in range(10):
        stage.deployment(f"slow-{index}")
        stage.autoscaler(f"slow-{index}", queue("hanging"))
        stage.deployment(f"web-{index}", replicas=4)
        stage.autoscaler(f"web-{index}")
    stage.start()
    await asyncio.sleep(4)
    assert [stage.replicas(f"web-{index}") for index in range(10)] == [8] * 10
    await asyncio.sleep(20)
    assert stage.condition("ScalingActive", "slow-3") == ("False", "FailedGetExternalMetric")
    assert "no answer in time" in stage.message("ScalingActive", "slow-3")


async def test_targets_that_hang_delay_nobody_else_however_many_there_are(stage):
    stage.cluster.define(WIDGETS)
    stage.cluster.weather.forbid("list", "widgets")  # so that each of them is asked for
    passing = stage.cluster.weather.let_through

    async def hanging(verb: str, path: str, resource: str) -> None:
        if resource == "widgets/scale":
            await asyncio.sleep(3600)
        await passing(verb, path, resource)

    stage.cluster.weather.let_through = hanging
    stage.numbers.set("queue", 40)
    stage.numbers.set("other", 40)
    for index in range(400):
        target = {"apiVersion": "example.com/v1", "kind": "Widget", "name": f"w{index}"}
        stage.autoscaler(f"slow-{index}", scaleTargetRef=target)
    stage.deployment(replicas=8)
    stage.autoscaler("web", queue("other"))
    stage.start()
    await asyncio.sleep(120)
    for number in (60, 80):
        stage.numbers.set("other", number)
        await asyncio.sleep(1)
        assert stage.replicas() == number / 5
        await asyncio.sleep(17)


async def test_a_metric_without_an_answer_in_time_does_not_keep_the_others_from_scaling_up(stage):
    stage.numbers.set("queue", 60)
    stage.numbers.slow["hanging"] = 3600
    stage.deployment(replicas=8)
    stage.autoscaler("web", queue("hanging"), queue())
    stage.start()
    await asyncio.sleep(12)
    assert stage.replicas() == 12


async def test_another_owner_of_the_target_stops_it_and_is_named(stage):
    stage.numbers.set("queue", 60)
    stage.deployment(replicas=8)
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    stage.cluster.create(NATIVE, {"metadata": {"name": "old"}, "spec": {"scaleTargetRef": reference, "maxReplicas": 9}})
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(30)
    assert stage.replicas() == 8
    assert stage.condition("AbleToScale") == ("False", "AmbiguousTarget")
    assert "HorizontalPodAutoscaler/shop/old" in stage.message("AbleToScale")
    stage.cluster.delete(f"{NATIVE}/old")
    await asyncio.sleep(0.5)
    assert stage.replicas() == 12


async def test_two_of_ours_stop_each_other(stage):
    stage.numbers.set("queue", 60)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.autoscaler("twin", target="web")
    stage.start()
    await asyncio.sleep(30)
    assert stage.replicas() == 8
    assert "PodAutoscaler/shop/web" in stage.message("AbleToScale", "twin")
    assert "PodAutoscaler/shop/twin" in stage.message("AbleToScale", "web")


async def test_two_that_select_the_same_pods_are_told(stage):
    stage.numbers.set("queue", 60)
    labels = {"app": "shared"}
    for name in ("one", "two"):
        spec = {"replicas": 4, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        stage.cluster.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})
        stage.autoscaler(name)
    stage.start()
    await asyncio.sleep(40)
    assert stage.condition("ScalingActive", "one") == ("False", "AmbiguousSelector")
    assert stage.condition("ScalingActive", "two") == ("False", "AmbiguousSelector")


async def test_a_bad_spec_is_told_field_by_field_and_stops_nobody_else(stage):
    stage.numbers.set("queue", 60)
    stage.deployment(replicas=8)
    stage.deployment("other", replicas=8)
    stage.autoscaler("web", minReplicas=9, maxReplicas=4)
    stage.autoscaler("other")
    stage.start()
    await asyncio.sleep(20)
    assert stage.condition("ScalingActive") == ("False", "InvalidSpec")
    assert "spec.maxReplicas" in stage.message("ScalingActive")
    assert (stage.replicas(), stage.replicas("other")) == (8, 12)
    assert stage.events() == ["InvalidSpec"]
    stage.edit(maxReplicas=20)
    await asyncio.sleep(0.5)
    assert stage.replicas() == 9


async def test_a_rehearsal_decides_and_tells_and_writes_no_scale(stage):
    stage.numbers.set("queue", 60)
    stage.deployment(replicas=8)
    stage.autoscaler(mode="DryRun")
    stage.start()
    await asyncio.sleep(40)
    assert stage.replicas() == 8
    assert stage.status()["desiredReplicas"] == 12
    assert stage.condition("AbleToScale") == ("False", "DryRun")
    assert stage.asked("update", "/scale") == []


async def test_a_pause_ends_by_itself_at_its_time(stage):
    stage.numbers.set("queue", 60)
    stage.deployment(replicas=8)
    until = loop_clock().replace(microsecond=0).isoformat().replace("00:00:00", "00:00:47").replace("+00:00", "Z")
    stage.autoscaler(mode="Paused", pausedUntil=until)
    stage.start()
    await asyncio.sleep(46)
    assert (stage.replicas(), stage.condition("AbleToScale")) == (8, ("False", "Paused"))
    await asyncio.sleep(1.5)
    assert stage.replicas() == 12


async def test_periods_are_as_asked_for(stage):
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start(settings(sync_period=ALONE.settings.sync_period / 5))
    await asyncio.sleep(4)
    stage.numbers.reads = 0
    await asyncio.sleep(30)
    assert stage.numbers.reads == 10


async def test_a_thousand_created_at_once_are_looked_at_at_once(stage):
    stage.numbers.set("queue", 60)
    stage.cluster.workloads.switch_off()
    control = stage.start()
    await asyncio.sleep(1)
    for index in range(1000):
        stage.deployment(f"web-{index}", replicas=8)
        stage.autoscaler(f"web-{index}")
    await asyncio.sleep(10)
    assert len(control.decisions()) == 1000
    assert {stage.replicas(f"web-{index}") for index in range(0, 1000, 37)} == {12}
    stage.cluster.asked.clear()
    await asyncio.sleep(60)
    assert len(stage.asked("update", "/scale")) == 0


async def test_a_line_of_log_for_each_decision_that_changed_something_and_none_for_the_others(stage, caplog):
    caplog.set_level(logging.INFO, logger="autoscaler.controller.reporting")
    stage.numbers.set("queue", 40)
    stage.deployment(replicas=8)
    stage.autoscaler()
    stage.start()
    await asyncio.sleep(100)
    caplog.clear()
    await asyncio.sleep(100)
    assert caplog.records == []
    stage.numbers.set("queue", 60)
    await asyncio.sleep(1)
    (line,) = caplog.records
    assert line.message == "rescaled"
    said = {"autoscaler": "shop/web", "was": 8, "replicas": 12, "reason": "external metric queue(nil) above target"}
    assert {name: vars(line)[name] for name in said} == said
    caplog.clear()
    stage.numbers.set("queue", "connection refused")
    await asyncio.sleep(60)
    assert [vars(line)["conditions"] for line in caplog.records if "FailedGet" in vars(line)["conditions"]] == [
        "AbleToScale=True/SucceededGetScale, ScalingActive=False/FailedGetExternalMetric"
    ]


async def test_with_more_to_do_than_time_everyone_is_looked_at_less_often_and_none_is_left_out(stage, caplog):
    names = [f"w{index}" for index in range(40)]
    for name in names:  # together they take 3.6 seconds of the two that there are
        stage.numbers.set(name, 40)
        stage.numbers.slow[name] = 0.09
        stage.deployment(name, replicas=8)
        stage.autoscaler(name, queue(name))
    looked: dict[str, int] = dict.fromkeys(names, 0)
    whole = stage.numbers.read

    async def read(namespace, metric, selector):
        looked[metric] += 1
        return await whole(namespace, metric, selector)

    stage.numbers.read = read
    stage.start(replace(settings(sync_period=timedelta(seconds=2)), concurrent_syncs=1))
    await asyncio.sleep(60)
    assert stage.registry.get_sample_value("steadyscale_autoscaler_sync_period_ratio") > 1.5
    assert "overloaded: every autoscaler is looked at less often" in caplog.messages
    before = dict(looked)
    await asyncio.sleep(60)
    looks = [looked[name] - before[name] for name in names]
    assert max(looks) - min(looks) <= 1
    assert 60 / 2 > min(looks) >= 60 / (40 * 0.1) - 1
