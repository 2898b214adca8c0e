"""Calibre-Web (Flask) as it is after its installation: all but the login is behind the login."""
# ruff: noqa: E402 # the app reads its settings as it is imported

import contextlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(next(path for path in sys.path if Path(path, "calibreweb").is_dir()), "calibreweb")))
sys.argv = ["calibreweb", "-p", str(Path("app.db").absolute())]

from cps import app as bare
from cps import main as calibreweb
from cps import web_server

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

web_server.start = lambda: True  # gunicorn serves it instead
with contextlib.suppress(SystemExit):
    calibreweb.main()

app = explaining_wsgi(SitemapMiddleware(bare))
