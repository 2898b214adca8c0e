"""What the middleware of an app knows of its pages, against what is listed."""

from __future__ import annotations

import pytest

from sitemap_middleware.linter.checks.coverage import KnownUrl, coverage_findings, vanished_findings
from sitemap_middleware.linter.rules import FAMILIES

URL = "https://example.com/a"
CASES = [
    (KnownUrl(URL, True, "it is a static route", None), "coverage-never-seen"),
    (KnownUrl(URL, True, "it answered 200", 404), "coverage-listed-bad"),
    (KnownUrl(URL, True, "it answered 200", 302), "coverage-listed-bad"),
    (KnownUrl(URL, False, "it says noindex", 200), "coverage-not-listed"),
]


@pytest.mark.parametrize(("known", "code"), CASES)
def test_difference_gives_exactly_its_code(known: KnownUrl, code: str) -> None:
    (((rule, text), url),) = coverage_findings([known], lambda _: False)
    assert (rule.code, url) == (code, URL)
    assert str(known.status or "no response") in text or known.reason in text


@pytest.mark.parametrize(("is_listed", "status"), [(True, 200), (False, 404), (False, None)])
def test_agreement_gives_nothing(is_listed: bool, status: int | None) -> None:
    assert [*coverage_findings([KnownUrl(URL, is_listed, "reason", status)], lambda _: False)] == []


@pytest.mark.parametrize(("known", "code"), CASES)
def test_only_what_was_never_seen_is_left_out_if_the_run_requests_it(known: KnownUrl, code: str) -> None:
    found = [rule.code for (rule, _), _ in coverage_findings([known], {URL}.__contains__)]
    assert found == ([] if code == "coverage-never-seen" else [code])


def test_each_rule_is_tested() -> None:
    (((vanished, _), _),) = vanished_findings([URL])
    family = next(family for family in FAMILIES if family.name == "coverage")
    assert {code for _, code in CASES} | {vanished.code} == {rule.code for rule in family.rules}
