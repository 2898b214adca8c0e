"""A plant library, with FastAPI. Its pages are in /sitemap.xml; the JSON of its API is not."""

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse

from sitemap_middleware import SitemapMiddleware, sitemap

PAGE = """<!doctype html><html lang="en"><title>%s</title><style>body { font: 1.2rem/1.6 Optima, serif; padding: 1rem;
color: #1f3d2b; background: #eef6ea; max-width: 36rem; margin: 3rem auto } h1, a { color: #2f7d4a; margin-right: 1rem }
</style><nav><a href="/">The Plant Library</a><a href="/plants">Plants</a><a href="/sitemap.xml">Sitemap</a></nav>
<main><h1>%s</h1><p>%s</p></main>"""
app, plants = FastAPI(), APIRouter(prefix="/plants", default_response_class=HTMLResponse)


@app.get("/", response_class=HTMLResponse)
@sitemap(priority=1.0, changefreq="monthly")
def home():
    return PAGE % ("The Plant Library", "Borrow a plant", "Take one home, bring it back taller.")


@plants.get("")
def shelf():
    text = PAGE % ("Plants", "On the shelf", "Fern, cactus, mint.")
    return HTMLResponse(text, headers={"Last-Modified": "Sat, 12 Apr 2025 09:00:00 GMT"})


@plants.get("/overdue")
@sitemap(exclude=True)
def overdue():
    return PAGE % ("Overdue", "Bring back the mint", "For the librarians, so not in the sitemap.")


@app.get("/api/plants")
def needs() -> dict[str, str]:
    return {"fern": "shade", "cactus": "sun", "mint": "a pot of its own"}


app.include_router(plants)
app.add_middleware(SitemapMiddleware)  # in production, give base_url too
