"""MoinMoin 2 (Flask), a wiki, with the pages of its help."""

import subprocess
import sys
from pathlib import Path

if not Path("wikiconfig.py").exists():
    subprocess.run([Path(sys.executable).parent / "moin", "create-instance", "--full"], check=True)

from moin.app import create_app

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

app = explaining_wsgi(SitemapMiddleware(create_app("wikiconfig.py")))
