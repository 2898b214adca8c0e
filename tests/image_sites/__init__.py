"""Sites whose images `python3 -m tests.real_images` compares with labels: apps from PyPI, with the data that they ship.

Each module makes `app`, as the authors published it, or `apps`, in the environment of that app. Its working directory is a folder
where the app keeps its data. Apps that ship no data are given a few items, with pictures in one colour.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path


def sources(requirement: str) -> Path:
    """The folder of a package's source distribution, which has the sample site that its wheel lacks."""
    name = requirement.replace("==", "-")
    if not Path(name).exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, requirement], check=True)
        with tarfile.open(next(Path().glob(f"{name}*.tar.gz"))) as archive:
            archive.extractall(filter="data")
    return Path(name).absolute()


def command(*words: str | Path, folder: Path | None = None) -> None:
    """Run a command of the app's environment."""
    program = Path(sys.executable).with_name(str(words[0]))
    subprocess.run([program, *words[1:]], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def files(*folders: str) -> dict[str, object]:
    """Built sites, as Starlette serves their files."""
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    return {name: Starlette(routes=[Mount("/", StaticFiles(directory=name, html=True))]) for name in folders}


def picture(number: int) -> Path:
    """A picture in a colour of its own."""
    from PIL import Image

    file = Path("pictures", f"picture{number}.jpg").absolute()
    file.parent.mkdir(exist_ok=True)
    Image.new("RGB", (1200, 800), (number * 53 % 256, number * 97 % 256, number * 151 % 256)).save(file)
    return file


def django_settings(apps: list[str], urls: list[object], **more: object) -> None:
    """Configure Django with what `startproject` writes, the apps, and their URLs."""
    import types

    import django
    from django.conf import settings
    from django.core.management import call_command

    kind = "django.template.context_processors"
    processors = [f"{kind}.request", f"{kind}.media", "django.contrib.auth.context_processors.auth"]
    processors += ["django.contrib.messages.context_processors.messages"]
    middleware = ["sessions.middleware.Session", "auth.middleware.Authentication", "messages.middleware.Message"]
    contrib = ["auth", "contenttypes", "sessions", "messages", "sites", "staticfiles"]
    settings.configure(
        DEBUG=True,
        SECRET_KEY="a secret",
        ALLOWED_HOSTS=["*"],
        SITE_ID=1,
        ROOT_URLCONF="site_urls",
        INSTALLED_APPS=[*apps, *(f"django.contrib.{name}" for name in contrib)],
        MIDDLEWARE=[*(f"django.contrib.{name}Middleware" for name in middleware)],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [Path("templates").absolute()],
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": processors},
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path("db.sqlite3").absolute()}},
        STATIC_URL="/static/",
        MEDIA_URL="/media/",
        MEDIA_ROOT=Path("media").absolute(),
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        USE_TZ=True,
        **more,
    )
    django.setup()
    sys.modules["site_urls"] = module = types.ModuleType("site_urls")
    call_command("migrate", verbosity=0)
    from django.urls import include, path

    module.urlpatterns = [path(at, include(where)) for at, where in urls]
