"""The crawlers of search engines and AI companies: how they name themselves, and whose an address really is.

A User-Agent only claims a name: anybody can send it. Two ways verify an address, as operators document them: it is in
the ranges that they publish; or its name (PTR) ends in their domain, and that name has this address (A, AAAA). A PTR
record alone proves nothing, because the owner of an address writes it.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import cached_property, lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple
from urllib.request import Request, getproxies, urlopen

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a file of ranges that are downloaded. A longer one cannot be read."""

_KNOWN_HOST: Final = "developers.google.com"
_NETWORK: Final = re.compile(r'"\s*((?:\d+\.){3}\d+(?:/\d+)?|[0-9A-Fa-f]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(?:/\d+)?)\s*"')
_DOWNLOAD_SECONDS: Final = 10.0
_LOOKUPS_AT_ONCE: Final = 32

_NO_NAME_ERRORS: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class Crawler(NamedTuple):
    """A crawler, and how its operator says that its addresses can be verified."""

    name: str
    """As its User-Agent names it, in any case, and as figures and messages do."""
    dns_suffixes: tuple[str, ...]
    """The domains that the names of its addresses end in, without a leading dot (reverse DNS)."""
    ranges_url: str
    """The file of the ranges that its operator publishes; empty if there is none."""


_GOOGLE_RANGES: Final = "https://developers.google.com/static/crawling/ipranges"
_GOOGLE_CRAWLERS: Final = f"{_GOOGLE_RANGES}/common-crawlers.json"
# Not googleusercontent.com: every customer of Google Cloud has a name in it.
_GOOGLE_DNS: Final = "googlebot.com google.com"

CRAWLERS: Final = tuple(
    Crawler(name, tuple(domains.split()), ranges_url)
    for names, domains, ranges_url in (
        ("Googlebot, Googlebot-Image, Googlebot-Video, Googlebot-News", _GOOGLE_DNS, _GOOGLE_CRAWLERS),
        ("Storebot-Google, GoogleOther, Google-InspectionTool, Google-CloudVertexBot", _GOOGLE_DNS, _GOOGLE_CRAWLERS),
        ("AdsBot-Google, Mediapartners-Google, APIs-Google", _GOOGLE_DNS, f"{_GOOGLE_RANGES}/special-crawlers.json"),
        (
            "FeedFetcher-Google, Google-Site-Verification, Google-Read-Aloud, Google-NotebookLM",
            _GOOGLE_DNS,
            f"{_GOOGLE_RANGES}/user-triggered-fetchers-google.json",
        ),
        ("Google-Agent", "", f"{_GOOGLE_RANGES}/user-triggered-agents.json"),
        ("bingbot, adidxbot, BingPreview, msnbot", "search.msn.com", "https://www.bing.com/toolbox/bingbot.json"),
        ("YandexBot, YandexImages, YandexVideo, YandexRenderResourcesBot", "yandex.ru yandex.net yandex.com", ""),
        ("Baiduspider", "baidu.com baidu.jp", ""),
        ("DuckDuckBot", "", "https://duckduckgo.com/duckduckbot.json"),
        ("DuckAssistBot", "", "https://duckduckgo.com/duckassistbot.json"),
        ("Applebot", "applebot.apple.com", "https://search.developer.apple.com/applebot.json"),
        ("GPTBot", "", "https://openai.com/gptbot.json"),
        ("OAI-SearchBot", "", "https://openai.com/searchbot.json"),
        ("ChatGPT-User", "", "https://openai.com/chatgpt-user.json"),
        ("ClaudeBot, Claude-SearchBot, Claude-User", "", "https://claude.com/crawling/bots.json"),
        ("PerplexityBot", "", "https://www.perplexity.com/perplexitybot.json"),
        ("Perplexity-User", "", "https://www.perplexity.com/perplexity-user.json"),
        ("MistralAI-User", "", "https://mistral.ai/mistralai-user-ips.json"),
        ("Amazonbot", "crawl.amazonbot.amazon", ""),
        ("CCBot", "crawl.commoncrawl.org", "https://index.commoncrawl.org/ccbot.json"),
        ("SeznamBot", "seznam.cz", "https://search.seznam.cz/ipranges/seznambot.json"),
        ("PetalBot", "petalsearch.com aspiegel.com", ""),
        ("Yeti", "naver.com", ""),
        ("Qwantbot, Qwantify", "qwant.com", ""),
        ("MojeekBot", "mojeek.com", ""),
        ("Sogou web spider", "sogou.com", ""),
        ("coccocbot-web", "coccoc.com", ""),
        # The operators of these document no way to verify an address: Meta, ByteDance and others.
        ("meta-externalagent, meta-externalfetcher, meta-webindexer, facebookexternalhit", "", ""),
        ("Bytespider, Bravebot, Kagibot, YouBot, cohere-ai, xAI-SearchBot", "", ""),
    )
    for name in names.split(", ")
)
"""By the names of their User-Agents, each with the domains and the ranges of its addresses."""

MAX_AGENT_CHARS: Final = 500
"""Characters of a User-Agent that are searched. Clients may send any number."""

_BY_TOKEN: Final = {crawler.name.lower(): crawler for crawler in CRAWLERS}

# The longest token first, so that "Googlebot-Image" is not taken for "Googlebot".
_TOKENS: Final = re.compile(
    rf"(?<![a-z])(?:{'|'.join(sorted(map(re.escape, _BY_TOKEN), key=len, reverse=True))})(?![a-z])"
)


_BOT: Final = re.compile(r"[\w.-]{0,40}(?:bot|crawler|spider)\b[\w.-]{0,20}", re.IGNORECASE)


@lru_cache(10_000)
def crawler_of_agent(agent: str) -> Crawler | None:
    """The crawler that a User-Agent names; None for the agents of people and of other programs."""
    match = _TOKENS.search(agent.lower())
    return _BY_TOKEN[match[0]] if match else None


@lru_cache(10_000)
def bot_of_agent(agent: str) -> str | None:
    """The name that a program gives which calls itself a bot, a crawler or a spider; None for others."""
    match = _BOT.search(agent)
    return match and match[0]


# Whose an address is


class Identity(StrEnum):
    """Whose an address is."""

    VERIFIED = "verified"
    """The crawler's own."""
    UNVERIFIED = "unverified"
    """This cannot be found out, or nobody asked."""
    FAKE = "fake"
    """Somebody else's: it is in none of the published ranges, and DNS, if asked, says no."""


Sender = tuple[Crawler, str]
"""A crawler that a User-Agent names, and the address as the log has it."""


def parse_ranges(content: bytes) -> list[Network]:
    """The networks that a file names. Operators do not agree on the keys. Raises `ValueError`."""
    try:
        text = json.dumps(json.loads(content))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    networks = [ip_network(network) for network in _NETWORK.findall(text)]
    if not networks:
        raise ValueError("it names no networks")
    return networks


def parse_address(text: str) -> Address | None:
    """The address that a log names, maybe an IPv4 one within IPv6, or one with a zone; None if it is no address."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


class Identities:
    """Finds out whose addresses are, by the published ranges and DNS; without the network, all are unverified."""

    def __init__(self, *, asks_network: bool) -> None:
        self._asks_network = asks_network
        self._ranges: dict[str, list[Network] | None] = {}
        """By the URL of their file; None if they cannot be had."""
        self._known: dict[Sender, Identity] = {}
        self.problems: list[str] = []

    def look_up(self, senders: Iterable[Sender]) -> Mapping[Sender, Identity]:
        """Find out whose these addresses are: many at once, because each may wait for DNS."""
        wanted = dict.fromkeys(senders)
        new = [sender for sender in wanted if sender not in self._known]
        # A proxy needs no DNS here. Without either, each attempt would only wait for an answer that does not come.
        can_fetch = self._asks_network and (self._dns_works or bool(getproxies()))
        for url in sorted({crawler.ranges_url for crawler, _ in new} - self._ranges.keys() - {""}):
            self._ranges[url] = self._fetch_ranges(url) if can_fetch else None
        with ThreadPoolExecutor(_LOOKUPS_AT_ONCE) as pool:
            self._known.update(zip(new, pool.map(self._identity, new), strict=True))
        return self._known

    def _fetch_ranges(self, url: str) -> list[Network] | None:
        headers = {"User-Agent": "sitemap-middleware", "Accept": "application/json"}
        try:
            with urlopen(Request(url, headers=headers), timeout=_DOWNLOAD_SECONDS) as response:  # noqa: S310 (ours)
                return parse_ranges(response.read(MAX_FILE_BYTES))
        except (ValueError, OSError) as error:
            self.problems.append(f"the published ranges {url} could not be fetched: {error}")
            return None

    def _identity(self, sender: Sender) -> Identity:
        crawler, address = sender[0], parse_address(sender[1])
        if address is None or not address.is_global:  # that of a proxy, or of a developer
            return Identity.UNVERIFIED
        ranges = self._ranges.get(crawler.ranges_url)
        if any(address in network for network in ranges or ()):
            return Identity.VERIFIED
        if crawler.dns_suffixes and self._asks_network:
            return _ask_dns(crawler.dns_suffixes, address) if self._dns_works else Identity.UNVERIFIED
        return Identity.FAKE if ranges is not None else Identity.UNVERIFIED

    @cached_property
    def _dns_works(self) -> bool:
        """Whether DNS knows a name of the web. Where it is filtered it denies all, which proves nothing, or waits."""
        try:
            return bool(socket.getaddrinfo(_KNOWN_HOST, None))
        except OSError:
            fetched = "" if getproxies() else ", and no published ranges were fetched"
            self.problems.append(
                f"DNS does not know {_KNOWN_HOST} here, so nobody was asked by DNS{fetched}: such visits are unverified"
            )
            return False


def _ask_dns(suffixes: tuple[str, ...], address: Address) -> Identity:
    try:
        name = socket.getnameinfo((str(address), 0), socket.NI_NAMEREQD)[0].rstrip(".").lower()
        if name.endswith(tuple(f".{suffix}" for suffix in suffixes)):
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
            if any(parse_address(str(socket_address[0])) == address for *_, socket_address in found):
                return Identity.VERIFIED
    except (OSError, UnicodeError) as error:
        has_no_name = isinstance(error, socket.gaierror) and error.errno in _NO_NAME_ERRORS
        return Identity.FAKE if has_no_name else Identity.UNVERIFIED  # DNS fails
    return Identity.FAKE
