"""``steadyscale metric`` against the real server on loopback."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.__main__ import main
from tests.loopback import Loopback, loopback


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("loopback")) as running:
        (running.folder / "token").write_text("good\n")
        yield running


def ask(service: Loopback, *arguments: str) -> int:
    known = ["--server", service.url, "--ca-file", str(service.ca), "--token-file", str(service.folder / "token")]
    return main(["metric", *known, *arguments])


def test_the_way_to_a_number_in_words(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert ask(service, "default/my-metric", "-l", "foo in (bar)") == 0
    said = capsys.readouterr().out

    assert "metric       default/my-metric\nselector     foo in (bar)\nrule         my-metric, from config" in said
    assert "series       2 found, 1 matched\n  + {foo=bar} 1.1 (" in said
    assert "not foo in (bar): foo is 'baz'" in said
    assert "value        1100m, " in said
    assert said.endswith("an HPA hears 1100m (1 item)\n")


def test_a_missing_number_is_an_exit_code_and_a_reason(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert ask(service, "default/refused") == 1
    said = capsys.readouterr().out

    assert "failed: it said no" in said
    assert "error        refused: metric 'refused': static: refused: it said no" in said
    assert "failing      since 20" in said
    assert "it then says unable to get external metric default/refused/nil: unable to fetch metrics" in said


def test_a_name_that_is_nearly_right_is_put_right(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert ask(service, "default/my-metrik") == 1

    assert "rule         none: no rule has the name 'my-metrik'\nnearest      my-metric\n" in capsys.readouterr().out


def test_machines_get_json(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert ask(service, "default/whole", "-o", "json") == 0

    assert json.loads(capsys.readouterr().out)["value"] == "2"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["whole"], "'whole' is not NAMESPACE/NAME"),
        (["default/whole", "-l", "a=b=c"], "400: unable to parse the label selector"),
    ],
)
def test_a_question_that_makes_no_sense_is_said_so(
    service: Loopback, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
):
    assert ask(service, *arguments) == 2
    assert says in capsys.readouterr().err


def test_who_may_not_look_is_told_what_is_missing(service: Loopback, capsys: pytest.CaptureFixture[str]):
    assert main(["metric", "--server", service.url, "--ca-file", str(service.ca), "default/whole"]) == 2

    assert '403: forbidden: User "system:anonymous" cannot get path "/debug/' in capsys.readouterr().err


def test_on_loopback_no_authority_is_needed(service: Loopback):
    token = str(service.folder / "token")

    assert main(["metric", "--server", service.url, "--token-file", token, "default/whole"]) == 0


def test_a_service_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{free.getsockname()[1]}"
    assert main(["metric", "--server", server, "default/whole"]) == 2
    assert server in capsys.readouterr().err

    assert main(["metric", "--token-file", str(tmp_path / "nothing"), "default/whole"]) == 2
    assert "nothing" in capsys.readouterr().err
