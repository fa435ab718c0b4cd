import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from adapter import errors
from adapter.backends.prometheus.settings import Prometheus
from adapter.backends.settings import BackendSettings
from adapter.config.loading import ConfigFile, decode_without_invalid_rules
from adapter.config.model import Config, Limits
from adapter.decoding.problem import ConfigInvalid, Problem
from adapter.metrics.pipeline import MetricPipeline
from adapter.telemetry import Telemetry
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw
from tests.waiting import GIVE_UP

GOOD = {"name": "good", "static": [{"value": 1}]}
FILE = """
backends: {{main: {{prometheus: {{url: "{url}"}}}}}}
rules:
- {{name: queue, backend: main, query: "{query}", namespace: {{}}}}
"""


def test_invalid_rules_are_left_out_at_the_start():
    loaded = decode_without_invalid_rules(
        {"rules": [{"name": "status", "static": [{"value": 1}]}, GOOD, {"name": "typo", "statci": []}, {}]}
    )

    assert [rule.name for rule in loaded.config.rules] == ["good"]
    assert [str(problem) for problem in loaded.invalid_rules["typo"]] == [
        "rules[2].statci: unknown key; did you mean 'static'?"
    ]
    assert set(loaded.invalid_rules) == {"status", "typo", "rules[3]"}


def test_first_of_two_rules_with_the_same_name_is_used():
    loaded = decode_without_invalid_rules({"rules": [GOOD, GOOD]})

    assert len(loaded.config.rules) == 1
    assert loaded.invalid_rules == {"good": (Problem("rules[1].name", "'good' is already defined by rules[0]"),)}


def test_problem_outside_the_rules_is_raised_at_the_start():
    with pytest.raises(ConfigInvalid) as raised:
        decode_without_invalid_rules({"serving": {"prot": 1}, "rules": [{"name": "x", "bad": 1}]})

    assert raised.value.messages == ("serving.prot: unknown key; did you mean 'port'?",)


class Service:
    """A configuration file and the metric pipeline that follows it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "config.yaml"
        self.opened: list[ScriptedBackend] = []
        self.reloads = 0
        self.write("http://one", "x")
        self.file = ConfigFile(self.path, {}, poll_interval=timedelta(milliseconds=5))
        self.pipeline = MetricPipeline(self.file.start(), self.open, lambda: BEGINNING, Telemetry())

    def open(self, name: str, settings: BackendSettings, _clock: object) -> ScriptedBackend:
        assert isinstance(settings, Prometheus)
        backend = ScriptedBackend(f"{name} at {settings.url}")
        backend.results |= {"x": (raw(len(self.opened)),), "y": (raw(7),)}
        self.opened.append(backend)
        return self.opened[-1]

    def write(self, url: str, query: str) -> None:
        self.path.write_text(FILE.format(url=url, query=query))

    async def reloaded(self) -> None:
        """Wait until a changed file was applied or rejected."""
        async with asyncio.timeout(GIVE_UP):
            while not self.reloads:  # noqa: ASYNC110 - a thread reads the file
                await asyncio.sleep(0.005)
        self.reloads = 0

    async def apply(self, config: Config) -> None:
        await self.pipeline.apply(config)
        self.reloads += 1

    def reject(self, problems: tuple[Problem, ...]) -> None:
        self.pipeline.registry.reject_file(problems)
        self.reloads += 1

    def messages(self) -> tuple[str, ...]:
        return tuple(map(str, self.pipeline.registry.reload_problems))

    async def value(self) -> int:
        return (await self.pipeline.reader.read_samples("any", "queue", parse("")))[0].milli


@pytest.fixture
async def service(tmp_path: Path):
    here = await asyncio.to_thread(Service, tmp_path)
    following = asyncio.create_task(here.file.follow(here.apply, here.reject))
    yield here
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await here.pipeline.aclose()


async def test_changed_file_is_applied(service: Service):
    assert await service.value() == 0
    service.write("http://one", "y")
    await service.reloaded()

    assert await service.value() == 7000
    assert len(service.opened) == 1


async def test_invalid_file_is_rejected_and_the_previous_one_stays_in_force(
    service: Service, caplog: pytest.LogCaptureFixture
):
    service.path.write_text("rules: [{name: queue, qurey: x}]")
    await service.reloaded()
    assert await service.value() == 0
    assert service.messages() == ("rules[0].qurey: unknown key; did you mean 'query'?",)
    assert "keeping the previous one" in caplog.text

    service.write("http://one", "y")
    await service.reloaded()
    assert await service.value() == 7000
    assert service.messages() == ()


async def test_deleted_file_leaves_the_previous_one_in_force(service: Service):
    service.path.unlink()
    await service.reloaded()

    assert await service.value() == 0
    assert "No such file" in service.messages()[0]


async def test_changed_backend_is_opened_again_and_the_old_one_closed(service: Service):
    assert await service.value() == 0
    service.write("http://two", "x")
    await service.reloaded()

    assert await service.value() == 1000
    assert [backend.closed for backend in service.opened] == [True, False]


async def test_removed_rule_is_not_found(service: Service):
    service.path.write_text("{}")
    await service.reloaded()

    with pytest.raises(errors.MetricNotFound):
        await service.value()


async def test_changed_setting_that_needs_a_restart_is_logged(service: Service, caplog: pytest.LogCaptureFixture):
    await service.pipeline.apply(Config(limits=Limits(max_connections=7)))

    assert "need a restart to take effect" in caplog.text


async def test_optional_file_may_be_missing_at_the_start_and_is_applied_once_it_exists(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path, applied = tmp_path / "config.yaml", asyncio.Queue[Config]()
    flags = {"serving": {"port": 1234}}
    file = ConfigFile(path, flags, is_optional=True, poll_interval=timedelta(milliseconds=5))
    loaded = await asyncio.to_thread(file.start)
    assert (loaded.config.rules, loaded.config.serving.port, loaded.invalid_rules) == ((), 1234, {})

    following = asyncio.create_task(file.follow(applied.put, lambda _: None))
    await asyncio.to_thread(path.write_text, FILE.format(url="http://one", query="x"))
    async with asyncio.timeout(GIVE_UP):
        config = await applied.get()
    following.cancel()

    assert [rule.name for rule in config.rules] == ["queue"]
    assert "configuration file not found, using the defaults" in caplog.text


def test_file_that_was_named_must_exist(tmp_path: Path):
    with pytest.raises(ConfigInvalid, match="No such file"):
        ConfigFile(tmp_path / "config.yaml", {}).start()
