"""What may be given as `values=`, and `Entry`: what its items may say of one page, besides its parameters."""

from __future__ import annotations

import contextlib
import inspect
import reprlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar, Final, Literal

from ..exceptions import OptionError
from ..models import Provider, Version
from ..protocol.extensions import Extensions, News, Video, checked_extensions
from ..protocol.value_checks import (
    Changefreq,
    parse_date,
    unknown_option_error,
    validate_changefreq,
    validate_date,
    validate_priority,
)

_PARAMS_NOT_GIVEN: Final[Mapping[str, Any]] = {}
"""The default of `params`. Compared by identity, because an empty mapping may be given."""

_FIELDS: Final = ("params", "lastmod", "priority", "changefreq", *Extensions._fields)

_DATE_FIX: Final = 'give a datetime.date, a datetime.datetime, or text such as "2024-05-01"'


@dataclass(frozen=True, init=False)  # without slots: a subclass may have attributes of its own
class Entry:
    """One page of a route with parameters, as `@sitemap(values=...)` enumerates it.

    ``Entry({"slug": post.slug}, lastmod=post.updated)``

    Omitted fields come from the route's `@sitemap`, then from the options. An
    omitted lastmod comes from the route's `@sitemap`, then from what was observed.

    Args:
        params: the route's parameters, by name, as its view takes them.
        loc: the page itself, instead of parameters, in the option `sections`: its URL, or its path as in links.
        lastmod: when the page's content last changed: a date, a datetime (a naive one is UTC), or the text of either
            in ISO 8601, such as "2024-05-01". Text that is not a date counts as omitted, with a warning when the
            sitemap is made, because front matter may contain anything.
        priority: 0.0 to 1.0, relative to the site's other pages (Sitemap 0.9, `<priority>`).
        changefreq: one of the protocol's seven words (Sitemap 0.9, `<changefreq>`),
            or "auto", to infer it from the observed changes.
        images, videos, news, alternates: as in `sitemap`, of this page.

    Raises:
        OptionError: for an unknown name or an invalid value. The message names the parameters.
    """

    params: Mapping[str, Any]
    """The route's parameters, by name."""
    lastmod: date | None
    priority: float | None
    changefreq: Changefreq | Literal["auto"] | None
    extensions: Extensions | None
    """What is said of its images, videos, news and alternates."""
    unusable_lastmod: str | None = field(compare=False, repr=False)
    """The text that was given as lastmod, if it is not a date."""

    version: ClassVar[Version | None] = None
    """A `Version`, if a `Sitemap` of Django's says of which pages it is one."""

    def __init__(
        self,
        params: Mapping[str, Any] = _PARAMS_NOT_GIVEN,
        *,
        loc: str | None = None,
        lastmod: date | str | None = None,
        priority: float | None = None,
        changefreq: Changefreq | Literal["auto"] | None = None,
        images: Iterable[str] | None = None,
        videos: Iterable[Video] | None = None,
        news: News | None = None,
        alternates: Mapping[str, str] | None = None,
        **unknown: object,
    ) -> None:
        if loc is not None:
            if params is not _PARAMS_NOT_GIVEN or not isinstance(loc, str):
                raise OptionError(
                    f"Entry(loc={reprlib.repr(loc)}): loc is the URL or path of a page, and takes the place of the"
                    ' parameters; write Entry(loc="/about")'
                )
            params = {"loc": loc}
        if params is _PARAMS_NOT_GIVEN:
            written = ", ".join(f"{name}={reprlib.repr(value)}" for name, value in unknown.items())
            items = ", ".join(f"{name!r}: {reprlib.repr(value)}" for name, value in unknown.items())
            example = items or "'slug': 'first-post'"
            raise OptionError(f"Entry({written}): the route's parameters are one mapping; write Entry({{{example}}})")
        copied = copy_item(params)
        if type(copied) is not dict:
            raise OptionError(
                f"Entry: {reprlib.repr(params)} is not a mapping of the route's parameters; "
                'give one such as Entry({"slug": "first-post"})'
            )
        if unknown:
            raise unknown_option_error(f"Entry({reprlib.repr(copied)})", next(iter(unknown)), _FIELDS)
        extended = {"images": images, "videos": videos, "news": news, "alternates": alternates}
        is_unusable = isinstance(lastmod, str) and parse_date(lastmod) is None
        try:
            fields = {
                "params": copied,
                "lastmod": None if lastmod is None or is_unusable else validate_date(lastmod, _DATE_FIX),
                "priority": None if priority is None else validate_priority(priority),
                "changefreq": None if changefreq is None else validate_changefreq(changefreq),
                "extensions": checked_extensions(extended),
                "unusable_lastmod": lastmod if is_unusable else None,
            }
        except OptionError as error:
            raise OptionError(f"Entry({reprlib.repr(copied)}): {error}") from None
        self.__dict__.update(fields)  # it is frozen for others


def copy_item(item: Any) -> Any:
    """Copy a mapping into a dict, since providers may reuse one mapping for all items; return other items unchanged.

    Anything with `keys` counts as a mapping, such as the rows of sqlite3 and asyncpg.
    """
    if type(item) is dict:
        return item.copy()
    with contextlib.suppress(Exception):  # it has `keys`, but is not a mapping
        if hasattr(item, "keys"):
            return dict(item)
    return item


EMPTY_ENTRY: Final = Entry({})
"""The entry of a page if the provider gave only its parameters."""


def checked_values(value: object, place: str, section: str | None = None) -> Provider | None:
    """The provider for an argument `values`, which must be readable more than once; None for None.

    Raises `OptionError`, which begins with the place, if it cannot be read, or only once.
    """
    if value is None:
        return None
    if isinstance(value, Iterable | AsyncIterable) and not isinstance(
        value, Iterator | AsyncIterator | Awaitable | str | bytes | Mapping
    ):
        return Provider(value, place, section)  # without its repr: that of a QuerySet of Django asks the database
    name = reprlib.repr(value)
    if isinstance(value, Iterator | AsyncIterator | Awaitable):
        raise OptionError(
            f"{place}: values={name} can be read only once; give a list, or the function itself without calling it"
        )
    if isinstance(value, str | bytes | Mapping):
        raise OptionError(f"{place}: values={name} is a single item; give a list")
    if not callable(value):
        raise OptionError(f"{place}: values={name} is not iterable; give an iterable, or a callable that returns one")
    # One that can do without it gets it, too: else it may give the pages of all sites. One that takes any arguments may
    # hand them on, and does not.
    takes_base_url = _accepts(value, base_url="") and "base_url" in inspect.signature(value).parameters
    if takes_base_url or _accepts(value):
        return Provider(value, place, section, takes_base_url=takes_base_url)
    raise OptionError(
        f"{place}: values={name} cannot be called without arguments; give one that needs none, or only base_url"
    )


def unread(source: Any) -> Any:
    """Return an iterable that queries the database each time: a QuerySet of Django keeps the rows that it has read."""
    return source.all() if hasattr(source, "_result_cache") and hasattr(source, "all") else source


def _accepts(value: Callable[..., object], **arguments: object) -> bool:
    try:
        inspect.signature(value).bind(**arguments)
    except TypeError:
        return False
    except ValueError:  # some builtins have no signature
        return not arguments
    return True
