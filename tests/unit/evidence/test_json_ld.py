"""Facts: what JSON-LD says as content, and what of it changes although nothing was edited."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitemap_middleware.evidence.digest_cost_limit import WorkBudget
from sitemap_middleware.evidence.html_facts import parse_html
from sitemap_middleware.evidence.json_ld import content_facts, parse_scripts

PRODUCT: dict[str, Any] = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "A rye loaf",
    "offers": {"@type": "Offer", "price": "19.90", "availability": "https://schema.org/InStock"},
}


def digest(data: Any, where: str = "head") -> int | None:
    script = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    head, body = (script, "") if where == "head" else ("", script)
    return parse_html(f"<html><head>{head}</head><body><main>Text</main>{body}</body></html>".encode()).digest


def offering(**more: Any) -> dict[str, Any]:
    return {**PRODUCT, "offers": {**PRODUCT["offers"], **more}}


@pytest.mark.parametrize(
    "other",
    [
        offering(price="18.90"),
        offering(price=None),
        offering(availability="https://schema.org/OutOfStock"),
        {**PRODUCT, "name": "A wheat loaf"},
        {**PRODUCT, "@type": "Service"},
        {**PRODUCT, "description": "Baked daily"},
        {**PRODUCT, "startDate": "2026-05-01T19:00"},
        {**PRODUCT, "openingHours": "Mo-Fr 08:00-18:00"},
        {**PRODUCT, "isAccessibleForFree": True},
        {**PRODUCT, "image": "https://example.com/a.jpg"},
        [PRODUCT, {"@type": "Brand", "name": "Mill"}],
        {"@graph": [PRODUCT, {"name": "Mill"}]},
    ],
)
def test_a_fact_is_content(other: Any) -> None:
    assert digest(PRODUCT) != digest(other)
    assert digest(PRODUCT, "body") != digest(other, "body")


def test_a_date_of_an_event_is_content() -> None:
    assert digest({"startDate": "2026-05-01T19:00"}) != digest({"startDate": "2026-05-02T19:00"})
    assert digest({"endDate": "2026-05-01"}) != digest({"endDate": "2026-05-02"})


@pytest.mark.parametrize(
    "other",
    [
        offering(price=19.9),
        offering(price="19.9000"),
        offering(priceValidUntil="2026-11-23"),
        offering(validFrom="2026-11-22T10:00:00Z", validThrough="2026-12-22"),
        offering(inventoryLevel=7),
        {**PRODUCT, "aggregateRating": {"@type": "AggregateRating", "ratingValue": 4.5, "ratingCount": 7}},
        {**PRODUCT, "interactionStatistic": {"userInteractionCount": 7}},
        {**PRODUCT, "interactionCount": "7", "commentCount": 7, "reviewCount": 7, "offerCount": 7},
        {**PRODUCT, "dateModified": "2026-11-22", "datePublished": "2026-11-22", "dateCreated": "2026-11-22"},
        {**PRODUCT, "uploadDate": "2026-11-22", "sdDatePublished": "2026-11-22", "lastReviewed": "2026-11-22"},
        {**PRODUCT, "servedAt": "2026-11-22T10:00:00Z"},
        {**PRODUCT, "@id": "#7", "identifier": "7", "nonce": "7", "csrfToken": "7"},
        {**PRODUCT, "key": "d41d8cd98f00b204e9800998ecf8427e"},
        {**PRODUCT, "key": "123e4567-e89b-12d3-a456-426614174000"},
        {**PRODUCT, "potentialAction": {"@type": "SearchAction"}},
        {**PRODUCT, "@context": "http://schema.org"},
        {**PRODUCT, "posted": "3 weeks ago"},
        dict(reversed(PRODUCT.items())),
        [PRODUCT],
        {"@graph": [PRODUCT]},
    ],
)
def test_volatile_properties_are_not_content(other: Any) -> None:
    assert digest(PRODUCT) == digest(other)


def test_query_of_a_url_is_not_content() -> None:
    assert digest({"image": "/a.jpg?v=1#x"}) == digest({"image": "/a.jpg?v=2"})
    assert digest({"image": "/a.jpg"}) != digest({"image": "/b.jpg"})


def test_template_change_makes_the_same_difference_on_every_page() -> None:
    differences = set()
    for name in ("One", "Two"):
        old, new = digest({"name": f"{name} | Old shop"}), digest({"name": f"{name} | New shop"})
        assert old is not None
        assert new is not None
        differences.add((new - old) % 2**64)
    assert len(differences) == 1


@pytest.mark.parametrize("named", ["sku", "url", "name"])
@pytest.mark.parametrize(
    "change",
    [{"price": "18.90"}, {"availability": "https://schema.org/OutOfStock"}, {"lowPrice": 10}, {"highPrice": 20}],
)
def test_items_sold_out_alike_differ_in_their_own_way(change: dict[str, Any], named: str) -> None:
    """One and the same difference on several pages is a template's."""
    differences = set()
    for which in ("1", "2", "3"):
        old, new = digest(offering() | {named: which}), digest(offering(**change) | {named: which})
        assert old is not None
        assert new is not None
        differences.add((new - old) % 2**64)
    assert len(differences) == 3


def test_a_fact_is_not_the_word_that_a_reader_sees() -> None:
    assert parse_html(b"<main>Text Rye</main>").digest != digest({"name": "Rye"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_facts_differ_from_words(data: Any) -> None:
    facts = list(content_facts(parse_scripts([json.dumps(data)]), WorkBudget()))
    assert all(fact.startswith("\n") for fact in facts)


@pytest.mark.parametrize(
    ("data", "stated"),
    [
        ({"dateModified": "2024-05-01"}, "2024-05-01"),
        ([[{"@graph": [{"dateModified": "2024-05-01"}]}]], "2024-05-01"),
        ([[[[[{"dateModified": "2024-05-01"}]]]]], None),
        ({"@graph": {"@graph": {"@graph": {"@graph": {"@graph": {"dateModified": "2024-05-01"}}}}}}, None),
        ("2024-05-01", None),
    ],
)
def test_modification_date_of_json_ld_is_read(data: Any, stated: str | None) -> None:
    script = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    assert parse_html(script.encode()).stated_date == stated


@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, '{"@graph":' * 5000, "null", "9" * 5000])
def test_invalid_json_has_no_facts(text: str) -> None:
    assert parse_scripts([text, '{"name": 1}']) == [{"name": 1}]


def test_item_name_in_a_fact_is_bounded() -> None:
    data = {"name": "x" * 100_000, "offers": [{"price": number} for number in range(100)]}
    assert sum(map(len, content_facts([data], WorkBudget(10**9)))) < 200_000
    assert len(set(content_facts([data], WorkBudget(10**9)))) == 101


@pytest.mark.parametrize(
    ("thing", "facts"),
    [
        ({"image": "http://a.example/i.png?v=1#x"}, ["\nimage\nhttp://a.example/i.png"]),
        ({"image": "https://a.example/i.png#x"}, ["\nimage\nhttps://a.example/i.png"]),
        ({"image": "/i.png?v=1"}, ["\nimage\n/i.png"]),
        ({"text": "Why?"}, ["\ntext\nWhy?"]),
        ({"price": 5}, ["\nprice\n\n5.0"]),
        ({"name": "Tea", "price": "5.00"}, ["\nprice\nTea\n5.0", "\nname\nTea"]),
    ],
)
def test_fact_is_a_word_with_its_property(thing: Any, facts: list[str]) -> None:
    assert list(content_facts([thing], WorkBudget())) == facts
