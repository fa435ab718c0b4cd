"""The cluster's word on whom to believe, through everything that may happen to it."""

import pytest

from adapter.auth.trust_store import Trust, Trusted, decode
from tests.control_plane.certificates import Authority

USERS, PROXIES = Authority.new("users"), Authority.new("proxies")

WHOLE = {
    "client-ca-file": USERS.pem,
    "requestheader-client-ca-file": PROXIES.pem,
    "requestheader-allowed-names": '["proxy"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def test_nobody_is_believed_before_it_was_read():
    trusted = Trusted()
    assert not trusted.is_known
    assert trusted.current.authorities == ""


def test_a_key_that_vanished_keeps_its_last_value():
    before = decode(WHOLE, Trust())
    assert decode({}, before) == before


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"client-ca-file": "not a certificate"}, id="text for a certificate"),
        pytest.param({"requestheader-allowed-names": "proxy"}, id="a word for a list"),
        pytest.param({"requestheader-allowed-names": '{"proxy": true}'}, id="an object for a list"),
        pytest.param({"requestheader-username-headers": "[1]"}, id="a number for a name"),
    ],
)
def test_what_cannot_be_read_is_refused_whole(broken: dict[str, str]):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the parser says
        decode(WHOLE | broken, Trust())


def test_listeners_hear_of_changes_and_only_of_changes():
    heard: list[Trust] = []
    trusted = Trusted()
    trusted.tell(heard.append)
    first = decode(WHOLE, Trust())
    trusted.replace(first)
    trusted.replace(decode(WHOLE, first))
    assert heard == [first]
