"""A falconry, with Falcon. Its sitemap lists its public pages. Click around: it learns the diary."""

import falcon.asgi
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

BIRDS = {"merlin": "Small, and never late.", "saker": "Came from the steppe.", "gyr": "White. Do not run."}
DIARY = {"spring": "Two eggs on the tower.", "autumn": "The young ones left."}
theme = Theme("Windhover", "#31433a", "#eef4f0", ("birds", "diary"), ("login", "admin", "draft", "api/weights"))


class Page:
    def __init__(self, heading, text, **headers):
        self.html, self.headers = theme.page(heading, text), headers

    async def on_get(self, request, response):
        response.content_type, response.text = falcon.MEDIA_HTML, self.html
        response.set_headers(self.headers)


class OneOf:
    def __init__(self, texts):
        self.pages = {name: Page(name.title(), f"<p>{text}</p>") for name, text in texts.items()}

    async def on_get(self, request, response, name):
        if name not in self.pages:
            raise falcon.HTTPNotFound
        await self.pages[name].on_get(request, response)


@sitemap(priority=1.0, changefreq="monthly")
class Home(Page):
    """A class, because its settings are for this route alone."""


@sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-04-01") for name in BIRDS])
class Bird(OneOf):
    """Listed at once, with a date."""


@sitemap(learn=True)
class Season(OneOf):
    """Each is listed after its first visit."""


@sitemap(exclude=True)  # a crawler would take it for a page
class Login(Page):
    async def on_post(self, request, response):
        response.set_cookie("keeper", "yes", path="/", secure=False)
        response.status, response.location = falcon.HTTP_303, "/admin"


class Admin(Page):  # not listed: it redirects anonymous visitors
    async def on_get(self, request, response):
        if "keeper" not in request.cookies:
            raise falcon.HTTPFound("/login")
        await super().on_get(request, response)


class Weights:  # not listed: it answers with JSON
    async def on_get(self, request, response):
        response.media = {"merlin": 190}


site = falcon.asgi.App()
site.add_route("/", Home("Three birds on one hill", cards("/birds", BIRDS)))
dated = {"Last-Modified": "Tue, 01 Apr 2025 05:20:00 GMT"}  # the sitemap entry of /birds has this date
site.add_route("/birds", Page("The birds", cards("/birds", BIRDS), **dated))
site.add_route("/birds/{name}", Bird(BIRDS))
site.add_route("/diary", Page("From the diary", cards("/diary", DIARY)))
site.add_route("/diary/{name}", Season(DIARY))
site.add_route("/login", Login("The falconer only", button("Log in")))
site.add_route("/admin", Admin("Food", "<p>Twenty quails.</p>"))
site.add_route("/draft", Page("Soon", "<p>A course.</p>", **{"X-Robots-Tag": "noindex"}))  # not listed
site.add_route("/api/weights", Weights())
app = SitemapMiddleware(site)
