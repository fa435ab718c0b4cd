from datetime import timedelta

import pytest

from adapter.decoding.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("1m30s", 90), ("250ms", 0.25), ("1h", 3600), ("1.5s", 1.5), (".5s", 0.5), ("0", 0), ("2h45m", 9900)],
)
def test_go_durations_are_parsed(text: str, seconds: float):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["0s", "200ms", "1m30s", "2h45m", "87600h", "1s500us"])
def test_formatted_duration_is_parsed_back(text: str):
    assert format_duration(parse_duration(text)) == text


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1x", "1 s", "1s ", "٣s", "1e3s", ".s", "999999999999h"])
def test_other_texts_are_rejected(text: str):
    with pytest.raises(ValueError, match=r"duration|too long"):
        parse_duration(text)
