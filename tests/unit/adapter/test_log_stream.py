import fcntl
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from adapter.log_stream import LogStream


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def read_available(descriptor: int) -> str:
    os.set_blocking(descriptor, False)
    parts = []
    try:
        while part := os.read(descriptor, 65536):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts).decode()


def test_lines_are_written_at_once(pipe: tuple[int, int]):
    LogStream(pipe[1]).write("one\n")

    assert read_available(pipe[0]) == "one\n"


def test_lines_wait_while_the_pipe_is_full(pipe: tuple[int, int]):
    stream = LogStream(pipe[1])
    lines = [f"{number:0999}\n" for number in range(10)]
    for line in lines:
        stream.write(line)
    received = read_available(pipe[0])

    while len(received) < 10_000:
        stream.flush()
        received += read_available(pipe[0])

    assert received == "".join(lines)


def test_dropped_lines_are_counted_and_logged(pipe: tuple[int, int], caplog: pytest.LogCaptureFixture):
    stream = LogStream(pipe[1])
    for _ in range(3):
        stream.write("x" * 600_000)

    received = ""
    with caplog.at_level(logging.WARNING):
        while len(received) < 600_000:
            received += read_available(pipe[0])
            stream.flush()
        stream.flush()

    assert received == "x" * 600_000
    assert [record.__dict__["lines"] for record in caplog.records] == [2]


def test_closed_pipe_is_ignored():
    reading, writing = os.pipe()
    os.close(reading)

    LogStream(writing).write("one\n")

    os.close(writing)


def test_process_continues_while_standard_error_is_not_read():
    program = """
import logging
from adapter import log
log.configure("json", "info")
for number in range(20_000):
    logging.info("line", extra={"number": number})
print("finished")
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        timer = threading.Timer(60, process.kill)
        timer.start()
        assert process.stdout is not None
        finished = process.stdout.read()
        timer.cancel()

    assert finished == "finished\n"
