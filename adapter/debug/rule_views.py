"""All rules with their health: what is asked of whom, what came of it last, and who is being failed since when."""

import asyncio
from datetime import timedelta
from typing import Any, Final, TypeAlias

from adapter.backends.backend import Backend
from adapter.debug.formatting import seconds, time
from adapter.debug.trace import described
from adapter.errors import AdapterError
from adapter.metrics.fetcher import Failed, Outcome
from adapter.metrics.read_history import Asked, Read
from adapter.metrics.reader import RuleReader
from adapter.rules.query_builder import whole
from adapter.rules.rule import Rule

Json: TypeAlias = dict[str, Any]
_PING: Final = 5.0


def rules(reader: RuleReader, problems: dict[str, tuple[str, ...]]) -> Json:
    """Describe every rule; ``problems`` are those of objects that are none."""
    book = reader.book
    reads: dict[int, list[Read]] = {}
    for asked, read in reader.reads:
        reads.setdefault(id(book.rules.find(asked.namespace, asked.metric)), []).append(read)
    return {
        "rules": [_rule(reader, rule, reads.get(id(rule), [])) for rule in book.rules],
        "strays": [_stray(reader, asked, read) for asked, read in reader.strays],
        "broken": [{"rule": name, "problems": list(found)} for name, found in book.broken.items()],
        "externalMetrics": [{"object": key, "problems": list(found)} for key, found in sorted(problems.items())],
        "reload": {"ok": not book.trouble, "problems": list(book.trouble)},
        "queriesSent": reader.sources.fetcher.count,
    }


def _rule(reader: RuleReader, rule: Rule, reads: list[Read]) -> Json:
    query = whole(rule)
    outcome = None if rule.is_template else reader.sources.snapshots.peek(query)
    failing = [read for read in reads if read.failures]
    since = min((read.first_failure_time for read in failing if read.first_failure_time), default=None)
    return {
        **described(rule),
        "origin": reader.book.origin(rule),
        "backend": query.backend,
        "query": query.text,
        "health": "failing" if failing or isinstance(outcome, Failed) else "ok" if reads else "idle",
        "lastFetch": _outcome(reader, outcome),
        "readers": len(reads),
        "failingReaders": len(failing),
        "firstFailureTime": time(since),
        "message": failing[0].message if failing else "",
        "pricePerDay": _price(reader, rule),
    }


def _price(reader: RuleReader, rule: Rule) -> Json | None:
    """Say what it costs to be asked all day, where somebody charges for that."""
    price = reader.price(rule)
    return None if price is None else {"dollars": round(price.dollars, 4), "because": price.because}


def _stray(reader: RuleReader, asked: Asked, read: Read) -> Json:
    """Describe a name that is asked for and that no rule has."""
    return {
        "namespace": asked.namespace,
        "metric": asked.metric,
        "nearest": list(reader.book.rules.nearest(asked.namespace, asked.metric)),
        "reads": read.reads,
        "failures": read.failures,
        "message": read.message,
        "firstFailureTime": time(read.first_failure_time),
        "lastRead": time(read.at),
    }


def _outcome(reader: RuleReader, outcome: Outcome | None) -> Json | None:
    if outcome is None:
        return None
    found: Json = {
        "at": time(outcome.at),
        "ageSeconds": seconds(reader.clock() - outcome.at),
        "tookMilliseconds": round(outcome.took / timedelta(milliseconds=1), 1),
    }
    if isinstance(outcome, Failed):
        return {**found, "failed": outcome.error.message or str(outcome.error.failure)}
    return {**found, "series": len(outcome.rows)}


async def backends(reader: RuleReader) -> Json:
    """Ask every backend whether it is there, side by side."""
    known = reader.sources.fetcher.backends
    answers = await asyncio.gather(*(_ping(backend) for backend in known.values()))
    return {"backends": [{"name": name, **answer} for name, answer in zip(known, answers, strict=True)]}


async def _ping(backend: Backend) -> Json:
    try:
        async with asyncio.timeout(_PING):
            await backend.ping()
    except TimeoutError:
        return {"answers": False, "error": f"no answer within {_PING:g}s"}
    except AdapterError as error:
        failure = error.failure.value if error.failure else ""
        return {"answers": False, "error": ": ".join(part for part in (failure, error.message) if part)}
    return {"answers": True}
