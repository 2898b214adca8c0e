"""Wagtail (Django), the project that `wagtail start` makes, with a few pages. One line of its settings is changed."""

import os
import subprocess
import sys
from pathlib import Path

folder = Path("bakery").absolute()
if not folder.exists():
    subprocess.run([Path(sys.executable).with_name("wagtail"), "start", "bakery"], check=True)
    file = folder / "bakery" / "settings" / "base.py"
    text = file.read_text()
    file.write_text(text.replace("MIDDLEWARE = [", 'MIDDLEWARE = [ "sitemap_middleware.django.SitemapMiddleware",'))
sys.path.insert(0, str(folder))
os.environ["DJANGO_SETTINGS_MODULE"] = "bakery.settings.dev"

from django.core.wsgi import get_wsgi_application  # noqa: E402 (after the settings are named)

from sitemap_middleware import SitemapMiddleware  # noqa: E402
from tests.apps.windows import explaining_wsgi  # noqa: E402

project = get_wsgi_application()

from django.core.management import call_command  # noqa: E402
from home.models import HomePage  # noqa: E402
from wagtail.models import PageViewRestriction  # noqa: E402

call_command("migrate", verbosity=0)
home = HomePage.objects.first()
if not home.get_children().exists():
    home.add_child(instance=HomePage(title="Rye", slug="rye"))
    home.add_child(instance=HomePage(title="Draft", slug="draft", live=False))
    secret = home.add_child(instance=HomePage(title="Secret", slug="secret"))
    PageViewRestriction.objects.create(page=secret, restriction_type=PageViewRestriction.LOGIN)

app = explaining_wsgi(SitemapMiddleware.of(project), project)
