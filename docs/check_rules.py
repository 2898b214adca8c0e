"""Writes the pages in reference/check-rules from the rules of `check`, before Sphinx reads them."""

import tomllib
from pathlib import Path

RULES = Path(__file__).parent.parent / "sitemap_middleware" / "check" / "rules.toml"
PAGES = Path(__file__).parent / "reference" / "check-rules"

INDEX = """# Rules of `check`

What [`sitemap-middleware check`](../cli.md#check) reports. Codes never change, so that you can name them in `--ignore`.

- **error**: search engines refuse the document, or ignore an entry or what it says.
- **warning**: probably a mistake.
- **info**: not a mistake, but worth knowing.

| code | severity | what it reports |
|---|---|---|
{rows}
```{{toctree}}
:hidden:

{names}```
"""
FAMILY = "# {title}\n\n{about}\n\n`--select {name}` reports these rules only.\n"
RULE = "\n## {code}\n\n**{severity}**: {title}.\n\n{explanation}\n\n**Fix:** {fix}\n"


def write_pages() -> None:
    """Write an index, and a page for each family of rules."""
    PAGES.mkdir(exist_ok=True)
    families = tomllib.loads(RULES.read_text("utf-8"))
    rows = ""
    for name, family in families.items():
        rules = {code: rule for code, rule in family.items() if isinstance(rule, dict)}
        page = FAMILY.format(name=name, title=family["title"], about=family["about"])
        for code, rule in rules.items():
            page += RULE.format(code=code, **rule)
            if rule.get("source"):
                page += f"\nSee also: <{rule['source']}>\n"
        if "source" in family:
            page += f"\nSee also: <{family['source']}>\n"
        (PAGES / f"{name}.md").write_text(page, "utf-8")
        for code, rule in rules.items():
            rows += f"| [{code}]({name}.md#{code}) | {rule['severity']} | {rule['title']} |\n"
    names = "".join(f"{name}\n" for name in families)
    (PAGES / "rules.md").write_text(INDEX.format(rows=rows, names=names), "utf-8")
