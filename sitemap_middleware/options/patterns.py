"""The patterns of the options include, exclude and learn: route templates of any framework, and globs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_TOKEN: Final = re.compile(
    r"<(?:(?P<werkzeug_converter>[a-zA-Z_]\w*)(?P<arguments>\([^<>]*?\))?:)?(?P<werkzeug>[a-zA-Z_]\w*)>"
    r"|\{(?P<starlette>[a-zA-Z_]\w*)(?::(?P<starlette_converter>[a-zA-Z_]\w*))?\}"
    r"|(?P<glob>\*+)"
)
_SPELLINGS: Final = {
    "int": "0|[1-9][0-9]*",
    "float": r"(?:0|[1-9][0-9]*)(?:\.(?:0|[0-9]*[1-9]))?",
    "uuid": "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
}
"""By converter, how routers write a value. They read others, such as 007 or a UUID in capitals, as the same one."""
_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:[a-z]*(?:token|apikey|secret|password|passwd|signature|uidb?64)|key|code|passcode|passphrase|pwd|pw|pin|sig"
    r"|signed|hash|hmac|payload|otp|totp|nonce|jwt|tok|session|sessionid|sess|sid|auth|oauth|credential|ticket|magic|invite|invitation"
    r"|activation|confirm|confirmation|verify|verification|verifier|reset|recovery|unsub|unsubscribe|optout|challenge|csrf"
    r"|private|capability|email)s?[0-9]*(?:$|_)"
    r"|^(?:access|cap|conf|e?mail)(?:_?id)?$"
    r"|(?:^|_)(?:share|shared|draft|preview|invoice|receipt|(?<!sort_)order|booking|reservation|tracking|shipment|refund"
    r"|rma|cart|basket|checkout|anon)(?:_?(?:id|no|nr|num|number|ref|reference|uuid|guid)s?)?[0-9]*$"
    r"|(?:^|_)(?:download|payment|access|conf)_?(?:id|no|nr|num|number|ref|reference|uuid|guid)s?[0-9]*$"
)
"""Names of parameters whose values are secrets, or identify something private such as an invoice or a draft. UUIDs are
not among them: most are plain ids."""
_CAMEL_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BRACKET: Final = re.compile(r"[<>{}]")


class Pattern:
    """One pattern: which paths it matches, and whether pages may be learned by it."""

    def __init__(self, text: str, *, include_parent: bool = False) -> None:
        """`include_parent`: whether a pattern that ends with "/*" matches the path before that, too."""
        self.text: str = text
        self._include_parent = include_parent and text.endswith("/*")
        self.is_readable: bool = not _BRACKET.search(_TOKEN.sub("", text))
        """False if it has a bracket that does not delimit a parameter."""
        pieces: list[str] = []
        self.literal: bool = True
        self.prefix: str = text
        """The literal text that every matching path begins with."""
        self.is_too_wide: bool = False
        """Whether it is a catch-all, such as `<path:name>` or `/*`."""
        self.secret: str | None = None
        """The name of a parameter that is named like a secret, if there is one."""
        self._spellings: list[Callable[[str], object]] = []
        """What matches the text that the router writes, for each parameter that may be spelled otherwise."""
        end, starred = 0, False
        for token in _TOKEN.finditer(text):
            if self.literal:
                self.prefix = text[: token.start()]
            self.literal = False
            between = re.escape(text[end : token.start()])
            end = token.end()
            if token["glob"]:
                if starred:
                    # An atomic group: the star before keeps its first match, so that matching takes linear time.
                    pieces[-1] = f"(?>.*?{between})"
                else:
                    pieces.append(between)
                pieces.append(".*")
                starred = True
                continue
            starred = False
            converters = (token["werkzeug_converter"], token["starlette_converter"])
            wide = "path" in converters
            self.is_too_wide |= wide
            name = token["werkzeug"] or token["starlette"]
            if _SECRET_NAME.search(_CAMEL_BOUNDARY.sub("_", name).lower()):
                self.secret = name
            any_value = (".+" if token["werkzeug"] else ".*") if wide else "[0-9]+" if "int" in converters else "[^/]+"
            spelling = None if token["arguments"] else _SPELLINGS.get(converters[0] or converters[1] or "")
            if spelling is not None:
                self._spellings.append(re.compile(spelling).fullmatch)
            pieces += (between, any_value if spelling is None else f"({any_value})")
        pieces.append(re.escape(text[end:]))
        self.is_too_wide |= not self.literal and not re.search(r"\w", _TOKEN.sub("", text)) and "*" in text
        self._matches = None if self.literal else re.compile("".join(pieces), re.DOTALL).fullmatch

    def matches(self, path: str) -> bool:
        """Whether a decoded path matches. ``*`` matches any characters, slashes included."""
        if self._matches is None:
            return path == self.text
        return self._matches(path) is not None or (self._include_parent and self._matches(f"{path}/") is not None)

    def writes(self, path: str) -> bool:
        """Whether a decoded path matches, and has its parameters as a router writes them."""
        found = None if self._matches is None else self._matches(path)
        if found is None:
            return path == self.text
        return all(is_spelling(text) for is_spelling, text in zip(self._spellings, found.groups(), strict=True))


class Patterns(tuple[Pattern, ...]):
    """The patterns of one option."""

    __slots__ = ()

    def find(self, path: str, template: str | None = None) -> Pattern | None:
        """The first pattern that matches a decoded path, or equals the template of its route."""
        return next((pattern for pattern in self if pattern.text == template or pattern.matches(path)), None)
