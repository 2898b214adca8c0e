"""bepasty (Flask), a pastebin that everyone may read."""
# ruff: noqa: E402 # the app reads its settings as it is imported

import os
from pathlib import Path

Path("storage").mkdir(exist_ok=True)
Path("bepasty.conf").write_text(
    'SECRET_KEY = "a secret"\nSTORAGE = "filesystem"\nSTORAGE_FILESYSTEM_DIRECTORY = "storage"\n'
    'DEFAULT_PERMISSIONS = "read,list"\nPERMISSIONS = {}\n'
)
os.environ["BEPASTY_CONFIG"] = str(Path("bepasty.conf").absolute())

from bepasty.app import create_app

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

app = explaining_wsgi(SitemapMiddleware(create_app()))
