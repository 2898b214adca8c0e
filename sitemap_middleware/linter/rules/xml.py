"""Rules about the XML of a document."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("xml", "XML", "Whether a parser can read the document, and whether it knows the elements.")

NOT_WELL_FORMED: Final = FAMILY.error(
    "xml-not-well-formed",
    "not well-formed XML",
    "An XML parser must stop at the first mistake, so search engines refuse the document.",
    "Write the document with an XML library. Look at the line and the column of the message.",
)
AMPERSAND: Final = FAMILY.error(
    "xml-ampersand",
    "an `&` or an entity that XML does not know",
    "A bare `&` ends the parsing of the document. XML has only five named entities: `&amp;`, `&lt;`, `&gt;`, "
    "`&quot;` and `&apos;`. Others, such as `&nbsp;`, are of HTML.",
    "Write `&amp;` in place of `&`, and characters in place of entities of HTML.",
)
LEADING_CONTENT: Final = FAMILY.error(
    "xml-leading-content",
    "something stands before the XML declaration",
    "`<?xml …?>` must be the first bytes of the document. A blank line before it, often printed by a plugin or a "
    "template, makes search engines refuse the document.",
    "Find what prints the blank line or the text, and remove it.",
)
PREFIX_UNDECLARED: Final = FAMILY.error(
    "xml-prefix-undeclared",
    "a prefix without a namespace",
    "An element such as `<image:image>` needs the declaration of its prefix. Without it, parsers stop.",
    "Declare the namespace in the root element, such as "
    '`xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"`.',
)
DTD: Final = FAMILY.error(
    "xml-dtd",
    "a document type declaration",
    "A sitemap has no DTD. Parsers refuse documents that have one, because entities of a DTD can exhaust memory or "
    "read files. This command does not read it either.",
    "Remove `<!DOCTYPE …>`.",
)
TOO_COMPLEX: Final = FAMILY.error(
    "xml-too-complex",
    "too complex for a sitemap",
    "The document has elements in more than 32 levels, more than 20,000 elements in one entry, more than 1,000 "
    "different names, or a tag or comment longer than 1 MB. No sitemap needs that, so the rest was not read.",
    "Check what writes the document.",
)
ENCODING: Final = FAMILY.error(
    "xml-encoding",
    "not UTF-8",
    "The protocol requires UTF-8. Search engines refuse a document with other bytes, or read wrong URLs from it.",
    "Write the document in UTF-8, and percent-encode the URLs.",
)
ENCODING_DECLARED: Final = FAMILY.warning(
    "xml-encoding-declared",
    "another encoding than UTF-8 is declared",
    "The protocol requires UTF-8, whatever the characters are.",
    'Write `<?xml version="1.0" encoding="UTF-8"?>`.',
)
BOM: Final = FAMILY.info(
    "xml-bom",
    "a byte order mark",
    "The document starts with the bytes EF BB BF. XML allows them, but some parsers of sitemaps do not.",
    "Save the file as UTF-8 without a byte order mark.",
)
ROOT: Final = FAMILY.error(
    "xml-root",
    "not a sitemap",
    "The root element of a sitemap is `urlset` or `sitemapindex`. RSS and Atom feeds, and text files with a URL in "
    "each line, are accepted as sitemaps too.",
    "Check that the URL leads to the sitemap, and not to another document.",
)
NAMESPACE_MISSING: Final = FAMILY.error(
    "xml-namespace-missing",
    "no namespace",
    "The elements belong to the namespace of the protocol. Google reports a document without it as an error.",
    'Add `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"` to the root element.',
)
NAMESPACE_WRONG: Final = FAMILY.error(
    "xml-namespace-wrong",
    "a wrong namespace",
    "A namespace is a name, compared character by character. With `https:`, a slash at the end or another version "
    "it is another one, and Google reports an incorrect namespace.",
    'Write exactly `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`.',
)
NAMESPACE_OLD: Final = FAMILY.warning(
    "xml-namespace-old",
    "the namespace of an old version",
    "The document has the namespace of Google's own protocol of 2005 (0.84), which came before Sitemap 0.9.",
    'Write `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`.',
)
UNKNOWN_ELEMENT: Final = FAMILY.warning(
    "xml-unknown-element",
    "an element that the protocol does not have",
    "Search engines ignore it. Often its name is misspelled: names are in lower case.",
    "Correct the name, or remove the element.",
)
UNKNOWN_ATTRIBUTE: Final = FAMILY.warning(
    "xml-unknown-attribute",
    "an attribute that the protocol does not have",
    "Elements of Sitemap 0.9 have no attributes. Search engines ignore them.",
    "Remove the attribute.",
)
MISPLACED_ELEMENT: Final = FAMILY.error(
    "xml-misplaced-element",
    "an element in the wrong place",
    "`urlset` contains `url`, `sitemapindex` contains `sitemap`, and both contain `loc` and `lastmod`. Search "
    "engines do not find an element that stands elsewhere.",
    "Move the element to where the protocol has it. To name both pages and sitemaps, write two documents.",
)
REPEATED_ELEMENT: Final = FAMILY.error(
    "xml-repeated-element",
    "an element twice in one entry",
    "An entry has each element once. Which of two values a search engine takes is not defined.",
    "Write one `url` for each URL, and each value once.",
)
ELEMENT_ORDER: Final = FAMILY.info(
    "xml-element-order",
    "elements in another order",
    "The schema has the order `loc`, `lastmod`, `changefreq`, `priority`. Search engines accept any; validators do "
    "not.",
    "Write the elements in the order of the schema.",
)
STRAY_TEXT: Final = FAMILY.warning(
    "xml-stray-text",
    "text between the elements",
    "The text belongs to no element. Often it is the warning of a program, printed into its own output.",
    "Find what prints the text, and remove it.",
)
STYLESHEET: Final = FAMILY.info(
    "xml-stylesheet",
    "an XSLT stylesheet",
    "Search engines ignore `<?xml-stylesheet …?>`. Browsers are about to remove XSLT, so people will see plain XML.",
    "Nothing has to be done. For people, make a page of your own.",
)
