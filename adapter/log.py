"""How log lines look: a constant sentence and facts, as JSON for machines or as text for people."""

import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

import msgspec

Style = Literal["json", "text"]
Write = Callable[[datetime, str, Mapping[str, object]], None]
"""Writes one line: when, a sentence, facts."""

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
        at = datetime.fromtimestamp(record.created, UTC)
        return self._line(at, record.levelname.lower(), record.getMessage(), facts)


def configure(style: Style, level: str) -> None:
    """Write everything to standard error in this style."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(style))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def writer(style: Style) -> Write:
    """Make a writer of single lines that costs little, for the one line that every request writes."""
    line, out = _STYLES[style], sys.stderr

    def write(at: datetime, sentence: str, facts: Mapping[str, object]) -> None:
        out.write(line(at, "info", sentence, facts) + "\n")

    return write


def _json(at: datetime, level: str, sentence: str, facts: Mapping[str, object]) -> str:
    return _encode({"time": _time(at), "level": level, "msg": sentence, **facts}).decode()


def _text(at: datetime, level: str, sentence: str, facts: Mapping[str, object]) -> str:
    told = "".join(f" {key}={value!r}" for key, value in facts.items() if key != "traceback")
    trace = f"\n{facts['traceback']}" if "traceback" in facts else ""
    return f"{_time(at)} {level:<7} {sentence}{told}{trace}"


def _time(at: datetime) -> str:
    return f"{_second(at.replace(microsecond=0))}.{at.microsecond // 1000:03}Z"


@lru_cache(maxsize=16)
def _second(at: datetime) -> str:
    return at.isoformat()[:19]


_STYLES = {"json": _json, "text": _text}
