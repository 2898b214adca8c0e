"""The formats of access logs: what a line says. Pure.

The lines are hostile: clients choose the path, the User-Agent, and with some servers the host and the user name.
Servers escape a quote in them, so the patterns accept one only with a backslash before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote


class Hit(NamedTuple):
    """A request, as a line of a log has it. Times and targets are parsed later, because few lines are crawlers'."""

    time: str
    """See `timestamp_of_text`."""
    address: str
    method: str
    target: str
    """The path or URL with its query string, percent-encoded; empty if the line has none."""
    host: str
    """The requested host, perhaps with a port; empty if the log does not keep it."""
    status: str
    agent: str
    """The User-Agent; empty if the log does not keep it."""


_QUOTED: Final = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_CLF: Final = re.compile(
    rf'(\S+) (\S+) [^\[]*\[([^\]]+)\] {_QUOTED} (\d{{3}}) \S+(?: "[^"\\]*(?:\\.[^"\\]*)*" {_QUOTED})?'
)
_IP_ADDRESS: Final = re.compile(r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]+")
_ALB: Final = re.compile(
    r"(?:https?|h2|grpcs|wss?) (\S+) \S+ \[?([^\s\]]+?)\]?(?::\d+)? (?:\S+ ){4}(\d{3}|-) (?:\S+ ){3}"
    rf"{_QUOTED} {_QUOTED}"
)
_ESCAPED: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")
_FIELDS_DIRECTIVE: Final = "#Fields:"


def _clf(line: str) -> Hit | None:
    """The Common and the Combined Log Format; Apache's vhost_combined has the host first."""
    match = _CLF.match(line)
    if match is None:
        return None
    first, second, time, request, status, agent = match.groups()
    host, address = (first, second) if second != "-" and _IP_ADDRESS.fullmatch(second) else ("", first)
    return Hit(time, address, *_method_and_target(request), host, status, agent or "")


def _alb(line: str) -> Hit | None:
    """AWS Application Load Balancer."""
    match = _ALB.match(line)
    if match is None:
        return None
    time, address, status, request, agent = match.groups()
    return Hit(time, address, *_method_and_target(request), "", status, agent)


def _method_and_target(request: str) -> tuple[str, str]:
    """The first words of a request line such as `GET /menu HTTP/1.1`, without the escapes of the server."""
    words = request.split(" ")
    if not 2 <= len(words) <= 3:
        return words[0], ""
    if "\\" in words[1]:
        words[1] = _ESCAPED.sub(lambda match: f"%{match[1]}" if match[1] else match[2], words[1])
    return words[0], words[1]


_JSON_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "time": (*("ts", "StartUTC", "time_iso8601", "msec", "time_local", "@timestamp", "timestamp", "time", "datetime"),),
    "address": ("client_ip", "remote_ip", "ClientHost", "remote_addr", "clientip", "client", "ip"),
    "method": ("method", "RequestMethod", "request_method"),
    "target": ("uri", "RequestPath", "request_uri", "url", "path"),
    "host": ("host", "RequestHost", "http_host", "server_name"),
    "status": ("status", "DownstreamStatus", "OriginStatus", "status_code"),
    "agent": ("http_user_agent", "user_agent", "request_User-Agent", "agent"),
}
"""The names of the fields of JSON objects: of Caddy, Traefik, and of what people write into nginx's `log_format`."""


def _json(line: str) -> Hit | None:
    """One JSON object a line, as of Caddy, Traefik, or nginx with a `log_format` of JSON."""
    if not line.startswith("{"):
        return None
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request = record.get("request")
    if isinstance(request, dict):  # Caddy
        headers = request.get("headers")
        agents = headers.get("User-Agent") if isinstance(headers, dict) else None
        record = {**record, **request, "agent": agents[0] if isinstance(agents, list) and agents else ""}
    found = {field: _first(record, names) for field, names in _JSON_NAMES.items()}
    if isinstance(request, str) and not found["target"]:
        found["method"], found["target"] = _method_and_target(request)
    query = _first(record, ("args", "query_string", "query"))
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


def _w3c_parser(directive: str) -> Callable[[str], Hit | None]:
    """The parser of CloudFront's lines, whose fields a directive names. Tabs are between them."""
    names = directive.removeprefix(_FIELDS_DIRECTIVE).lower().split()

    def parse(line: str) -> Hit | None:
        cells = dict(zip(names, line.rstrip("\r\n").split("\t"), strict=False))
        if len(cells) < len(names) or not {"date", "time", "sc-status", "cs-uri-stem"} <= cells.keys():
            return None
        query = cells.get("cs-uri-query", "-")
        return Hit(
            time=f"{cells['date']}T{cells['time']}",
            address=cells.get("c-ip", ""),
            method=cells.get("cs-method", ""),
            # CloudFront escapes the percent signs of the request.
            target=re.sub(r"%25(?=[0-9A-Fa-f]{2})", "%", cells["cs-uri-stem"]) + ("" if query == "-" else f"?{query}"),
            host=cells.get("x-host-header") or cells.get("cs(host)", ""),
            status=cells["sc-status"],
            agent=unquote(unquote(cells.get("cs(user-agent)", ""))),
        )

    return parse


class LineParser:
    """Parses the lines of one log. The format that fitted the last line is tried first, so a log may have several."""

    def __init__(self) -> None:
        self._parsers: list[Callable[[str], Hit | None]] = [_clf, _json, _alb]

    def parse(self, line: str) -> Hit | None:
        """What a line says; None if it has none of the formats."""
        for number, parser in enumerate(self._parsers):
            hit = parser(line)
            if hit is not None:
                if number:
                    self._parsers.insert(0, self._parsers.pop(number))
                return hit
        return None

    def read_directive(self, line: str) -> None:
        """Read a line that begins with `#`: it may name the fields of the lines that follow."""
        if line.startswith(_FIELDS_DIRECTIVE):
            self._parsers = [_w3c_parser(line), _clf, _json, _alb]


_CLF_TIME: Final = re.compile(r"(\d{2})/(\w{3})/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})", re.ASCII)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(4096)
def timestamp_of_text(text: str) -> int | None:
    """POSIX seconds of a time of the Common Log Format, of ISO 8601, or in seconds or milliseconds; None for others.

    Without a zone it is UTC.
    """
    try:
        if match := _CLF_TIME.fullmatch(text):
            day, month, year, hour, minute, second, sign, zone_hours, zone_minutes = match.groups()
            offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes)) * (-1 if sign == "-" else 1)
            date = int(year), _MONTHS.index(month) + 1, int(day)
            moment = datetime(*date, int(hour), int(minute), min(int(second), 59), tzinfo=timezone(offset))
        elif text.replace(".", "", 1).isdecimal():
            seconds = float(text)
            moment = datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
        else:
            moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError, OSError):
        return None
