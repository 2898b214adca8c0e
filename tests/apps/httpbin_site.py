"""httpbin (Flask): a page about itself, a few of HTML, and many routes that answer JSON, redirects and errors.

It has a robots.txt, which is left as it is.
"""

from httpbin import app as bare

from sitemap_middleware import SitemapMiddleware

from .windows import explaining_wsgi

wrapped = explaining_wsgi(SitemapMiddleware(bare, store="memory://", exclude="/drip", robots=False))
