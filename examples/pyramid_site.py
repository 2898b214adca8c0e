"""A small museum, with Pyramid. Its sitemap lists its public pages. Click around: it learns the digs."""

from pyramid.config import Configurator
from pyramid.httpexceptions import HTTPFound, HTTPNotFound
from pyramid.response import Response
from pyramid.session import SignedCookieSessionFactory
from theme import Theme, button, cards

from sitemap_middleware import Entry, SitemapMiddleware, sitemap

ROOMS = {"bronze": "Mostly pins.", "glass": "Please do not sneeze.", "papyrus": "A bill for onions."}
DIGS = {"harbour": "An anchor, and boots.", "well": "Coins, all the way down."}
page = Theme("The Small Museum", "#7a5230", "#f7f1e6", ("rooms", "digs"), ("login", "admin", "draft", "api/hours")).page


@sitemap(priority=1.0, changefreq="monthly")
def home(request):
    return Response(page("Three rooms", "<p>Closed on Mondays.</p>" + cards("/rooms", ROOMS)))


def rooms(request):  # its sitemap entry has the date of Last-Modified
    dated = {"Last-Modified": "Wed, 11 Jun 2025 07:45:00 GMT"}
    return Response(page("The rooms", cards("/rooms", ROOMS)), headerlist=[*HTML, *dated.items()])


@sitemap(values=lambda: (Entry({"name": name}, lastmod="2025-06-01") for name in ROOMS))  # all are listed at once
def room(request):
    return one_of(ROOMS, request.matchdict["name"])


def digs(request):
    return Response(page("From the trenches", cards("/digs", DIGS)))


@sitemap(learn=True)  # each is listed after its first visit
def dig(request):
    return one_of(DIGS, request.matchdict["name"])


@sitemap(exclude=True)  # a crawler would take it for a page
def login(request):
    if request.method == "POST":
        request.session["curator"] = True
        return HTTPFound("/admin")
    return Response(page("Curators only", button("Log in")))


def admin(request):  # not listed: it redirects anonymous visitors
    return Response(page("Loans", "<p>One pin.</p>")) if request.session.get("curator") else HTTPFound("/login")


def draft(request):  # not listed: it says noindex
    return Response(page("Soon", "<p>A fourth room.</p>"), headerlist=[*HTML, ("X-Robots-Tag", "noindex")])


def hours(request):  # not listed: it is not HTML
    return Response(json_body={"tuesday": "10-17"})


HTML = [("Content-Type", "text/html; charset=UTF-8")]


def one_of(texts, name):
    if name not in texts:
        raise HTTPNotFound
    return Response(page(name.title(), f"<p>{texts[name]}</p>"))


with Configurator(session_factory=SignedCookieSessionFactory("of an example")) as config:
    paths = {"/rooms/{name}": room, "/digs/{name}": dig, "/api/hours": hours, "/": home}
    paths |= {f"/{view.__name__}": view for view in (rooms, digs, login, admin, draft)}
    for path, view in paths.items():
        config.add_route(path, path)
        config.add_view(view, route_name=path)
    app = SitemapMiddleware(config.make_wsgi_app())  # in production, give base_url too
