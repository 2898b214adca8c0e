"""In a sub-interpreter, as mod_wsgi has one for each app, signals do not exist, and the middleware works."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVE = """
import sys
sys.path[:] = {path!r}
from sitemap_middleware import SitemapMiddleware

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/html")])
    return [b"<p>Home"]

site = SitemapMiddleware(app, store="memory://", include="/", verify=False, robots=False)
said = []
def ask(path):
    environ = dict(REQUEST_METHOD="GET", SCRIPT_NAME="", PATH_INFO=path, QUERY_STRING="", HTTP_HOST="localhost")
    environ["wsgi.url_scheme"] = "http"
    return b"".join(site(environ, lambda status, headers, exc_info=None: said.append(status)))
assert ask("/") == b"<p>Home"
site.flush()
assert b"<loc>http://localhost/</loc>" in ask("/sitemap.xml")
assert said == ["200 OK"] * 2
assert site.stats()["seen"] == 1
site.close()
"""

RUN = """
try:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
failed = interpreters.run_string(other, {code!r})
assert failed is None, failed
interpreters.destroy(other)
print("served")
"""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="sub-interpreters are CPython's")
def test_the_middleware_works_in_a_sub_interpreter() -> None:
    code = RUN.format(code=SERVE.format(path=sys.path))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.returncode) == ("served\n", 0), ran.stderr
