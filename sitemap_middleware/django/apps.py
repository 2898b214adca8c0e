"""The entry of Django's `INSTALLED_APPS`, for the command ``manage.py sitemap``: ``"sitemap_middleware.django"``."""

from django.apps import AppConfig


class SitemapConfig(AppConfig):  # type: ignore[misc] # Django is untyped
    name = "sitemap_middleware.django"
    label = "sitemap_middleware"  # "django" may be the label of another app
