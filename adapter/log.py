"""How log lines look: a constant sentence and facts, as JSON for machines or as text for people."""

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import msgspec

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_encode = msgspec.json.Encoder(enc_hook=str).encode


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, sentence and facts."""
        line = {"time": _time(record), "level": record.levelname.lower(), "msg": record.getMessage(), **_facts(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encode(line).decode()


class TextLines(logging.Formatter):
    """One sentence a line, its facts behind it."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, sentence and facts."""
        facts = "".join(f" {key}={value!r}" for key, value in _facts(record).items())
        text = f"{_time(record)} {record.levelname:<7} {record.getMessage()}{facts}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def configure(style: Literal["json", "text"], level: str) -> None:
    """Write everything to standard error in this style."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _facts(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _PLAIN}
