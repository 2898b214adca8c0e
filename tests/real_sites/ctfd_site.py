"""CTFd (Flask, Werkzeug 2.2): a contest with public pages, a login and an API, set up as its own first form does it."""
# ruff: noqa: E402 # the app reads its settings as it is imported

import os
from pathlib import Path

folder = Path().absolute()
os.environ.update(
    DATABASE_URL=f"sqlite:///{folder}/ctfd.sqlite",
    SECRET_KEY="a secret",
    UPLOAD_FOLDER=f"{folder}/uploads",
    LOG_FOLDER=f"{folder}/logs",
)
for name in ("uploads", "logs"):
    Path(name).mkdir(exist_ok=True)

from CTFd import create_app

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

bare = create_app()
with bare.app_context(), bare.test_client() as visitor:
    visitor.get("/setup")
    with visitor.session_transaction() as session:
        nonce = session.get("nonce")
    form = {"ctf_name": "Contest", "ctf_description": "A contest", "user_mode": "users", "ctf_theme": "core-beta"}
    admin = {"name": "admin", "email": "admin@example.com", "password": "a password of some length"}
    visitor.post("/setup", data={**form, **admin, "nonce": nonce})

app = explaining_wsgi(SitemapMiddleware(bare))
