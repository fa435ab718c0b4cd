import pytest

from adapter.auth.trust_store import TrustedAuthorities, TrustStore, decode
from tests.control_plane.certificates import Authority

USERS, PROXIES = Authority.new("users"), Authority.new("proxies")

CONFIGMAP = {
    "client-ca-file": USERS.pem,
    "requestheader-client-ca-file": PROXIES.pem,
    "requestheader-allowed-names": '["proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def test_trust_store_is_empty_until_the_configmap_was_read():
    trust_store = TrustStore(lambda _: None)
    assert not trust_store.is_loaded
    assert trust_store.current.pem == ""


def test_missing_key_keeps_its_previous_value():
    previous = decode(CONFIGMAP, TrustedAuthorities())
    assert decode({}, previous) == previous


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param({"client-ca-file": "not a certificate"}, id="no PEM"),
        pytest.param({"requestheader-allowed-names": "proxy"}, id="no JSON"),
        pytest.param({"requestheader-allowed-names": '{"proxy": true}'}, id="JSON object"),
        pytest.param({"requestheader-username-headers": "[1]"}, id="list of numbers"),
    ],
)
def test_configmap_with_an_invalid_key_is_rejected(invalid: dict[str, str]):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's
        decode(CONFIGMAP | invalid, TrustedAuthorities())


def test_on_change_is_called_only_for_changes():
    changes: list[TrustedAuthorities] = []
    trust_store = TrustStore(changes.append)
    first = decode(CONFIGMAP, TrustedAuthorities())
    trust_store.replace(first)
    trust_store.replace(decode(CONFIGMAP, first))
    assert changes == [first]
