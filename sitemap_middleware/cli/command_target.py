"""Loads the app that a command is about, and resolves its site, and the pages that the arguments name.

The site is that of --base-url, else of the app's base_url, else those of the hosts that the app names in full, else the
only site of the store, else http://localhost.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from ..adapters.app_runner import RunningApp, running_app
from ..adapters.asgi import ASGIMiddleware
from ..exceptions import SitemapError, StoreError, ValuesError
from ..http.site_urls import parse_base_url
from ..http.urls import ascii_host, normal_host, root_of
from ..listing.candidates import SiteSnapshot
from ..middleware import SitemapMiddleware
from ..models import Site
from ..service import SitemapService
from ..stores.stored_sites import base_url_of_key, open_readonly, stored_sites
from ..util import log
from . import missing_library_message
from .app_loader import load_app
from .terminal import CommandError

INSPECTION_WAIT_SECONDS: Final = 60.0
"""Seconds for which the middleware may request pages of the app before a command looks at what it knows."""


@contextlib.contextmanager
def reporting_errors() -> Iterator[None]:
    """Raise errors of this package, and those of missing extras, as `CommandError`.

    What the app prints meanwhile goes to standard error.
    """
    log.addFilter(_without_traceback_of_values)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SitemapError as error:
        raise CommandError(str(error)) from error
    except ModuleNotFoundError as error:
        if (message := missing_library_message(error)) is None:
            raise
        raise CommandError(message) from error
    finally:
        log.removeFilter(_without_traceback_of_values)


def _without_traceback_of_values(record: logging.LogRecord) -> bool:
    """Leave out the traceback of values that fail: they fail each time, and the command says why."""
    if isinstance(record.args, tuple) and any(isinstance(argument, ValuesError) for argument in record.args):
        record.exc_info = None
    return True


def open_target(app: Any, *, base_url: str | None, root_path: str | None) -> Target:
    """Load an app, which may be given by its name, for a command. The path of --base-url is the root path.

    Raises `CommandError` if the app cannot be loaded, or, before it is imported, if an option is invalid.
    """
    site = None if base_url is None else parse_base_url(base_url, "--base-url")
    root = None if root_path is None else root_of(root_path)
    if root_path is not None and (root is None or not root_path.startswith("/")):
        raise CommandError(f"--root-path={root_path!r} is not a path; give one such as /shop")
    if site is not None and site.root:
        if root not in (None, site.root):
            raise CommandError(f"--base-url={base_url!r} and --root-path={root_path!r} name different root paths")
        root, site = site.root, replace(site, root="")
    app, middleware = load_app(app)
    resolver, options = middleware.service.site_resolver, middleware.service.options
    if site is not None and options.allowed_hosts and resolver.refuses(site.host):
        names = ", ".join(options.allowed_hosts)
        raise CommandError(f"--base-url={base_url!r} names a host that allowed_hosts refuses: it allows {names}")
    guessed, named = None, site or options.site
    if named is not None or not resolver.named_sites():
        stored = [parse_base_url(base_url_of_key(key), "the store's site") for key in _stored_keys(middleware.service)]
        stored = [known for known in stored if named is None or known.host == named.host]
        if len(stored) == 1:
            root = unquote(stored[0].root) if root is None else root
            guessed = None if named else replace(stored[0], root="")
    wanted = site or guessed
    if wanted is not None and middleware.settings["base_url"].source in ("environment", "default"):
        middleware.service = middleware.service.with_site(wanted)
    middleware.service.indexnow.stop()
    declared_root = root_of(middleware.service.app_routes.root_path)
    if root and declared_root and root != declared_root:
        raise CommandError(
            f"the app itself has root_path={declared_root!r}, which precedes {root!r}; leave --root-path off"
        )
    return Target(app, middleware, wanted, root or "", site is not None or options.site is not None)


@dataclass(frozen=True, slots=True)
class Target:
    """An app, and the site that the options of a command name."""

    app: Any
    middleware: SitemapMiddleware
    wanted: Site | None
    """The option --base-url without its path, or the only site of the store."""
    root: str
    """The option --root-path, or the path of --base-url."""
    is_site_known: bool
    """Whether the options or the app name the site."""
    running: RunningApp = field(default_factory=RunningApp)

    @contextlib.contextmanager
    def started(self) -> Iterator[Target]:
        """Provide the target with its app started, as under a server: its `values` may need what its lifespan makes.

        At the end, what the middleware has learned is saved.
        """
        try:
            with running_app(self.app, asynchronous=isinstance(self.middleware, ASGIMiddleware)) as running:
                yield replace(self, running=running)
        finally:
            self.middleware.close()

    @contextlib.contextmanager
    def started_site(self, what: str) -> Iterator[tuple[Target, Site]]:
        """Provide the target with its app started, and its site. Raises `CommandError` if it serves no sitemap."""
        site = self.main_site()
        if not self.service.options.enabled:
            raise CommandError(f"there is no {what}: {self.service.not_served_reason()}")
        with self.started() as started:
            started.running.client(site)  # fails if the app did not start
            started.service.complete_routes(site, started.running.async_collector)
            yield started, site

    @property
    def service(self) -> SitemapService:
        return self.middleware.service

    def sites(self) -> list[Site]:
        """Return the app's sites, those that `_main_sites` returns first.

        Raises `CommandError` if the app has no site of the options, or serves only hosts that nothing names in full.
        """
        mains = self._main_sites()
        if not self.wanted and self.service.site_resolver.refuses(mains[0].host):
            if self.service.options.site_of_host:
                raise CommandError("base_url is a function: name the site by --base-url, such as https://example.com")
            patterns = (*self.service.options.allowed_hosts, *self.service.app_routes.trusted_hosts)
            raise CommandError(
                f"base_url is not set, and no host of the app is named in full, only {', '.join(patterns)}:"
                f" choose one, such as --base-url https://{patterns[0].replace('*', 'www', 1)}"
            )
        sites: dict[str, Site] = {}
        for main in mains:
            for site in self.service.site_resolver.sites(replace(main, root=self.root)):
                sites.setdefault(site.host, site)
        if not sites:
            base_url = None if self.wanted is None else self.wanted.base_url
            raise CommandError(
                f"the app's base_url differs from --base-url={base_url!r}: leave it off, or name one of the app's hosts"
            )
        return [*sites.values()]

    def main_site(self) -> Site:
        """Return the site that the command is about.

        Raises `CommandError` if the app has no such site, or several and the options do not choose one.
        """
        sites = self._main_sites()
        if len(sites) > 1:
            names = ", ".join(site.base_url for site in sites)
            raise CommandError(
                f"{self._unset}, and the app has several sites ({names}):"
                f" choose one, such as --base-url {sites[0].base_url}"
            )
        return self.sites()[0]

    @property
    def _unset(self) -> str:
        return "base_url is a function" if self.service.options.site_of_host else "base_url is not set"

    def _main_sites(self) -> list[Site]:
        """The sites that the command is about, without their root paths."""
        if site := self.wanted or self.service.options.site:
            return [site]
        return self.service.site_resolver.named_sites() or [Site("http", "localhost", loopback=True)]

    def snapshots(self, *, requests: bool = False) -> tuple[list[SiteSnapshot], list[str]]:
        """Return a snapshot of each site, the one that the options name first; and notes on what is not known here.

        With `requests`, the sitemaps are requested first, so that the middleware requests what it has not seen.
        Raises `StoreError`.
        """
        sites = self.sites()
        store, missing = open_readonly(self.service.store)
        asks = requests and self.running.failure is None and self.service.not_served_reason() is None
        if asks and missing:  # no store is made by looking at an app
            self.middleware.service = self.service.in_memory()
        service = self.service
        notes = dict[str, None]()  # ordered, each once
        if not self.is_site_known:
            about = ", ".join(site.base_url for site in self._main_sites())
            notes[f"{self._unset}, so this is about {about}; --base-url chooses another site"] = None
        if self.running.failure is not None:
            notes[f"the app did not start, so its values may fail: {self.running.failure}"] = None
        if hint := self.other_site_hint(*sites):
            notes[hint] = None
        if asks:
            for site in sites:
                store.version(site.store_key)  # an app whose store does not work is not asked
                try:
                    self.running.client(site, INSPECTION_WAIT_SECONDS)(service.options.path, "identity")
                except Exception as error:  # of a middleware of the app's own
                    notes[f"the app's {service.options.path} cannot be requested: {error!r}"] = None
            self.middleware.service.save_pending()
        elif missing:
            notes[missing] = None
        snapshots = [self._snapshot(site) for site in sites]
        table = snapshots[0].table
        if not table.routes:
            notes["the app's routes cannot be read, so only pages that match include or learn are known"] = None
        if warning := service.not_served_reason():
            notes[warning] = None
        return snapshots, list(notes)

    def _snapshot(self, site: Site) -> SiteSnapshot:
        self.service.complete_routes(site, self.running.async_collector)
        snapshot = self.service.snapshot(site, open_readonly(self.service.store)[0])
        return replace(snapshot, async_collector=self.running.async_collector)

    def other_site_hint(self, site: Site, *more: Site) -> str:
        """Return which option to give if nothing names the site, and the store has pages only of others."""
        stored, own = _stored_keys(self.service), {other.store_key for other in (site, *more)}
        others = [key for key in stored if key not in own]
        if self.is_site_known or site.store_key in stored or not others:
            return ""
        other = base_url_of_key(others[0])
        return f"the store has no pages of {site.base_url}, but of other sites: give --base-url {other}"

    def find_page(self, page: str, snapshots: Sequence[SiteSnapshot]) -> tuple[str, SiteSnapshot]:
        """Return the decoded path of a URL or path, and the snapshot of the site that it belongs to.

        Raises `CommandError` if it is not a page of the app.
        """
        try:
            parts = urlsplit(page)
        except ValueError as error:
            raise CommandError(f"{page!r} is not a URL ({error})") from None
        if parts.query:
            raise CommandError(f"{page!r} has a query string, and such a page is never listed: ask about it without")
        if page.startswith("/"):
            self.main_site()
            path, snapshot = page.partition("#")[0].partition("?")[0], snapshots[0]
        elif parts.scheme in ("http", "https") and parts.netloc:
            found = self._snapshot_of_url(parts, snapshots)
            if found is None:
                sites = ", ".join(item.site.base_url for item in snapshots)
                raise CommandError(f"{page!r} is not a page of this app, whose site is {sites}")
            path, snapshot = parts.path or "/", found
        else:
            raise CommandError(
                f"{page!r} is not a path: give the part after the host, from the first slash on, or a whole URL"
            )
        root = snapshot.site.root
        if root and f"{path}/".startswith(f"{root}/"):
            path = path[len(root) :] or "/"
        elif root and not page.startswith("/"):
            raise CommandError(f"{page!r} is not below the root path {root} of the app")
        return unquote(path), snapshot

    def _snapshot_of_url(self, parts: SplitResult, snapshots: Sequence[SiteSnapshot]) -> SiteSnapshot | None:
        """Return the snapshot of the site that a URL belongs to; None if the app does not serve its host.

        Unless the options or the app name the site, its scheme is that of the URL.
        """
        host = normal_host(ascii_host(parts.netloc.rpartition("@")[2]), parts.scheme)
        if host is None:
            return None
        for snapshot in snapshots:
            is_right_scheme = snapshot.site.scheme == parts.scheme or self.is_site_known
            if host in (snapshot.site.host, snapshot.site.routed) and is_right_scheme:
                return snapshot
        site, trust = self.service.site_resolver.resolve(parts.scheme, host, unquote(snapshots[0].site.root))
        return self._snapshot(site) if site is not None and trust == "own" else None


def _stored_keys(service: SitemapService) -> Collection[str]:
    """Return the keys of the sites in the store; none if it cannot be read, or cannot list them."""
    store, _ = open_readonly(service.store)
    try:
        return stored_sites(store) or ()
    except StoreError:
        return ()
