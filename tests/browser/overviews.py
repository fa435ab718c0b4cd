"""A generator of overviews as they follow each other: rows change, appear and disappear, and the timeline grows."""

from collections.abc import Iterator
from random import Random
from typing import Final

from adapter.debug.formatting import Json

STATES: Final = ("conflict", "fallback", "metric failing", "limited", "normal")


def overviews(random: Random, count: int) -> Iterator[Json]:
    """Yield overviews, each one changed at random from the one before."""
    rows = {f"shop/a{number}": _row(random, number) for number in range(random.randrange(6))}
    rules = {number: _rule(random, number) for number in range(random.randrange(3))}
    points, metrics, time = [_point(random, 0)], random.choice([[], ["queue"], ["queue", "cpu"]]), 0
    for _ in range(count):
        for number in random.sample(range(8), random.randrange(4)):
            rows.pop(f"shop/a{number}", None)
            if random.random() < 0.8:
                rows[f"shop/a{number}"] = _row(random, number)
        for number in random.sample(range(4), random.randrange(2)):
            rules.pop(number, None)
            if random.random() < 0.8:
                rules[number] = _rule(random, number)
        for _ in range(random.randrange(3)):
            time += 1
            points.append(_point(random, time))
        points = points[min(random.choice([0, 0, 0, 1, 9]), len(points) - 1) :]
        if random.random() < 0.1:
            metrics = random.choice([["queue"], ["other"]])
        yield _overview(random, list(rows.values()), list(rules.values()), _timeline(points, metrics))


def _overview(random: Random, rows: list[Json], rules: list[Json], timeline: Json) -> Json:
    counts = {state: sum(row["state"] == state for row in rows) for state in STATES}
    overview: Json = {
        "leader": random.choice(["a", "b"]),
        "total": len(rows),
        "counts": {state: number for state, number in counts.items() if number},
        "autoscalers": sorted(rows, key=lambda row: (STATES.index(row["state"]), f"{row['namespace']}/{row['name']}")),
    }
    if random.random() < 0.5:
        overview["rules"] = {"rules": rules, "tenants": [random.randrange(2)]}
    if random.random() < 0.8:
        name = random.choice(["a1", "a1", "a1", "a2"])
        overview["selected"] = {"namespace": "shop", "name": name, "timeline": timeline}
    elif random.random() < 0.5:
        overview["selected"] = None
    return overview


def _row(random: Random, number: int) -> Json:
    return {"namespace": "shop", "name": f"a{number}", "replicas": random.randrange(3), "state": random.choice(STATES)}


def _rule(random: Random, number: int) -> Json:
    """Return a rule; two rules of different namespaces can have the same name."""
    health = random.choice(["ok", "failing"])
    return {"origin": "file", "name": f"r{number // 2}", "namespaces": ["shop", f"n{number % 2}"], "health": health}


def _point(random: Random, time: int) -> tuple[int, int, int]:
    return time, random.randrange(3), random.randrange(3)


def _timeline(points: list[tuple[int, int, int]], metrics: list[str]) -> Json:
    def of(index: int) -> list[int]:
        return [point[index] for point in points]

    columns = {"value": of(1), "target": of(2), "proposal": of(1), "state": ["ok"] * len(points)}
    return {
        "time": [f"t{time}" for time in of(0)],
        "current": of(1),
        "replicas": of(2),
        "metrics": [{"name": name, **columns} for name in metrics],
    }
