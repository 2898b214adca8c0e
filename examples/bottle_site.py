"""A cider cellar, with Bottle. Its sitemap lists its public pages. Click around: it learns the letters."""

from bottle import Bottle, HTTPResponse, abort, request, response
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

CIDERS = {"dry": "For oysters.", "sweet": "For the last slice.", "ice": "From frozen apples."}
LETTERS = {"frost": "Half of the blossom is gone.", "press": "The press turns again."}
SECRET = "of an example"
page = Theme(
    "Cork and Crown", "#5a6b1f", "#f6f7e8", ("ciders", "letters"), ("login", "admin", "draft", "api/stock")
).page
cellar = Bottle()


@cellar.get("/")
@sitemap(priority=1.0, changefreq="monthly")
def home():
    return page("Apples, and time", "<p>Down the steps, on Saturdays.</p>" + cards("/ciders", CIDERS))


@cellar.get("/ciders")
def ciders():
    response.set_header("Last-Modified", "Sat, 08 Nov 2025 10:00:00 GMT")  # its sitemap entry has this date
    return page("In the racks", cards("/ciders", CIDERS))


@cellar.get("/ciders/<name>")
@sitemap(values=lambda: (Entry({"name": name}, lastmod="2025-11-01") for name in CIDERS))  # all are listed at once
def cider(name):
    return page(name.title(), f"<p>{CIDERS.get(name) or abort(404)}</p>")


@cellar.get("/letters")
def letters():
    return page("Letters from the orchard", cards("/letters", LETTERS))


@cellar.get("/letters/<name>")
@sitemap(learn=True)  # each is listed after its first visit
def letter(name):
    return page(name.title(), f"<p>{LETTERS.get(name) or abort(404)}</p>")


@cellar.get("/login")
@sitemap(exclude=True)  # a crawler would take it for a page
def login():
    return page("The cellarer only", button("Log in"))


@cellar.post("/login")
def logged_in():
    answer = HTTPResponse(status=303, Location="/admin")
    answer.set_cookie("cellarer", "yes", secret=SECRET, path="/")
    return answer


@cellar.get("/admin")  # not listed: it redirects anonymous visitors
def admin():
    if not request.get_cookie("cellarer", secret=SECRET):
        return HTTPResponse(status=302, Location="/login")
    return page("Orders", "<p>Six crates for the harbour.</p>")


@cellar.get("/draft")  # not listed: it says noindex
def draft():
    response.set_header("X-Robots-Tag", "noindex")
    return page("Soon", "<p>Perry.</p>")


@cellar.get("/api/stock")  # not listed: it is not HTML
def stock():
    return {"dry": 120, "sweet": 48}


app = SitemapMiddleware(cellar)  # in production, give base_url too
