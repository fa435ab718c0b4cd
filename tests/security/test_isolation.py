"""Tenants that share a backend: slow, failing and too many queries of one namespace cost others no read."""

import random

import pytest

from tests.security.shared_backend import ERRORS, Behaviour, Readers

pytestmark = pytest.mark.looptime

GOOD = Behaviour("good", queries=20, latency=0.05)
OPERATOR = Behaviour("operator", queries=20, latency=0.05, is_operator=True)
HOSTILE = {
    "queries that never end": [Behaviour("bad", queries=100, latency=1e6)],
    "deadlines of one second": [Behaviour("bad", queries=100, latency=1.5, deadline=1, interval=5)],
    "deadlines of one minute": [Behaviour("bad", queries=100, latency=1e6, deadline=60)],
    "unavailable": [Behaviour("bad", queries=100, latency=0.01, error="HTTP 503", interval=5)],
    "rate limit exceeded": [Behaviour("bad", queries=100, latency=0.01, error="HTTP 429", interval=5)],
    "slow selectors of a template": [Behaviour("bad", queries=50, latency=4.5, is_template=True, interval=5)],
    "many queries": [Behaviour("bad", queries=100, latency=0.3, interval=5)],
    "two colluding namespaces": [
        Behaviour("bad1", queries=100, latency=1e6, deadline=60),
        Behaviour("bad2", queries=100, latency=0.01, error="HTTP 503", interval=5),
    ],
    "three namespaces that start later": [
        Behaviour(f"bad{n}", queries=40, latency=1e6, deadline=60, starts_after=35 + n) for n in range(3)
    ],
    **{
        f"{count} colluding namespaces": [
            Behaviour(f"bad{n}", queries=40, latency=1e6, deadline=30 + n) for n in range(count)
        ]
        for count in (3, 4, 5)
    },
}


@pytest.mark.parametrize("hostile", [pytest.param(each, id=name) for name, each in HOSTILE.items()])
async def test_namespace_with_fast_queries_loses_no_read(hostile: list[Behaviour]):
    readers = Readers([*hostile, GOOD, OPERATOR])
    await readers.run(60)
    assert (readers.failures["good"], readers.failures["operator"]) == ({}, {})
    assert min(readers.reads["good"], readers.reads["operator"]) > 90


async def test_namespace_with_slow_queries_loses_no_read_to_many_fast_queries():
    slow = Behaviour("slow", queries=2, latency=1.5)
    readers = Readers([slow, Behaviour("bad", queries=100, latency=0.2, interval=5), GOOD, OPERATOR])
    await readers.run(60)
    assert (readers.failures["slow"], readers.failures["good"], readers.failures["operator"]) == ({}, {}, {})


def random_behaviour(chance: random.Random, namespace: str) -> Behaviour:
    return Behaviour(
        namespace,
        queries=chance.choice([1, 5, 30, 100]),
        latency=chance.choice([0.001, 0.1, 0.9, 1.1, 3, 6, 1e6]),
        error=chance.choice(["", "", *ERRORS]),
        interval=chance.choice([5, 15, 60]),
        deadline=chance.choice([1, 2, 5, 60]),
        is_template=chance.random() < 0.3,
        starts_after=chance.choice([0, 0, 20]),
    )


@pytest.mark.parametrize("fixed_seed", [1, 2, 3, None])
async def test_namespace_with_fast_queries_loses_no_read_to_random_behaviours(fixed_seed: int | None):
    seed = fixed_seed or random.SystemRandom().randrange(10**9)
    chance = random.Random(seed)  # noqa: S311 - repeatable
    hostile = [random_behaviour(chance, f"bad{n}") for n in range(chance.randint(1, 5))]
    readers = Readers([*hostile, GOOD, OPERATOR], chance.choice([4, 5, 8, 10]), seed)
    await readers.run(45)
    assert (readers.failures["good"], readers.failures["operator"]) == ({}, {}), (seed, hostile)
