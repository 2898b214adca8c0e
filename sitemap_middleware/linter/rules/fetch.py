"""Rules about getting a document: the response, and whether its bytes are a sitemap."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("fetch", "Fetching", "Whether a crawler gets the document, and whether its bytes are a sitemap.")

FAILED: Final = FAMILY.error(
    "fetch-failed",
    "no response",
    "The host cannot be found, refuses the connection, has a certificate that is not valid, or ends the response "
    "early. Search engines try again later, and give up in the end.",
    "Check the URL, the DNS entry, the certificate and the server.",
)
TIMEOUT: Final = FAMILY.error(
    "fetch-timeout",
    "no response in time",
    "The server did not answer within 20 seconds, or the document took more than 3 minutes. Search engines do not "
    "wait longer, and visit slow hosts less.",
    "Make the sitemap ahead of time, or cache it. Split large documents.",
)
STATUS: Final = FAMILY.error(
    "fetch-status",
    "an error status",
    "Search engines read a sitemap only from a response with status 200. After a 404 for some time they forget it.",
    "Serve the document, or remove its URL from the index and from robots.txt.",
)
LOGIN: Final = FAMILY.error(
    "fetch-login",
    "a login is required",
    "Search engines do not log in. The server answers 401, or leads to a login page.",
    "Serve the sitemap to everybody.",
)
USER_AGENT: Final = FAMILY.error(
    "fetch-user-agent",
    "only browsers get the sitemap",
    "The server refuses this program, and answers a request with the User-Agent of a browser. It may refuse "
    "crawlers, too.",
    "Let the firewall pass all requests for the sitemap. To be sure about Google, look into Search Console.",
)
REDIRECT: Final = FAMILY.info(
    "fetch-redirect",
    "a redirect",
    "Search engines follow redirects of a sitemap, and request another document each time.",
    "Name the last URL in the index, in robots.txt and in Search Console.",
)
REDIRECT_LOOP: Final = FAMILY.error(
    "fetch-redirect-loop",
    "redirects without an end",
    "The redirects lead in a circle, or there are more than ten. Search engines give up.",
    "Correct the redirects.",
)
ROBOTS: Final = FAMILY.error(
    "fetch-robots",
    "robots.txt forbids it",
    "Search engines request no URL that robots.txt forbids, and nothing at all as long as robots.txt itself "
    "answers with an error of the server.",
    "Allow the URL of the sitemap in robots.txt.",
)
CONTENT_TYPE: Final = FAMILY.warning(
    "fetch-content-type",
    "not the media type of a sitemap",
    "The response says that it is another kind of document. Search engines look into it all the same; proxies, "
    "caches and other programs may not.",
    "Send `Content-Type: application/xml`, or `application/gzip` for a `.gz` file and `text/plain` for a text file.",
)
CONTENT_ENCODING: Final = FAMILY.error(
    "fetch-content-encoding",
    "a compression that was not asked for",
    "The request accepts gzip only, and the response says that it is compressed in another way. Crawlers that do "
    "not know it read nothing.",
    "Obey the Accept-Encoding of the request.",
)
HTML: Final = FAMILY.error(
    "fetch-html",
    "an HTML page in place of a sitemap",
    "The URL leads to a page for people: often an error page with status 200, a login page, or the challenge of a "
    "firewall that takes the crawler for an attacker.",
    "Open the URL without being logged in. Let the firewall pass requests for the sitemap.",
)
GZIP_BROKEN: Final = FAMILY.error(
    "fetch-gzip-broken",
    "broken compression",
    "The compressed data is damaged or ends early, so search engines read a part of the document or nothing.",
    "Compress the document again. Check that no proxy cuts responses.",
)
GZIP_TWICE: Final = FAMILY.error(
    "fetch-gzip-twice",
    "compressed twice",
    "After decompression the document is still gzip. Often a server compresses a `.gz` file once more.",
    "Serve `.gz` files as they are, with `Content-Type: application/gzip` and no `Content-Encoding`.",
)
