"""One module for each framework, with the site that `tests/frameworks/test_contract.py` describes.

What is decorated is written as the framework's own documentation writes it. Each module has:

- `PROTOCOL`: "wsgi" or "asgi".
- `build()`: a new app with the pages below, and the routes `/posts/{slug}` (`values=POSTS`), `/blog/tags/{tag}`
  (`learn=True`) and `/people/{number}` (an integer, if the framework has such parameters; not decorated). Each page
  answers with `page(its path)`. If the app needs to be started, `build` does it: the tests send no lifespan events.
- `INSTALL`: the ways to add the middleware, by name: each takes the app and the options, and returns what a server
  calls. "outside" is `SitemapMiddleware(app, **options)`.
- `add_page(app, path)`: adds a page to a running app; None if the framework cannot.
- `PEOPLE`: the template of its route `/people/{number}`, as a user gives it to an option.
- `ROOT_PATH = False`, if the framework itself answers no page below a root path.
- `SPELLED`, if it has that: the pages whose paths the framework itself spells otherwise, and how.
- `HOST`: a host that has a page `/of-host` of its own; None if the framework has no routes for hosts.
"""

from __future__ import annotations

from typing import Any, Final

POSTS: Final = ["first", "second post", "k\u00e4se"]
"""The posts that `values` enumerates. Any other answers 404."""

PAGES: Final[dict[str, dict[str, Any] | None]] = {
    "/": None,
    "/about": {"lastmod": "2026-05-01", "priority": 0.8},  # @sitemap below the framework's decorator
    "/contact": {"changefreq": "weekly"},  # @sitemap above it, if the framework allows that
    "/blog/": None,  # from here: in a blueprint, an included router or the like with the prefix /blog
    "/blog/archive": None,
    "/shop/": None,  # from here: in an app of the same framework that is mounted at /shop; else as /blog
    "/shop/cart-help": None,
}
"""The pages that are listed at once, and the settings of those that are decorated."""

UNLISTED: Final[dict[str, tuple[str, int]]] = {
    "/login": ("@sitemap(exclude=True)", 200),
    "/drafts/one": ('the option exclude=["/drafts/*"]', 200),
    "/subscribe": ("POST only", 405),
    "/moved": ("redirects to /about", 302),
    "/gone": ("answers 404", 404),
    "/members": ("answers 403", 403),
    "/data": ("JSON", 200),
}
"""The static routes that are not listed: what they are, and the status of a GET (any redirect will do for 302)."""


def page(path: str) -> str:
    return f"<!doctype html><title>{path}</title><main><h1>{path}</h1><p>The words of {path}.</p></main>"
