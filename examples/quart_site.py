"""A night train, with Quart. Its sitemap lists its public pages. Click around: it learns the menus."""

from quart import Quart, abort, redirect, request
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

STOPS = {"harbour": "Leaves at 22:04.", "pass": "Two engines, at midnight.", "lake": "Breakfast is on the left."}
MENUS = {"supper": "Dumplings, until they are gone.", "breakfast": "Rolls, and coffee from six."}
theme = Theme("The Sleeper", "#2b1b4d", "#f3eefb", ("stops", "menus"), ("login", "admin", "draft", "api/delays"))
app = Quart(__name__)


def one_of(texts, name):
    return theme.page(name.title(), f"<p>{texts[name]}</p>") if name in texts else abort(404)


@app.route("/")
@sitemap(priority=1.0, changefreq="monthly")
async def home():
    return theme.page("Asleep at the sea, awake at the lake", cards("/stops", STOPS))


@app.route("/stops")  # its sitemap entry has this date
async def stops():
    return theme.page("Three stops", cards("/stops", STOPS)), {"Last-Modified": "Sun, 14 Dec 2025 03:00:00 GMT"}


@app.route("/stops/<name>")
@sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-12-14") for name in STOPS])
async def stop(name):
    return one_of(STOPS, name)


@app.route("/menus")
async def menus():
    return theme.page("In the dining car", cards("/menus", MENUS))


@app.route("/menus/<name>")
@sitemap(learn=True)  # each is listed after its first visit
async def menu(name):
    return one_of(MENUS, name)


@app.route("/login", methods=["GET", "POST"])
@sitemap(exclude=True)  # a crawler would take it for a page
async def login():
    if request.method == "POST":
        return redirect("/admin", 303), {"Set-Cookie": "crew=yes; Path=/; HttpOnly"}
    return theme.page("Crew only", button("Log in"))


@app.route("/admin")  # not listed: it redirects anonymous visitors
async def admin():
    return theme.page("Berths", "<p>Two left.</p>") if "crew" in request.cookies else redirect("/login")


@app.route("/draft")  # not listed: it says noindex
async def draft():
    return theme.page("Soon", "<p>A second coach.</p>"), {"X-Robots-Tag": "noindex"}


@app.route("/api/delays")  # not listed: it answers with JSON
async def delays():
    return {"pass": 4}


app.asgi_app = SitemapMiddleware(app.asgi_app)
