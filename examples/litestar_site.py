"""A beekeeper, with Litestar. Its sitemap lists its public pages. Click around: it learns the hives."""

from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.exceptions import NotFoundException
from litestar.response import Redirect
from theme import Theme, button, cards

from sitemap_middleware import Entry, sitemap
from sitemap_middleware.litestar import SitemapPlugin

HONEYS = {"acacia": "Clear, and it stays so.", "heather": "Dark as tea.", "lime": "From the avenue in town."}
HIVES = {"north": "Strong. Two supers on.", "orchard": "A new queen since May."}
theme = Theme("Bee Hill", "#7a5a00", "#fff9e6", ("honey", "hives"), ("login", "admin", "draft", "api/weights"))


def page(heading: str, text: str, **headers: str) -> Response[str]:
    return Response(theme.page(heading, text), media_type=MediaType.HTML, headers=headers)


def one_of(texts: dict[str, str], name: str) -> Response[str]:
    if name not in texts:
        raise NotFoundException
    return page(name.title(), f"<p>{texts[name]}</p>")


@get("/", opt={"sitemap": {"priority": 1.0, "changefreq": "monthly"}})
async def home() -> Response[str]:
    return page("Honey from one hill", "<p>Forty hives, one keeper.</p>" + cards("/honey", HONEYS))


@get("/honey")  # its sitemap entry has this date
async def honeys() -> Response[str]:
    return page("Three honeys", cards("/honey", HONEYS), **{"Last-Modified": "Mon, 07 Jul 2025 08:15:00 GMT"})


@get("/honey/{name:str}")
@sitemap(values=lambda: [Entry({"name": name}, lastmod="2025-07-01") for name in HONEYS])
async def honey(name: str) -> Response[str]:
    return one_of(HONEYS, name)


@get("/hives")
async def hives() -> Response[str]:
    return page("The hives today", cards("/hives", HIVES))


@get("/hives/{name:str}")
@sitemap(learn=True)  # each is listed after its first visit
async def hive(name: str) -> Response[str]:
    return one_of(HIVES, name)


@get("/login")
@sitemap(exclude=True)  # a crawler would take it for a page
async def login() -> Response[str]:
    return page("The keeper only", button("Log in"))


@post("/login")
async def log_in() -> Redirect:
    return Redirect("/admin", status_code=303, headers={"Set-Cookie": "keeper=yes; Path=/; HttpOnly"})


@get("/admin")  # not listed: it redirects anonymous visitors
async def admin(request: Request) -> Response[str]:
    return page("Stores", "<p>Nine jars left.</p>") if "keeper" in request.cookies else Redirect("/login")


@get("/draft")  # not listed: it says noindex
async def draft() -> Response[str]:
    return page("Soon", "<p>Mead.</p>", **{"X-Robots-Tag": "noindex"})


@get("/api/weights")  # not listed: it answers with JSON
async def weights() -> dict[str, int]:
    return {"north": 41, "orchard": 33}


app = Litestar([home, honeys, honey, hives, hive, login, log_in, admin, draft, weights], plugins=[SitemapPlugin()])
