import json
import logging
import sys
from datetime import UTC, datetime

import pytest

from adapter import log

TIME = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)


def record(**fields: object) -> logging.LogRecord:
    created = logging.makeLogRecord({"msg": "rescaled %s", "args": ("web",), "levelname": "WARNING", **fields})
    created.created = TIME.timestamp()
    return created


def test_json_line_has_time_level_message_and_fields():
    line = json.loads(log.FieldFormatter("json").format(record(previous=3, label="<script>\n")))

    assert line == {
        "time": "2026-01-02T03:04:05.678Z",
        "level": "warning",
        "msg": "rescaled web",
        "previous": 3,
        "label": "<script>\n",
    }


def test_text_line_escapes_line_breaks():
    line = log.FieldFormatter("text").format(record(label="a\nb"))

    assert line == "2026-01-02T03:04:05.678Z warning rescaled web label='a\\nb'"


@pytest.mark.parametrize("style", ["json", "text"])
def test_traceback_is_included(style: log.Format):
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        failed = record(exc_info=sys.exc_info())

    assert "ZeroDivisionError: " in log.FieldFormatter(style).format(failed)


def test_line_writer_uses_the_same_format(capsys: pytest.CaptureFixture[str]):
    log.line_writer("json")(TIME, "request", {"status": 200})

    assert json.loads(capsys.readouterr().err) == {
        "time": "2026-01-02T03:04:05.678Z",
        "level": "info",
        "msg": "request",
        "status": 200,
    }


def test_field_that_is_not_utf_8_is_escaped(capsys: pytest.CaptureFixture[str]):
    log.line_writer("json")(TIME, "request", {"caller": "al\udcff"})

    assert json.loads(capsys.readouterr().err)["caller"] == "al\udcff"
