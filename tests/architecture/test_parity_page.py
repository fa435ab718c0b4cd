"""Every row of docs/hpa-parity.md names an existing test or vector file."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "hpa-parity.md"
VERDICTS = {"same", "different", "added"}

_TEST = re.compile(r"`(tests/[\w/.-]+\.py)(?:::(\w+))?`")
_VECTORS = re.compile(r"`vectors: ([\w/.,* -]+)`")


def rows():
    """Yield the rows of every table whose last column is "shown by"."""
    columns = None
    for line in PAGE.read_text().splitlines() if PAGE.exists() else ():
        if not line.startswith("|"):
            columns = None
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if columns is None:
            columns = cells
        elif columns[-1] == "shown by" and not set(line) <= set("|-: "):
            yield pytest.param(cells, id=cells[0][:60])


def test_page_has_rows():
    assert len(list(rows())) > 20


@pytest.mark.parametrize("cells", list(rows()))
def test_row_names_an_existing_test(cells):
    tests, vectors = _TEST.findall(cells[-1]), _VECTORS.findall(cells[-1])

    assert len(cells) == 3
    assert cells[1] in VERDICTS
    assert tests or vectors, f"{cells[-1]!r} names neither a test nor vectors"
    for path, name in tests:
        assert (ROOT / path).exists(), f"{path} does not exist"
        assert not name or f"def {name}(" in (ROOT / path).read_text(), f"{path} has no {name}"
    for names in vectors:
        for name in names.split(","):
            assert (ROOT / "tests" / "vectors" / name.strip()).exists(), f"vectors {name} do not exist"
