"""The names of Redis keys: `{<prefix>:<site>}:<kind>`. A cluster keeps names with the same braces on one node."""

from __future__ import annotations

import re
from typing import Final

KEY_KINDS: Final = ("pages", "records", "documents", "leases")
"""The keys of a site. Each is a hash."""


def site_key(prefix: str, site: str, kind: str) -> str:
    return f"{{{prefix}:{_escape_braces(site)}}}:{kind}"


def pattern_of_keys(prefix: str) -> str:
    """The pattern, for SCAN, of all keys of this prefix."""
    escaped = re.sub(r"([\\*?\[\]^-])", r"\\\1", f"{{{prefix}:")
    return f"{escaped}*"


def parse_key(prefix: str, key: str) -> tuple[str, str] | None:
    """The site and the kind of a key that `pattern_of_keys` matches; None if it is another program's."""
    site, _, kind = key.removeprefix(f"{{{prefix}:").rpartition("}:")
    return (_unescape_braces(site), kind) if kind in KEY_KINDS else None


def _escape_braces(site: str) -> str:
    return site.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def _unescape_braces(site: str) -> str:
    return site.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")
