"""Mezzanine (Django) with its shop, Cartridge: the pages, galleries and products that it installs itself."""
# ruff: noqa: E402 # Django reads its settings as the app is imported

import locale
import os
import sys
from pathlib import Path

from . import command

locale._override_localeconv = {"frac_digits": 2}  # for machines without locales
if not Path("project").exists():
    command("mezzanine-project", "-a", "cartridge", "project")
sys.path.insert(0, "project")
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"

from django.core.wsgi import get_wsgi_application

app = get_wsgi_application()

from django.contrib.sites.models import Site
from django.core.management import call_command

if not Path("project", "dev.db").exists():
    call_command("createdb", interactive=False, verbosity=0)
    Site.objects.update(domain="localhost")
