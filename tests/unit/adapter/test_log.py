import json
import logging
import sys
from datetime import UTC, datetime

import pytest

from adapter import log

AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)


def record(**facts: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": "rescaled %s", "args": ("web",), "levelname": "WARNING", **facts})
    made.created = AT.timestamp()
    return made


def test_a_json_line_is_a_sentence_and_facts():
    line = json.loads(log.Lines("json").format(record(was=3, who="<script>\n")))

    assert line == {
        "time": "2026-01-02T03:04:05.678Z",
        "level": "warning",
        "msg": "rescaled web",
        "was": 3,
        "who": "<script>\n",
    }


def test_a_text_line_stays_one_line_whatever_is_in_it():
    assert log.Lines("text").format(record(who="a\nb")) == "2026-01-02T03:04:05.678Z warning rescaled web who='a\\nb'"


@pytest.mark.parametrize("style", ["json", "text"])
def test_a_traceback_comes_with_it(style: log.Style):
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        made = record(exc_info=sys.exc_info())

    assert "ZeroDivisionError: " in log.Lines(style).format(made)


def test_the_short_way_looks_the_same(capsys: pytest.CaptureFixture[str]):
    log.writer("json")(AT, "request", [{"status": 200}])

    assert json.loads(capsys.readouterr().err) == {
        "time": "2026-01-02T03:04:05.678Z",
        "level": "info",
        "msg": "request",
        "status": 200,
    }


def test_what_is_no_text_is_written_all_the_same_beside_what_is(capsys: pytest.CaptureFixture[str]):
    log.writer("json")(AT, "request", [{"caller": "al\udcff"}, {"caller": "alice"}])

    assert [json.loads(line)["caller"] for line in capsys.readouterr().err.splitlines()] == ["al\udcff", "alice"]
