"""Finds how much of an HTML text a parser can read in linear time.

A parser takes more than linear time if elements nest deeply, if formatting elements stay open (each block opens them
again), or if one element has very many attributes or options. Ordinary pages do none of this. So the tags are counted
first, and the parser gets the text up to the place where there are too many.

The count errs on the safe side: an element counts as closed only if it certainly is.
"""

from __future__ import annotations

import re
from typing import Final

MAX_ELEMENT_DEPTH: Final = 1500
"""Elements open at one time."""
MAX_TAGS: Final = 50_000
"""Tags and comments of a page."""
MAX_ATTRIBUTES: Final = 500
"""Attributes of one element."""
MAX_OPTIONS: Final = 1500
"""`option` elements of a page."""
MAX_PARSER_STEPS: Final = 30_000_000
"""Open elements that a parser visits for all tags together, which takes about 50 ms."""

_REOPENING_COST: Final = 200
"""How many times as long it takes to open a formatting element again as to look past one."""

_TOKEN: Final = re.compile(
    r"""
      <!--(?:>|->|(?:[^-]++|-(?!-!?>))*+)
    | <(/?)([a-zA-Z][^\t\n\f\r />]*+)
      ((?:[\t\n\f\r /]++
        | [^\t\n\f\r />][^\t\n\f\r />=]*+
          (?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:"[^"]*+"|'[^']*+'|[^\t\n\f\r >"'][^\t\n\f\r >]*+))?+
      )*+)>?
    | <[!?/][^>]*+
    """,
    re.VERBOSE,
)
"""A comment, a tag with its attributes, or other markup, as WHATWG HTML, section 13.2.5, tokenizes it."""
_NAME: Final = re.compile(r"<(/?)([a-zA-Z][^\t\n\f\r />]*+)")
_ATTRIBUTE: Final = re.compile(
    r"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|[^\t\n\f\r >]++))?+"
)
_NON_NESTING_ELEMENTS: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup"}
)
"""Elements that do not nest: void elements, and those that the next one of their kind closes."""
_SELF_CLOSING_SIBLINGS: Final = frozenset({"a", "option"})
"""Elements that close an open one of the same kind."""
_FORMATTING_ELEMENTS: Final = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
_RAW_TEXT_END: Final = {
    name: re.compile(f"</{name}(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
"""Elements that contain only text, and the pattern of their end tag."""
_FOREIGN_ELEMENTS: Final = frozenset({"svg", "math"})
_INTEGRATION_POINTS: Final = frozenset(
    {"foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext"}
)
"""Foreign elements that may contain HTML."""
_FOREIGN_BREAKOUT_ELEMENTS: Final = frozenset(
    [
        "b",
        "big",
        "blockquote",
        "body",
        "br",
        "center",
        "code",
        "dd",
        "div",
        "dl",
        "dt",
        "em",
        "embed",
        "font",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "hr",
        "i",
        "img",
        "li",
        "listing",
        "menu",
        "meta",
        "nobr",
        "ol",
        "p",
        "pre",
        "ruby",
        "s",
        "small",
        "span",
        "strong",
        "strike",
        "sub",
        "sup",
        "table",
        "tt",
        "u",
        "ul",
        "var",
    ]
)
"""HTML elements that close the foreign element around them."""


def safe_length(text: str) -> tuple[int, str]:
    """How many characters the parser may read, and why not all of them: a phrase that follows "it", or empty."""
    tags = _OpenElements()
    at = count = 0
    while (token := (_TOKEN if tags.certain else _NAME).search(text, at)) is not None:
        at = token.end()
        count += 1
        if count > MAX_TAGS:
            return token.start(), f"has more than {MAX_TAGS:,} tags"
        name = token[2]
        if name is None:
            tags.stop_closing(token[0].startswith("<![CDATA["))
            continue
        name = name.lower()
        reason = tags.end(name) if token[1] else tags.start(name, token)
        if reason:
            return token.start(), reason
        if name in _RAW_TEXT_END and not token[1] and not tags.foreign and tags.certain:
            end = _RAW_TEXT_END[name].search(text, at)
            if end is None:
                break
            tags.stop_closing(name == "script" and "<!--" in text[at : end.start()])
            at = end.start()
    return len(text), ""


class _OpenElements:
    """The elements that may be open."""

    def __init__(self) -> None:
        self._open = [""]
        self._formatting = 0
        self._options = 0
        self._root_attributes = 0
        """Attributes of all html and body tags: the parser adds them to one element each."""
        self._steps = 0
        self.foreign = 0
        self.certain = True
        """Whether end tags, comments and scripts are what they look like. If not, all tags count as start tags."""

    def stop_closing(self, unusual: bool) -> None:
        """If the text is unusual, count no element as closed from here on."""
        if unusual:
            self.certain = False

    def start(self, name: str, token: re.Match[str]) -> str:
        """Count a start tag. Returns the reason if it exceeds a limit, else an empty string."""
        attributes = token[3] if self.certain else ""
        if len(attributes) > MAX_ATTRIBUTES or name in ("html", "body"):
            count = len(_ATTRIBUTE.findall(attributes))
            if name in ("html", "body"):
                self._root_attributes = count = count + self._root_attributes
            if count > MAX_ATTRIBUTES:
                return f"has an element with more than {MAX_ATTRIBUTES} attributes"
        if name == "option":
            self._options += 1
            if self._options > MAX_OPTIONS:
                return f"has more than {MAX_OPTIONS:,} options"
        top = self._open[-1]
        if self.foreign:
            self.stop_closing(name in _FOREIGN_BREAKOUT_ELEMENTS or top in _INTEGRATION_POINTS)
            if self.certain and attributes.endswith("/"):
                return ""
        if name not in _NON_NESTING_ELEMENTS and not (name in _SELF_CLOSING_SIBLINGS and name == top):
            self._open.append(name)
            self._formatting += name in _FORMATTING_ELEMENTS
            self.foreign += name in _FOREIGN_ELEMENTS
        return self._limit_reason()

    def end(self, name: str) -> str:
        """Count an end tag. Returns the reason if it exceeds a limit, else an empty string."""
        if self.certain and self._open[-1] == name:
            self._open.pop()
            self._formatting -= name in _FORMATTING_ELEMENTS
            self.foreign -= name in _FOREIGN_ELEMENTS
        elif self.foreign:
            self.certain = False
        return self._limit_reason()

    def _limit_reason(self) -> str:
        depth = len(self._open)
        self._steps += depth + _REOPENING_COST * self._formatting
        if depth > MAX_ELEMENT_DEPTH or self._steps > MAX_PARSER_STEPS:
            return "nests too many elements"
        return ""
