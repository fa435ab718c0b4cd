"""Output of the commands on any terminal, in any locale, and into a pipe that another program closes."""

import codecs
import errno
import io
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

OUTPUT_FAILED: Final = 1
CLOSED_PIPE: Final = 128 + signal.SIGPIPE
"""The exit code that a shell reports for a program that SIGPIPE has ended."""

HANDLER: Final = "steadyscale"
"""The name of the error handler that `escape_unencodable_characters` registers."""

ASCII_SYMBOLS: Final = {"→": "->", "…": "...", "≤": "<=", "≥": ">="}


def escape_unencodable_characters() -> None:
    """Write characters that the encoding of the terminal lacks as ASCII, instead of raising UnicodeEncodeError.

    The escapes are those of JSON, so that JSON output stays valid.
    """
    codecs.register_error(HANDLER, _replacement)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def with_checked_output(command: Callable[[], int]) -> int:
    """Run a command and flush its output; return the exit code.

    The process ignores SIGPIPE, because sockets would raise it as well. So a pipe that its reader closes, as in
    ``steadyscale demo | head``, is an error of the write or of the flush.
    """
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()  # at exit, the interpreter would print a traceback
    except BrokenPipeError:
        _discard_output()
        return CLOSED_PIPE
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _discard_output()
        sys.stderr.write(f"cannot write {error.filename or 'the output'}: {error.strerror}\n")
        return OUTPUT_FAILED


def _replacement(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(ASCII_SYMBOLS.get(character) or json.dumps(character)[1:-1] for character in text), error.end


def _discard_output() -> None:
    """Direct standard output to the null device, so that the flush at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
