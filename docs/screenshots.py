"""Takes the screenshots of docs/images: `python3 docs/screenshots.py`, with the group `test` and all extras installed.

It needs Chromium, of the system or of Playwright. With `--out DIR` it writes all pages, at all widths, in light and
dark.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.apps.report_bakery import REPORT, make  # noqa: E402 # found by the line above
from tests.support.browser import chromium, serving_wsgi  # noqa: E402 # likewise

PAGES = {
    "overview": "",
    "pages": "/pages",
    "page": "/page?path=/menu",
    "changes": "/changes?since=2026-10-01",
    "documents": "/documents",
    "health": "/health",
    "routes": "/routes",
    "undated": "/pages?show=undated",
}
DOCUMENTED = (("overview", 1280, "light"), ("page", 768, "dark"), ("pages", 390, "light"))
HEIGHTS = {1280: 1240, 768: 1150, 390: 844, 375: 812}


def main() -> None:
    everything = len(sys.argv) == 3 and sys.argv[1] == "--out"
    folder = Path(sys.argv[2]) if everything else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    shots = [(name, width, scheme) for name in PAGES for width in HEIGHTS for scheme in ("light", "dark")]
    with serving_wsgi(make()) as base, chromium() as browser:
        for name, width, scheme in shots if everything else DOCUMENTED:
            size = {"width": width, "height": HEIGHTS[width]}
            context = browser.new_context(viewport=size, color_scheme=scheme, java_script_enabled=False)
            page = context.new_page()
            page.goto(f"{base}{REPORT}{PAGES[name]}")
            file = folder / (f"report-{name}-{width}-{scheme}.png" if everything else f"report-{name}-{width}.png")
            page.screenshot(path=file, full_page=everything)
            context.close()
            print(file, file.stat().st_size)


if __name__ == "__main__":
    main()
