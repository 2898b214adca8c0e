"""Makes the documentation pages of the rules from their declarations."""

from __future__ import annotations

from collections.abc import Iterator

from .rules import FAMILIES, Family


def pages() -> Iterator[tuple[str, str]]:
    """Return the name and the text of each page, in Markdown: the index, and one page for each family."""
    yield "rules.md", _index()
    for family in FAMILIES:
        yield f"{family.name}.md", _page(family)


def _index() -> str:
    rows = "".join(
        f"| [{rule.code}]({family.name}.md#{rule.code}) | {rule.severity} | {rule.title} |\n"
        for family in FAMILIES
        for rule in family.rules
    )
    names = "".join(f"{family.name}\n" for family in FAMILIES)
    return (
        "# Rules of `check`\n\n"
        "What [`sitemap-middleware check`](../cli.md#check) reports. Codes never change, so that you can name them in "
        "`--ignore`.\n\n"
        "- **error**: search engines refuse the document, or ignore an entry or what it says.\n"
        "- **warning**: probably a mistake.\n"
        "- **info**: not a mistake, but worth knowing.\n\n"
        f"| code | severity | what it reports |\n|---|---|---|\n{rows}\n"
        f"```{{toctree}}\n:hidden:\n\n{names}```\n"
    )


def _page(family: Family) -> str:
    rules = "".join(
        f"\n## {rule.code}\n\n**{rule.severity}**: {rule.title}.\n\n{rule.explanation}\n\n**Fix:** {rule.fix}\n"
        for rule in family.rules
    )
    return f"# {family.title}\n\n{family.about}\n\n`--select {family.name}` reports these rules only.\n{rules}"
