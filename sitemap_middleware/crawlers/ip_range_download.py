"""Downloads the IP address ranges that operators publish. Only the command `crawlers --update` does so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from .ip_address_ranges import MAX_FILE_BYTES, Network, RangesError, parse_ranges
from .known_crawlers import CRAWLERS

RANGE_URLS: Final = tuple(dict.fromkeys(url for crawler in CRAWLERS for url in crawler.range_urls))
"""The files of all operators."""

TIMEOUT_SECONDS: Final = 10.0


def fetch_ranges(
    urls: Iterable[str], known: Mapping[str, list[Network]], update: Callable[[int, int | None], None]
) -> tuple[dict[str, list[Network]], dict[str, str]]:
    """Fetch files. Return the ranges by URL, and why some files could not be read: of these the known ranges stay.

    Args:
        urls: of the files.
        known: the ranges that were fetched before.
        update: told how many files were fetched, of how many.
    """
    wanted = list(urls)
    ranges = {url: known[url] for url in wanted if url in known}
    problems: dict[str, str] = {}
    for number, url in enumerate(wanted):
        update(number, len(wanted))
        try:
            ranges[url] = parse_ranges(_fetch(url))
        except RangesError as error:
            problems[url] = str(error)
        except HTTPError as error:
            problems[url] = f"it answered {error.code}"
            error.close()
        except OSError as error:
            problems[url] = str(getattr(error, "reason", error))
    return ranges, problems


def _fetch(url: str) -> bytes:
    request = Request(url, headers={"User-Agent": "sitemap-middleware", "Accept": "application/json"})  # noqa: S310 (ours)
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
        content: bytes = response.read(MAX_FILE_BYTES + 1)
    return content
