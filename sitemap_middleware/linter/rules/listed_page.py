"""Rules about the responses of listed pages."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family(
    "page",
    "Pages",
    "What the pages that are listed answer. Each page is requested once, without cookies, as a crawler requests it: "
    "some of the pages with `--pages sample`, each of them with `--pages all`, and none with `--pages none`.",
)

FAILED: Final = FAMILY.error(
    "page-failed",
    "no response",
    "The page cannot be requested: the connection fails or ends early, or the response takes too long.",
    "Open the URL from another network, and look at the log of the server.",
)
STATUS: Final = FAMILY.error(
    "page-status",
    "not the status 200",
    "Search engines list a page only if it answers 200. A sitemap with URLs that fail is trusted less.",
    "Remove the URL from the sitemap, or repair the page.",
)
REDIRECT: Final = FAMILY.warning(
    "page-redirect",
    "a redirect",
    "Search engines list the URL to which the redirect leads. Search Console reports “Page with redirect”.",
    "List the URL to which it leads.",
)
REDIRECT_LOOP: Final = FAMILY.error(
    "page-redirect-loop",
    "redirects without an end",
    "The redirects lead in a circle, or there are more than ten. Search engines give up.",
    "Correct the redirects.",
)
LOGIN: Final = FAMILY.error(
    "page-login",
    "a login page",
    "The page asks for a login, so search engines see nothing of its content.",
    "Remove the URL from the sitemap, or make the page public.",
)
ROBOTS: Final = FAMILY.error(
    "page-robots",
    "robots.txt forbids it",
    "Googlebot or Bingbot may not request the page. Search Console reports “Submitted URL blocked by robots.txt”.",
    "Allow the URL in robots.txt, or remove it from the sitemap.",
)
NOINDEX: Final = FAMILY.error(
    "page-noindex",
    "noindex",
    "The page asks search engines not to list it, in a robots meta tag or in the header X-Robots-Tag. The sitemap "
    "says the contrary.",
    "Remove the URL from the sitemap, or remove noindex.",
)
CANONICAL: Final = FAMILY.warning(
    "page-canonical",
    "another canonical URL",
    "The page names another page as the one to be listed. Search engines list that one.",
    "List the canonical URL in place of this one.",
)
REFRESH: Final = FAMILY.warning(
    "page-refresh",
    "a refresh that leads to another page at once",
    "Search engines take an instant refresh as a redirect, and list the page to which it leads.",
    "List the URL to which it leads.",
)
SOFT_404: Final = FAMILY.warning(
    "page-soft-not-found",
    "the same as a missing page",
    "The page answers 200 with the content that an invented URL of the same host gets. Search engines call this a "
    "soft 404, and do not list it.",
    "Answer 404 for what does not exist, and remove the URL from the sitemap.",
)
NOT_A_PAGE: Final = FAMILY.warning(
    "page-type",
    "not a document that search engines show",
    "The media type is that of data, a script, a style or a feed. Search engines do not show it in results.",
    "Remove the URL, or send the right Content-Type.",
)
LASTMOD_BEHIND: Final = FAMILY.warning(
    "page-lastmod-behind",
    "the page says that it changed after its lastmod",
    "The page states when it was modified, in JSON-LD or in a meta tag, and that is at least two days after the date "
    "in the sitemap. Search engines may not come to see the change.",
    "Take both dates from the same source.",
)
LASTMOD_AHEAD: Final = FAMILY.info(
    "page-lastmod-ahead",
    "the page says that it changed before its lastmod",
    "The page states when it was modified, in JSON-LD or in a meta tag, and the date in the sitemap is at least two "
    "days later. Often such dates are those of a deployment. Search engines ignore dates that prove wrong.",
    "Take both dates from the same source.",
)
