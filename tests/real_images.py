"""`python3 -m tests.real_images`: whether `images=True` lists the images that pages of published apps show.

Each app of `tests.image_sites` has an environment, as in `tests.real_apps`, which `python3 tests` prepares. Its pages
are read twice through the middleware, its sitemap is checked, and the images in it are compared with
`tests/image_sites/labels.json`. Somebody chose these by reading the HTML: what belongs to the content of each page, its
galleries too, on its own host; not logos, icons, avatars, pictures that do not exist, or previews that only lead to
another page. A label names the sizes of one picture, parted by "|". What robots.txt forbids counts, too.

Arguments are names of apps; without any, all run. The exit code is 1 if the precision is below 0.95, the recall below
0.9, or an image listed in two sizes.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from .__main__ import BIN, HOME, ROOT, UV
from .real_apps import App, environment

APPS = {
    "Nikola": App("nikola_site", ("nikola[extras]==8.3.3",)),
    "Pelican": App("pelican_site", ("pelican==4.12.0", "markdown", "pip")),
    "Sigal": App("sigal_site", ("sigal==2.6.1", "feedgenerator", "brotli", "pip")),
    "Cartridge": App("cartridge_site", ("mezzanine==6.1.1", "cartridge==1.3.4", "setuptools<81")),
    "Puput": App("puput_site", ("puput==2.2.0", "django-contrib-comments", "django-social-share", "django-colorful")),
    "Photologue": App("photologue_site", ("django-photologue==3.20",)),
    "MoinMoin": App("moin_site", ("moin==2.0.0b5",)),
}
LABELS = Path(__file__).parent / "image_sites" / "labels.json"
BASE = "http://localhost"
SITEMAP = "/images.xml"
"""Some apps have a /sitemap.xml of their own."""
NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
IMAGE_NS = "{http://www.google.com/schemas/sitemap-image/1.1}"


def listed(app: object, paths: list[str]) -> tuple[dict[str, list[str]], str]:
    """The images in the sitemap of an app, by page, as paths of the site; and the sitemap itself."""
    from sitemap_middleware import SitemapMiddleware

    from .support.wire import RequestSpec, asgi, wsgi

    now = [time.time()]
    middleware = SitemapMiddleware(
        app,
        base_url=BASE,
        path=SITEMAP,
        store="memory://",
        clock=lambda: now[0],
        verify=False,
        robots=False,
        images=1_000,
        include=[unquote(path) for path in paths],
    )
    send = asgi if inspect.iscoroutinefunction(type(app).__call__) else partial(wsgi, validate=False)
    for _ in range(2):
        now[0] += 2 * 60 * 60
        for path in paths:
            send(middleware, RequestSpec(unquote(path), host="localhost"))
        middleware.flush()
    document = send(middleware, RequestSpec(SITEMAP, host="localhost")).text
    urls = ET.fromstring(document).iter(f"{NS}url")
    found = {url[0].text or "": [loc.text or "" for loc in url.iter(f"{IMAGE_NS}loc")] for url in urls}
    return {
        loc.removeprefix(BASE): [image.removeprefix(BASE) for image in images] for loc, images in found.items()
    }, document


def inside(site: str, name: str) -> None:
    """In the environment of an app: print what is listed of it, and its sitemap."""
    module = importlib.import_module(f"tests.image_sites.{site}")
    labels = json.loads(LABELS.read_text("utf-8"))
    apps = getattr(module, "apps", None) or {"": module.app}
    result = {
        key: listed(app, [*labels[key]]) for part, app in apps.items() if (key := f"{name} {part}".strip()) in labels
    }
    Path("listed.json").write_text(json.dumps(result), "utf-8")
    os._exit(0)  # an app may have threads of its own


class Score(NamedTuple):
    pages: int
    labelled: int
    found: int
    doubles: int
    wrong: int

    def __str__(self) -> str:
        listed = self.found + self.doubles + self.wrong
        precision, recall = self.found / (listed or 1), self.found / (self.labelled or 1)
        return f"{self.pages:5} {self.labelled:9} {self.found:6} {self.doubles:8} {self.wrong:6} {precision:10.3f} {recall:7.3f}"


def score(labels: dict[str, list[str]], found: dict[str, list[str]]) -> Score:
    """Compare the pages of an app. A label names the sizes of one picture, of which one is to be listed."""
    total = Score(len(labels), 0, 0, 0, 0)
    for path, pictures in labels.items():
        images = found.get(path, [])
        counts = [sum(size in images for size in picture.split("|")) for picture in pictures]
        right = sum(count > 0 for count in counts)
        page = Score(0, len(pictures), right, sum(counts) - right, len(images) - sum(counts))
        for picture, count in zip(pictures, counts, strict=True):
            if count != 1:
                print(f"   {path}: {'missed' if not count else 'double'}: {picture}")
        known = {size for picture in pictures for size in picture.split("|")}
        for image in images:
            if image not in known:
                print(f"   {path}: wrong: {image}")
        total = Score(*map(sum, zip(total, page, strict=True)))
    return total


def examine(uv: Path, name: str, app: App) -> dict[str, Score]:
    """Serve an app, compare its images, and check its sitemap."""
    here = environment(uv, name, app)
    assert here is not None
    folder = HOME / "images" / app.site
    folder.mkdir(parents=True, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith("SITEMAP_")}
    command = [here / "python", "-W", "ignore", "-m", __spec__.name, "--inside", app.site, name]
    with (folder / "log").open("wb") as log:
        subprocess.run(
            command, cwd=folder, env={**env, "PYTHONPATH": str(ROOT)}, check=True, stdout=log, stderr=subprocess.STDOUT
        )
    labels = json.loads(LABELS.read_text("utf-8"))
    scores = {}
    for key, (found, document) in json.loads((folder / "listed.json").read_text("utf-8")).items():
        print(f"== {key}", flush=True)
        scores[key] = score(labels[key], found)
        (folder / "sitemap.xml").write_text(document, "utf-8")
        check = [HOME / "newest" / BIN / "sitemap-middleware", "check", folder / "sitemap.xml"]
        checked = subprocess.run([*check, "--base-url", BASE, "--json"], check=False, stdout=subprocess.PIPE)
        assert json.loads(checked.stdout) == [], checked.stdout.decode()
    return scores


def main(names: list[str]) -> int:
    if names[:1] == ["--inside"]:
        inside(*names[1:])
    scores = {
        key: found
        for name, app in APPS.items()
        if name in names or not names
        for key, found in examine(UV / "uv", name, app).items()
    }
    scores["all"] = total = Score(*map(sum, zip(*scores.values(), strict=True)))
    print(f"\n{'':22} pages labelled  found  doubles  wrong  precision  recall")
    for key, found in scores.items():
        print(f"{key:22} {found}")
    listed = total.found + total.doubles + total.wrong
    return int(total.doubles > 0 or total.found < 0.9 * total.labelled or total.found < 0.95 * listed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
