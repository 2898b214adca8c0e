"""A plant library, with FastAPI. Its sitemap lists its public pages. Click around: it learns the tips."""

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

PLANTS = {"fern": "Likes shade.", "cactus": "Likes sun.", "mint": "Wants a pot of its own."}
TIPS = {"water": "Less than you think.", "light": "More than you think."}
page = Theme(
    "The Plant Library", "#2f7d4a", "#eef6ea", ("plants", "tips"), ("login", "admin", "draft", "api/plants")
).page
app, pages = FastAPI(), APIRouter(default_response_class=HTMLResponse)


def one_of(texts, name):
    if name not in texts:
        raise HTTPException(404)
    return page(name.title(), f"<p>{texts[name]}</p>")


@pages.get("/")
@sitemap(priority=1.0, changefreq="monthly")
def home():
    return page("Borrow a plant", "<p>Take one home, bring it back taller.</p>" + cards("/plants", PLANTS))


@pages.get("/plants")
def shelf():
    dated = {"Last-Modified": "Sat, 12 Apr 2025 09:00:00 GMT"}  # its sitemap entry has this date
    return HTMLResponse(page("On the shelf", cards("/plants", PLANTS)), headers=dated)


@pages.get("/plants/{name}")
@sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-04-01") for name in PLANTS])  # all are listed at once
def plant(name: str):
    return one_of(PLANTS, name)


@pages.get("/tips")
def tips():
    return page("From the gardener", cards("/tips", TIPS))


@pages.get("/tips/{name}")
@sitemap(learn=True)  # each is listed after its first visit
def tip(name: str):
    return one_of(TIPS, name)


@pages.get("/login")
@sitemap(exclude=True)  # a crawler would take it for a page
def login():
    return page("Librarians only", button("Log in"))


@pages.post("/login")
def logged_in():
    return RedirectResponse("/admin", 303, headers={"Set-Cookie": "librarian=yes; Path=/; HttpOnly"})


@pages.get("/admin")  # not listed: it redirects anonymous visitors
def admin(request: Request):
    known = "librarian" in request.cookies
    return HTMLResponse(page("Loans", "<p>One fern, overdue.</p>")) if known else RedirectResponse("/login")


@pages.get("/draft")  # not listed: it says noindex
def draft():
    return HTMLResponse(page("Soon", "<p>Seeds.</p>"), headers={"X-Robots-Tag": "noindex"})


app.get("/api/plants")(lambda: PLANTS)  # not listed: it is not HTML
app.include_router(pages)
app.add_middleware(SitemapMiddleware)  # in production, give base_url too
