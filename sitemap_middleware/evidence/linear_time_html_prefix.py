"""Finds how much of an HTML text a parser can read in linear time.

A parser takes more than linear time if elements nest deeply, if formatting elements stay open (each block opens them
again), or if one element has very many attributes or options. Ordinary pages do none of this. So the tags are counted
first, and the parser gets the text up to the place where there are too many.

The count errs on the safe side: an element counts as closed only if it certainly is.
Most pages are so small that a few searches prove them safe, and their tags need not be counted one by one.
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
_CLOSED_ATTRIBUTE: Final = re.compile(
    r"[^\t\n\f\r />][^\t\n\f\r />=]*+"
    r"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+(?:\"[^\"]*+\"|'[^']*+'|[^\t\n\f\r >\"'][^\t\n\f\r >]*+))?+"
)
"""As `_ATTRIBUTE`, but without a quote that is not closed."""
_METADATA_TAG: Final = re.compile(
    rf"<(meta|link)(?=[\t\n\f\r />])((?:{_CLOSED_ATTRIBUTE.pattern}|[\t\n\f\r /]++)*+)", re.IGNORECASE
)
_METADATA_ATTRIBUTES: Final = frozenset(
    {"name", "content", "http-equiv", "rel", "href", "hreflang", "lang", "media", "type"}
)
"""Attributes that robots meta tags, refreshes and canonical links have."""
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


_FORMATTING_TAG: Final = re.compile(
    rf"<(?:{'|'.join(sorted(_FORMATTING_ELEMENTS))})(?=[\t\n\f\r />]|\Z)", re.IGNORECASE
)
_ROOT_TAG: Final = re.compile(r"<(?:html|body)(?=[\t\n\f\r />]|\Z)", re.IGNORECASE)
_LONG_TAG: Final = re.compile(rf"<[a-zA-Z][^>]{{{MAX_ATTRIBUTES - 1}}}")
"""What every tag with more than half of `MAX_ATTRIBUTES` matches, if no value in it contains a `>`: an attribute takes
two characters."""
_VALUE_WITH_END: Final = re.compile(r"=[\t\n\f\r ]*+(?:\"[^\">]*+>|'[^'>]*+>)")
"""What every quoted value that contains a `>` matches."""


def safe_length(text: str) -> tuple[int, str]:
    """How many characters the parser may read, and why not all of them, such as "has more than 50,000 tags", or ""."""
    return (len(text), "") if _is_certainly_safe(text) else _counted_length(text)


def metadata_tags(text: str) -> str:
    """The meta and link tags of a text that the parser may not read, with only the attributes that search engines read.

    Comments and scripts are not told from other text, so a tag in one counts, too: a page is not listed rather than a
    noindex missed.
    """
    tags = []
    for tag in _METADATA_TAG.finditer(text):
        attributes: dict[str, str] = {}
        for attribute in _CLOSED_ATTRIBUTE.findall(tag[2]):
            name = attribute.partition("=")[0].strip().lower()
            if name in _METADATA_ATTRIBUTES:
                attributes.setdefault(name, attribute)
        tags.append(f"<{tag[1]} {' '.join(attributes.values())}>")
    return "".join(tags)


def _is_certainly_safe(text: str) -> bool:
    """Whether a text cannot exceed a limit however its tags nest. A text that can may still be safe.

    It has at most as many tags as `<` characters, each of which may open an element that is never closed.
    """
    tags = text.count("<")
    return (
        tags < MAX_ELEMENT_DEPTH  # less than the other limits of tags and options
        and (
            _most_steps(tags, tags) <= MAX_PARSER_STEPS
            or _most_steps(tags, len(_FORMATTING_TAG.findall(text))) <= MAX_PARSER_STEPS
        )
        and len(_ROOT_TAG.findall(text)) <= 2  # so both together have at most `MAX_ATTRIBUTES`
        and _LONG_TAG.search(text) is None
        and _VALUE_WITH_END.search(text) is None
    )


def _most_steps(tags: int, formatting: int) -> int:
    """The steps of a parser if so many tags open an element each, the formatting elements first, and close none."""
    open_elements = tags * (tags + 3) // 2
    open_formatting = formatting * (2 * tags - formatting + 1) // 2
    return open_elements + _REOPENING_COST * open_formatting


def _counted_length(text: str) -> tuple[int, str]:
    """As `safe_length`, by counting each tag."""
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
