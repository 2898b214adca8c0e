"""The URL of a PostgreSQL store: the parameters of libpq, and the option `schema` of this package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_plus

import psycopg
from psycopg import conninfo

DEFAULT_SCHEMA: Final = "sitemap"
_SCHEMA_NAME: Final = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")


def parse_url(url: str) -> tuple[str, dict[str, Any]]:
    """The schema that a URL names, and the parameters of the connection. Raises ValueError, without the password."""
    base, question_mark, query = url.partition("?")
    schema, rest = DEFAULT_SCHEMA, []
    for parameter in query.split("&") if question_mark else ():
        key, _, value = parameter.partition("=")
        if key == "schema":
            schema = unquote_plus(value)
        else:
            rest.append(parameter)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise ValueError(
            f"names a schema {schema!r}: use up to 63 lower-case letters, digits and underscores, but no pg_ prefix"
        )
    try:
        return schema, conninfo.conninfo_to_dict(f"{base}?{'&'.join(rest)}" if rest else base)
    except psycopg.Error:  # its message shows the URL
        raise ValueError("is not a PostgreSQL URL, or has a parameter that libpq does not know") from None


def display_name(schema: str, parameters: Mapping[str, object]) -> str:
    """The store's name in messages: its URL without account and password."""
    host, port = parameters.get("host") or parameters.get("hostaddr") or "", parameters.get("port")
    return f"postgresql://{host}{f':{port}' if port else ''}/{parameters.get('dbname') or ''}?schema={schema}"
