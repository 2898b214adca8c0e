"""A bakery, with Flask. Visit a loaf, then look at /sitemap.xml again: it has learned that page."""

from flask import Flask, abort

from sitemap_middleware import SitemapMiddleware, sitemap

LOAVES = {"rye": "Dark, sour, good for a week.", "spelt": "Nutty, with honey.", "baguette": "Gone by nine."}
PAGE = """<!doctype html><html lang="en"><title>%s</title><style>body { font: 1.2rem/1.6 Georgia, serif; padding: 1rem;
color: #4a2c17; background: #fdf4e3; max-width: 36rem; margin: 3rem auto }
h1, a { color: #a8521c } a { margin-right: 1rem }</style>
<nav><a href="/">The Corner Bakery</a><a href="/bread">Bread</a><a href="/sitemap.xml">Sitemap</a></nav>
<main><h1>%s</h1><p>%s</p></main>"""
app = Flask(__name__)


@app.get("/")
@sitemap(priority=1.0, changefreq="weekly")
def home():
    return PAGE % ("The Corner Bakery", "Warm since four", "12 Mill Lane, Tuesday to Saturday.")


@app.get("/bread")
def bread():
    links = "".join(f'<a href="/bread/{name}">{name.title()}</a>' for name in LOAVES)
    return PAGE % ("Bread", "Until it is gone", links), {"Last-Modified": "Fri, 02 May 2025 04:30:00 GMT"}


@app.get("/bread/<name>")
def loaf(name):
    return PAGE % (name, name.title(), LOAVES.get(name) or abort(404))


@app.get("/rota")
@sitemap(exclude=True)
def rota():
    return PAGE % ("Rota", "Who bakes when", "For the bakers, so not in the sitemap.")


app.wsgi_app = SitemapMiddleware(app.wsgi_app, learn="/bread/<name>")  # in production, give base_url too
