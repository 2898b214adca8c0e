"""The pages in docs/reference/check-rules are those that the rules give. After a change, write them again:

REWRITE_SNAPSHOTS=1 python3 tests tests/unit/linter/test_rule_documentation.py
"""

from __future__ import annotations

import os
from pathlib import Path

from sitemap_middleware.linter.rule_documentation import pages

FOLDER = Path(__file__).parents[3] / "docs" / "reference" / "check-rules"


def test_documentation_is_that_of_the_rules() -> None:
    if os.environ.get("REWRITE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        for name, text in pages():
            (FOLDER / name).write_text(text, "utf-8")
    assert {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")} == dict(pages())
