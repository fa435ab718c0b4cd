"""Differential fuzzer of query confinement: ``python -m tests.security.confinement_fuzz --count 100000 --seed random``.

Every selector of every confined query must have the namespace matcher, as the parsers of Prometheus and VictoriaMetrics
read it. The confined query must also mean the same as the original one: equal syntax trees, apart from the matcher.
"""

import argparse
import secrets
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adapter.rules.promql.errors import PromqlError
from adapter.rules.tenancy import Dialect, restrict_to_namespace
from tests.security.promql import parsers
from tests.security.promql.generator import QueryGenerator

NAMESPACE: Final = "shop"
_MATCHER: Final = f'namespace="{NAMESPACE}"'
_CHUNK: Final = 5000
_PLACEHOLDER: Final = "<<.LabelMatchers>>"


@dataclass
class FuzzReport:
    """Counts and failures of one run."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """Reasons for which queries were refused that Prometheus accepts."""

    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{name}: {count}" for name, count in sorted(self.counts.items()))
        refusals = "".join(f"\n  {count:6} {reason}" for reason, count in self.refusals.most_common(15))
        return f"{counts}\nrefused although valid in Prometheus:{refusals}\nfailures: {len(self.failures)}"


def fuzz(program: Path, count: int, seed: int, dialect: Dialect = "PromQL") -> FuzzReport:
    """Confine generated queries and compare how the parsers read them."""
    report, generator = FuzzReport(), QueryGenerator(seed)
    for start in range(0, count, _CHUNK):
        queries = [generator.query() for _ in range(min(_CHUNK, count - start))]
        outcomes = [_confine(query, dialect) for query in queries]
        # The placeholder is replaced by matchers or by nothing when the query is sent.
        pairs = [
            (query.replace(_PLACEHOLDER, ""), confined.replace(_PLACEHOLDER, "")) for query, confined, _ in outcomes
        ]
        for outcome, verdicts in zip(outcomes, parsers.parse_all(program, pairs, NAMESPACE), strict=True):
            _check(report, *outcome, verdicts, dialect)
    return report


def _confine(query: str, dialect: Dialect) -> tuple[str, str, str]:
    try:
        return query, restrict_to_namespace(query, "namespace", NAMESPACE, dialect), ""
    except PromqlError as error:
        return query, "", str(error)


def _check(
    report: FuzzReport, query: str, confined: str, refusal: str, verdicts: parsers.Verdicts, dialect: Dialect
) -> None:
    is_valid = not verdicts.plain or not verdicts.experimental
    report.counts["queries"] += 1
    report.counts["valid in Prometheus"] += is_valid
    report.counts["valid in Prometheus without experimental syntax"] += not verdicts.plain
    report.counts["confined"] += bool(confined)
    report.counts["confined and valid in Prometheus"] += bool(confined) and is_valid
    report.counts["confined, without experimental syntax"] += bool(confined) and not verdicts.plain
    if refusal and not verdicts.plain:
        report.refusals[refusal] += 1
    for name, reading in verdicts.readings.items():
        report.counts[f"read by {name}"] += 1
        selectors = reading.selectors or []
        report.counts[f"selectors read by {name}"] += len(selectors)
        if not all(_MATCHER in selector for selector in selectors):
            report.failures.append(f"escape in {name}: {query!r} -> {confined!r}")
    if confined:
        report.failures += _meaning_failures(query, confined, verdicts, dialect)


def _meaning_failures(query: str, confined: str, verdicts: parsers.Verdicts, dialect: Dialect) -> list[str]:
    prometheus, metricsql = verdicts.readings.get("experimental"), verdicts.readings.get("metricsql")
    if not verdicts.expected_tree:
        return []  # a mistake that only the server finds, such as an invalid regular expression
    if prometheus is None:
        return [f"confined query is invalid: {query!r} -> {confined!r}"]
    if prometheus.tree != verdicts.expected_tree and _PLACEHOLDER not in query:
        return [f"meaning changed: {query!r} -> {confined!r}\n  {verdicts.expected_tree}\n  {prometheus.tree}"]
    if dialect == "MetricsQL":
        if metricsql is None:
            return [f"confined query is invalid in MetricsQL: {query!r} -> {confined!r}"]
        if _reads(prometheus) != _reads(metricsql):
            return [f"MetricsQL reads differently: {query!r} -> {confined!r}\n  {prometheus}\n  {metricsql}"]
    return []


def _reads(reading: parsers.Parsed) -> tuple[list[list[str]], list[str]]:
    selectors = sorted(sorted(set(selector)) for selector in reading.selectors or [])
    # In MetricsQL, start() and end() of the modifier @ are calls.
    return selectors, sorted(call for call in reading.calls or [] if call not in {"start", "end"})


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", default="random")
    arguments = options.parse_args()
    seed = secrets.randbits(32) if arguments.seed == "random" else int(arguments.seed)
    program, failed = parsers.install(), False
    dialects: tuple[Dialect, ...] = ("PromQL", "MetricsQL")
    for dialect, count in zip(dialects, (arguments.count, arguments.count // 5), strict=True):
        report = fuzz(program, count, seed, dialect)
        print(f"dialect {dialect}, seed {seed}: {report}", *report.failures[:20], sep="\n", flush=True)  # noqa: T201
        failed = failed or bool(report.failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
