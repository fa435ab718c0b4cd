"""The tables of docs/backends/README.md against the peers of the contract tests."""

import re
from pathlib import Path

import pytest

from adapter.backends.configuration import backend_kinds
from tests.backends.contract import all_peers

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "backends" / "README.md"


def rows(columns: str) -> list[list[str]]:
    """Return the rows of the table with these columns."""
    _, _, below = PAGE.read_text().partition(f"{columns}\n")
    table = below.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table if line.startswith("|")]


def test_every_kind_has_a_peer_a_row_a_page_and_an_example() -> None:
    columns = "| backend | reads | library | verified against |"
    listed = {re.search(r"`(\w+)`", row[0])[1]: row for row in rows(columns)}  # type: ignore[index]
    peers = {peer.kind: peer for peer in all_peers().values()}
    assert set(listed) == set(backend_kinds()) == set(peers)
    assert {kind: row[3] for kind, row in listed.items()} == {
        kind: peer.verified_against for kind, peer in peers.items()
    }
    for kind in set(listed) - {"prometheus"}:  # documented in docs/prometheus.md; its example is queue-consumers.yaml
        assert (PAGE.parent / f"{kind}.md").exists()
        assert (ROOT / "manifests" / "examples" / f"{kind}.yaml").exists()


def test_every_inapplicable_case_is_listed_with_its_reason() -> None:
    declared = sorted(
        (peer.kind, str(case), reason) for peer in all_peers().values() for case, reason in peer.inapplicable.items()
    )
    listed = sorted((kind.strip("`"), case, reason) for kind, case, reason in rows("| backend | case | why |"))
    assert listed == declared


@pytest.mark.parametrize("name", list(all_peers()))
def test_every_reason_is_a_sentence(name: str) -> None:
    assert [reason for reason in all_peers()[name].inapplicable.values() if len(reason) < 15] == []
