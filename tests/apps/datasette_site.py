"""Datasette (ASGI without a known framework): a database as pages, learned from traffic."""

import contextlib
import sqlite3
from pathlib import Path

from datasette.app import Datasette

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_asgi

if not Path("library.db").exists():
    with contextlib.closing(sqlite3.connect("library.db")) as database:
        database.executescript(
            """
            CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT, author INTEGER REFERENCES author (id));
            INSERT INTO author VALUES (1, 'Jane Austen'), (2, 'Brontë, Emily & Anne');
            INSERT INTO book VALUES (1, 'Persuasion', 1), (2, 'Wuthering Heights', 2);
            """
        )

bare = Datasette(["library.db"]).app()

PAGES = ["/", "/{db}", "/{db}/{table}", "/{db}/{table}/{row}"]

wrapped = explaining_asgi(SitemapMiddleware(bare, store="memory://", learn=PAGES, exclude="/-/*"))
