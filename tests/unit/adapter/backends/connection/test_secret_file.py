"""What is told holds no secret, and no part of one."""

import pytest

from adapter.backends.connection.secret_file import Hidden

HORSE = "correct-horse-battery-staple"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"who is {HORSE}?", "who is ***?"),
        (f"{HORSE}{HORSE}", "******"),
        (f"who is {HORSE}"[:20], "who is ***"),  # cut within it
        (f"who is {HORSE}"[:-1], "who is ***"),
        ("who is cor", "who is cor"),  # too short to tell
        ("nobody", "nobody"),
        ("", ""),
    ],
)
def test_a_secret_is_taken_out_also_where_the_text_was_cut_within_it(said: str, told: str) -> None:
    assert Hidden(HORSE).scrubbed(said) == told
