import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from adapter import errors
from adapter.config.loading import ConfigFile, without_bad_rules
from adapter.config.model import Config, Limits
from adapter.errors import ConfigInvalid
from adapter.metrics.pipeline import MetricPipeline
from autoscaler.values.selector import parse
from tests.fakes.backend import BEGINNING, ScriptedBackend, raw

GOOD = {"name": "good", "static": [{"value": 1}]}
FILE = """
backends: {{main: {{prometheus: {{url: "{url}"}}}}}}
rules:
- {{name: queue, backend: main, query: "{query}", namespace: {{}}}}
"""


def test_at_the_start_a_bad_rule_is_left_out_and_the_others_are_not():
    loaded = without_bad_rules(
        {"rules": [{"name": "status", "static": [{"value": 1}]}, GOOD, {"name": "typo", "statci": []}, {}]}
    )

    assert [rule.name for rule in loaded.config.rules] == ["good"]
    assert loaded.broken["typo"] == ("rules[2].statci: unknown key; did you mean 'static'?",)
    assert set(loaded.broken) == {"status", "typo", "rules[3]"}


def test_of_two_rules_with_one_name_the_first_stays():
    loaded = without_bad_rules({"rules": [GOOD, GOOD]})

    assert len(loaded.config.rules) == 1
    assert loaded.broken == {"good": ("rules[1].name: 'good' is defined by rules[0] already",)}


def test_what_is_wrong_elsewhere_stops_the_start():
    with pytest.raises(ConfigInvalid) as refused:
        without_bad_rules({"serving": {"prot": 1}, "rules": [{"name": "x", "bad": 1}]})

    assert refused.value.problems == ("serving.prot: unknown key; did you mean 'port'?",)


class Dependencies:
    """A file, and the supply that follows it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "config.yaml"
        self.opened: list[ScriptedBackend] = []
        self.verdicts = 0
        self.write("http://one", "x")
        self.file = ConfigFile(self.path, {}, every=timedelta(milliseconds=5))
        self.supply = MetricPipeline(self.file.start(), self.open, lambda: BEGINNING)

    def open(self, name: str, settings: object, _clock: object) -> ScriptedBackend:
        rows = {"x": (raw(len(self.opened)),), "y": (raw(7),)}
        self.opened.append(ScriptedBackend(f"{name} at {settings.url}", rows))
        return self.opened[-1]

    def write(self, url: str, query: str) -> None:
        self.path.write_text(FILE.format(url=url, query=query))

    async def settled(self) -> None:
        """Wait until the file was looked at and something was made of it, good or bad."""
        async with asyncio.timeout(10):
            while not self.verdicts:  # noqa: ASYNC110 - threads read the file, and have no bell to ring for a test
                await asyncio.sleep(0.005)
        self.verdicts = 0

    async def use(self, config: Config) -> None:
        await self.supply.use(config)
        self.verdicts += 1

    def refuse(self, problems: tuple[str, ...]) -> None:
        self.supply.refuse(problems)
        self.verdicts += 1

    async def value(self) -> int:
        return (await self.supply.reader.read("any", "queue", parse("")))[0].milli


@pytest.fixture
async def world(tmp_path: Path):
    here = await asyncio.to_thread(Dependencies, tmp_path)
    following = asyncio.create_task(here.file.follow(here.use, here.refuse))
    yield here
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await here.supply.aclose()


async def test_a_changed_file_is_in_force_within_seconds(world: Dependencies):
    assert await world.value() == 0
    world.write("http://one", "y")
    await world.settled()

    assert await world.value() == 7000
    assert len(world.opened) == 1


async def test_a_bad_new_file_leaves_the_old_one_serving_and_says_so(
    world: Dependencies, caplog: pytest.LogCaptureFixture
):
    world.path.write_text("rules: [{name: queue, qurey: x}]")
    await world.settled()
    assert await world.value() == 0
    assert world.supply.book.trouble == ("rules[0].qurey: unknown key; did you mean 'query'?",)
    assert "the old one stays" in caplog.text

    world.write("http://one", "y")
    await world.settled()
    assert await world.value() == 7000
    assert world.supply.book.trouble == ()


async def test_a_file_that_is_gone_leaves_the_old_one_serving(world: Dependencies):
    world.path.unlink()
    await world.settled()

    assert await world.value() == 0
    assert "No such file" in world.supply.book.trouble[0]


async def test_another_backend_is_opened_and_the_old_one_closed(world: Dependencies):
    assert await world.value() == 0
    world.write("http://two", "x")
    await world.settled()

    assert await world.value() == 1000
    assert [backend.closed for backend in world.opened] == [True, False]


async def test_a_rule_that_goes_is_no_metric_any_more(world: Dependencies):
    world.path.write_text("{}")
    await world.settled()

    with pytest.raises(errors.MetricNotFound):
        await world.value()


async def test_what_needs_a_restart_is_said_to(world: Dependencies, caplog: pytest.LogCaptureFixture):
    await world.supply.use(Config(limits=Limits(connections=7)))

    assert "waits for a restart" in caplog.text
