"""The rotation of the self-managed CA and its certificates over time."""

from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.config.model import SelfManagedTls
from adapter.tls.authority import ManagedCertificates, create_certificates, dns_names, rotate
from adapter.tls.secret import decode, encode

SETTINGS = SelfManagedTls(
    namespace="steadyscale", ca_lifetime=timedelta(days=300), certificate_lifetime=timedelta(days=30)
)
START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = create_certificates(SETTINGS, START)


def is_trusted(certificates: ManagedCertificates, bundle: str) -> bool:
    """Return whether a CA of the bundle signed the serving certificate."""
    leaf = x509.load_pem_x509_certificate(certificates.serving.certificate.encode())
    for ca in x509.load_pem_x509_certificates(bundle.encode()):
        try:
            leaf.verify_directly_issued_by(ca)
        except ValueError:
            continue
        return True
    return False


def test_first_certificate_has_the_dns_names_and_is_signed_by_the_ca():
    leaf = x509.load_pem_x509_certificate(FIRST.serving.certificate.encode())
    alternative_names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(alternative_names.get_values_for_type(x509.DNSName)) == dns_names(SETTINGS)
    assert is_trusted(FIRST, FIRST.bundle)


def test_certificates_are_unchanged_before_their_renewal_is_due():
    assert rotate(FIRST, SETTINGS, START + timedelta(days=19)) == FIRST


def test_serving_certificate_is_renewed_after_two_thirds_of_its_lifetime():
    renewed = rotate(FIRST, SETTINGS, START + timedelta(days=21))
    assert renewed.serving != FIRST.serving
    assert renewed.bundle == FIRST.bundle


def test_serving_certificate_without_a_dns_name_is_renewed():
    renewed = rotate(FIRST, msgspec.structs.replace(SETTINGS, cluster_domain="another.local"), START)
    assert renewed.serving != FIRST.serving


def test_next_ca_is_published_then_signs_then_the_old_one_is_removed():
    now = START + timedelta(days=201)
    published = rotate(FIRST, SETTINGS, now)
    assert published.serving == FIRST.serving
    assert published.bundle.count("BEGIN CERTIFICATE") == 2

    assert is_trusted(rotate(published, SETTINGS, now + timedelta(minutes=9)), FIRST.bundle)

    switched = rotate(published, SETTINGS, now + timedelta(minutes=10))
    assert not is_trusted(switched, FIRST.bundle)
    assert is_trusted(switched, published.bundle)
    assert is_trusted(FIRST, switched.bundle)  # a replica that still serves the old certificate

    removed = rotate(switched, SETTINGS, now + timedelta(minutes=20))
    assert removed.bundle == switched.ca.certificate


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=60), min_size=5, max_size=40))
def test_served_certificate_is_trusted_by_the_bundles_before_and_after_each_step_and_never_expired(days: list[int]):
    current, now = FIRST, START
    for wait in days:
        now += timedelta(hours=wait * 4)
        rotated = rotate(current, SETTINGS, now)
        assert is_trusted(rotated, current.bundle)
        assert is_trusted(current, rotated.bundle)
        assert now < x509.load_pem_x509_certificate(rotated.serving.certificate.encode()).not_valid_after_utc
        current = rotated


def test_encoded_secret_decodes_to_the_same_certificates():
    published = rotate(FIRST, SETTINGS, START + timedelta(days=201))
    switched = rotate(published, SETTINGS, START + timedelta(days=202))
    for certificates in (FIRST, published, switched):
        assert decode(encode(certificates, {"metadata": {"name": "serving"}})) == certificates


def test_empty_secret_decodes_to_none():
    assert decode({"metadata": {}, "data": {"tls.crt": ""}}) is None
