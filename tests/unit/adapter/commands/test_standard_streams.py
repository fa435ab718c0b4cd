"""The commands in any locale, and with a standard output that cannot be written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.commands import standard_streams

CHECKED = "{größe→: 1}\n"
ENCODINGS = [
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]


def steadyscale(*arguments: str, stdout: Any = subprocess.PIPE, **environment: Any) -> tuple[int, str, str]:
    """Run a command; return the exit code, standard output and standard error."""
    command = [sys.executable, "-m", "adapter", *arguments]
    variables = {**os.environ, **environment}
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, env=variables, check=False)  # noqa: S603
    return done.returncode, (done.stdout or b"").decode("latin-1"), done.stderr.decode()


@pytest.fixture
def checked(tmp_path: Path) -> str:
    file = tmp_path / "config.yaml"
    file.write_text(CHECKED, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=["latin-1", "ascii", "C"])
def test_characters_that_the_encoding_lacks_are_escaped(encoding: dict[str, str], checked: str):
    code, text, errors = steadyscale("check", checked, **encoding)
    json_code, document, json_errors = steadyscale("check", checked, "-o", "json", **encoding)

    assert (code, json_code, errors, json_errors) == (1, 1, "", "")
    assert "1 problem" in text
    assert json.loads(document)["problems"] == 1


def test_demo_runs_in_an_encoding_without_its_symbols():
    code, text, errors = steadyscale("demo", "--once", "--speed=300", "--no-page", PYTHONIOENCODING="latin-1")

    assert (code, errors) == (0, "")
    assert " -> " in text


@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [
        ("--help", ""),
        ("demo --help", ""),
        ("", ""),
        ("check FILE", ""),
        ("check FILE", "1"),
        ("demo --speed=300", ""),
    ],
)
def test_closed_pipe_ends_a_command_without_a_message(command: str, unbuffered: str, checked: str):
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [checked if argument == "FILE" else argument for argument in command.split()]
    try:
        code, _, errors = steadyscale(*arguments, stdout=writer, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(writer)

    assert (code, errors) == (141, "")


def test_demo_ends_when_its_reader_has_read_enough():
    command = f"{sys.executable} -m adapter demo --speed=300 | head -n 12; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=120)  # noqa: S603, S607

    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "141"


def test_full_disk_is_reported_in_one_line(checked: str):
    with Path("/dev/full").open("wb") as full:
        code, _, errors = steadyscale("check", checked, stdout=full.fileno())

    assert (code, errors) == (1, "cannot write the output: No space left on device\n")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["ascii", "latin-1", "cp1252"]))
def test_escaped_json_is_the_same_document(text: str, encoding: str):
    standard_streams.escape_unencodable_characters()

    encoded = json.dumps([text], ensure_ascii=False).encode(encoding, standard_streams.HANDLER)

    symbols = {ord(symbol): ascii_ for symbol, ascii_ in standard_streams.ASCII_SYMBOLS.items()}
    decoded = json.loads(encoded.decode(encoding))
    assert [one.translate(symbols) for one in decoded] == [text.translate(symbols)]
