"""httpbin (Flask): a few HTML pages, and many routes that answer JSON, redirects and errors.

Its robots.txt is kept.
"""

from httpbin import app as bare

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_wsgi

wrapped = explaining_wsgi(SitemapMiddleware(bare, store="memory://", exclude="/drip", robots=False))
