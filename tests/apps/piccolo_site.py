"""The example of piccolo_admin (FastAPI): a single-page admin with nested mounts."""

from pathlib import Path

from piccolo.engine.sqlite import SQLiteEngine
from piccolo_admin.example import app as example
from piccolo_admin.example.tables import TABLE_CLASSES, create_schema, populate_data

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_asgi

new = not Path("example.sqlite").exists()
engine = SQLiteEngine("example.sqlite")
for table in TABLE_CLASSES:
    table._meta._db = engine
if new:
    create_schema()
    populate_data()

bare = example.APP

wrapped = explaining_asgi(SitemapMiddleware(bare, store="memory://"))
