"""The crawlers of search engines and AI companies: how they name themselves, and how their addresses are verified.

A User-Agent only claims a name. Anybody can send it, so `addresses` finds out whose the address is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple


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
