"""A bakery, with Flask. Its sitemap lists its public pages. Click around: it learns the notes."""

from flask import Flask, abort, redirect, session
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

LOAVES = {"rye": "Dark, sour, good for a week.", "spelt": "Nutty, with honey.", "baguette": "Gone by nine."}
NOTES = {"oven": "The new oven came. It is loud.", "flour": "From the mill upstream, since spring."}
page = Theme(
    "The Corner Bakery", "#a8521c", "#fdf4e3", ("bread", "notes"), ("login", "admin", "draft", "api/prices")
).page
app = Flask(__name__)
app.secret_key = "of an example"


@app.get("/")
@sitemap(priority=1.0, changefreq="weekly")
def home():
    report = '<p><a href="/sitemap-report">What the sitemap lists, and why</a></p>' if app.debug else ""
    return page("Warm since four", "<p>12 Mill Lane, Tuesday to Saturday.</p>" + cards("/bread", LOAVES) + report)


@app.get("/bread")
def bread():
    dated = {"Last-Modified": "Fri, 02 May 2025 04:30:00 GMT"}  # its sitemap entry has this date
    return page("Until it is gone", cards("/bread", LOAVES)), dated


@app.get("/bread/<name>")
@sitemap(values=lambda: (Entry({"name": name}, lastmod="2025-05-01") for name in LOAVES))  # all are listed at once
def loaf(name):
    return page(name.title(), f"<p>{LOAVES.get(name) or abort(404)}</p>")


@app.get("/notes")
def notes():
    return page("From the bakers", cards("/notes", NOTES))


@app.get("/notes/<name>")
@sitemap(learn=True)  # each is listed after its first visit
def note(name):
    return page(name.title(), f"<p>{NOTES.get(name) or abort(404)}</p>")


@app.get("/login")
@sitemap(exclude=True)  # a crawler would take it for a page
def login():
    return page("Bakers only", button("Log in"))


@app.post("/login")
def logged_in():
    session["baker"] = True
    return redirect("/admin")


@app.get("/admin")  # not listed: it redirects anonymous visitors
def admin():
    return page("Orders", "<p>Forty rolls for the school.</p>") if session.get("baker") else redirect("/login")


@app.get("/draft")  # not listed: it says noindex
def draft():
    return page("Soon", "<p>A cake.</p>"), {"X-Robots-Tag": "noindex"}


@app.get("/api/prices")  # not listed: it is not HTML
def prices():
    return {"rye": 4.2, "spelt": 4.8}


# In production, give base_url too. The report is shown only in debug mode, and only on this machine.
app.wsgi_app = SitemapMiddleware(app.wsgi_app, report="/sitemap-report")
