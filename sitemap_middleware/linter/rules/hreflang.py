"""Rules about links to versions in other languages (hreflang)."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family(
    "hreflang", "hreflang", "Versions of a page in other languages, by `xhtml:link`. Google reads them from sitemaps."
)

NAMESPACE: Final = FAMILY.error(
    "hreflang-namespace",
    "a wrong namespace for xhtml:link",
    "Google ignores links in any other namespace. The one that ends with `xhtml11_schema.html` is widely copied, "
    "and wrong.",
    'Write exactly `xmlns:xhtml="http://www.w3.org/1999/xhtml"`.',
)
ATTRIBUTES: Final = FAMILY.error(
    "hreflang-attributes",
    "an attribute is missing",
    'A version needs `rel="alternate"`, `hreflang` and `href`. Google ignores it otherwise.',
    "Write all three attributes.",
)
CODE: Final = FAMILY.error(
    "hreflang-code",
    "not a language",
    "The code is a language of ISO 639-1, if need be with a script of ISO 15924 and a region of ISO 3166-1: `en`, "
    "`en-GB`, `zh-Hans`, `es-419`; or `x-default`. A region alone is not valid. Google ignores other codes.",
    "Write the language first, and a hyphen before the region.",
)
REGION: Final = FAMILY.warning(
    "hreflang-region",
    "a region that Google ignores",
    "`EU`, `UN` and `UK` are not countries of ISO 3166-1. Great Britain is `GB`.",
    "Write `en-GB` for `en-UK`. For several countries, write the language alone.",
)
RELATIVE: Final = FAMILY.error(
    "hreflang-url",
    "not the URL of a page",
    "The URL of a version is absolute, of http or https. Search engines do not complete it.",
    "Write the whole URL.",
)
DUPLICATE: Final = FAMILY.warning(
    "hreflang-duplicate",
    "one language twice",
    "Two URLs have the same code, so none is the version of that language.",
    "Give each version a code of its own, such as `en-GB` and `en-US`.",
)
SELF_MISSING: Final = FAMILY.warning(
    "hreflang-self-missing",
    "the page itself is missing",
    'Each version lists itself and all others (Google, "Tell Google about localized versions of your page").',
    "Add a link with the URL and the language of the page itself.",
)
NO_RETURN: Final = FAMILY.error(
    "hreflang-no-return",
    "a version that does not link back",
    "Google ignores a pair of pages of which only one names the other.",
    "List the same versions at each of them.",
)
NOT_LISTED: Final = FAMILY.info(
    "hreflang-not-listed",
    "a version that is not listed",
    "The version is on the host of the page, and no document lists it. Then its page must link back by tags of its "
    "own.",
    "List each version as a URL, with the same versions.",
)
