"""Every state of an autoscaler is seen in its last decision, and the gravest comes first."""

import pytest
from msgspec.structs import replace

from adapter.debug.decision_log import Shelf
from adapter.debug.display_state import State, signs_of
from autoscaler.algorithm.invalid_spec import refuse
from autoscaler.types.history import History
from autoscaler.types.observation import TargetUnreadable
from autoscaler.types.steps import OutOfBounds, SelectorRefused, WriteFailed
from tests.browser.story import states
from tests.builders import (
    ALL_ON,
    NOW,
    Step,
    decide_once,
    long_at,
    make_autoscaler,
    make_external_metric,
    make_fallback,
    make_observation,
    make_spec,
    queue_of,
    run_passes,
    unreadable,
)


def test_each_story_shows_its_state():
    shelf = Shelf()
    states(shelf)

    assert {key: kept.signs[0].state.value for key, kept in shelf} == {
        "shop/mails": "fallback",
        "shop/search": "failing",
        "shop/web": "normal",
        "shop/checkout": "limited",
        "night/reports": "at zero",
        "night/import": "switched off",
        "data/etl": "dry run",
        "data/train": "paused",
        "data/lost": "target lost",
        "data/pods": "no say",
        "shop/cart": "two owners",
        "odd/hostile": "failing",
    }


def test_several_states_at_once_are_all_told_the_gravest_first():
    metric = make_external_metric(fallback=make_fallback(10, 30))
    steps = [Step(after, (unreadable(),)) for after in (0, 15, 30, 45)]
    last = run_passes(make_spec(metric, mode="DryRun"), steps)[-1]

    assert [sign.state for sign in signs_of(last)] == [State.FALLBACK, State.DRY_RUN, State.LIMITED]


@pytest.mark.parametrize(
    ("step", "state", "note"),
    [
        pytest.param(WriteFailed(5, "forbidden"), State.WRITE_FAILED, "forbidden", id="a write that failed"),
        pytest.param(
            SelectorRefused("InvalidSelector", "no selector"), State.PODS_UNKNOWN, "no selector", id="pods nobody knows"
        ),
        pytest.param(OutOfBounds(12, 10), State.LIMITED, "by maxReplicas", id="too many"),
        pytest.param(OutOfBounds(1, 3), State.LIMITED, "by minReplicas", id="too few"),
    ],
)
def test_a_step_that_ends_a_pass_is_a_state(step, state: State, note: str):
    decision = replace(decide_once(past=long_at(3)), working=(step,))

    assert [(sign.state, sign.note) for sign in signs_of(decision)] == [(state, note)]


def test_a_spec_that_makes_no_sense_is_told_with_every_problem():
    refused = refuse(
        autoscaler=make_autoscaler(), problems=("spec.maxReplicas: Required",), past=History(), gates=ALL_ON, now=NOW
    )

    assert [(sign.state, sign.note) for sign in signs_of(refused)] == [(State.SPEC_WRONG, "spec.maxReplicas: Required")]


def test_a_state_is_dated_from_its_beginning_until_it_ends():
    shelf, autoscaler = Shelf(), make_autoscaler()
    steps = [Step(0, (queue_of(15),)), Step(15, (unreadable(),)), Step(30, (unreadable(),)), Step(45, (queue_of(15),))]
    since = []
    for decision in run_passes(make_spec(), steps):
        shelf.decided("shop/web", autoscaler, decision)
        kept = shelf.get("shop/web")
        assert kept is not None
        since.append((kept.signs[0].state.value, (kept.since - NOW).seconds))

    assert since == [("normal", 0), ("failing", 15), ("failing", 15), ("normal", 45)]


def test_a_lost_target_is_told_in_the_words_of_who_lost_it():
    lost = decide_once(seen=make_observation(target=TargetUnreadable("not found")))

    assert [(sign.state, sign.note) for sign in signs_of(lost)] == [(State.TARGET_LOST, "not found")]
