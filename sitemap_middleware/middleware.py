"""`SitemapMiddleware`: detects the protocol of an app, checks the options and creates the service."""

from __future__ import annotations

import functools
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypedDict, Unpack, cast

from .adapters.app_lookup import adapter_class, app_around_route, detect_protocol, find_middleware, install_once
from .adapters.metrics import metrics_reporter
from .exceptions import OptionError
from .options.sources import CONFIG_PLACE, Setting, collect_settings, warn_of_unknown_keys
from .options.table import OPTIONS, refuse_unknown, validate_options
from .report.request_handler import ReportHandler
from .routing import framework_detection
from .routing.framework_detection import FRAMEWORK_NAMES, framework_of
from .service import SitemapService
from .stores import FallbackStore, Store, open_store
from .stores.default import current_test
from .util import ForkSafeLock

if TYPE_CHECKING:
    from typing import overload

    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from opentelemetry.metrics import Meter
    from prometheus_client import CollectorRegistry

    from .evidence.page_verdict import Explanation
    from .options.decorator import Values
    from .protocol.value_checks import Changefreq
    from .report.request_handler import Permission, ReportRequest


class SitemapOptions(TypedDict, total=False):
    """The options of `SitemapMiddleware` but `routes`. A plugin that passes options on annotates them with it."""

    base_url: str | Callable[[str], str | None] | None
    allowed_hosts: str | Iterable[str]
    path: str
    store: str | Store | None
    include: str | Iterable[str]
    exclude: str | Iterable[str]
    learn: str | Iterable[str]
    list_unseen: bool
    verify: bool
    priority: float | Literal["auto"] | None
    changefreq: Changefreq | Literal["auto"] | None
    robots: bool | Literal["disallow", "noindex"]
    max_age: int
    cache_tag: str | None
    max_age_days: int
    max_pages: int
    max_pages_per_route: int
    media_types: str | Iterable[str] | None
    clock: Callable[[], float] | None
    metrics: Literal["prometheus", "opentelemetry"] | CollectorRegistry | Meter | None
    enabled: bool
    sections: Mapping[str, Values] | Literal[True] | None
    x_default: str | None
    feed: str | None
    images: bool | int
    alternates: bool | str
    gone: bool
    indexnow: bool | str
    indexnow_endpoint: str | None
    report: str | None
    authorize: Callable[[ReportRequest], Permission | Awaitable[Permission]] | None


class SitemapMiddleware:
    """Wraps a WSGI or ASGI app and answers ``/sitemap.xml`` with the pages that the app serves and their dates.

    ``app.wsgi_app = SitemapMiddleware(app.wsgi_app)`` in Flask,
    ``app.add_middleware(SitemapMiddleware)`` in Starlette and FastAPI, or
    ``SitemapMiddleware(app)`` around any app from outside.

    Args:
        app: the app to wrap, of either protocol.
        base_url: scheme and host of every loc, or a function that gives them for a Host, or None if it is no site's.
            Without it, the framework's trusted hosts, `allowed_hosts` and localhost are sites.
        allowed_hosts: further hosts that are sites of their own.
        path: where the sitemap is, below the root path.
        store: a store URL, or a `Store`. The default is a file, or memory in a test run.
        routes: the framework's app, if it cannot be found from `app`.
        include: patterns of pages to list before they have been visited.
        exclude: patterns of pages never to list.
        learn: patterns of routes with parameters whose pages are learned from traffic.
        list_unseen: whether static routes are listed before their first visit.
        verify: whether static routes are requested, in process and as by a crawler, and listed if they are pages.
        priority: default for pages: a number, or ``"auto"``.
        changefreq: default for pages: one of the protocol's words, or ``"auto"``, by the observed changes.
        robots: whether robots.txt is obeyed and names the sitemap; for staging, ``"noindex"`` adds a header to each
            response, and ``"disallow"`` forbids everything in robots.txt; below a root path, it adds that, too.
        max_age: seconds for which a client may keep the sitemap, and after which `values` are read again.
        cache_tag: sent as `Cache-Tag` and `Surrogate-Key`, by which CDNs purge the sitemap.
        max_age_days: days after which a learned page that nobody requests is forgotten.
        max_pages: the maximum number of learned pages of a site.
        max_pages_per_route: the same for each route or pattern of `learn`.
        media_types: the types that are pages. The default is HTML, XHTML and PDF.
        clock: returns POSIX seconds, in place of the system's clock.
        metrics: where to publish the figures of `stats`: ``"prometheus"``, ``"opentelemetry"``, a registry or a Meter.
        enabled: if false, the middleware does nothing.
        sections: pages that no route gives, by the name of their document: ``{"guides": all_guides}``; or True for
            documents of each route with parameters.
        x_default: the language of the version for all visitors whose language no version has.
        feed: the path of an Atom feed of what changed in the sitemap.
        images: whether the images that pages show are listed: True for 25 of each page, or another number.
        alternates: whether the versions in other languages that pages name are listed; or the parameter that is the
            language: pages of a view that differ only in it are versions of each other.
        gone: whether a document of the sitemap has the pages that were listed and are gone.
        indexnow: whether search engines are told what changed, by IndexNow; or the key for that.
        indexnow_endpoint: the URL of another engine than api.indexnow.org.
        report: the path of pages for people that show what is listed and why. Needs the extra `report`.
        authorize: decides who may read the report: a function that is given a `ReportRequest`.

    ``docs/reference/options.md`` says more. An option that is not given comes from the framework's configuration, such
    as Flask's ``app.config["SITEMAP_BASE_URL"]``, else from an environment variable of the same name. Both are read at
    construction.

    Raises:
        OptionError: for an unknown option or an invalid value.
    """

    _isolates_tests = False
    """Whether this process runs tests, which was decided at the first request."""

    def __new__(cls, app: Any, *arguments: Any, **options: Any) -> Self:
        if arguments:
            raise OptionError(
                f"SitemapMiddleware: {arguments[0]!r} was given by position; "
                'name each option, such as base_url="https://example.com"'
            )
        refuse_unknown(options, "routes")
        if (litestar_app := app_around_route(app)) is not None:
            # `DefineMiddleware(SitemapMiddleware, …)`: Litestar makes one instance for each route.
            install_once(litestar_app, functools.partial(cls, **options))
            return app  # type: ignore[no-any-return] # not an instance: nothing is between Litestar and its route
        instance: Self = object.__new__(adapter_class(cls, detect_protocol(app, options.get("routes"))))  # type: ignore[arg-type] # a class is hashable
        return instance

    def __init__(self, app: Any, *, routes: Any = None, **options: Unpack[SitemapOptions]) -> None:
        routed_app = app if routes is None else _checked_routes(routes)
        config, config_place = _framework_config(routed_app)
        settings = collect_settings(OPTIONS, options, config, os.environ, config_place)
        declared_root = config.get("APPLICATION_ROOT") or framework_detection.root_path(routed_app) or ""
        checked = validate_options(settings, str(declared_root))
        warn_of_unknown_keys(OPTIONS, config, os.environ, config_place)
        self.app: Any = app
        self._original_attributes = {
            **_replaceable_attributes(app),
            "": app,
        }  # never empty, so that `_unwind` is called at the first request
        if checked.enabled:
            store = _make_store(settings["store"], routed_app)
            self._metrics_report = metrics_reporter(settings["metrics"].value, settings["metrics"].place)
        else:
            store = open_store("memory://", "")
            self._metrics_report = metrics_reporter(None, "")
        self.service = SitemapService(routed_app, checked, store)
        self._test: str | None = None
        framework_detection.remember_middleware(framework_detection.framework_app(routed_app), self)

    @classmethod
    def of(cls, app: object) -> Self:
        """Return the middleware of an app: the one around it or in it, else the one in an app that it mounts.

        It may be called as soon as the middleware was added, and at any time after.

        Args:
            app: a Flask, Starlette or FastAPI app, or any middleware around one, of either protocol.

        Raises:
            MiddlewareLookupError: there is none, or more than one.
            OptionError: an option given to `add_middleware` is invalid.
        """
        return find_middleware(app, cls)

    @property
    def service(self) -> SitemapService:
        """The parts behind the middleware. Each test of an app has its own, so that none influences the next."""
        if self._isolates_tests and (test := current_test()):
            with _RESET_LOCK:
                if test != self._test:
                    if self._test:
                        self._service.stop_background_work()  # what it has not saved yet is discarded
                        self.service = self._service.in_memory()
                    self._test = test
        return self._service

    @service.setter
    def service(self, service: SitemapService) -> None:
        self._service, self.report = service, ReportHandler(service)
        self._metrics_report(service)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The value of every option but `routes`, and whether it is an argument, from the configuration or so on."""
        return self.service.options.settings

    if TYPE_CHECKING:
        # Not positional-only: type checkers compare the names with Flask's `wsgi_app` and Starlette's `ASGIApp`.
        @overload  # Any: each ASGI framework has types of its own
        def __call__(self, scope: Any, receive: Any, send: Any) -> Coroutine[Any, Any, None]: ...
        @overload
        def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]: ...
        def __call__(self, *arguments: Any, **named: Any) -> Any: ...

    else:

        def __getattr__(self, name: str) -> Any:
            """An attribute of the wrapped app: other code may expect there what was in this place before."""
            if name == "app" or name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return getattr(self.app, name)

    def _unwind(self) -> None:
        """Call the app's original callable if it was replaced, as by ``app.wsgi_app = SitemapMiddleware(app)``.

        Runs at the first request, because the app is complete then. Without it, the app and the middleware would
        call each other without end.
        """
        try:
            for name, original in self._original_attributes.items():
                if name and any(layer is self for layer in framework_detection.layers(getattr(self.app, name, None))):
                    self.app = original
            if isinstance(self.service.store, FallbackStore) and self.service.store.decide_if_tested():
                self._isolates_tests = True
        except Exception as error:  # other middleware in that place may raise anything
            self.service.log_fault("a request could not be looked at", error)
        self._original_attributes = {}  # empty: `_unwind` has been called

    def flush(self) -> None:
        """Save pending observations to the store, and send what is due to IndexNow.

        A server's shutdown saves by itself.
        """
        self.service.flush()

    def refresh(self, path: str | None = None) -> None:
        """Have the next sitemap show what the app has just changed, on all workers that share the store.

        ``site.refresh()`` after a commit. The items of all `values` are read again, callables given as lastmod are
        called, robots.txt and static routes are requested. ``site.refresh("/posts/rye")`` is cheaper: it concerns
        only this page, and the items of its route's `values`.

        Call it after the change is committed, on any thread, in async code as well. It waits one second at most for
        the store, a tenth of a second on the thread of an event loop. If the store fails, it does not raise, and the
        call is recorded later.

        Args:
            path: decoded, below the root path.

        Raises:
            OptionError: `path` does not begin with a slash.
        """
        self.service.refresh(path)

    def changed(self, path: str) -> None:
        """Do as `refresh(path)`, and have IndexNow told of the page, which the app has changed or deleted.

        With the option `indexnow`, search engines are told once the page has answered, mostly within a minute; without
        it, this is `refresh`.

        Args:
            path: decoded, below the root path.

        Raises:
            OptionError: `path` does not begin with a slash.
        """
        self.service.refresh(path, is_changed=True)

    def explain(self, path: str) -> Explanation:
        """Tell whether a path is listed, by which rule, and where its lastmod and an inferred changefreq come from."""
        return self.service.explain(path)

    def stats(self) -> dict[str, float]:
        """Return counters since this process began, and its current state. The call is cheap.

        ``docs/reference/stats.md`` says what each figure is. Times are in seconds.
        """
        return self.service.stats()

    def close(self) -> None:
        """Save pending observations and close the store. It reopens on the next request."""
        self.service.close()


_RESET_LOCK: Final = ForkSafeLock()


def _replaceable_attributes(app: Any) -> dict[str, Any]:
    """The callables of a Flask or Quart app that middleware replaces, by the names of their attributes."""
    names = ("wsgi_app", "asgi_app") if framework_detection.framework_app(app) is app else ()
    return {name: original for name in names if callable(original := getattr(app, name, None))}


def _checked_routes(app: Any) -> Any:
    if not framework_detection.has_readable_routes(app):
        raise OptionError(
            f"SitemapMiddleware: routes={app!r} has no routes that can be read; give the {FRAMEWORK_NAMES} app itself"
        )
    return app


def _framework_config(app: Any) -> tuple[Mapping[Any, Any], str]:
    """The configuration of a Flask or Quart app, or Django's settings, and how errors name a key of it.

    Empty for other apps.
    """
    framework = framework_detection.framework_app(app)
    if framework_of(framework) == "django":
        from .routing.django_routes import sitemap_settings

        return sitemap_settings(), "settings.{}"
    config = getattr(framework, "config", None)
    return config if isinstance(config, dict) else {}, CONFIG_PLACE


def _make_store(setting: Setting, app: Any) -> Store:
    if setting.value is None:
        return cast("Store", FallbackStore(framework_detection.framework_app(app)))  # it looks methods up
    return open_store(setting.value, setting.place)
