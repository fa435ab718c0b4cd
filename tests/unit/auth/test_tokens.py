import pytest

from adapter.auth.tokens import bearer_token


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bEaReR abc", "abc"),
        ("  Bearer abc  ", "abc"),
        ("Bearer abc def", "abc"),
        ("Bearer", ""),
        ("Bearer ", ""),
        ("Bearer  abc", ""),
        ("Basic abc", ""),
        ("abc", ""),
        ("", ""),
    ],
)
def test_bearer_token_is_parsed_as_kubernetes_does(header: str, token: str):
    assert bearer_token(header) == token
