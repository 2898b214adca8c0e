"""Nesting: how much of an HTML text a parser reads in a time that grows with its length alone.

A parser's time grows faster than the text where elements nest deeply, where formatting
elements stay open (each block opens them again), and where one element has very many
attributes or options. Pages that people read do none of this. So the tags are counted
first, and the parser gets the text up to the place where there are too many.

The count errs in one direction: an element counts as closed only if it certainly is.
"""

from __future__ import annotations

import re
from typing import Final

MAX_ELEMENT_DEPTH: Final = 1500
MAX_TAGS: Final = 50_000
"""Tags that open or close an element, and comments."""
MAX_ATTRIBUTES: Final = 500
"""Of one element."""
MAX_OPTIONS: Final = 1500
MAX_PARSER_STEPS: Final = 30_000_000
"""Open elements that a parser looks through, all tags together: about 50 ms."""

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
"""A comment, a tag with its attributes, or anything else that is no text, as WHATWG HTML tokenizes it."""
_NAME: Final = re.compile(r"<(/?)([a-zA-Z][^\t\n\f\r />]*+)")
_ATTRIBUTE: Final = re.compile(
    r"[^\t\n\f\r />][^\t\n\f\r />=]*+(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|[^\t\n\f\r >]++))?+"
)
_NON_NESTING_ELEMENTS: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
    | {"p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup"}
)
"""Elements that nest nothing: void ones, and those that the next of their kind ends."""
_SELF_CLOSING_SIBLINGS: Final = frozenset({"a", "option"})
"""Elements that end the one of their kind they would stand in."""
_FORMATTING_ELEMENTS: Final = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"}
)
_RAW_TEXT_END: Final = {
    name: re.compile(f"</{name}(?=[\t\n\f\r />])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
"""Elements that hold text alone, and what ends them."""
_FOREIGN_ELEMENTS: Final = frozenset({"svg", "math"})
_INTEGRATION_POINTS: Final = frozenset(
    {"foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext"}
)
"""Foreign elements in which HTML may stand."""
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
"""Elements that end the foreign one they stand in."""


def safe_length(text: str) -> tuple[int, str]:
    """How many characters a parser may be given; and what comes then, in words that follow "it", if that is not all."""
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
    """The elements that are open, as far as is certain that the others are closed."""

    def __init__(self) -> None:
        self._open = [""]
        self._formatting = 0
        self._options = 0
        self._of_roots = 0
        """Attributes of html and body, which gather those of all such tags."""
        self._work = 0
        self.foreign = 0
        self.certain = True
        """Whether closing tags, comments and scripts are what they seem to be. If not, all tags count as opening."""

    def stop_closing(self, strange: bool) -> None:
        """Take nothing for closed any more, if the text is strange."""
        if strange:
            self.certain = False

    def start(self, name: str, token: re.Match[str]) -> str:
        """An element begins; why it is one too many, if it is."""
        attributes = token[3] if self.certain else ""
        if len(attributes) > MAX_ATTRIBUTES or name in ("html", "body"):
            count = len(_ATTRIBUTE.findall(attributes))
            if name in ("html", "body"):
                self._of_roots = count = count + self._of_roots
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
        return self._too_much()

    def end(self, name: str) -> str:
        """An element ends; why this is one too many, if it is."""
        if self.certain and self._open[-1] == name:
            self._open.pop()
            self._formatting -= name in _FORMATTING_ELEMENTS
            self.foreign -= name in _FOREIGN_ELEMENTS
        elif self.foreign:
            self.certain = False
        return self._too_much()

    def _too_much(self) -> str:
        depth = len(self._open)
        self._work += depth + _REOPENING_COST * self._formatting
        if depth > MAX_ELEMENT_DEPTH or self._work > MAX_PARSER_STEPS:
            return "nests too many elements"
        return ""
