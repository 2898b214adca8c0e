"""Hostile documents are refused in bounded memory, and in nearly the time that a small document takes."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

MEGABYTE = 1_000_000
ROOT = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
GOOD = ROOT + b"<url><loc>https://example.com/</loc></url></urlset>"
ALLOWED_MEGABYTES = 150
"""Beyond the memory for a small document: the parser and its reader may keep what the largest document contains."""

RUN = """
import asyncio, json, resource, sys
from pathlib import Path
from sitemap_middleware.check.sources import FileSource
from sitemap_middleware.check.run_state import CheckSettings
from sitemap_middleware.check.run_check import check_sitemap
result = asyncio.run(check_sitemap(FileSource(Path(sys.argv[1])), CheckSettings()))
codes = sorted({finding.code for finding in result.findings})
print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, codes, len(result.findings)]))
"""


def compressed(start: bytes, part: bytes, times: int) -> Iterator[bytes]:
    """One gzip file of a beginning and a part that is repeated, as members: made quickly, whatever its size."""
    return chain([gzip.compress(start)], repeat(gzip.compress(part), times))


def names() -> Iterator[bytes]:
    yield ROOT
    for number in range(100):
        yield b"".join(b"<x%d/>" % (number * 10_000 + n) for n in range(10_000))


def long_names() -> Iterator[bytes]:
    yield ROOT
    for number in range(50):
        yield b"<x%d" % number + b"x" * 900_000 + b"/>"


def long_links() -> Iterator[bytes]:
    yield ROOT.replace(b">", b' xmlns:xhtml="http://www.w3.org/1999/xhtml">')
    for number in range(50):
        yield b"<url><loc>https://example.com/%d</loc>" % number
        yield b'<xhtml:link rel="alternate" hreflang="%d' % number + b"x" * 500_000
        yield b'" href="https://example.com/%d' % number + b"x" * 400_000 + b'"/></url>'
    yield b"</urlset>"


BOMBS: dict[str, tuple[list[str], Callable[[], Iterator[bytes]]]] = {
    "10 GB of blanks": (["document-too-large"], lambda: compressed(ROOT, b" " * 10 * MEGABYTE, 1_000)),
    "a tag without end": (["xml-too-complex"], lambda: compressed(b'<urlset a="', b"x" * MEGABYTE, 1_000)),
    "a value without end": (["document-too-large"], lambda: compressed(ROOT + b"<url><loc>", b"x" * MEGABYTE, 1_000)),
    "elements without end": (["xml-too-complex"], lambda: compressed(ROOT + b"<url>", b"<loc>" * 100_000, 1_000)),
    "an entry without end": (["xml-too-complex"], lambda: compressed(ROOT + b"<url>", b"<loc/>" * 100_000, 1_000)),
    "many names": (["xml-too-complex", "xml-unknown-element"], names),
    "long names": (["xml-not-well-formed", "xml-unknown-element"], long_names),
    "long links": (["hreflang-code", "hreflang-url"], long_links),
    "many entries": (["document-too-many-urls", "loc-missing"], lambda: compressed(ROOT, b"<url/>" * 100_000, 1_000)),
    "many other elements": (
        ["xml-misplaced-element", "xml-too-complex"],
        lambda: compressed(ROOT, b"<loc/>" * 99_999, 100),
    ),
    "many lines": (["document-too-large"], lambda: compressed(b"", b"https://example.com/\n" * 100_000, 100)),
}


def run(folder: Path, pieces: Iterator[bytes]) -> tuple[float, list[str], int]:
    """The megabytes that a check takes, the codes that it reports, and how many messages it keeps."""
    file = folder / "sitemap.xml"
    with file.open("wb") as opened:
        opened.writelines(pieces)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(file)], capture_output=True, text=True, check=True, timeout=120
    )
    kilobytes, codes, messages = json.loads(done.stdout)
    return kilobytes / 1_000, codes, messages


@pytest.fixture(scope="module")
def usual_megabytes(tmp_path_factory: pytest.TempPathFactory) -> float:
    return run(tmp_path_factory.mktemp("usual"), iter([GOOD]))[0]


@pytest.mark.slow
@pytest.mark.parametrize("bomb", [*BOMBS])
def test_bomb_is_refused_in_bounded_memory(bomb: str, tmp_path: Path, usual_megabytes: float) -> None:
    codes, pieces = BOMBS[bomb]
    megabytes, found, messages = run(tmp_path, pieces())
    assert found == codes
    assert messages <= 201
    assert megabytes < usual_megabytes + ALLOWED_MEGABYTES
