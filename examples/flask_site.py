"""A bakery, with Flask. Its sitemap has the pages a stranger can read; click around, and it learns the notes, too."""

from flask import Flask, abort, redirect

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

LOAVES = {"rye": "Dark, sour, good for a week.", "spelt": "Nutty, with honey.", "baguette": "Gone by nine."}
NOTES = {"oven": "The new oven came. It is loud.", "flour": "From the mill upstream, since spring."}
PAGE = """<!doctype html><html lang="en"><title>%s</title><style>body { font: 1.2rem/1.6 Georgia, serif; padding: 1rem;
color: #4a2c17; background: #fdf4e3; max-width: 42rem; margin: 3rem auto } h1, a { color: #a8521c; margin-right: 1rem }
</style><nav><a href="/">The Corner Bakery</a><a href="/bread">Bread</a><a href="/notes">Notes</a>
<a href="/sitemap.xml">Sitemap</a></nav><main><h1>%s</h1><p>%s</p></main>"""
app = Flask(__name__)


def links(folder, names):
    return "".join(f'<a href="{folder}/{name}">{name.title()}</a>' for name in names)


@app.get("/")
@sitemap(priority=1.0, changefreq="weekly")
def home():
    return PAGE % ("The Corner Bakery", "Warm since four", "12 Mill Lane, Tuesday to Saturday.")


@app.get("/bread")
def bread():
    return PAGE % ("Bread", "Until it is gone", links("/bread", LOAVES)), {
        "Last-Modified": "Fri, 02 May 2025 04:30:00 GMT"
    }


@app.get("/bread/<name>")
@sitemap(values=lambda: (Entry({"name": name}, lastmod="2025-05-01") for name in LOAVES))
def loaf(name):
    return PAGE % (name, name.title(), LOAVES.get(name) or abort(404))


@app.get("/notes")
def notes():
    return PAGE % ("Notes", "From the bakers", links("/notes", NOTES))


@app.get("/notes/<name>")
@sitemap(learn=True)
def note(name):
    return PAGE % (name, name.title(), NOTES.get(name) or abort(404))


@app.get("/draft")
def draft():
    return PAGE % ("Draft", "Soon", "A cake."), {"X-Robots-Tag": "noindex"}


@app.get("/login")
@sitemap(exclude=True)
def login():
    return PAGE % ("Log in", "Bakers only", "Knock twice.")


app.add_url_rule("/admin", "admin", lambda: redirect("/login"))  # no page for strangers
app.add_url_rule("/api/prices", "prices", lambda: {"rye": 4.2, "spelt": 4.8})  # no page at all
app.wsgi_app = SitemapMiddleware(app.wsgi_app)  # in production, give base_url too
