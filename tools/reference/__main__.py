"""Write ``docs/configuration.md``."""

from pathlib import Path

from tools.reference.page import page

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"

if __name__ == "__main__":
    PAGE.write_text(page())
