"""Redaction of secrets."""

import pytest

from adapter.backends.connection.secret_file import Redactor

SECRET = "correct-horse-battery-staple"  # noqa: S105 - a made-up one


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        pytest.param(f"unknown token {SECRET}?", "unknown token ***?", id="once"),
        pytest.param(f"{SECRET}{SECRET}", "******", id="twice"),
        pytest.param(f"token {SECRET}"[:20], "token ***", id="cut in the middle"),
        pytest.param(f"token {SECRET}"[:-1], "token ***", id="cut before its last character"),
        pytest.param("token cor", "token cor", id="cut after a few characters"),
        pytest.param("no secret", "no secret", id="none"),
        pytest.param("", "", id="empty"),
    ],
)
def test_secret_is_removed_even_if_the_text_was_cut_within_it(text: str, redacted: str) -> None:
    assert Redactor(SECRET).redact(text) == redacted


def test_only_the_latest_secrets_are_redacted() -> None:
    redactor = Redactor()
    for number in range(100):
        redactor.add(f"secret-{number:03}")
    assert redactor.redact("secret-099 secret-084 secret-001") == "*** *** secret-001"
