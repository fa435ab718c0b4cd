"""The HTML report: one file without references to others, with the styles and chart functions of the debugging page."""

import json
import re
from importlib.resources import files
from typing import Final

from adapter.simulation.report_view import Json

_STATIC: Final = files("adapter").joinpath("simulation", "static")
_PAGE: Final = files("adapter").joinpath("debug", "static")
_MODULE_WORDS: Final = re.compile(r"^(?:import [^;]*;\n|export (?=function|const|class))", re.MULTILINE)


def render_report(view: Json) -> str:
    """Return the report as HTML."""
    styles = [_PAGE.joinpath(name) for name in ("page.css", "chart.css")] + [_STATIC.joinpath("report.css")]
    scripts = [_PAGE.joinpath(name) for name in ("dom.js", "scale.js")] + [_STATIC.joinpath("report.js")]
    parts = {
        "STYLE": "\n".join(style.read_text(encoding="utf-8") for style in styles),
        # `<` is escaped, so that no name of a variant or metric can end the element.
        "DATA": json.dumps(view, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "SCRIPT": "\n".join(_MODULE_WORDS.sub("", script.read_text(encoding="utf-8")) for script in scripts),
    }
    template = _STATIC.joinpath("report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(STYLE|DATA|SCRIPT)\}\}", lambda match: parts[match[1]], template)
