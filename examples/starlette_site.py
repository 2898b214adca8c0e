"""A lighthouse, with Starlette. Read a night of its log, then look at /sitemap.xml again: it has learned that page."""

from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from sitemap_middleware import SitemapMiddleware, sitemap

NIGHTS = {"fog": "Horn from nine until dawn.", "gale": "Spray on the lamp, 40 m up.", "calm": "Counted the stars."}
PAGE = """<!doctype html><html lang="en"><title>%s</title><style>body { font: 1.2rem/1.6 Avenir, serif; padding: 1rem;
color: #dce6f2; background: #12294a; max-width: 36rem; margin: 3rem auto }
h1, a { color: #ffd166 } a { margin-right: 1rem }</style>
<nav><a href="/">Skerry Light</a><a href="/log">The log</a><a href="/sitemap.xml">Sitemap</a></nav>
<main><h1>%s</h1><p>%s</p></main>"""


@sitemap(priority=1.0, changefreq="monthly")
async def home(request):
    return HTMLResponse(PAGE % ("Skerry Light", "Two white flashes", "Every twenty seconds, seen for 21 miles."))


async def log(request):
    links = "".join(f'<a href="/log/{name}">{name.title()}</a>' for name in NIGHTS)
    dated = {"Last-Modified": "Sun, 09 Mar 2025 06:12:00 GMT"}
    return HTMLResponse(PAGE % ("The log", "From the keeper's log", links), headers=dated)


async def night(request):
    entry = NIGHTS.get(request.path_params["name"])
    return HTMLResponse(PAGE % ("A night", "That night", entry or "Nothing is written."), 200 if entry else 404)


@sitemap(exclude=True)
async def rota(request):
    return HTMLResponse(PAGE % ("Rota", "Who keeps watch", "For the keepers, so not in the sitemap."))


app = Starlette(routes=[Route("/", home), Route("/log", log), Route("/log/{name}", night), Route("/rota", rota)])
app.add_middleware(SitemapMiddleware, learn="/log/{name}")  # in production, give base_url too
