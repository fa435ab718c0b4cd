"""The life of our own authority, told by the calendar."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.tls.authority import Keys, Lifetimes, advance, first_keys
from adapter.tls.secret import decode, encode

NAMES = ("steadyscale.steadyscale.svc", "steadyscale")
LIVES = Lifetimes(authority=timedelta(days=300), certificate=timedelta(days=30), overlap=timedelta(minutes=10))
START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = first_keys(NAMES, LIVES, START)


def is_trusted(keys: Keys, bundle: str) -> bool:
    """Say whether some authority of `bundle` signed what `keys` serve with."""
    leaf = x509.load_pem_x509_certificate(keys.serving.certificate.encode())
    for authority in x509.load_pem_x509_certificates(bundle.encode()):
        try:
            leaf.verify_directly_issued_by(authority)
        except ValueError:
            continue
        return True
    return False


def test_the_first_certificate_is_for_our_names_and_signed_by_our_authority():
    leaf = x509.load_pem_x509_certificate(FIRST.serving.certificate.encode())
    held = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(held.get_values_for_type(x509.DNSName)) == NAMES
    assert is_trusted(FIRST, FIRST.bundle)


def test_nothing_is_renewed_while_young():
    assert advance(FIRST, NAMES, LIVES, START + timedelta(days=19)) == FIRST


def test_a_certificate_is_renewed_when_two_thirds_of_its_life_are_over():
    renewed = advance(FIRST, NAMES, LIVES, START + timedelta(days=21))
    assert renewed.serving != FIRST.serving
    assert renewed.bundle == FIRST.bundle


def test_a_certificate_is_renewed_when_it_lacks_a_name():
    renewed = advance(FIRST, (*NAMES, "another.svc"), LIVES, START)
    assert renewed.serving != FIRST.serving


def test_an_authority_is_announced_then_signs_then_is_forgotten():
    now = START + timedelta(days=201)
    announced = advance(FIRST, NAMES, LIVES, now)
    assert announced.serving == FIRST.serving
    assert announced.bundle.count("BEGIN CERTIFICATE") == 2

    assert is_trusted(advance(announced, NAMES, LIVES, now + timedelta(minutes=9)), FIRST.bundle)

    signing = advance(announced, NAMES, LIVES, now + timedelta(minutes=10))
    assert not is_trusted(signing, FIRST.bundle)
    assert is_trusted(signing, announced.bundle)
    assert is_trusted(FIRST, signing.bundle)  # a replica that is behind is still believed

    forgotten = advance(signing, NAMES, LIVES, now + timedelta(minutes=20))
    assert forgotten.bundle == signing.authority.certificate


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=60), min_size=5, max_size=40))
def test_whatever_the_pace_what_is_served_was_trusted_one_step_before_and_never_expired(days: list[int]):
    keys, now = FIRST, START
    for wait in days:
        now += timedelta(hours=wait * 4)
        stepped = advance(keys, NAMES, LIVES, now)
        assert is_trusted(stepped, keys.bundle)
        assert is_trusted(keys, stepped.bundle)
        assert now < x509.load_pem_x509_certificate(stepped.serving.certificate.encode()).not_valid_after_utc
        keys = stepped


def test_what_a_secret_keeps_comes_back_the_same():
    announced = advance(FIRST, NAMES, LIVES, START + timedelta(days=201))
    signing = advance(announced, NAMES, LIVES, START + timedelta(days=202))
    for keys in (FIRST, announced, signing):
        assert decode(encode(keys, {"metadata": {"name": "it"}})) == keys


def test_a_secret_without_keys_holds_none():
    assert decode({"metadata": {}, "data": {"tls.crt": ""}}) is None
