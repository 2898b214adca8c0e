"""ASGIWebDAV (ASGI without a known framework): a public folder of files with dates."""

import os
from datetime import UTC, datetime
from pathlib import Path

from asgi_webdav.constants import AppEntryParameters
from asgi_webdav.server import get_asgi_app

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_asgi

FILES = {
    "index.html": "2021-01-01",
    "notes/spring.html": "2022-03-20",
    "notes/autumn & winter.html": "2023-09-23",
    "notes/data.csv": "2023-09-23",
    "notes/plan.pdf": "2024-02-29",
}
for name, day in FILES.items():
    file = Path("files", name)
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_text(f"<!doctype html><title>{name}</title><p>A page.")
    os.utime(file, (moment := datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp(), moment))
for folder, day in (("files/notes", "2024-03-01"), ("files", "2024-04-01")):
    os.utime(folder, (moment := datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp(), moment))

bare = get_asgi_app(
    AppEntryParameters(),
    {
        "anonymous": {"enable": True, "user": {"username": "anonymous", "password": "", "permissions": ["+"]}},
        "provider_mapping": [{"prefix": "/", "uri": f"file://{Path('files').absolute()}", "read_only": True}],
        "logging": {"enable": False},
    },
)

wrapped = explaining_asgi(
    SitemapMiddleware(bare, store="memory://", learn=["/", "/notes", "/notes/{name}", "/index.html"])
)
