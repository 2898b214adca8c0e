"""The errors this package raises. All of them subclass `SitemapError`."""


class SitemapError(Exception):
    """Base class of all errors of this package: something the user can fix."""


MAX_MESSAGE_CHARS = 1_000
"""Of an error that repeats a value: what is in the middle is left out."""


class OptionError(SitemapError, ValueError, TypeError):
    """An unknown option, or an invalid value of an option or of a decorator's argument.

    Raised when the middleware is constructed or the decorator applied, never while
    a request is served. It is both a `ValueError` and a `TypeError`, because a
    priority of ``"high"`` is wrong in type and in value.
    """

    def __init__(self, message: str) -> None:
        half = MAX_MESSAGE_CHARS // 2
        super().__init__(message if len(message) <= MAX_MESSAGE_CHARS else f"{message[:half]} … {message[-half:]}")


class StoreError(SitemapError):
    """The store cannot do what was requested: it is down, full, locked, read-only, or belongs to another program.

    Stores raise no other error.
    """


class MiddlewareLookupError(SitemapError, LookupError):
    """`SitemapMiddleware.of` found no middleware in the app, or more than one."""


class ValuesError(SitemapError):
    """The iterable or callable given as `@sitemap(values=...)` failed, hung or did not end."""


class ValuesTimeout(ValuesError):
    """It produced nothing within its time limit."""
