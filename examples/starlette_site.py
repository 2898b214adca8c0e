"""A lighthouse, with Starlette. Its sitemap has what a stranger can read; click around, and it learns the nights."""

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.routing import Route

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

LAMPS = {"first": "Oil, 1841.", "second": "Gas, and a lens from Paris.", "third": "A bulb of 250 watts."}
NIGHTS = {"fog": "Horn from nine until dawn.", "gale": "Spray on the lamp, 40 m up.", "calm": "Counted the stars."}
PAGE = """<!doctype html><html lang="en"><title>%s</title><style>body { font: 1.2rem/1.6 Avenir, serif; padding: 1rem;
color: #dce6f2; background: #12294a; max-width: 42rem; margin: 3rem auto } h1, a { color: #ffd166; margin-right: 1rem }
</style><nav><a href="/">Skerry Light</a><a href="/lamps">Lamps</a><a href="/log">The log</a>
<a href="/sitemap.xml">Sitemap</a></nav><main><h1>%s</h1><p>%s</p></main>"""


def links(folder, names):
    return "".join(f'<a href="{folder}/{name}">{name.title()}</a>' for name in names)


def answer(title, heading, text, status=200, **headers):
    return HTMLResponse(PAGE % (title, heading, text), status, {k.replace("_", "-"): v for k, v in headers.items()})


def one_of(texts):
    async def page(request):
        name = request.path_params["name"]
        return answer(name, name.title(), texts.get(name, "Nothing."), 200 if name in texts else 404)

    return page


@sitemap(priority=1.0, changefreq="monthly")
async def home(request):
    return answer("Skerry Light", "Two white flashes", "Every twenty seconds, seen for 21 miles.")


async def lamps(request):
    return answer("Lamps", "Three", links("/lamps", LAMPS), Last_Modified="Sun, 09 Mar 2025 06:12:00 GMT")


async def log(request):
    return answer("The log", "From the keeper's log", links("/log", NIGHTS))


async def draft(request):
    return answer("Draft", "Soon", "A tour.", X_Robots_Tag="noindex")


@sitemap(exclude=True)
async def login(request):
    return answer("Log in", "Keepers only", "Mind the stairs.")


lamp = sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-03-01") for name in LAMPS])(one_of(LAMPS))
pages = {"/": home, "/lamps": lamps, "/lamps/{name}": lamp, "/log": log, "/draft": draft, "/login": login}
pages["/log/{name}"] = sitemap(learn=True)(one_of(NIGHTS))
pages["/admin"] = lambda _: RedirectResponse("/login")  # no page for strangers
pages["/api/tides"] = lambda _: JSONResponse({"high": "04:10", "low": "10:25"})  # no page at all
app = Starlette(routes=[Route(path, view) for path, view in pages.items()])
app.add_middleware(SitemapMiddleware)  # in production, give base_url too
