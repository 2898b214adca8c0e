"""What a command is asked about: an app, the site it is meant as, and pages of that site."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from ..exceptions import SitemapError, StoreError
from ..listing.candidates import SiteSnapshot
from ..middleware import SitemapMiddleware
from ..models import Site
from ..robots_parser import ROBOTS_PATH
from ..service import SitemapService
from ..stores.base import StoreExtras
from ..stores.status import open_readonly
from ..urls import ascii_host, normal_host, parse_base_url, root_of
from .app_loader import load_app
from .output import CommandError, base_url_of_key


@contextlib.contextmanager
def reporting_errors() -> Iterator[None]:
    """Errors of ours, as one line; and what the app prints meanwhile, beside the answer and not in it."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except SitemapError as error:
        raise CommandError(str(error)) from error


def open_target(
    name: str, *, base_url: str | None, root_path: str | None, factory: bool, serving: bool = False
) -> Target:
    """The app that `module:attribute` names. Options that cannot be are refused before it is imported.

    Args:
        name: of the app.
        base_url: the option --base-url; its path is the root path.
        root_path: the option --root-path.
        factory: whether it is a function that makes the app.
        serving: whether the app is to answer as the site, even if it names no base_url.
    """
    base = None if base_url is None else parse_base_url(base_url, "--base-url")
    root = None if root_path is None else root_of(root_path)
    if root_path is not None and (root is None or not root_path.startswith("/")):
        raise CommandError(f"--root-path={root_path!r} is no path; give one such as /shop")
    if base is not None and base.root:
        if root not in (None, base.root):
            raise CommandError(f"--base-url={base_url!r} and --root-path={root_path!r} name different root paths")
        root, base = base.root, replace(base, root="")
    with _default_base_url(base if serving else None):
        app, found = load_app(name, factory=factory)
    declared = root_of(found.service.urlmap.root_path)
    if root and declared and root != declared:
        raise CommandError(
            f"the app itself has root_path={declared!r}, which goes before {root!r}; leave --root-path off"
        )
    return Target(app, found, base, root or "")


@contextlib.contextmanager
def _default_base_url(base: Site | None) -> Iterator[None]:
    """Have an app that names no base_url take this one as it is imported."""
    before = os.environ.get("SITEMAP_BASE_URL")
    if base is not None:
        os.environ["SITEMAP_BASE_URL"] = base.base_url
    try:
        yield
    finally:
        os.environ.pop("SITEMAP_BASE_URL", None)
        if before is not None:
            os.environ["SITEMAP_BASE_URL"] = before


@dataclass(frozen=True, slots=True)
class Target:
    """An app, and the site it is meant as."""

    app: Any
    located: SitemapMiddleware
    base: Site | None
    """As the option --base-url names it."""
    root: str
    """As the option --root-path names it, or the path of --base-url."""

    @property
    def service(self) -> SitemapService:
        return self.located.service

    def sites(self) -> list[Site]:
        """The sites of the app, the one asked about first."""
        wanted = self.base
        if self.root:
            wanted = replace(
                wanted or self.service.options.site or Site("http", "localhost", loopback=True), root=self.root
            )
        sites = self.service.sites(wanted)
        if not sites:
            given = None if self.base is None else self.base.base_url
            raise CommandError(
                f"the app's base_url is another than --base-url={given!r}: leave it off, or name a host it has"
            )
        return sites

    def snapshots(self) -> tuple[list[SiteSnapshot], list[str]]:
        """How things stand on each site of the app, the one asked about first; and what cannot be told from here."""
        core, sites = self.service, self.sites()
        notes = dict[str, None]()
        if self.base is None and core.options.site is None:
            notes[f"no base_url is known, so this is the site {sites[0].base_url}; --base-url names another"] = None
        states = []
        for site in sites:
            store, missing = open_readonly(core.store)
            states.append(core.snapshot(site, store))
            if missing:
                notes[missing] = None
        if other := self.other_site_hint(sites[0]):
            notes[other] = None
        if not states[0].table.routes:
            notes["no URL map could be read of the app, so its pages are those that include and learn name"] = None
        if displaced := core.own_route_warning():
            notes[displaced] = None
        if core.options.robots and not sites[0].root and states[0].table.may_answer(ROBOTS_PATH):
            notes[
                "the app's own robots.txt is not read here; what it forbids is not listed, whatever is said above"
            ] = None
        return states, list(notes)

    def other_site_hint(self, site: Site) -> str:
        """What is wrong if the store knows only another site that may be meant; empty if nothing shows that."""
        store, _ = open_readonly(self.service.store)
        tell = StoreExtras.of(store).status
        try:
            if tell is None or store.version(site.store_key):
                return ""
            known = [key for key in tell(0, ()).sites if self._site_is_ambiguous or self._is_same_host_key(site, key)]
        except StoreError:
            return ""
        if not known:
            return ""
        if self._site_is_ambiguous:
            return f"the store knows nothing of {site.base_url}, but it knows others: give --base-url {base_url_of_key(known[0])}"  # noqa: E501
        root = urlsplit(known[0]).path
        cure = f"--root-path {root}" if root else "the root path that the server has"
        return f"the store knows nothing of {site.base_url}, but it knows {known[0]}: give {cure}"

    @property
    def _site_is_ambiguous(self) -> bool:
        """Whether nobody has said which site is meant."""
        return self.base is None and self.service.options.site is None

    @staticmethod
    def _is_same_host_key(site: Site, key: str) -> bool:
        """Whether a store's key is that of the same host below another root path."""
        bare = replace(site, root="").store_key.rstrip("/")
        return key.rstrip("/") == bare or key.startswith(f"{bare}/")

    def page(self, given: str, states: Sequence[SiteSnapshot]) -> tuple[SiteSnapshot, str, bool]:
        """The state of the site that a URL or path is of, its decoded path, and whether it has a query."""
        try:
            parts = urlsplit(given)
        except ValueError as error:
            raise CommandError(f"{given!r} is no URL ({error})") from None
        if given.startswith("/"):
            path, state = given.partition("#")[0].partition("?")[0], states[0]
        elif parts.scheme in ("http", "https") and parts.netloc:
            host = normal_host(ascii_host(parts.netloc.rpartition("@")[2]), parts.scheme)
            found = next((state for state in states if host in (state.site.host, state.site.routed)), None)
            if found is None:
                known = ", ".join(state.site.base_url for state in states)
                raise CommandError(f"{given!r} is not of this app, whose site is {known}")
            path, state = parts.path or "/", found
        else:
            raise CommandError(
                f"{given!r} is no path: give what follows the host, from the first slash on, or a whole URL"
            )
        root = state.site.root
        if root and f"{path}/".startswith(f"{root}/"):
            path = path[len(root) :] or "/"
        elif root and not given.startswith("/"):
            raise CommandError(f"{given!r} is not below the root path {root} of the app")
        return state, unquote(path), bool(parts.query)
