"""Marks on blueprints, routers, mounts and apps: which routes they have learned, and which route a path is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flask
import pytest
from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Host, Mount, Route, Router
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from sitemap_middleware import SitemapMiddleware, sitemap
from sitemap_middleware.options.patterns import Pattern

from ..support.documents import locs
from ..support.wire import DRIVERS, RequestSpec

LEARNED = sitemap(learn=True)
OPTIONS: dict[str, Any] = {"store": "memory://", "base_url": "https://example.com", "verify": False}


async def page(_: Any) -> HTMLResponse:
    return HTMLResponse("A page.")


def view(**_: str) -> str:
    return "A page."


def on_flask(paths: dict[str, bool], where: str | None = None) -> flask.Flask:
    """An app of these paths, whose views have a mark of their own or none; `where`: the group that is marked too."""
    app = flask.Flask("site", static_folder=None)
    inner = flask.Blueprint("inner", "site")
    outer = flask.Blueprint("outer", "site")
    for number, (path, own) in enumerate(paths.items()):
        function: Any = lambda **_: "A page."  # noqa: E731 (each carries its own marks)
        inner.add_url_rule(path, f"view{number}", LEARNED(function) if own else function)
    if where:
        LEARNED({"inner": inner, "outer": outer, "app": app}[where])
    outer.register_blueprint(inner)
    app.register_blueprint(outer)
    return app


def on_starlette(paths: dict[str, bool], where: str | None = None) -> Starlette:
    routes = []
    for path, own in paths.items():

        async def endpoint(_: Any) -> HTMLResponse:
            return HTMLResponse("A page.")

        routes.append(
            Route(
                path.replace("<path:", "<x:").replace("<x:any>", "{any:path}").replace("<", "{").replace(">", "}"),
                LEARNED(endpoint) if own else endpoint,
            )
        )
    inner = Router(routes=routes)
    mount = Mount("/", app=inner)
    app = Starlette(routes=[mount])
    if where:
        LEARNED({"inner": inner, "outer": mount, "app": app}[where])
    return app


MAKERS = {"flask": on_flask, "starlette": on_starlette}
PROTOCOLS = {"flask": "wsgi", "starlette": "asgi"}


@pytest.mark.parametrize("where", ["inner", "outer", "app"])
@pytest.mark.parametrize("framework", MAKERS)
def test_settings_of_a_group_do_not_learn_secrets_or_catch_alls(framework: str, where: str) -> None:
    paths = {
        "/posts/<slug>": False,
        "/reset/<token>": False,
        "/s/<token>": True,
        "/join/<slug>/<invite_code>": False,
        "/files/<path:any>": False,
        "/wiki/<path:any>": True,
    }
    site = SitemapMiddleware(MAKERS[framework](paths, where), **OPTIONS)

    def send_request(path: str) -> Any:
        return DRIVERS[PROTOCOLS[framework]](site, RequestSpec(path, host="example.com"))

    requested_paths = ["/posts/a", "/reset/abc", "/s/abc", "/join/us/x7", "/files/a/b", "/wiki/a/b"]
    for path in requested_paths:
        assert send_request(path).status == 200
    site.flush()
    assert sorted(locs(send_request("/sitemap.xml").body)) == [
        f"https://example.com{path}" for path in ("/posts/a", "/s/abc", "/wiki/a/b")
    ]
    for path, why in (("/reset/abc", "'token' is named like a secret"), ("/files/a/b", "it is a catch-all")):
        explanation = site.explain(path)
        assert why in explanation.reason
        assert "view itself" in explanation.reason
    surveyed = {
        row.route.path.split("{")[0].split("<")[0]: row
        for row in site.service.route_report(
            [site.service.snapshot(site.service.site_resolver.sites()[0], site.service.store)]
        )
    }
    assert "'invite_code' is named like a secret" in surveyed["/join/"].verdict.reason
    assert surveyed["/join/"].undecided
    assert not surveyed["/s/"].undecided


@pytest.mark.parametrize("framework", MAKERS)
def test_learn_glob_skips_routes_with_a_secret_parameter(framework: str) -> None:
    paths = {"/account/<name>": False, "/account/reset/<token>": False, "/account/own/<token>": True}
    app, driver = MAKERS[framework](paths), DRIVERS[PROTOCOLS[framework]]
    for option, listed in (("learn", 2), ("include", 3)):
        site = SitemapMiddleware(app, **OPTIONS, **{option: "/account/*"})
        for path in ("/account/me", "/account/reset/abc", "/account/own/abc"):
            driver(site, RequestSpec(path, host="example.com"))
        site.flush()
        listed_locs = locs(driver(site, RequestSpec("/sitemap.xml")).body)
        assert len(listed_locs) == listed
        assert ("https://example.com/account/reset/abc" in listed_locs) is (option == "include")


SECRET = """
token tokens reset_token resetToken resettoken accessToken API_KEY apiKey apikey key code codes signature sig signed hash
hmac password passwd pwd otp otp2 totp nonce jwt JWTToken session session_id sessionid sid auth oauth_state ticket magic
magic_link invite invitation invite_code activation activation_key confirm confirmation confirmation_code verify
verification verifier reset unsubscribe uid64 uidb64 uidb64_token csrf email passphrase passcode secret clientSecret
pw user_pw tok access_tok sess access access_id cap capability capability_id private private_id share share_id shareId
shared_id unsub_id optout conf conf_id mail preview preview_id draft draft_id post_draft_id download_id downloadid order
order_id orderId order_no order_number user_order_id invoice invoice_id invoice_number invoiceNo receipt_id booking
booking_ref reservation_id tracking tracking_number trackingNumber tracking_id shipment_id refund_id rma cart_id
basket_id checkout_id payment_id anon_id order_uuid
"""
PUBLIC = """
slug id post_id uuid guid uid user username name title page year month day lang locale tag category keyword keywords
monkey tokenizer zipcode barcode codename hashtag sign signpost author authors ticketing magician session_count_x
emailed country_codebase design secretary passage keyboard tournament version path filename pk number
t k c h link ref room meeting file file_id download downloads order_by ordering sort_order reorder orders shares
shareholder share_price access_point accessory capital captain caps conference conf_slug config privateer draftsman
payment_method quote quote_id phone_model mailing mailbox track track_id paste_id previews cartoon anonymous transaction
""".replace("session_count_x", "sessional")


@pytest.mark.parametrize("name", SECRET.split())
def test_a_name_of_a_secret_is_known(name: str) -> None:
    for template in (f"/x/<{name}>", f"/x/{{{name}}}", f"/x/<string:{name}>/more", f"/x/{{{name}:str}}"):
        assert Pattern(template).secret == name


@pytest.mark.parametrize("name", PUBLIC.split())
def test_a_name_of_something_public_is_no_secret(name: str) -> None:
    assert Pattern(f"/x/<{name}>").secret is None


# Which route a path is of


def flask_of(*rules: str, **options: Any) -> flask.Flask:
    app = flask.Flask("site", static_folder=None, **options)
    for number, rule in enumerate(rules):
        app.add_url_rule(rule, f"view{number}", view)
    return app


def asgi_of(*paths: str) -> Starlette:
    return Starlette(routes=[Route(path, page) for path in paths])


def dispatched() -> Any:
    return DispatcherMiddleware(flask_of("/<path:filename>"), {"/shop": flask_of("/<path:all>", "/item/<id>")})


def included() -> FastAPI:
    app, router = FastAPI(), APIRouter(prefix="/r")
    router.get("/{item}/late")(lambda: "")
    app.include_router(router, prefix="/api")
    app.get("/{rest:path}")(lambda: "")
    return app


def mounted() -> Starlette:
    inner = asgi_of("/{any:path}", "/item/{id}")
    return Starlette(
        routes=[
            Mount("/in", app=inner),
            Mount("/no", app=object()),
            Route("/{one}", page, methods=["POST"]),
            Route("/{two}", page),
        ]
    )


def hosts() -> Starlette:
    return Starlette(routes=[Host("blog.example", app=asgi_of("/{post}")), Route("/{page}", page)])


ROUTES: tuple[tuple[Callable[[], Any], str, str | None], ...] = (
    (lambda: flask_of("/<path:filename>", "/edit/<uuid>"), "/edit/abc", "/edit/<uuid>"),
    (lambda: flask_of("/edit/<uuid>", "/<path:filename>"), "/edit/abc", "/edit/<uuid>"),
    (lambda: flask_of("/edit/<uuid>", "/<path:filename>"), "/edit/a/b", "/<path:filename>"),
    (lambda: flask_of("/<int:id>", "/<name>"), "/7", "/<int:id>"),
    (lambda: flask_of("/<int:id>", "/<name>"), "/x", "/<name>"),
    (lambda: flask_of("/<a>/", "/x/<b>"), "/y", None),
    (lambda: flask_of("/x/<b>"), "/y", None),
    (flask_of, "/y", None),
    (dispatched, "/shop/item/7", "/shop/item/<id>"),
    (dispatched, "/shopping", "/<path:filename>"),
    (lambda: asgi_of("/{lang}/", "/late/"), "/en/", "/{lang}/"),
    (lambda: asgi_of("/{x:int}", "/{y}"), "/a", "/{y}"),
    (included, "/api/r/x/late", "/api/r/{item}/late"),
    (included, "/api/r/x", "/{rest:path}"),
    (mounted, "/in/item/7", "/in/item/{id}"),
    (mounted, "/no/way", None),
    (mounted, "/x", "/{two}"),
    (hosts, "/x", "/{page}"),
)


@pytest.mark.parametrize(("make", "path", "template"), ROUTES)
def test_explain_names_the_route_of_a_path(make: Callable[[], Any], path: str, template: str | None) -> None:
    app = make()
    site = SitemapMiddleware(app, **OPTIONS)
    reason = site.explain(path).reason
    assert (f"its route {template} " in reason) is (template is not None)
    assert ("no static route of this path" in reason) is (template is None)


def test_the_route_of_a_host_is_found_on_that_host() -> None:
    site = SitemapMiddleware(hosts(), **OPTIONS)
    sites = {host_site.host: host_site for host_site in site.service.site_resolver.sites()}
    state = site.service.snapshot(sites["blog.example"], site.service.store)
    assert "its route /{post} " in site.service.explain("/x", state).reason


@pytest.mark.parametrize("protocol", ["wsgi", "asgi"])
def test_that_the_apps_own_sitemap_is_served_is_explained(protocol: str) -> None:
    for own in (True, False):
        paths = ("/", "/sitemap.xml") if own else ("/",)
        site = SitemapMiddleware((flask_of if protocol == "wsgi" else asgi_of)(*paths), **OPTIONS)
        assert ("the app's own route for /sitemap.xml is served" in str(site.explain("/"))) is own
        assert (site.service.not_served_reason() is not None) is own
