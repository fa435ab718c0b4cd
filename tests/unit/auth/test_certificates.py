"""Whom an authority vouches for, apart from what a handshake already found out."""

from datetime import datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from adapter.auth.certificates import NOBODY, Authorities, NotOurs
from tests.control_plane.certificates import DAY, TODAY, Authority, Credentials

OURS, THEIRS = Authority.new("ours"), Authority.new("theirs")
TRUSTED = Authorities(OURS.pem)
NOW = TODAY


@pytest.mark.parametrize(
    "authority",
    [
        pytest.param(OURS, id="an elliptic key"),
        pytest.param(Authority.new("p384", ec.generate_private_key(ec.SECP384R1())), id="a longer one"),
        pytest.param(Authority.new("rsa", rsa.generate_private_key(65537, 2048)), id="RSA, as most clusters have"),
    ],
)
def test_a_client_of_ours_is_vouched_for(authority: Authority) -> None:
    Authorities(authority.pem).verify(authority.client("alice").certificate, (), NOW)


def test_one_of_several_is_enough() -> None:
    Authorities(THEIRS.pem + "\n" + OURS.pem).verify(OURS.client("alice").certificate, (), NOW)


def test_what_is_between_may_be_sent_along_or_be_trusted_itself() -> None:
    between = OURS.under("between")
    leaf = between.client("alice").certificate
    TRUSTED.verify(leaf, [between.own.certificate], NOW)
    Authorities(between.pem).verify(leaf, (), NOW)
    with pytest.raises(NotOurs):
        TRUSTED.verify(leaf, (), NOW)


@pytest.mark.parametrize(
    ("shown", "when"),
    [
        pytest.param(THEIRS.client("alice"), NOW, id="another authority's"),
        pytest.param(
            Authority.new("ours").client("alice"), NOW, id="an authority's of the same name, with another key"
        ),
        pytest.param(OURS.client("alice"), NOW + 2 * DAY, id="one of ours that has expired"),
        pytest.param(OURS.client("alice"), NOW - 2 * DAY, id="one of ours that is not valid yet"),
        pytest.param(OURS.server("alice"), NOW, id="one of ours that is for servers"),
    ],
)
def test_it_does_not_vouch_for(shown: Credentials, when: datetime) -> None:
    with pytest.raises(NotOurs):
        TRUSTED.verify(shown.certificate, (), when)


def test_nobody_vouches_for_nobody() -> None:
    with pytest.raises(NotOurs, match="no authority is known"):
        NOBODY.verify(OURS.client("alice").certificate, (), NOW)


def test_sets_share_an_authority_or_they_do_not() -> None:
    assert Authorities(OURS.pem + THEIRS.pem).shares_with(TRUSTED)
    assert not Authorities(THEIRS.pem).shares_with(TRUSTED)
