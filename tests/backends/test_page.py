"""The page of backends says of each what it was really tried on, and lists every case that was left out."""

import re
from pathlib import Path

import pytest

from adapter.backends.configuration import backend_kinds
from tests.backends.contract import every_peer

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "backends" / "README.md"


def rows(columns: str) -> list[list[str]]:
    """Give the rows of the table that has these columns."""
    _, _, below = PAGE.read_text().partition(f"{columns}\n")
    table = below.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("|")]


def test_every_kind_has_a_peer_a_row_a_page_and_an_example() -> None:
    told = {re.search(r"`(\w+)`", row[0])[1]: row for row in rows("| backend | reads | library | verified against |")}  # type: ignore[index]
    peers = {peer.kind: peer for peer in every_peer().values()}
    assert set(told) == set(backend_kinds()) == set(peers)
    assert {kind: row[3] for kind, row in told.items()} == {kind: peer.verified_against for kind, peer in peers.items()}
    for kind in set(told) - {"prometheus"}:  # it was there before, and its example is queue-consumers.yaml
        assert (PAGE.parent / f"{kind}.md").exists()
        assert (ROOT / "manifests" / "examples" / f"{kind}.yaml").exists()


def test_every_case_that_is_left_out_is_listed_with_its_reason() -> None:
    declared = sorted(
        (peer.kind, str(case), why) for peer in every_peer().values() for case, why in peer.not_meant.items()
    )
    listed = sorted((kind.strip("`"), case, why) for kind, case, why in rows("| backend | case | why |"))
    assert listed == declared


@pytest.mark.parametrize("name", list(every_peer()))
def test_a_reason_is_a_reason(name: str) -> None:
    assert [why for why in every_peer()[name].not_meant.values() if len(why) < 15] == []
