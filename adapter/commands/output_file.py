"""Output of a command to a file that is complete or does not exist, or to standard output."""

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path


def write_output(file: Path | None, chunks: Iterable[str]) -> None:
    """Write text to a file, or to standard output if there is none.

    The file is replaced when it is complete. An interrupt or an error leaves the previous one, and no temporary file.
    """
    if file is None:
        sys.stdout.writelines(chunks)
        return
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as output:
            output.writelines(chunks)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
