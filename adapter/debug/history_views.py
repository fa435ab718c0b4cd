"""The JSON views of the decision history: one moment, or a period. Pure."""

from datetime import datetime
from typing import Final

from adapter.debug.decision_log import LoggedAutoscaler
from adapter.debug.formatting import Json, format_time
from adapter.debug.timeline import Timeline
from adapter.debug.views import autoscaler_view
from adapter.history.coverage import Gap
from adapter.history.reader import RecordedMoment, RecordedPeriod
from adapter.history.records import DecisionRecord
from autoscaler.algorithm.display_state import SEVERITY_RANK, display_states
from autoscaler.algorithm.explain import step_text
from autoscaler.algorithm.formatting import count
from autoscaler.types.limiting_factor import LimitingFactor, decisive_step_index

_MAX_TIMELINE_BYTES: Final = 2**20


def moment_view(key: str, moment: RecordedMoment) -> Json:
    """Return what is known about a moment: a sentence, and the decision that was in force."""
    record, following = moment.record, moment.following
    status, message = _status(moment)
    is_known = record is not None and not record.deleted
    return {
        **_name(key),
        "at": format_time(moment.at),
        "status": status,
        "message": message,
        "recordedAt": format_time(record.at) if record is not None else None,
        "nextRecordAt": format_time(following.at) if following is not None else None,
        "gap": None if moment.gap is None else _gap(moment.gap),
        **_range(moment),
        "decision": _decision_view(key, record) if record is not None and is_known else None,
    }


def _status(moment: RecordedMoment) -> tuple[str, str]:
    record, at = moment.record, moment.at
    if moment.begins_at is None or moment.recorded_until is None:
        return "unknown", "nothing is recorded"
    if at < moment.begins_at:
        return "unknown", f"nothing is known: the history begins at {_text(moment.begins_at)}"
    if moment.gap is not None:
        period = f"from {_text(moment.gap.start)} to {_text(moment.gap.end)}"
        last = "" if record is None else f"; the last decision before is of {_text(record.at)}"
        return "gap", f"nothing was recorded {period}: {moment.gap.reason}{last}"
    if record is None:
        later = f"; the first one is of {_text(moment.following.at)}" if moment.following is not None else ""
        return "unknown", f"there is no decision for this autoscaler before this moment{later}"
    if record.deleted:
        return "deleted", f"the autoscaler was deleted at {_text(record.at)}"
    omitted = _omitted(moment)
    if at > moment.recorded_until:
        return (
            "pending",
            f"no change from {_text(record.at)} to {_text(moment.recorded_until)}; the rest is not stored yet",
        )
    until = f", the next one at {_text(moment.following.at)}" if moment.following is not None else ""
    return "decided", f"no change since {_text(record.at)}{until}{omitted}"


def _omitted(moment: RecordedMoment) -> str:
    if moment.following is None or not moment.following.omitted:
        return ""
    changes = count(moment.following.omitted, "change")
    return f"; {changes} between them not recorded, because of the limit per autoscaler and namespace"


def period_view(key: str, period: RecordedPeriod, *, with_steps: bool = False) -> Json:
    """Return the records of a period, oldest first, and a timeline of them."""
    decisions = [record for record in period.records if not record.deleted]
    timeline = Timeline()
    for record in decisions:
        timeline.add(record.decision, _MAX_TIMELINE_BYTES)
    return {
        **_name(key),
        "since": format_time(period.since),
        "until": format_time(period.until),
        "truncated": period.is_truncated,
        "gaps": [_gap(gap) for gap in period.gaps],
        **_range(period),
        "records": [_record_view(record, with_steps=with_steps) for record in period.records],
        "timeline": timeline.columns() if decisions else None,
    }


def _record_view(record: DecisionRecord, *, with_steps: bool) -> Json:
    decision = record.decision
    states, factor = display_states(decision), decision.limiting_factor
    decisive = decisive_step_index(record.steps)
    view: Json = {
        "at": format_time(record.at),
        "deleted": record.deleted,
        "current": record.current,
        "replicas": record.replicas,
        "state": "deleted" if record.deleted else states[0].name.value,
        "detail": "" if record.deleted else states[0].detail,
        "limitingFactor": None if factor is LimitingFactor.NONE else factor.value,
        "reason": "" if decisive is None else step_text(record.steps[decisive], record.steps, record.at),
        "omitted": record.omitted,
        "metrics": _metrics(record),
    }
    if with_steps:
        view["steps"] = [step_text(step, record.steps, record.at) for step in record.steps]
    return view


def _metrics(record: DecisionRecord) -> list[Json]:
    timeline = Timeline()
    timeline.add(record.decision, _MAX_TIMELINE_BYTES)
    return [
        {name: value[0] if isinstance(value, list) else value for name, value in metric.items()}
        for metric in timeline.columns()["metrics"]
    ]


def _decision_view(key: str, record: DecisionRecord) -> Json:
    decision = record.decision
    states = display_states(decision)
    since = states[0].since or record.at
    rank = SEVERITY_RANK[states[0].name]
    return autoscaler_view(key, LoggedAutoscaler(record.autoscaler(key), decision, states, since, Timeline(), rank))


def _name(key: str) -> Json:
    namespace, _, name = key.partition("/")
    return {"namespace": namespace, "name": name}


def _gap(gap: Gap) -> Json:
    return {"start": format_time(gap.start), "end": format_time(gap.end), "reason": gap.reason}


def _range(known: RecordedMoment | RecordedPeriod) -> Json:
    return {"beginsAt": format_time(known.begins_at), "recordedUntil": format_time(known.recorded_until)}


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
