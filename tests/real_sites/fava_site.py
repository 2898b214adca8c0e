"""Fava (Flask), the books of a small household."""

from pathlib import Path

from fava.application import create_app

from sitemap_middleware import SitemapMiddleware
from tests.apps.windows import explaining_wsgi

books = Path("household.beancount").absolute()
books.write_text(
    'option "title" "Household"\n2024-01-01 open Assets:Cash\n2024-01-01 open Expenses:Food\n'
    '2024-02-01 * "Market" "Beans"\n  Expenses:Food  3.00 EUR\n  Assets:Cash\n'
)

app = explaining_wsgi(SitemapMiddleware(create_app([books])))
