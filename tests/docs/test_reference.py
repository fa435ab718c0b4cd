"""``docs/configuration.md`` is up to date, describes every setting, and prints the defaults of the running code."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, get_args, get_origin

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

from adapter.backends.configuration import BackendEntry
from adapter.config.model import Config
from adapter.decoding.duration import parse_duration
from autoscaler.flags import FLAGS
from autoscaler.types.record import Record
from tests.control_plane import programs
from tools.reference import PAGE, UPSTREAM, page

_SECTION = re.compile(r"^## `?([^`\n]+)`?$", re.MULTILINE)
_ROW = re.compile(r"^\| `(?P<key>\w+)` \| (?P<default>[^|]*) \| ", re.MULTILINE)


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run `make manifests`"


def test_every_setting_has_a_description() -> None:
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [row for row in rows if not re.split(r"(?<!\\)\|", row)[-2 if row.count("|") < 5 else -3].strip()] == []


def records(record: type[Record], path: str = "Top-level keys") -> Iterator[tuple[str, type[Record]]]:
    """Yield the record of each section, by its heading; found in the annotations, independently of the generator."""
    yield path, record
    for field in fields(record):
        origin, args = get_origin(field.type), get_args(field.type)
        suffix = "[]" if origin is tuple else ".NAME" if origin is not None and origin in {dict, Mapping} else ""
        for inner in (field.type, *args):
            if isinstance(inner, type) and issubclass(inner, Record):
                start = "" if record is Config else f"{path}."
                yield from records(inner, f"{start}{field.encode_name}{suffix}")


def sections() -> Iterator[tuple[str, type[Record]]]:
    yield from records(Config)
    for kind in fields(BackendEntry):
        for settings in get_args(kind.type):
            if parameters := getattr(settings, "parameters_type", None):
                yield from records(parameters, f"rules[].parameters ({kind.encode_name})")


def parsed(text: str, kind: type[Any]) -> object:
    """Parse a printed default as the configuration file is parsed."""
    if kind is timedelta:
        return parse_duration(text)
    if kind is bool:
        return {"true": True, "false": False}[text]
    return kind(text)


def test_printed_defaults_are_those_of_the_records() -> None:
    headings = list(_SECTION.finditer(page()))
    ends = [*(heading.start() for heading in headings[1:]), None]
    printed = {
        heading[1]: {row["key"]: row["default"].strip() for row in _ROW.finditer(page()[heading.end() : end])}
        for heading, end in zip(headings, ends, strict=True)
    }
    compared = 0
    for heading, record in sections():
        if not printed[heading]:
            continue  # the section refers to an earlier one with the same keys
        assert set(printed[heading]) == {field.encode_name for field in fields(record)}, heading
        for field in fields(record):
            text, where = printed[heading][field.encode_name], f"{heading}: {field.encode_name}"
            default = field.default if field.default_factory is NODEFAULT else field.default_factory()
            if default is NODEFAULT:
                assert text == "required", where
            elif isinstance(default, timedelta | bool | int | float | Enum) or (isinstance(default, str) and default):
                assert parsed(text.strip("`"), type(default)) == default, where
                compared += 1
            else:
                assert text == "", where
    assert compared > 100


def test_shared_flags_exist() -> None:
    assert UPSTREAM.keys() <= {flag.name for flag in FLAGS}


@pytest.mark.apiserver
def test_printed_upstream_defaults_are_those_of_kube_controller_manager() -> None:
    manager = programs.require()["kube-controller-manager"]
    help_text = subprocess.run([manager, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout  # noqa: S603
    for name, default in UPSTREAM.items():
        (flag_help,) = re.findall(rf"\n\s+--{name}\b(?!-)([\s\S]*?)(?=\n\s+--|\n\n)", help_text)
        found = re.search(r'\(default "?([^")]*)"?\)', flag_help)
        assert (found[1] if found else "") == default, name
