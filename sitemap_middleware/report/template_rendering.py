"""Renders the templates of the report to HTML, and formats numbers and times for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ..evidence.dates import w3c_from_timestamp

_FOLDER: Final = Path(__file__).parent

STYLE: Final = (_FOLDER / "style.css").read_bytes()


def number(value: float) -> str:
    """A number for people: with commas between thousands, and at most one decimal."""
    return f"{value:,.1f}".removesuffix(".0")


def percent(part: int, whole: int) -> str:
    """The share of a part in percent; 100 % and 0 % only if it is all or nothing."""
    if not whole:
        return "–"
    if part in (0, whole):
        return f"{100 * part // whole} %"
    share = min(max(100 * part / whole, 0.1), 99.9)
    return f"{share:.1f} %" if share < 10 or share > 99 else f"{share:.0f} %"


def time(seconds: float | None) -> str:
    """POSIX seconds as a time in UTC for people."""
    return "never" if seconds is None else moment(w3c_from_timestamp(int(seconds)))


def moment(w3c: str) -> str:
    """A W3C date or datetime for people."""
    return w3c.replace("T", " ").replace("Z", " UTC")


def web(url: str) -> str | None:
    """The URL, if it is one of the web, to which a link may lead; None for any other."""
    return url if url.startswith(("http://", "https://")) else None


def readable(path: str) -> str:
    """A percent-encoded path as browsers show it: letters that are not ASCII are decoded."""
    decoded = re.sub("(?:%[89A-Fa-f][0-9A-Fa-f])+", lambda found: unquote(found[0]), path)
    return decoded if decoded.isprintable() and "\ufffd" not in decoded else path


def code(text: str) -> Markup:
    """The text with what is between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 # escaped before


_templates: Final = Environment(
    loader=FileSystemLoader(_FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {function.__name__: function for function in (number, time, moment, percent, readable, web, code)}


def render(template: str, context: Mapping[str, Any]) -> str:
    """A page as a whole."""
    return _templates.get_template(template).render(context)
