"""A plant library, with FastAPI. Its sitemap has what a stranger can read; click around, and it learns the tips."""

from fastapi import APIRouter, FastAPI, HTTPException
from fastapi.responses import HTMLResponse, RedirectResponse

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

PLANTS = {"fern": "Likes shade.", "cactus": "Likes sun.", "mint": "Wants a pot of its own."}
TIPS = {"water": "Less than you think.", "light": "More than you think."}
PAGE = """<!doctype html><html lang="en"><title>%s</title><style>body { font: 1.2rem/1.6 Optima, serif; padding: 1rem;
color: #1f3d2b; background: #eef6ea; max-width: 42rem; margin: 3rem auto } h1, a { color: #2f7d4a; margin-right: 1rem }
</style><nav><a href="/">The Plant Library</a><a href="/plants">Plants</a><a href="/tips">Tips</a>
<a href="/sitemap.xml">Sitemap</a></nav><main><h1>%s</h1><p>%s</p></main>"""
app, pages = FastAPI(), APIRouter(default_response_class=HTMLResponse)


def links(folder, names):
    return "".join(f'<a href="{folder}/{name}">{name.title()}</a>' for name in names)


def one_of(texts, name):
    if name not in texts:
        raise HTTPException(404)
    return PAGE % (name, name.title(), texts[name])


@pages.get("/")
@sitemap(priority=1.0, changefreq="monthly")
def home():
    return PAGE % ("The Plant Library", "Borrow a plant", "Take one home, bring it back taller.")


@pages.get("/plants")
def shelf():
    dated = {"Last-Modified": "Sat, 12 Apr 2025 09:00:00 GMT"}
    return HTMLResponse(PAGE % ("Plants", "On the shelf", links("/plants", PLANTS)), headers=dated)


@pages.get("/plants/{name}")
@sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-04-01") for name in PLANTS])
def plant(name: str):
    return one_of(PLANTS, name)


@pages.get("/tips")
def tips():
    return PAGE % ("Tips", "From the gardener", links("/tips", TIPS))


pages.get("/tips/{name}")(sitemap(learn=True)(lambda name: one_of(TIPS, name)))
pages.get("/draft")(lambda: HTMLResponse(PAGE % ("Draft", "Soon", "Seeds."), headers={"X-Robots-Tag": "noindex"}))
pages.get("/admin")(lambda: RedirectResponse("/login"))  # is no page for strangers
pages.get("/login")(sitemap(exclude=True)(lambda: PAGE % ("Log in", "Librarians only", "Bring a plant.")))  # is marked
app.get("/api/plants")(lambda: PLANTS)  # is no page
app.include_router(pages)
app.add_middleware(SitemapMiddleware)  # in production, give base_url too
