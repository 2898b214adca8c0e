"""What an entry may say of its page beyond the protocol: images, videos, news, and versions in other languages.

The limits are those of Google's documentation and schemas. `check` reads them here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

from ..evidence.dates import SECONDS_PER_DAY
from ..exceptions import OptionError
from ..http.urls import absolute_url
from .language_codes import X_DEFAULT, hreflang_fault, is_news_language
from .value_checks import validate_date, validate_flag

NAMESPACES: Final[Mapping[str, str]] = {
    "image": "http://www.google.com/schemas/sitemap-image/1.1",
    "video": "http://www.google.com/schemas/sitemap-video/1.1",
    "news": "http://www.google.com/schemas/sitemap-news/0.9",
    "xhtml": "http://www.w3.org/1999/xhtml",
}
"""By prefix."""

MAX_IMAGES: Final = 1_000
"""Images of a page."""
MAX_CHARS: Final[Mapping[str, int]] = {"title": 100, "description": 2_048, "uploader": 255}
"""Characters of the texts of a video. The title's limit is in the schema only."""
MAX_TAGS: Final = 32
MAX_DURATION_SECONDS: Final = 28_800
MAX_VIEWS: Final = 10**15
MAX_NEWS: Final = 1_000
"""Articles in a document."""
NEWS_SECONDS: Final = 2 * SECONDS_PER_DAY
"""How long an article is news, from its publication."""

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_COUNTRIES: Final = re.compile(r"[A-Z]{2}(?: [A-Z]{2})*")
_PLATFORMS: Final = re.compile(r"(?:web|mobile|tv)(?: (?:web|mobile|tv))*")
_ANY_SITE: Final = "https://example.com/"

leave_out: Final = ContextVar[Callable[[str], None] | None]("leave_out", default=None)
"""Set while items of `values` are read: it is told why something is invalid, and that is left out. Else it raises."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Video:
    """A video that is the main content of a page, as in `Entry(..., videos=[Video(...)])`.

    https://developers.google.com/search/docs/crawling-indexing/sitemaps/video-sitemaps

    Args:
        thumbnail_loc: the URL of a picture of it. This and other URLs may be paths of the site.
        title: at most 100 characters.
        description: at most 2,048 characters.
        content_loc: the URL of its file, or
        player_loc: that of its player. Neither may be the page itself.
        duration: in seconds, 1 to 28,800.
        expiration_date: a date or datetime, or the text of either in ISO 8601. Then the video is left out.
        rating: 0.0 to 5.0.
        view_count: how often it was seen.
        publication_date: as `expiration_date`.
        tags: at most 32 texts.
        family_friendly: False if it is not for everybody.
        restriction: ``("allow", "DE AT")`` or ``("deny", …)``: the countries where it may or may not be shown.
        requires_subscription: whether it does.
        uploader: a name of at most 255 characters.
        platform: ``("allow", "web tv")`` or ``("deny", …)``, of web, mobile and tv.
        live: whether it is a live stream.

    Raises:
        OptionError: for an invalid value.
    """

    # In the order of the schema, in which they are written.
    thumbnail_loc: str
    title: str
    description: str
    content_loc: str | None = None
    player_loc: str | None = None
    duration: int | None = None
    expiration_date: date | str | None = None
    rating: float | None = None
    view_count: int | None = None
    publication_date: date | str | None = None
    tags: Iterable[str] = ()
    family_friendly: bool | None = None
    restriction: tuple[str, str] | None = None
    requires_subscription: bool | None = None
    uploader: str | None = None
    platform: tuple[str, str] | None = None
    live: bool | None = None

    def __post_init__(self) -> None:
        _check_fields(self, _VIDEO_CHECKS)


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """An article of a publication that Google News knows, as in `Entry(..., news=News(...))`.

    It is in the sitemap for 48 hours after its publication; what remains then is the entry of a plain page.
    https://developers.google.com/search/docs/crawling-indexing/sitemaps/news-sitemap

    Args:
        name: of the publication, exactly as on news.google.com.
        language: of the publication: two or three letters (ISO 639), or zh-cn or zh-tw.
        publication_date: when the article was published first: a date or datetime, or the text of either in ISO 8601.
            A date without a time counts from its first second in UTC.
        title: of the article, without author, date and publication.

    Raises:
        OptionError: for an invalid value.
    """

    name: str
    language: str
    publication_date: date | str
    title: str

    def __post_init__(self) -> None:
        _check_fields(self, _NEWS_CHECKS)


class Extensions(NamedTuple):
    """What the developer says of a page by the arguments of these names; None for those not given."""

    images: tuple[str, ...] | None = None
    videos: tuple[Video, ...] | None = None
    news: News | None = None
    alternates: tuple[tuple[str, str], ...] | None = None


def checked_extensions(given: Mapping[str, Any]) -> Extensions | None:
    """What arguments of these names say, among others; None if there are none. `OptionError` for an invalid value."""
    checked: dict[str, Any] = {}
    for name in Extensions._fields:
        if given.get(name) is not None:
            try:
                checked[name] = _CHECKS[name](name, given[name])
            except OptionError as error:
                _raise_or_leave_out(error)
    return Extensions(**checked) if checked else None


def merge_extensions(first: Extensions | None, second: Extensions | None) -> Extensions | None:
    """What is said of a page: the second fills in what the first leaves open."""
    if first is None or second is None:
        return second if first is None else first
    return Extensions._make([added if own is None else own for own, added in zip(first, second, strict=True)])


def _images(name: str, value: Any) -> tuple[str, ...]:
    images = tuple(dict.fromkeys(_url(name, image) for image in _items(name, value, '["/static/photo.jpg"]')))
    if len(images) > MAX_IMAGES:
        raise OptionError(f"{name}: {len(images):,} are too many for a page; give at most {MAX_IMAGES:,}")
    return images


def _videos(name: str, value: Any) -> tuple[Video, ...]:
    videos = _items(name, value, "[Video(...)]")
    for video in videos:
        if not isinstance(video, Video):
            raise OptionError(f"{name} holds {video!r:.100}, which is not a Video; give a list such as [Video(...)]")
    return tuple(video for video in videos if video.title)


def _news(name: str, value: Any) -> News | None:
    if not isinstance(value, News):
        raise OptionError(f"{name}={value!r:.100} is not valid; give News(name=..., language=..., ...)")
    return value if value.title else None


def _alternates(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise OptionError(
            f'{name}={value!r:.100} is not a mapping; give URLs by language, such as {{"de": "/de/about"}}'
        )
    for code in value:
        if not isinstance(code, str) or hreflang_fault(code) is not None:
            raise OptionError(
                f"{name} holds {code!r:.50}, which is not the code of a language that search engines know;"
                f' give one such as "de", "de-AT", "zh-Hans" or "{X_DEFAULT}"'
            )
    by_code = {
        code.lower(): (str.__str__(code), _url(f"{name}[{code!r}]", url))
        for code, url in value.items()
        if not _is_empty(url)
    }
    return tuple(by_code.values())


def _raise_or_leave_out(error: OptionError) -> None:
    told = leave_out.get()
    if told is None:
        raise error
    told(str(error))


# The checks of one value. Each returns what is kept of it: of a member of an enum, its value.


def _check_fields(owner: Video | News, checks: Mapping[str, Callable[[str, Any], Any]]) -> None:
    """Replace each value by what is kept of it. One without a default must be given.

    If what is invalid is to be left out, the title becomes empty.
    """
    try:
        for field in fields(owner):
            value = getattr(owner, field.name)
            if value is not None or field.default is MISSING:
                object.__setattr__(owner, field.name, checks[field.name](field.name, value))
        if isinstance(owner, Video) and owner.content_loc is None is owner.player_loc:
            raise OptionError("has neither content_loc nor player_loc; give the URL of one")  # noqa: TRY301
    except OptionError as error:
        _raise_or_leave_out(OptionError(f"{type(owner).__name__} {owner.title!r:.50}: {error}"))
        object.__setattr__(owner, "title", "")


def _items(name: str, value: Any, example: str) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise OptionError(f"{name}={value!r:.100} is not a list; give one such as {example}")
    return tuple(item for item in value if not _is_empty(item))


def _is_empty(value: Any) -> bool:
    """Whether a value of a list is left out silently, as those of columns that may be NULL."""
    return value is None or (isinstance(value, str) and not value)


def _url(name: str, value: Any) -> str:
    if isinstance(value, str) and value and absolute_url(_ANY_SITE, value) is not None:
        return str.__str__(value)
    raise OptionError(
        f'{name}: {value!r:.100} is not a URL; give one such as "https://example.com/a", or a path as in links'
    )


def _text(most: int | None, name: str, value: Any) -> str:
    text = " ".join(_NOT_XML.sub(" ", value).split()) if isinstance(value, str) else ""
    if not text:
        raise OptionError(f"{name}={value!r:.50} is not a text; give one")
    if most is not None and len(text) > most:
        raise OptionError(f"{name} has {len(text):,} characters; give at most {most:,}")
    return text


def _language(name: str, value: Any) -> str:
    if isinstance(value, str) and is_news_language(value.lower()):
        return value.lower()
    raise OptionError(f'{name}={value!r:.50} is not a language of news; give two or three letters, "zh-cn" or "zh-tw"')


def _date(name: str, value: Any) -> date:
    return validate_date(value, "give a datetime.date or a datetime.datetime", name)


def _number(kind: type[int | float], least: int, most: float, name: str, value: Any) -> float:
    if isinstance(value, (int, kind)) and not isinstance(value, bool) and least <= value <= most:
        return value + 0
    is_endless = isinstance(value, int) and abs(value) > MAX_VIEWS  # Python may refuse to write it
    raise OptionError(
        f"{name}={'a huge number' if is_endless else repr(value)[:50]} is not valid;"
        f" give a number, from {least} to {most:,}"
    )


def _tags(name: str, value: Any) -> tuple[str, ...]:
    tags = tuple(_text(None, name, tag) for tag in _items(name, value, '["bread"]'))
    if len(tags) > MAX_TAGS:
        raise OptionError(f"{name}: {len(tags)} are too many; give at most {MAX_TAGS}")
    return tags


def _rule(words: re.Pattern[str], example: str, name: str, value: Any) -> tuple[str, str]:
    match value:
        case ("allow" | "deny" as relationship, str(listed)) if words.fullmatch(listed):
            return str.__str__(relationship), str.__str__(listed)
    raise OptionError(f'{name}={value!r:.50} is not valid; give ("allow", "{example}") or ("deny", "{example}")')


_VIDEO_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "thumbnail_loc": _url,
    "title": partial(_text, MAX_CHARS["title"]),
    "description": partial(_text, MAX_CHARS["description"]),
    "content_loc": _url,
    "player_loc": _url,
    "duration": partial(_number, int, 1, MAX_DURATION_SECONDS),
    "expiration_date": _date,
    "rating": partial(_number, float, 0, 5),
    "view_count": partial(_number, int, 0, MAX_VIEWS),
    "publication_date": _date,
    "tags": _tags,
    "family_friendly": validate_flag,
    "restriction": partial(_rule, _COUNTRIES, "DE AT"),
    "requires_subscription": validate_flag,
    "uploader": partial(_text, MAX_CHARS["uploader"]),
    "platform": partial(_rule, _PLATFORMS, "web tv"),
    "live": validate_flag,
}
_NEWS_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "name": partial(_text, None),
    "language": _language,
    "publication_date": _date,
    "title": partial(_text, None),
}
_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "images": _images,
    "videos": _videos,
    "news": _news,
    "alternates": _alternates,
}
