"""Control characters in paths, headers and names of callers: one request never writes a second log line."""

import asyncio
import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter import log
from tests.unit.adapter.served import Served, served

FORGED: Final = '2026-01-02T03:04:05.000Z info    request caller="admin" status=200'
SEPARATORS: Final = (
    "\n",
    "\r\n",
    "\r",
    "\v",
    "\f",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "\x1b[2K\x1b[1A",
    "\x9b1A",
    "\x7f",
    "\0",
)
STYLES: Final[tuple[log.Format, ...]] = ("json", "text")
TIME: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def assert_one_line(line: str) -> None:
    assert line.splitlines() == [line]
    assert line.isprintable(), repr(line)


def access_log_line(style: log.Format, fields: dict[str, object], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    log.line_writer(style)(TIME, "request", fields)
    return capsys.readouterr().err.removesuffix("\n")


async def send(it: Served, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", it.port)
    writer.write(data)
    response = await reader.read()
    writer.close()
    return response


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
async def test_request_with_control_characters_writes_one_line(
    style: log.Format, separator: str, capsys: pytest.CaptureFixture[str]
):
    text = f"x{separator}{FORGED}"
    header = text.encode().replace(b"\r", b"").replace(b"\n", b"").replace(b"\0", b"")  # would be a malformed request
    common = b"Host: x\r\nConnection: close\r\nX-Remote-User: %b\r\nUser-Agent: %b\r\nAudit-Id: %b\r\n\r\n" % (
        (header,) * 3
    )
    async with served() as it:
        encoded = quote(text, safe="").encode()
        for path in (b"/%b" % encoded, b"/apis/external.metrics.k8s.io/v1beta1/namespaces/%b/%b" % (encoded, encoded)):
            await send(it, b"GET %b HTTP/1.1\r\n" % path + common)

        for fields in it.lines:
            assert_one_line(access_log_line(style, fields, capsys))


@pytest.mark.parametrize("style", STYLES)
@given(value=st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L"]), max_size=20))
@settings(deadline=None)
def test_field_and_message_with_any_character_are_one_line(style: log.Format, value: str):
    record = logging.makeLogRecord({"msg": "failed: %s", "args": (value,), "levelname": "WARNING", "caller": value})
    line = log.FieldFormatter(style).format(record)

    assert_one_line(line)
    if style == "json":
        assert json.loads(line)["caller"] == value


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("separator", SEPARATORS, ids=ascii)
def test_lines_of_a_traceback_cannot_be_mistaken_for_log_lines(style: log.Format, separator: str):
    try:
        int(f"x{separator}{FORGED}")
    except ValueError as error:
        error.args = (f"x{separator}{FORGED}",)  # int() escapes it
        record = logging.makeLogRecord({"msg": "unexpected error", "exc_info": sys.exc_info()})
    first, *further = log.FieldFormatter(style).format(record).splitlines()

    assert_one_line(first)
    for line in further:
        assert line.startswith("    ")
        assert_one_line(line)
