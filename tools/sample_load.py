"""Print made-up load as CSV, for the documentation and the tests of simulations: ``python -m tools.sample_load``.

The values repeat a day with a quiet night, a lunch peak and an evening peak, lower at weekends, with noise and some
sudden spikes. The same arguments print the same values.
"""

import argparse
import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

START = datetime(2026, 3, 2, tzinfo=UTC)
"""A Monday."""

_MINUTES_PER_DAY = 24 * 60
_WEEKEND = 5
_SPIKES_PER_DAY = 2


def load(days: float, peak: float, seed: int = 1) -> Iterator[tuple[datetime, float]]:
    """Yield a time and a value for each minute; the usual peak of a working day is ``peak``."""
    random = Random(seed)  # noqa: S311 - not for security
    spike = 0.0
    for minute in range(round(days * _MINUTES_PER_DAY)):
        at = START + timedelta(minutes=minute)
        hour = minute / 60 % 24
        level = 0.12 + 0.55 * _bump(hour, 12.5, 2.2) + 0.88 * _bump(hour, 19, 2.5)
        level *= 0.6 if at.weekday() >= _WEEKEND else 1.0
        if random.random() < _SPIKES_PER_DAY / _MINUTES_PER_DAY:
            spike = random.uniform(0.3, 0.8)
        spike *= 0.93
        yield at, max(peak * (level + spike) * random.gauss(1, 0.05), 0.0)


def _bump(hour: float, middle: float, width: float) -> float:
    return math.exp(-(((hour - middle) / width) ** 2))


def main() -> None:
    """Print the values."""
    parser = argparse.ArgumentParser(prog="python -m tools.sample_load", description=__doc__)
    parser.add_argument("--days", type=float, default=14, help="length of the history (default: %(default)s)")
    parser.add_argument("--peak", type=float, default=1000, help="usual peak (default: %(default)s)")
    options = parser.parse_args()
    sys.stdout.write("timestamp,value\n")
    sys.stdout.writelines(f"{at:%Y-%m-%dT%H:%M:%SZ},{value:.1f}\n" for at, value in load(options.days, options.peak))


if __name__ == "__main__":
    main()
