"""The errors this package raises, and one parent to catch them all by."""


class SitemapError(Exception):
    """Base class for errors the user can fix."""


class OptionError(SitemapError, ValueError, TypeError):
    """An option or a mark with a name or a value it cannot have.

    Raised where it is written: when the middleware is constructed or the
    decorator applied, never while a request is served. It is a `ValueError` and
    a `TypeError` both, since to a caller a priority of ``"high"`` is as much the
    one as the other.
    """


class StoreError(SitemapError):
    """The store cannot do what was asked of it now: it is down, full, locked, read-only or not ours.

    Whoever calls a store expects this error and no other.
    """


class ValuesError(SitemapError):
    """What `@sitemap(values=...)` was given failed, hung, or would not end."""


class ValuesTimeout(ValuesError):
    """It did not answer within its budget."""
