"""Secrets are removed from messages in whatever form a server repeats them."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.backends.connection.secret_file import Redactor, redacted_error
from adapter.errors import BackendRejected

ENCODINGS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON without ASCII escapes": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON with escaped slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "JSON of Go": lambda text: re.sub("[<>&]", lambda each: f"\\u{ord(each[0]):04x}", json.dumps(text)[1:-1]),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "Python": lambda text: repr(text)[1:-1],
    "Python bytes": lambda text: repr(text.encode())[2:-1],
    "path segment": lambda text: quote(text, safe=""),
    "path": quote,
    "form": quote_plus,
    "lower case percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML": html.escape,
    "HTML numbers": lambda text: "".join(f"&#{ord(each)};" for each in text),
    "XML hexadecimal": lambda text: "".join(f"&#x{ord(each):X};" for each in text),
    "SQL": lambda text: text.replace("'", "''"),
    "CSV": lambda text: text.replace('"', '""'),
    "backslash before quotes": lambda text: text.replace("'", "\\'"),
}
DEPEND_ON_THE_WHOLE_TEXT = {"Python", "Python bytes"}
BASE64: dict[str, Callable[[str], str]] = {
    "alone": lambda text: base64.b64encode(text.encode()).decode(),
    "in a pair": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "for URLs": lambda text: base64.urlsafe_b64encode(f"a:{text}:b".encode()).decode(),
}
EXAMPLES = ('pa"ss\\word', "a'b\"c/d+e f%g&h<i>", "naïve-ключ-😀-pass", "\\\\\\\"\"\"'''", "%41%42+%20")
PRINTABLE = st.characters(min_codepoint=32, exclude_categories=["C", "Zl", "Zp"])
SECRETS = st.text(PRINTABLE | st.sampled_from("\"'\\/%&+<> "), min_size=6, max_size=40)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("secret", EXAMPLES)
def test_encoded_secret_is_removed(encoding: str, secret: str) -> None:
    text = f"token [{ENCODINGS[encoding](secret)}] is invalid"
    assert Redactor(secret).redact(text) == "token [***] is invalid"


@settings(deadline=None, max_examples=200)
@given(SECRETS, st.lists(st.sampled_from(sorted(ENCODINGS)), min_size=1, max_size=2), st.data())
def test_any_secret_in_any_encoding_is_removed_even_if_it_is_cut_off(
    secret: str, names: list[str], data: st.DataObject
) -> None:
    if names == ["JSON in JSON"] * 2:
        return  # four layers

    def encode(text: str) -> str:
        for name in names:
            text = ENCODINGS[name](text)
        return text

    text = f"\n{encode(secret)}\n"
    assert Redactor(secret).redact(text) == "\n***\n"
    if not DEPEND_ON_THE_WHOLE_TEXT & set(names):
        cut = data.draw(st.integers(1 + len(encode(secret[:4])), len(text) - 1))
        assert Redactor(secret).redact(text[:cut]) == "\n***"


@settings(deadline=None, max_examples=200)
@given(st.text(PRINTABLE, min_size=12, max_size=40), st.sampled_from(sorted(BASE64)))
def test_base64_of_any_secret_is_removed(secret: str, name: str) -> None:
    redacted = Redactor(secret).redact(f"\n{BASE64[name](secret)}\n")
    assert "***" in redacted
    assert len(redacted) < 20  # characters that also depend on the text around the secret remain


@settings(deadline=None, max_examples=200)
@given(st.lists(st.text('ab"\\', min_size=4, max_size=12), min_size=1, max_size=4))
def test_overlapping_secrets_are_removed_completely(secrets: list[str]) -> None:
    text = "".join(secrets)
    error = BackendRejected(text, detail=json.dumps(text))
    redacted = redacted_error(error, [Redactor(secret) for secret in secrets])
    for secret in secrets:
        assert secret not in redacted.message
        assert json.dumps(secret)[1:-1] not in redacted.detail


def test_secrets_that_overlap_in_the_text_leave_no_part() -> None:
    error = redacted_error(BackendRejected("<abcdefghi>"), [Redactor("abcdef"), Redactor("defghi")])
    assert error.message == "<***>"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ('{"token":"pa\\"ss\\\\wo', '{"token":"***'),
        ("token=pa%22ss%5", "token=***"),
        ("token=pa&quot;ss&#9", "token=***"),
        ("token=pa\\u0022ss\\u00", "token=***"),
    ],
)
def test_secret_is_removed_from_a_text_that_was_cut_within_an_escape_sequence(text: str, redacted: str) -> None:
    assert Redactor('pa"ss\\word').redact(text) == redacted


@pytest.mark.parametrize(
    "text", ["", "plain", "50% of a & b", 'C:\\user\\x "a" \\', "a+b=c %zz &amp; &#12 \\u12", "''\"\""]
)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert Redactor("correct-horse", 'pa"ss\\word').redact(text) == text
