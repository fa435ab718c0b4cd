"""Write `docs/configuration.md` afresh."""

from pathlib import Path

from tools.reference.page import page

PLACE = Path(__file__).parents[2] / "docs" / "configuration.md"

if __name__ == "__main__":
    PLACE.write_text(page())
