"""I Hate Money (Flask): shared budgets, with a login for each, and an API."""

import os
from pathlib import Path

from ihatemoney.run import create_app

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

settings = Path("ihatemoney.cfg").absolute()
settings.write_text(
    f'SECRET_KEY = "a secret"\nSQLALCHEMY_DATABASE_URI = "sqlite:///{settings.with_suffix(".sqlite")}"\n'
)
os.environ["IHATEMONEY_SETTINGS_FILE_PATH"] = str(settings)

app = explaining_wsgi(SitemapMiddleware(create_app()))
