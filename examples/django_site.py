"""A cinema, with Django in one file. Its sitemap lists its public pages. Click around: it learns the reviews."""

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import path
from theme import Theme, button, cards

from sitemap_middleware import Entry, sitemap

FILMS = {"dawn": "Two hours, one street.", "harbour": "Silent, with a piano.", "letters": "For those who wait."}
REVIEWS = {"piano": "The pianist bowed first.", "seats": "Row seven, always."}
theme = Theme("Lantern Cinema", "#4b2e5a", "#f6f1f9", ("films", "reviews"), ("login", "admin", "draft", "api/seats"))

middleware = ["sitemap_middleware.django.SitemapMiddleware"]
settings.configure(SECRET_KEY="of an example", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, MIDDLEWARE=middleware)


def page(heading, text, **headers):
    return HttpResponse(theme.page(heading, text), headers=headers)


@sitemap(priority=1.0, changefreq="monthly")
def home(request):
    return page("One screen, forty chairs", cards("/films", FILMS))


def films(request):
    dated = {"Last-Modified": "Fri, 03 Oct 2025 18:00:00 GMT"}  # its sitemap entry has this date
    return page("This month", cards("/films", FILMS), **dated)


@sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-10-01") for name in FILMS])  # all are listed at once
def film(request, name):
    if name not in FILMS:
        raise Http404
    return page(name.title(), f"<p>{FILMS[name]}</p>")


def reviews(request):
    return page("From the audience", cards("/reviews", REVIEWS))


@sitemap(learn=True)  # each is listed after its first visit
def review(request, name):
    if name not in REVIEWS:
        raise Http404
    return page(name.title(), f"<p>{REVIEWS[name]}</p>")


@sitemap(exclude=True)  # a crawler would take it for a page
def login(request):
    answer = redirect("/admin") if request.method == "POST" else page("Ushers only", button("Log in"))
    if request.method == "POST":
        answer.set_cookie("usher", "yes")
    return answer


def admin(request):  # not listed: it redirects anonymous visitors
    return page("Tonight", "<p>Nine seats sold.</p>") if "usher" in request.COOKIES else redirect("/login")


urlpatterns = [
    path("", home),
    path("films", films),
    path("films/<name>", film),
    path("reviews", reviews),
    path("reviews/<name>", review),
    path("login", login),
    path("admin", admin),
    path("draft", lambda _: page("Soon", "<p>A second screen.</p>", **{"X-Robots-Tag": "noindex"})),  # not listed
    path("api/seats", lambda _: JsonResponse({"dawn": 31})),  # not listed
]
app = get_asgi_application()
