from __future__ import annotations

import re

import pytest

from sitemap_middleware.crawlers.known_crawlers import CRAWLERS, crawler_of_agent

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36"
WEBKIT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; "


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"),
        (f"{WEBKIT}Googlebot/2.1; +http://www.google.com/bot.html) Chrome/141.0.0.0 Safari/537.36", "Googlebot"),
        ("Googlebot-Image/1.0", "Googlebot-Image"),
        ("Googlebot-Future/1.0", "Googlebot"),
        (f"{WEBKIT}bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36", "bingbot"),
        ("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", "YandexBot"),
        ("Mozilla/5.0 (compatible; YandexMetrika/2.0; +http://yandex.com/bots)", None),
        ("Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)", "Baiduspider"),
        ("DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)", "DuckDuckBot"),
        (f"{CHROME} (Applebot/0.1; +http://www.apple.com/go/applebot)", "Applebot"),
        (f"{WEBKIT}GPTBot/1.3; +https://openai.com/gptbot)", "GPTBot"),
        (f"{CHROME}; compatible; OAI-SearchBot/1.3; +https://openai.com/searchbot", "OAI-SearchBot"),
        (f"{WEBKIT}ChatGPT-User/1.0; +https://openai.com/bot", "ChatGPT-User"),
        (f"{WEBKIT}ClaudeBot/1.0; +claudebot@anthropic.com)", "ClaudeBot"),
        (f"{WEBKIT}Claude-SearchBot/1.0; +https://www.anthropic.com)", "Claude-SearchBot"),
        (f"{WEBKIT}Claude-User/1.0; +Claude-User@anthropic.com)", "Claude-User"),
        (f"{WEBKIT}PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)", "PerplexityBot"),
        (f"{WEBKIT}Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)", "Perplexity-User"),
        (f"{WEBKIT}Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot) Chrome/119.0", "Amazonbot"),
        (
            "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)",
            "meta-externalagent",
        ),
        ("CCBot/2.0 (https://commoncrawl.org/faq/)", "CCBot"),
        ("Mozilla/5.0 (compatible;PetalBot;+https://webmaster.petalsearch.com/site/petalbot)", "PetalBot"),
        ("Mozilla/5.0 (compatible; SeznamBot/4.0; +http://napoveda.seznam.cz/seznambot-intro/)", "SeznamBot"),
        ("Mozilla/5.0 (compatible; Yeti/1.1; +http://naver.me/spd)", "Yeti"),
        ("Mozilla/5.0 (compatible; Qwantbot/1.0_1234; +https://help.qwant.com/bot/)", "Qwantbot"),
        ("Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)", "Sogou web spider"),
        (CHROME, None),
        ("curl/8.5.0", None),
        ("", None),
        ("NotGooglebot/1.0", None),
        ("Googlebotany/1.0", None),
        (f"{'x' * 600} Googlebot/2.1", None),
    ],
)
def test_a_user_agent_names_its_crawler(agent: str, name: str | None) -> None:
    for value in (agent, agent.encode(), agent.upper()):
        for _ in range(2):  # the second time from the cache
            crawler = crawler_of_agent(value)
            assert (crawler.name if crawler else None) == name


def test_any_bytes_are_read() -> None:
    assert crawler_of_agent(b"\xff\x00 Googlebot/2.1 \x80") is crawler_of_agent("Googlebot") is not None


def test_long_agents_are_not_cached() -> None:
    agent = f"Googlebot/2.1 {'x' * 1000}"
    assert crawler_of_agent(agent) is crawler_of_agent(agent) is crawler_of_agent("Googlebot") is not None


def test_names_and_tokens_are_unique_and_tokens_can_be_found() -> None:
    assert len(CRAWLERS) == len({crawler.name for crawler in CRAWLERS}) == len({crawler.token for crawler in CRAWLERS})
    for crawler in CRAWLERS:
        assert crawler_of_agent(f"Mozilla/5.0 (compatible; {crawler.name}/1.0)") is crawler


def test_an_operator_documents_how_its_crawler_is_verified_or_it_is_not_verifiable() -> None:
    for crawler in CRAWLERS:
        assert crawler.is_verifiable is bool(crawler.dns_suffixes or crawler.range_urls)
        assert all(re.fullmatch(r"[a-z]+(\.[a-z]+)+", suffix) for suffix in crawler.dns_suffixes)
        assert all(url.startswith("https://") and url.endswith(".json") for url in crawler.range_urls)
    assert not crawler_of_agent("Bytespider").is_verifiable


def test_names_that_every_customer_of_a_cloud_can_have_verify_nobody() -> None:
    suffixes = {suffix for crawler in CRAWLERS for suffix in crawler.dns_suffixes}
    assert not suffixes & {"googleusercontent.com", "amazonaws.com", "cloudapp.azure.com", "fbsv.net"}
