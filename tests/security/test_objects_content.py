"""ExternalMetric objects with any content: an object is rejected and reported, and no other object is affected."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapter.backends.backend import Backend
from adapter.backends.configuration import BackendEntry, ExternalMetricAccess
from adapter.backends.http.settings import Http
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.rabbitmq.settings import RabbitMq
from adapter.backends.static import StaticBackend
from adapter.config.loading import decode, read_document
from adapter.config.model import TenantLimits
from adapter.custom_resources.external_metric import rule_from_object
from adapter.custom_resources.status_writer import ExternalMetricStatusWriter
from adapter.custom_resources.watcher import ExternalMetricWatcher
from adapter.decoding.documents import MAX_DEPTH
from adapter.decoding.problem import ConfigInvalid
from adapter.metrics.fetcher import Fetcher
from adapter.metrics.reader import MetricReader
from adapter.metrics.sources import Sources
from adapter.rules.rule_registry import RuleRegistry
from adapter.telemetry import Telemetry
from tests.fakes.backend import ScriptedBackend, loop_clock
from tests.security.raw_api_server import RawApiServer
from tests.waiting import GIVE_UP

ACCESS = ExternalMetricAccess(namespaces=("shop", "bank"))
BACKENDS = {
    "main": BackendEntry(external_metrics=ACCESS, prometheus=Prometheus(url="http://p")),
    "rabbits": BackendEntry(external_metrics=ACCESS, rabbitmq=RabbitMq(url="http://r")),
    "web": BackendEntry(external_metrics=ACCESS, http=Http(url="http://w")),
    "closed": BackendEntry(http=Http(url="http://c")),
}
GOOD = {"static": [{"value": 7}]}
SPEC_FIELDS = (
    *("metric", "aliases", "backend", "query", "parameters", "static", "labels", "aggregation", "interval"),
    *("maxSampleAge", "deadline", "onEmpty", "onNaN", "onOutOfRange", "onTooOld"),
)


class Service:
    """A watcher and a status writer on a raw API server."""

    def __init__(self, api: RawApiServer, watcher: ExternalMetricWatcher, writer: ExternalMetricStatusWriter) -> None:
        self.api, self.watcher, self.writer = api, watcher, writer
        self.running = asyncio.create_task(watcher.run())

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(GIVE_UP):
            while not holds():
                assert not self.running.done(), "the watcher has ended"
                await asyncio.sleep(0.01)

    def ready(self, key: str) -> dict[str, Any]:
        conditions: Any = self.api.statuses[key][-1]["conditions"]
        return {field: conditions[0][field] for field in ("status", "reason", "message")}


@asynccontextmanager
async def service(api: RawApiServer, telemetry: Telemetry | None = None) -> AsyncIterator[Service]:
    backends: dict[str, Backend] = {"static": StaticBackend(loop_clock), **dict.fromkeys(BACKENDS, ScriptedBackend())}
    registry = RuleRegistry()
    reader = MetricReader(registry, Sources(Fetcher(backends, loop_clock)), loop_clock)
    count = (telemetry or Telemetry()).count_rejection
    async with api.client() as client:
        watcher = ExternalMetricWatcher(client, registry, BACKENDS, TenantLimits(max_objects=10_000), count)
        here = Service(api, watcher, ExternalMetricStatusWriter(client, watcher, reader, loop_clock))
        try:
            yield here
        finally:
            here.running.cancel()
            await asyncio.gather(here.running, return_exceptions=True)
            await reader.sources.aclose()


def encoded(name: str, spec: bytes, version: int = 1, namespace: str = "shop") -> bytes:
    metadata = {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(version), "generation": 1}
    return b'{"metadata":%s,"spec":%s}' % (json.dumps(metadata).encode(), spec)


def nested(depth: int, spec: bytes = b'{"backend":"web","parameters":%s}') -> bytes:
    return spec % (b'{"a":' * depth + b"1" + b"}" * depth)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 400])
async def test_deeply_nested_object_is_rejected_and_reported(depth: int):
    api, telemetry = RawApiServer(), Telemetry()
    api.objects = {
        "shop/deep": encoded("deep", nested(depth)),
        "bank/queue": encoded("queue", json.dumps(GOOD).encode(), namespace="bank"),
    }
    async with service(api, telemetry) as here:
        await here.until(lambda: here.watcher.rules and here.watcher.rejections)
        await here.writer.write_changes()

        assert set(here.watcher.rules) == {"bank/queue"}
        message = f"spec.parameters.a.a: must not be nested deeper than {MAX_DEPTH} levels"
        assert here.ready("shop/deep") == {"status": "False", "reason": "Invalid", "message": message}
        assert here.ready("bank/queue")["status"] == "True"
        assert b'steadyscale_external_metrics_rejected_total{reason="Invalid"} 1.0' in telemetry.render()[0]


@pytest.mark.parametrize("depth", [3000, 100_000])
async def test_object_that_cannot_even_be_decoded_affects_no_other(depth: int):
    api = RawApiServer()
    api.objects = {
        "shop/deep": encoded("deep", nested(depth)),
        "shop/queue": encoded("queue", json.dumps(GOOD).encode()),
    }
    async with service(api) as here:
        await here.until(lambda: here.watcher.rules)
        api.change("shop/deep", encoded("deep", nested(depth), 2))
        api.change("shop/later", encoded("later", json.dumps(GOOD).encode(), 3))
        await here.until(lambda: "shop/later" in here.watcher.rules)

        assert set(here.watcher.rules) == {"shop/queue", "shop/later"}


def random_json(source: random.Random, depth: int) -> str:
    """Return a random value, with what decoders and encoders fail at: numbers, surrogates, nesting, length."""
    choice = source.randrange(14)
    if depth <= 0 or choice < 8:
        return source.choice(
            [
                *("null", "true", "0", "-1", "1e308", "1e-400", "9" * 400, "-0.0", '""', '"x"', '"5s"', '"1h1h1h"'),
                *('"\\u0000"', '"\\u202e"', '"\\ud83d\\ude00"', '"main"', '"web"', '"closed"', '"sum"', '"sum(x)"'),
                *(
                    json.dumps("9" * 5000 + "s"),
                    json.dumps("(" * 3000),
                    json.dumps("a" * 70_000),
                    '"<<.LabelMatchers>>"',
                ),
            ]
        )
    if choice == 8:
        levels = source.choice([10, MAX_DEPTH, 100, 800, 3000])
        return "[" * levels + "]" * levels
    if choice < 11:
        return f"[{','.join(random_json(source, depth - 1) for _ in range(source.randrange(5)))}]"
    return random_object(
        source, depth, lambda: source.choice(["value", "labels", "path", "queue", "a", "", "\x00", "é"])
    )


def random_object(source: random.Random, depth: int, key: Callable[[], str]) -> str:
    fields = (f"{json.dumps(key())}:{random_json(source, depth - 1)}" for _ in range(source.randrange(6)))
    return f"{{{','.join(fields)}}}"


def random_spec(source: random.Random) -> bytes:
    if source.random() < 0.1:
        return random_json(source, 4).encode()
    fields = {"backend": json.dumps(source.choice([*BACKENDS, "x"]))} if source.random() < 0.7 else {}
    for name in source.sample(SPEC_FIELDS, source.randrange(6)):
        fields[name] = random_json(source, 4)
    content = ",".join(f'"{name}":{value}' for name, value in fields.items())
    return f"{{{content}}}".encode()


@pytest.mark.parametrize("seed", [1, 2, None], ids=["seed 1", "seed 2", "random seed"])
async def test_random_objects_never_end_the_watcher_or_the_status_writer(seed: int | None):
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    source, api = random.Random(seed), RawApiServer()  # noqa: S311 - test data
    for number in range(100):
        api.objects[f"shop/o{number}"] = encoded(f"o{number}", random_spec(source))
    api.objects["shop/queue"] = encoded("queue", json.dumps(GOOD).encode())
    async with service(api) as here:
        await here.until(lambda: "shop/queue" in here.watcher.rules)
        for number in range(100):
            api.change(f"shop/o{number}", encoded(f"o{number}", random_spec(source), number + 2))
        api.change("shop/last", encoded("last", json.dumps(GOOD).encode(), 1000))
        await here.until(lambda: "shop/last" in here.watcher.rules)
        await here.writer.write_changes()

        decided = here.watcher.rules.keys() | here.watcher.rejections.keys()
        assert decided == set(here.watcher.store.keys()), f"seed {seed}"
        assert not any("cannot be parsed" in str(each) for all_ in here.watcher.problems.values() for each in all_)
        assert here.ready("shop/queue")["status"] == "True"


@pytest.mark.parametrize(
    "spec",
    [
        {"backend": "closed", "parameters": {"path": "/x", "format": "xml", "value": "a/" * 40_000 + "a"}},
        {"backend": "closed", "parameters": {"pth": "/queues"}},
        {"backend": "closed", "query": "((("},
        {"backend": "absent", "query": "<<("},
    ],
)
def test_nothing_of_an_object_is_parsed_for_a_backend_that_it_may_not_use(spec: dict[str, Any]):
    with pytest.raises(ConfigInvalid) as raised:
        rule_from_object({"metadata": {"namespace": "shop", "name": "queue"}, "spec": spec}, BACKENDS)

    (message,) = raised.value.messages
    assert message == (
        f"spec.backend: backend '{spec['backend']}' is not available to ExternalMetrics in namespace 'shop';"
        " available backends: main, rabbits, web; see externalMetrics of a backend"
    )


def test_nesting_of_a_configuration_file_is_limited_with_its_place(tmp_path):
    content = "rules: [{name: a, parameters: {b: %s%s}}]"
    file = tmp_path / "config.yaml"
    file.write_text(content % ("[" * 100, "]" * 100))
    with pytest.raises(ConfigInvalid, match=r"^rules\[0\]\.parameters: must not be nested deeper than 32 levels"):
        decode(read_document(file, {}))

    file.write_text(content % ("[" * 5000, "]" * 5000))
    with pytest.raises(ConfigInvalid, match="must not be nested deeper than 32 levels"):
        read_document(file, {})


def test_yaml_aliases_do_not_multiply_the_time_of_the_depth_limit(tmp_path):
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 31))]
    file = tmp_path / "config.yaml"
    file.write_text("\n".join(lines))

    with pytest.raises(ConfigInvalid, match="unknown key"):
        decode(read_document(file, {}))
