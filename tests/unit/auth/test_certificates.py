"""Verification of client certificates against one CA bundle."""

from datetime import datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from adapter.auth.certificates import EMPTY_BUNDLE, CABundle, CertificateUntrusted
from tests.control_plane.certificates import DAY, TODAY, Authority, Credentials

CA, OTHER_CA = Authority.new("ca"), Authority.new("other")
BUNDLE = CABundle(CA.pem)
NOW = TODAY


@pytest.mark.parametrize(
    "authority",
    [
        pytest.param(CA, id="P-256"),
        pytest.param(Authority.new("p384", ec.generate_private_key(ec.SECP384R1())), id="P-384"),
        pytest.param(Authority.new("rsa", rsa.generate_private_key(65537, 2048)), id="RSA"),
    ],
)
def test_client_certificate_of_the_ca_is_trusted(authority: Authority) -> None:
    CABundle(authority.pem).verify(authority.client("alice").certificate, (), NOW)


def test_one_matching_ca_of_several_is_enough() -> None:
    CABundle(OTHER_CA.pem + "\n" + CA.pem).verify(CA.client("alice").certificate, (), NOW)


def test_intermediate_ca_may_be_sent_by_the_client_or_be_in_the_bundle() -> None:
    intermediate = CA.under("intermediate")
    leaf = intermediate.client("alice").certificate
    BUNDLE.verify(leaf, [intermediate.own.certificate], NOW)
    CABundle(intermediate.pem).verify(leaf, (), NOW)
    with pytest.raises(CertificateUntrusted):
        BUNDLE.verify(leaf, (), NOW)


@pytest.mark.parametrize(
    ("credentials", "now"),
    [
        pytest.param(OTHER_CA.client("alice"), NOW, id="other CA"),
        pytest.param(Authority.new("ca").client("alice"), NOW, id="CA of the same name with another key"),
        pytest.param(CA.client("alice"), NOW + 2 * DAY, id="expired"),
        pytest.param(CA.client("alice"), NOW - 2 * DAY, id="not valid yet"),
        pytest.param(CA.server("alice"), NOW, id="server certificate"),
    ],
)
def test_certificate_is_not_trusted(credentials: Credentials, now: datetime) -> None:
    with pytest.raises(CertificateUntrusted):
        BUNDLE.verify(credentials.certificate, (), now)


def test_empty_bundle_trusts_no_certificate() -> None:
    with pytest.raises(CertificateUntrusted, match="the CA bundle is empty"):
        EMPTY_BUNDLE.verify(CA.client("alice").certificate, (), NOW)


def test_bundles_overlap_if_they_share_a_ca() -> None:
    assert CABundle(CA.pem + OTHER_CA.pem).overlaps(BUNDLE)
    assert not CABundle(OTHER_CA.pem).overlaps(BUNDLE)
