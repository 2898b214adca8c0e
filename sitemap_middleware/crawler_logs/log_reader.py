"""Reads the requests in access logs: of many formats, plain or compressed, from files or standard input.

The lines are hostile: clients choose the path, the User-Agent, and with some servers the host and the user name.
Servers escape a quote in them, so the patterns accept one only with a backslash before it. A log may be of any size,
and so may its lines; memory stays the same.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from ..evidence.response_parser import first_installed
from ..exceptions import SitemapError

MAX_LINE_BYTES: Final = 64 * 1024
"""Bytes of a line. Servers accept no request that makes a longer one."""

_BUFFER_BYTES: Final = 1024 * 1024

_zstd: Any = first_installed("compression.zstd", "backports.zstd")
_READ_ERRORS: tuple[type[Exception], ...] = (OSError, EOFError, zlib.error, *([_zstd.ZstdError] if _zstd else []))


class Hit(NamedTuple):
    """A request, as a line of a log has it. Times and targets are parsed later, because few lines are crawlers'."""

    time: str
    """See `timestamp_of_text`."""
    address: str
    method: str
    target: str
    """The path or URL with its query string, percent-encoded; empty if the line has none."""
    status: str
    agent: str
    """The User-Agent; empty if the log does not keep it."""
    host: str = ""
    """The requested host, perhaps with a port; empty if the log does not keep it."""


_QUOTED: Final = r'[^"\\]*(?:\\.[^"\\]*)*'
_ALB: Final = re.compile(  # AWS Application Load Balancer
    r"(?:https?|h2|grpcs|wss?) (?P<time>\S+) \S+ \[?(?P<address>[^\s\]]+?)\]?(?::\d+)? (?:\S+ ){4}"
    rf'(?P<status>\d{{3}}|-) (?:\S+ ){{3}}"(?P<request>{_QUOTED})" "(?P<agent>{_QUOTED})"'
)
_CLF: Final = re.compile(  # the Common and the Combined Log Format; Apache's vhost_combined has the host first
    r"(?:(?P<host>[^\s,]+) (?=[0-9a-fA-F]*[.:][0-9a-fA-F.:]+[ ,]))?"
    r"(?P<address>[^\s,]+)(?:,\S*)? [^\[]*\[(?P<time>[^\]]+)\] "  # X-Forwarded-For names more, after a comma
    rf'"(?P<request>{_QUOTED})" (?P<status>\d{{3}}) \S+(?: "{_QUOTED}" "(?P<agent>{_QUOTED})")?'
)
_ESCAPED: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")

_FIELD_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("ts", "StartUTC", "time_iso8601", "msec", "time_local", "@timestamp", "timestamp", "time", "datetime"),
    "address": ("client_ip", "remote_ip", "ClientHost", "remote_addr", "clientip", "client", "ip", "c-ip"),
    "method": ("method", "RequestMethod", "request_method", "cs-method"),
    "target": ("uri", "RequestPath", "request_uri", "url", "path", "cs-uri-stem"),
    "host": ("host", "RequestHost", "http_host", "server_name", "x-host-header", "cs(host)"),
    "status": ("status", "DownstreamStatus", "OriginStatus", "status_code", "sc-status"),
    "agent": ("http_user_agent", "user_agent", "request_User-Agent", "agent", "cs(user-agent)"),
    "request": ("request",),
    "query": ("args", "query_string", "query", "cs-uri-query"),
}
"""The names of fields: of Caddy, Traefik, CloudFront, and of what people write into nginx's `log_format`."""

_DIRECTIVE: Final = "#Fields:"
"""Begins the line of CloudFront that names the fields of the lines below."""


def parse_line(line: str, names: Sequence[str] = ()) -> Hit | None:
    """What a line says, in any of the formats; None if it has none of them. `names` are of CloudFront's fields."""
    if line.startswith("{"):
        return _json(line)
    if names and len(cells := line.split("\t")) == len(names):
        return _w3c(dict(zip(names, cells, strict=True)))
    match = _ALB.match(line) or _CLF.match(line)
    if match is None:
        return None
    fields = match.groupdict("")
    method, target = _method_and_target(fields.pop("request"))
    return Hit(method=method, target=target, **fields)


def _json(line: str) -> Hit | None:
    """One JSON object a line, as of Caddy, Traefik, or nginx with a `log_format` of JSON."""
    try:
        record: dict[str, Any] = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request = record.get("request")
    if isinstance(request, dict):  # Caddy
        headers = request.get("headers")
        agents = headers.get("User-Agent") if isinstance(headers, dict) else None
        record |= {**request, "agent": agents[0] if isinstance(agents, list) and agents else ""}
    return _hit(record)


def _w3c(record: dict[str, str]) -> Hit | None:
    """A line of CloudFront, which escapes the percent signs of the request, too."""
    record["time"] = f"{record.get('date')}T{record.get('time')}"
    record["cs-uri-stem"] = re.sub(r"%25(?=[0-9A-Fa-f]{2})", "%", record.get("cs-uri-stem", ""))
    record["cs(user-agent)"] = unquote(unquote(record.get("cs(user-agent)", "")))
    return _hit(record)


def _hit(record: Mapping[str, Any]) -> Hit | None:
    """The request of a record, by the names of its fields; None if it has no time or no status."""
    found = {field: _first(record, names) for field, names in _FIELD_NAMES.items()}
    request, query = found.pop("request"), found.pop("query")
    if request and not found["target"]:
        found["method"], found["target"] = _method_and_target(request)
    if query and query != "-" and "?" not in found["target"]:
        found["target"] += f"?{query}"
    return Hit(**found) if found["time"] and found["status"] else None


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of the fields that the record has, as text."""
    for name in names:
        value = record.get(name)
        if isinstance(value, str | int | float) and value != "":
            return str(value)
    return ""


def _method_and_target(request: str) -> tuple[str, str]:
    """The first words of a request line such as `GET /menu HTTP/1.1`, without the escapes of the server."""
    words = request.split(" ")
    if not 2 <= len(words) <= 3:
        return words[0], ""
    method, target = words[:2]
    if "\\" in target:
        target = _ESCAPED.sub(lambda match: f"%{match[1]}" if match[1] else match[2], target)
    return method, target


@lru_cache(4096)
def timestamp_of_text(text: str) -> int | None:
    """POSIX seconds of a time of the Common Log Format, of ISO 8601, or in seconds or milliseconds; None for others.

    Without a zone it is UTC.
    """
    try:
        if text.replace(".", "", 1).isdecimal():
            seconds = float(text)
            moment = datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
        elif text[:4].isdecimal():  # perhaps with slashes, as of Caddy
            moment = datetime.fromisoformat(text.replace("/", "-"))
        else:  # 24/Nov/2025:16:00:00 +0000, which is close to a date in an e-mail
            moment = parsedate_to_datetime(text.replace("/", " ").replace(":", " ", 1))
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def read_hits(log: str, lines: Counter[str]) -> Iterator[Hit]:
    """Yield the requests of a log: of a file, or `-` for standard input.

    Lines are counted: `read`, `unreadable`, and those that are `too long`. Raises `SitemapError` if the log cannot be
    read, or not to its end, or no line has a known format.
    """
    names: list[str] = []
    has_hits = False
    try:
        with contextlib.ExitStack() as stack:
            for line in _lines(_open(log, stack), lines):
                if line.startswith("#"):
                    names = line.removeprefix(_DIRECTIVE).lower().split() if line.startswith(_DIRECTIVE) else names
                    continue
                lines["read"] += 1
                hit = parse_line(line, names)
                if hit is None:
                    lines["unreadable"] += 1
                else:
                    has_hits = True
                    yield hit
    except _READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or f"it is damaged or not complete ({error})"
        raise SitemapError(f"{log} cannot be read: {reason}") from error
    if not has_hits:
        raise SitemapError(
            f"{log} has no line in a known format: the combined format, JSON lines, or those of an AWS load balancer or"
            " CloudFront"
        )


def _open(log: str, stack: contextlib.ExitStack) -> io.BufferedReader:
    """The bytes of a log, decompressed as its content shows."""
    file = _buffered(sys.stdin.buffer) if log == "-" else stack.enter_context(open(log, "rb"))  # noqa: PTH123, SIM115
    head = file.peek(4)
    if head.startswith(b"\x1f\x8b"):
        return _buffered(stack.enter_context(gzip.GzipFile(fileobj=file)))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        if _zstd is None:
            raise SitemapError(f'{log} is compressed with zstd: pip install "sitemap-middleware[logs]"')
        return _buffered(stack.enter_context(_zstd.ZstdFile(file)))
    return file


def _buffered(stream: Any) -> io.BufferedReader:
    return io.BufferedReader(stream, _BUFFER_BYTES)


def _lines(stream: io.BufferedReader, lines: Counter[str]) -> Iterator[str]:
    """The lines that are neither blank nor too long."""
    is_rest_of_long_line = False
    while data := stream.readline(MAX_LINE_BYTES):
        is_end = len(data) < MAX_LINE_BYTES or data.endswith(b"\n")
        if is_rest_of_long_line or not is_end:
            lines["too long"] += not is_rest_of_long_line
            is_rest_of_long_line = not is_end
        elif data.strip():
            yield data.decode("utf-8", "replace").rstrip("\r\n")
