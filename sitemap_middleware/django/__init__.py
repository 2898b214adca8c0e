"""The sitemap as an entry of Django's `MIDDLEWARE`: ``"sitemap_middleware.django.SitemapMiddleware"``."""

from .middleware import SitemapMiddleware

__all__ = ["SitemapMiddleware"]
