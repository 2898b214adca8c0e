"""Rules about `<loc>`."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("loc", "loc", "The URLs that are listed.")

MISSING: Final = FAMILY.error(
    "loc-missing",
    "no URL",
    "The entry has no `loc`, or an empty one. Search engines ignore the entry.",
    "Give each entry its URL, or remove it.",
)
RELATIVE: Final = FAMILY.error(
    "loc-relative",
    "not an absolute URL",
    "A URL in a sitemap has a scheme and a host. Search engines do not complete it.",
    "Write the whole URL, such as `https://example.com/about`. Most generators need an option with the site's URL.",
)
SCHEME: Final = FAMILY.error(
    "loc-scheme",
    "neither http nor https",
    "Search engines list pages that they get by http or https.",
    "Remove the entry, or correct its scheme.",
)
INVALID: Final = FAMILY.error(
    "loc-invalid",
    "not a URL",
    "The host or the port is not valid, so no page can be there.",
    "Correct the URL.",
)
TOO_LONG: Final = FAMILY.error(
    "loc-too-long",
    "2,048 characters or more",
    "The protocol requires less than 2,048 characters. Search engines ignore longer URLs.",
    "Shorten the URL. A search page with many parameters does not belong in a sitemap.",
)
BLANK: Final = FAMILY.error(
    "loc-blank",
    "a blank in the URL",
    "A URL has no blanks, tabs or line breaks. Search engines report an invalid URL.",
    "Write `%20`, or join the lines.",
)
CREDENTIALS: Final = FAMILY.error(
    "loc-credentials",
    "a user name or password",
    "Everybody can read the sitemap. Search engines do not request such URLs.",
    "Remove the part before `@`, and change the password.",
)
LOCAL: Final = FAMILY.error(
    "loc-local",
    "a host that only this machine or network knows",
    "`localhost` and private addresses lead nowhere on the web. The sitemap was made with the settings of a "
    "development machine, or behind a proxy that hides the host.",
    "Set the site's public URL in the generator.",
)
OTHER_HOST: Final = FAMILY.warning(
    "loc-other-host",
    "a URL on another host",
    "Search engines ignore URLs on other hosts, unless they know that both hosts have the same owner: by Search "
    "Console, or by a `Sitemap:` line in the robots.txt of the other host.",
    "List the page in the sitemap of its own host.",
)
OUTSIDE_FOLDER: Final = FAMILY.info(
    "loc-outside-folder",
    "a URL outside of the folder of the sitemap",
    "By the protocol a sitemap lists URLs in its own folder and below. Search engines accept others if robots.txt "
    "names the sitemap or its index.",
    "Serve the sitemap in the top folder of the site, or name it in robots.txt.",
)
FRAGMENT: Final = FAMILY.warning(
    "loc-fragment",
    "a fragment",
    "Crawlers drop what follows `#`, so several such URLs are one page.",
    "List the page once, without the fragment.",
)
DOUBLE_ESCAPED: Final = FAMILY.warning(
    "loc-double-escaped",
    "escaped twice",
    "The URL contains `&amp;` after the XML was read: the document has `&amp;amp;`. The page gets other parameters "
    "than those meant.",
    "Escape the URL once, when the XML is written.",
)
DOUBLE_ENCODED: Final = FAMILY.warning(
    "loc-double-encoded",
    "percent-encoded twice",
    "`%2520` is an encoded `%20`. The page gets the text `%20` in place of a blank.",
    "Encode the URL once.",
)
NOT_ENCODED: Final = FAMILY.warning(
    "loc-not-encoded",
    "characters that are not ASCII",
    "URLs are ASCII (RFC 3986): others are percent-encoded as UTF-8, and in the host they are written in Punycode. "
    "Google and Bing read them all the same; other programs do not.",
    "Percent-encode the path, and write the host in Punycode, such as `xn--mnchen-3ya.example`.",
)
UNSAFE_CHARACTER: Final = FAMILY.warning(
    "loc-unsafe-character",
    "a character that URLs do not have",
    'The characters `"`, `<`, `>`, `\\`, `^`, `` ` ``, `{`, `|`, `}` and control characters are percent-encoded '
    "(RFC 3986). Programs differ in what they make of them.",
    "Percent-encode the character, or correct the URL.",
)
PERCENT_INVALID: Final = FAMILY.warning(
    "loc-percent-invalid",
    "a percent sign that encodes nothing",
    "`%` is followed by two hexadecimal digits. Servers refuse other URLs, or read them differently.",
    "Write `%25` for a percent sign.",
)
PLACEHOLDER: Final = FAMILY.warning(
    "loc-placeholder",
    "a placeholder",
    "The URL contains the name of a parameter, such as `{id}`, `<id>` or `[slug]`, in place of its value.",
    "List the values of the parameter, or leave the route out.",
)
SESSION_ID: Final = FAMILY.warning(
    "loc-session-id",
    "the id of a session",
    "Each visitor has another URL, so search engines find the same page again and again.",
    "List the URL without the id.",
)
TRACKING: Final = FAMILY.warning(
    "loc-tracking",
    "a tracking parameter",
    "Parameters such as `utm_source` and `gclid` count visits from campaigns. The URL competes with the page's own.",
    "List the URL without the parameter.",
)
DOT_SEGMENT: Final = FAMILY.warning(
    "loc-dot-segment",
    "`.` or `..` in the path",
    "Crawlers resolve such a path before they request it, so another URL is requested than the one listed.",
    "Write the resolved path.",
)
DOUBLE_SLASH: Final = FAMILY.info(
    "loc-double-slash",
    "two slashes in the path",
    "Often a base URL that ends with a slash was joined with a path that starts with one. For crawlers it is "
    "another URL.",
    "Remove one of the slashes.",
)
HOST_CASE: Final = FAMILY.info(
    "loc-host-case",
    "upper case in the scheme or host",
    "Both are the same in lower case, and crawlers write them so.",
    "Write scheme and host in lower case.",
)
DEFAULT_PORT: Final = FAMILY.info(
    "loc-default-port",
    "the default port of the scheme",
    "`:80` with http and `:443` with https lead to the same page as the URL without them. Often a proxy has added it.",
    "Remove the port.",
)
SURROUNDING_SPACE: Final = FAMILY.info(
    "loc-surrounding-space",
    "blanks around the URL",
    "Search engines remove blanks and line breaks around the URL. Other programs may not.",
    "Write the URL without blanks around it.",
)
ASSET: Final = FAMILY.info(
    "loc-asset",
    "a file that is not a page",
    "A sitemap lists what people should find: pages, and documents such as PDF. Scripts, styles, fonts, feeds and "
    "data are not shown in results.",
    "Remove the entry.",
)
MIXED_SCHEMES: Final = FAMILY.warning(
    "loc-mixed-schemes",
    "http and https",
    "Some URLs have http and others https. One of them redirects, and a sitemap lists URLs that do not.",
    "List all URLs with https.",
)
MIXED_WWW: Final = FAMILY.warning(
    "loc-mixed-www",
    "with and without www",
    "Some URLs of the same host begin with `www.` and others do not. One of them redirects, and a sitemap lists "
    "URLs that do not.",
    "List all URLs with the host that the site prefers.",
)
DUPLICATE: Final = FAMILY.warning(
    "loc-duplicate",
    "listed twice",
    "The document lists the URL more than once. If the entries differ, search engines choose one.",
    "List each URL once.",
)
DUPLICATE_ELSEWHERE: Final = FAMILY.warning(
    "loc-duplicate-elsewhere",
    "listed in two documents",
    "Two documents list the URL. If the entries differ, search engines choose one.",
    "List each URL in one document. Sitemaps of images, videos or news may repeat URLs.",
)
DUPLICATE_SPELLING: Final = FAMILY.warning(
    "loc-duplicate-spelling",
    "listed in two spellings",
    "Two URLs differ only in case of the host, in percent-encoding, in the port or in the fragment. They are one page.",
    "List one of them.",
)
SLASH_PAIR: Final = FAMILY.info(
    "loc-slash-pair",
    "listed with and without a slash at the end",
    "For crawlers these are two pages. Most sites redirect one to the other, or show the same content at both.",
    "List the one that does not redirect.",
)
