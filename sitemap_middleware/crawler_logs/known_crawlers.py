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
    """How figures and messages name it."""
    token: str
    """The part of the User-Agent that names it, in lower case."""
    dns_suffixes: tuple[str, ...] = ()
    """The domains that the names of its addresses end in, without a leading dot (reverse DNS)."""
    range_urls: tuple[str, ...] = ()
    """The files in which its operator publishes its address ranges."""


_GOOGLE_RANGES: Final = "https://developers.google.com/static/crawling/ipranges/"
_GOOGLE_COMMON: Final = (f"{_GOOGLE_RANGES}common-crawlers.json",)
_GOOGLE_SPECIAL: Final = (f"{_GOOGLE_RANGES}special-crawlers.json",)
_GOOGLE_USERS: Final = (f"{_GOOGLE_RANGES}user-triggered-fetchers-google.json",)
# Not googleusercontent.com: every customer of Google Cloud has a name in it.
_GOOGLE_DNS: Final = ("googlebot.com", "google.com")
_BING_RANGES: Final = ("https://www.bing.com/toolbox/bingbot.json",)
_YANDEX_DNS: Final = ("yandex.ru", "yandex.net", "yandex.com")
_CLAUDE_RANGES: Final = ("https://claude.com/crawling/bots.json",)
_APPLE_RANGES: Final = ("https://search.developer.apple.com/applebot.json",)

CRAWLERS: Final = tuple(
    Crawler(name, name.lower(), suffixes, ranges)
    for _operator, suffixes, ranges, names in (
        (
            "Google",
            _GOOGLE_DNS,
            _GOOGLE_COMMON,
            (
                *("Googlebot", "Googlebot-Image", "Googlebot-Video", "Googlebot-News", "Storebot-Google"),
                *("GoogleOther", "Google-InspectionTool", "Google-CloudVertexBot"),
            ),
        ),
        ("Google", _GOOGLE_DNS, _GOOGLE_SPECIAL, ("AdsBot-Google", "Mediapartners-Google", "APIs-Google")),
        (
            "Google",
            _GOOGLE_DNS,
            _GOOGLE_USERS,
            ("FeedFetcher-Google", "Google-Site-Verification", "Google-Read-Aloud", "Google-NotebookLM"),
        ),
        ("Google", (), (f"{_GOOGLE_RANGES}user-triggered-agents.json",), ("Google-Agent",)),
        ("Microsoft", ("search.msn.com",), _BING_RANGES, ("bingbot", "adidxbot", "BingPreview", "msnbot")),
        ("Yandex", _YANDEX_DNS, (), ("YandexBot", "YandexImages", "YandexVideo", "YandexRenderResourcesBot")),
        ("Baidu", ("baidu.com", "baidu.jp"), (), ("Baiduspider",)),
        ("DuckDuckGo", (), ("https://duckduckgo.com/duckduckbot.json",), ("DuckDuckBot",)),
        ("DuckDuckGo", (), ("https://duckduckgo.com/duckassistbot.json",), ("DuckAssistBot",)),
        ("Apple", ("applebot.apple.com",), _APPLE_RANGES, ("Applebot",)),
        ("OpenAI", (), ("https://openai.com/gptbot.json",), ("GPTBot",)),
        ("OpenAI", (), ("https://openai.com/searchbot.json",), ("OAI-SearchBot",)),
        ("OpenAI", (), ("https://openai.com/chatgpt-user.json",), ("ChatGPT-User",)),
        ("Anthropic", (), _CLAUDE_RANGES, ("ClaudeBot", "Claude-SearchBot", "Claude-User")),
        ("Perplexity", (), ("https://www.perplexity.com/perplexitybot.json",), ("PerplexityBot",)),
        ("Perplexity", (), ("https://www.perplexity.com/perplexity-user.json",), ("Perplexity-User",)),
        ("Mistral", (), ("https://mistral.ai/mistralai-user-ips.json",), ("MistralAI-User",)),
        ("Amazon", ("crawl.amazonbot.amazon",), (), ("Amazonbot",)),
        ("Common Crawl", ("crawl.commoncrawl.org",), ("https://index.commoncrawl.org/ccbot.json",), ("CCBot",)),
        ("Seznam", ("seznam.cz",), ("https://search.seznam.cz/ipranges/seznambot.json",), ("SeznamBot",)),
        ("Huawei", ("petalsearch.com", "aspiegel.com"), (), ("PetalBot",)),
        ("Naver", ("naver.com",), (), ("Yeti",)),
        ("Qwant", ("qwant.com",), (), ("Qwantbot", "Qwantify")),
        ("Mojeek", ("mojeek.com",), (), ("MojeekBot",)),
        ("Sogou", ("sogou.com",), (), ("Sogou web spider",)),
        ("Cốc Cốc", ("coccoc.com",), (), ("coccocbot-web",)),
        # Their operators document no way to verify an address.
        ("Meta", (), (), ("meta-externalagent", "meta-externalfetcher", "meta-webindexer", "facebookexternalhit")),
        ("ByteDance", (), (), ("Bytespider",)),
        ("Brave", (), (), ("Bravebot",)),
        ("Kagi", (), (), ("Kagibot",)),
        ("You.com", (), (), ("YouBot",)),
        ("Cohere", (), (), ("cohere-ai",)),
        ("xAI", (), (), ("xAI-SearchBot",)),
    )
    for name in names
)
"""Every crawler that is recognised."""

MAX_AGENT_CHARS: Final = 500
"""Characters of a User-Agent that are searched."""

_BY_TOKEN: Final = {crawler.token: crawler for crawler in CRAWLERS}

# The longest token first, so that "Googlebot-Image" is not taken for "Googlebot".
_TOKENS: Final = re.compile(
    rf"(?<![a-z])(?:{'|'.join(sorted(map(re.escape, _BY_TOKEN), key=len, reverse=True))})(?![a-z])"
)


def crawler_of_agent(agent: str) -> Crawler | None:
    """The crawler that a User-Agent names; None for the agents of people and of other programs."""
    return _crawler_of_text(agent[:MAX_AGENT_CHARS])


@lru_cache(10_000)
def _crawler_of_text(text: str) -> Crawler | None:
    match = _TOKENS.search(text.lower())
    return _BY_TOKEN[match[0]] if match else None
