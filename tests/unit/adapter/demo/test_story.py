"""The day: its scenes come in order, and after it there is always another."""

from datetime import timedelta
from itertools import pairwise
from random import Random

from adapter.demo.story import DAY, ENDS, scene_after

CHANCE = Random(1)  # noqa: S311 - orders, not secrets


def test_the_scenes_come_one_after_another():
    times = [scene_after(number, CHANCE).at for number in range(len(DAY) + 5)]

    assert times[0] == timedelta()
    assert all(one < other for one, other in pairwise(times))
    assert times[len(DAY)] == ENDS


def test_the_outage_lasts_longer_than_the_failure_clock_and_ends():
    down = [scene for scene in DAY if not scene.backend_is_up]
    back = next(scene for scene in DAY if scene.at > down[-1].at)

    assert back.backend_is_up
    assert back.at - down[0].at > timedelta(seconds=180)


def test_the_shop_closes_for_longer_than_it_takes_to_go_to_zero():
    closes = next(scene for scene in DAY if scene.rate == 0)
    opens = DAY[DAY.index(closes) + 1]

    assert opens.rate > 0
    assert opens.at - closes.at > timedelta(minutes=3)


def test_after_the_day_nothing_fails_any_more():
    assert all(scene_after(len(DAY) + number, CHANCE).backend_is_up for number in range(20))
