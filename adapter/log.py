"""How log lines look: a constant sentence and facts, as JSON for machines or as text for people."""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

Style = Literal["json", "text"]
Write = Callable[[datetime, str, Iterable[Mapping[str, object]]], None]
"""Writes lines: when, a sentence, the facts of each."""

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Lines(logging.Formatter):
    """Our style for what is logged the usual way."""

    def __init__(self, style: Style) -> None:
        super().__init__()
        self._line = _STYLES[style]

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, sentence and facts, and the traceback if there is one."""
        facts = {key: value for key, value in vars(record).items() if key not in _PLAIN}
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        time = _time(datetime.fromtimestamp(record.created, UTC))
        return self._line(time, record.levelname.lower(), record.getMessage(), facts)


def configure(style: Style, level: str) -> None:
    """Write everything to standard error in this style."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(style))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def writer(style: Style) -> Write:
    """Make a writer that costs little, for the line that every request writes; those of one moment go out as one."""
    line, out = _STYLES[style], sys.stderr

    def write(at: datetime, sentence: str, lines: Iterable[Mapping[str, object]]) -> None:
        time = _time(at)
        out.write("".join([line(time, "info", sentence, facts) + "\n" for facts in lines]))

    return write


def _json(time: str, level: str, sentence: str, facts: Mapping[str, object]) -> str:
    line = {"time": time, "level": level, "msg": sentence, **facts}
    try:
        return _encode(line).decode()
    except UnicodeEncodeError:
        return json.dumps(line, default=str)  # a caller may send bytes that are no text; this escapes them


def _text(time: str, level: str, sentence: str, facts: Mapping[str, object]) -> str:
    told = "".join(f" {key}={value!r}" for key, value in facts.items() if key != "traceback")
    trace = f"\n{facts['traceback']}" if "traceback" in facts else ""
    return f"{time} {level:<7} {sentence}{told}{trace}"


def _time(at: datetime) -> str:
    return f"{at.isoformat(timespec='milliseconds')[:23]}Z"


_STYLES = {"json": _json, "text": _text}
