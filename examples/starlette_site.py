"""A lighthouse, with Starlette. Its sitemap lists its public pages. Click around: it learns the nights."""

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.routing import Route
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

LAMPS = {"first": "Oil, 1841.", "second": "Gas, and a lens from Paris.", "third": "A bulb of 250 watts."}
NIGHTS = {"fog": "Horn from nine until dawn.", "gale": "Spray on the lamp, 40 m up.", "calm": "Counted the stars."}
theme = Theme("The Skerry Light", "#12294a", "#eaf0f8", ("lamps", "log"), ("login", "admin", "draft", "api/tides"))


def page(heading, text, status=200, **headers):
    return HTMLResponse(theme.page(heading, text), status, headers)


def one_of(texts):
    async def view(request):
        name = request.path_params["name"]
        return page(name.title(), f"<p>{texts.get(name, 'Nothing.')}</p>", 200 if name in texts else 404)

    return view


@sitemap(priority=1.0, changefreq="monthly")
async def home(request):
    return page("Two white flashes", "<p>Every twenty seconds, seen for 21 miles.</p>" + cards("/lamps", LAMPS))


async def lamps(request):  # its sitemap entry has this date
    return page("Three lamps", cards("/lamps", LAMPS), **{"Last-Modified": "Sun, 09 Mar 2025 06:12:00 GMT"})


lamp = sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-03-01") for name in LAMPS])(one_of(LAMPS))


async def log(request):
    return page("From the keeper's log", cards("/log", NIGHTS))


night = sitemap(learn=True)(one_of(NIGHTS))  # each is listed after its first visit


@sitemap(exclude=True)  # a crawler would take it for a page
async def login(request):
    if request.method == "POST":
        return RedirectResponse("/admin", 303, {"Set-Cookie": "keeper=yes; Path=/; HttpOnly"})
    return page("Keepers only", button("Log in"))


async def admin(request):  # not listed: it redirects anonymous visitors
    return page("Stores", "<p>Two bulbs left.</p>") if "keeper" in request.cookies else RedirectResponse("/login")


async def draft(request):  # not listed: it says noindex
    return page("Soon", "<p>A tour.</p>", **{"X-Robots-Tag": "noindex"})


async def tides(request):  # not listed: it is not HTML
    return JSONResponse({"high": "04:10", "low": "10:25"})


views = {"/": home, "/lamps": lamps, "/lamps/{name}": lamp, "/log": log, "/log/{name}": night, "/admin": admin}
views |= {"/draft": draft, "/api/tides": tides}
routes = [Route(path, view) for path, view in views.items()]
app = Starlette(routes=[*routes, Route("/login", login, methods=["GET", "POST"])])
app.add_middleware(SitemapMiddleware)  # in production, give base_url too
