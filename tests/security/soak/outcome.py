"""The printed result of a run and whether the run passed."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import quantiles

from tests.security.soak.attacks.attacker import LEAK
from tests.security.soak.memory_limit import MIB
from tests.security.soak.pod import Pod
from tests.security.soak.tenant import Measurement


@dataclass
class Outcome:
    """What one run measured."""

    seed: int
    minutes: float
    pod: Pod
    measurement: Measurement
    attacks: dict[str, Counter[str]] = field(default_factory=dict)
    stored: int = 0
    log_errors: Counter[str] = field(default_factory=Counter)

    def failures(self) -> list[str]:
        """Return what was lost; empty if the run passed."""
        measured, leaks = self.measurement, sum(counts[LEAK] for counts in self.attacks.values())
        checks = {
            f"{measured.lost.total()} lost reads": measured.lost.total(),
            f"{measured.wrong.total()} wrong values": measured.wrong.total(),
            f"{leaks} reads of another tenant's values": leaks,
            f"{self.pod.restarts.total()} restarts": self.pod.restarts.total(),
            f"{measured.lost_steps} of {measured.steps} scaling steps not seen": measured.lost_steps,
            "no reads": not measured.reads,
            "no attacks": not self.attacks,
        }
        return [text for text, is_failure in checks.items() if is_failure]

    def lines(self) -> Iterator[str]:
        """Yield the table."""
        measured, pod = self.measurement, self.pod
        yield _row("duration, seed", f"{self.minutes:.1f} minutes, {self.seed}")
        yield _row("machine", f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
        yield _row("memory limit", f"{pod.limit_bytes // MIB} MiB, {pod.limit.description}")
        yield _row("peak memory", f"{pod.peak / MIB:.0f} MiB")
        yield _row("restarts", _counts(pod.restarts))
        yield _row("liveness probes", f"{pod.failed_probes} failed, slowest {pod.slowest_probe * 1000:.0f} ms")
        yield _row("reads", str(measured.reads))
        yield _row("lost reads", _counts(measured.lost))
        if measured.lost_at:
            yield _row("lost at", _ranges([int(second) for second in measured.lost_at]))
        yield _row("wrong values", _counts(measured.wrong))
        yield _row("read latency", _percentiles(measured.latencies))
        yield _row("scaling steps", f"{measured.steps - measured.lost_steps} of {measured.steps} seen")
        yield _row("time to scale", _percentiles(measured.scale_delays))
        yield _row("stored objects", f"{self.stored} that an older CRD accepted")
        yield _row("errors in the log", _counts(self.log_errors))
        yield ""
        yield from (_row(kind, _counts(counts)) for kind, counts in sorted(self.attacks.items()))
        yield ""
        failures = self.failures()
        yield f"failed: {', '.join(failures)}" if failures else "passed"


def _row(name: str, text: str) -> str:
    return f"{name:34}{text}"


def _counts(counts: Counter[str]) -> str:
    if not counts:
        return "0"
    parts = ", ".join(f"{number} {name}" for name, number in counts.most_common(5))
    return parts if len(counts) == 1 else f"{counts.total()}: {parts}" + (", ..." if len(counts) > 5 else "")


def _ranges(seconds: list[int]) -> str:
    """Return the periods of the run in which reads were lost; gaps of some seconds are ignored."""
    periods: list[tuple[int, int]] = []
    for second in sorted(seconds):
        if periods and second - periods[-1][1] <= 5:
            periods[-1] = periods[-1][0], second
        else:
            periods.append((second, second))
    return ", ".join(f"{first} to {last} s" for first, last in periods)


def _percentiles(seconds: list[float]) -> str:
    if len(seconds) < 2:
        return "none" if not seconds else f"{seconds[0]:.3f} s"
    cuts = quantiles(seconds, n=100, method="inclusive")
    return f"p50 {cuts[49]:.3f} s, p99 {cuts[98]:.3f} s, highest {max(seconds):.3f} s"
