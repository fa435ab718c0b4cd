"""Hears every metric of a pass in the order of the spec, its fallback included, and writes down what each said."""

from collections.abc import Sequence

from autoscaler.algorithm import conditions
from autoscaler.algorithm.decision_builder import Draft
from autoscaler.algorithm.fallback import Identity, identity_of, judge, untouched
from autoscaler.algorithm.metric_context import Scene
from autoscaler.algorithm.propose import name_of, propose
from autoscaler.types.metric_result import Answer, Proposal, Verdict
from autoscaler.types.observation import Reading
from autoscaler.types.spec import EXTERNAL, ExternalSource, Metric
from autoscaler.types.steps import MetricAnswered, MetricFailed


def hear(metrics: Sequence[Metric], readings: Sequence[Reading], scene: Scene, draft: Draft) -> list[Verdict]:
    """Ask each metric, also after another has failed."""
    verdicts: list[Verdict] = []
    told: set[Identity] = set()
    for metric, reading in zip(metrics, readings, strict=True):
        answer = propose(metric, reading, scene)
        source = metric.external
        if source is None or source.fallback is None or metric.type != EXTERNAL:
            _note(metric, answer, scene, draft)
            verdicts.append(answer)
        else:
            verdicts.append(_consider_fallback(metric, source, answer, scene, told, draft))
    return verdicts


def _consider_fallback(
    metric: Metric,
    source: ExternalSource,
    answer: Answer,
    scene: Scene,
    told: set[Identity],
    draft: Draft,
) -> Verdict:
    """Let the metric's clock have a word. Two entries of one metric share a clock, and its events are told once."""
    is_calm = isinstance(answer, Proposal) and not draft.clocks  # nearly always; then nobody asks for the identity
    identity = ("", "") if is_calm else identity_of(source.metric)
    clock = draft.clocks.get(identity)
    if not scene.gates.HPAExternalMetricFallback:
        _note(metric, answer, scene, draft)
        return untouched(answer, clock)
    judged = judge(source, answer, clock, scene)
    if judged.events and identity not in told:
        draft.events.extend(judged.events)
        told.add(identity)
    if judged.step is not None:
        draft.working.append(judged.step)
    else:
        _note(metric, answer, scene, draft)
    return judged.verdict


def _note(metric: Metric, answer: Answer, scene: Scene, draft: Draft) -> None:
    """Write down an ordinary answer; each failure is told at once, in every pass, as upstream does."""
    name = name_of(metric)
    if isinstance(answer, Proposal):
        replicas, calculation = answer.replicas, answer.calculation
        draft.working.append(MetricAnswered(name, replicas, scene.target.replicas, scene.tolerance, calculation))
    else:
        draft.events.append(conditions.warning(answer.reason, answer.message))
        draft.working.append(MetricFailed(name, answer.message, answer.trouble, answer.failure))
