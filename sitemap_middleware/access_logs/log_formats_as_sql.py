"""The formats of access logs, as SQL expressions that split a line into fields. DuckDB evaluates them.

The lines are hostile: clients choose the path, the User-Agent, and with some servers the host and the user name.
Servers escape a quote in them, so the expressions accept it only with a backslash before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ..exceptions import SitemapError

FIELDS_DIRECTIVE: Final = "#Fields:"
"""Begins the line of a W3C log that names its fields."""

_CLF_TIME: Final = "'%d/%b/%Y:%H:%M:%S %z'"
_QUOTED: Final = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_QUOTED_GROUP: Final = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_IP_ADDRESS: Final = r"[0-9a-fA-F]*[.:][0-9a-fA-F.:]*"
# Neither HOST:PORT nor a second address: these begin the lines of vhost-combined. nginx writes "unix:" for sockets.
_ADDRESS: Final = rf"((?:{_IP_ADDRESS}|\[[^ ]*|[^ :]+:?)) [^ .:]+"
# The brackets of the time come after the user name, which clients choose: what follows them must match, too.
_AFTER_ADDRESS: Final = r" [^\[]*\[([^\]]+)\] " + _QUOTED_GROUP + r" (\d{3}) (?:\d+|-)"
_CLF: Final = _ADDRESS + _AFTER_ADDRESS
_HOST_AND_ADDRESS: Final = rf"([^ ]+) ({_IP_ADDRESS}) [^ ]+"
_REFERRER_AND_AGENT: Final = f" {_QUOTED} {_QUOTED_GROUP}"


@dataclass(frozen=True, slots=True)
class LogFormat:
    """How the lines of a format are split. Expressions are SQL: `line` is the line, `f` what `split` makes of it."""

    name: str
    """What `--format` and reports call it."""
    split: str
    address: str
    method: str
    target: str
    """The requested path or URL."""
    status: str
    time: str
    """POSIX seconds; NULL if the text is no time."""
    agent: str = "''"
    """The User-Agent; empty if the log does not keep it."""
    host: str = "''"
    """The requested host; empty if the log does not keep it."""
    query: str = "''"
    """The query string, if it is not part of the target."""
    escapes: Literal["", "backslash", "percent", "plus"] = ""
    """How the target is escaped, besides as in a request: with backslashes as Apache and nginx do, with % again as
    CloudFront does, or with a plus sign for a space as IIS does."""

    @property
    def is_w3c(self) -> bool:
        """Whether lines of directives name the fields."""
        return self.name in ("cloudfront", "iis")


def sql_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def _clf(name: str, pattern: str, fields: Sequence[str]) -> LogFormat:
    names = ", ".join(map(sql_text, fields))
    return LogFormat(
        name,
        f"regexp_extract(line, {sql_text(f'^{pattern}')}, [{names}])",
        address="f.address",
        method="split_part(f.request, ' ', 1)",
        target=r"regexp_extract(f.request, '^[^ ]+ ([^ ]+)(?: [^ ]*)?$', 1)",
        status="f.status",
        time=f"epoch(try_strptime(f.time, {_CLF_TIME}))",
        agent="f.agent" if "agent" in fields else "''",
        host="f.host" if "host" in fields else "''",
        escapes="backslash",
    )


_ALB: Final = (
    r"(?:https?|h2|grpcs|wss?) ([^ ]+) [^ ]+ ([^ ]+)(?: [^ ]+){4} (\d{3}|-)(?: [^ ]+){3} "
    rf"{_QUOTED_GROUP} {_QUOTED_GROUP} [^ ]+ [^ ]+ "
)

ANY_TIME: Final = (
    "coalesce(CASE WHEN try_cast({0} AS DOUBLE) > 100000000000 THEN try_cast({0} AS DOUBLE) / 1000"
    " ELSE try_cast({0} AS DOUBLE) END, epoch(try_cast({0} AS TIMESTAMPTZ)),"
    f" epoch(try_strptime({{0}}, {_CLF_TIME})))"
)
"""Seconds or milliseconds, ISO 8601, or the time of the Common Log Format."""


def _json(name: str, paths: dict[str, Sequence[str]]) -> LogFormat:
    """A format of JSON objects. Each field has paths, of which the first that a line has counts."""
    numbers, keys = dict[str, list[str]](), list[str]()
    for field, candidates in paths.items():
        numbers[field] = [f"f[{len(keys) + number}]" for number in range(1, len(candidates) + 1)]
        keys += candidates
    value = {
        field: f"coalesce({', '.join(cells)}, '')" if len(cells) > 1 else cells[0] for field, cells in numbers.items()
    }
    request = value.get("request")
    target, method = value["target"], value["method"]
    if request:
        target = rf"coalesce(nullif({target}, ''), regexp_extract({request}, '^[^ ]+ ([^ ]+)(?: [^ ]*)?$', 1))"
        method = f"coalesce(nullif({method}, ''), split_part({request}, ' ', 1))"
    return LogFormat(
        name,
        f"CASE WHEN json_valid(line) THEN json_extract_string(line, [{', '.join(map(sql_text, keys))}]) END",
        address=value["address"],
        method=method,
        target=target,
        status=value["status"],
        time=ANY_TIME.format(value["time"]),
        agent=f"coalesce({value['agent']}, '')",
        host=f"coalesce({value['host']}, '')",
        query=f"coalesce({value['query']}, '')" if "query" in value else "''",
    )


def _w3c(name: str, separator: str, agent: str, escapes: Literal["percent", "plus"]) -> LogFormat:
    """A format whose fields a directive names; `with_fields` puts their positions in."""
    return LogFormat(
        name,
        f"string_split(trim(line, ' \t'), {separator})",
        address="{c-ip}",
        method="{cs-method}",
        target="{cs-uri-stem}",
        status="{sc-status}",
        time="epoch(try_cast({date} || ' ' || {time} AS TIMESTAMPTZ))",
        agent=agent,
        host="{host}",
        query="nullif({cs-uri-query}, '-')",
        escapes=escapes,
    )


FORMATS: Final = {
    log_format.name: log_format
    for log_format in (
        _clf(
            "traefik-clf",
            rf"{_CLF}{_REFERRER_AND_AGENT} (?:\d+|-) {_QUOTED} {_QUOTED} \d+ms",
            ("address", "time", "request", "status", "agent"),
        ),
        _clf(
            "vhost-combined",
            rf"{_HOST_AND_ADDRESS}{_AFTER_ADDRESS}{_REFERRER_AND_AGENT}",
            ("host", "address", "time", "request", "status", "agent"),
        ),
        _clf("combined", f"{_CLF}{_REFERRER_AND_AGENT}", ("address", "time", "request", "status", "agent")),
        _clf("common", f"{_CLF} *$", ("address", "time", "request", "status")),
        replace(
            _clf("alb", _ALB, ("time", "address", "status", "request", "agent")),
            time="epoch(try_cast(f.time AS TIMESTAMPTZ))",
        ),
        _json(
            "caddy-json",
            {
                "address": ("$.request.client_ip", "$.request.remote_ip", "$.request.remote_addr"),
                "method": ("$.request.method",),
                "target": ("$.request.uri",),
                "host": ("$.request.host",),
                "agent": ('$.request.headers."User-Agent"[0]',),
                "status": ("$.status",),
                "time": ("$.ts",),
            },
        ),
        _json(
            "traefik-json",
            {
                "address": ("$.ClientHost", "$.ClientAddr"),
                "method": ("$.RequestMethod",),
                "target": ("$.RequestPath",),
                "host": ("$.RequestHost", "$.RequestAddr"),
                "agent": ('$."request_User-Agent"',),
                "status": ("$.DownstreamStatus", "$.OriginStatus"),
                "time": ("$.StartUTC", "$.time"),
            },
        ),
        _json(
            "nginx-json",
            {
                "address": ("$.remote_addr", "$.remote_ip", "$.client_ip", "$.clientip", "$.client"),
                "method": ("$.request_method", "$.method"),
                "target": ("$.request_uri", "$.uri", "$.path"),
                "request": ("$.request",),
                "query": ("$.args", "$.query_string", "$.query"),
                "host": ("$.http_host", "$.host", "$.server_name"),
                "agent": ("$.http_user_agent", "$.user_agent", "$.agent"),
                "status": ("$.status",),
                "time": (
                    *("$.time_iso8601", "$.msec", "$.time_local", '$."@timestamp"', "$.timestamp", "$.time", "$.ts"),
                ),
            },
        ),
        _w3c(
            "cloudfront",
            r"'\t'".replace(r"\t", "\t"),
            "replace(replace({cs(user-agent)}, '%2520', ' '), '%20', ' ')",
            "percent",
        ),
        _w3c("iis", "' '", "replace({cs(user-agent)}, '+', ' ')", "plus"),
    )
}
"""The formats by name. If a line fits several, the first one counts."""

_EITHER_COMBINED: Final = replace(
    _clf(
        "vhost-combined",
        rf"(?:{_HOST_AND_ADDRESS}|{_ADDRESS}){_AFTER_ADDRESS}{_REFERRER_AND_AGENT}",
        ("host", "address", "only_address", "time", "request", "status", "agent"),
    ),
    address="coalesce(nullif(f.address, ''), f.only_address)",
)


def for_mixed_lines(log_format: LogFormat) -> LogFormat:
    """The format in which the lines of a log are read.

    A log may have both `combined` and `vhost-combined` lines, because the server's configuration was changed. The
    format of such a log is found line by line.
    """
    return _EITHER_COMBINED if log_format.name in ("combined", "vhost-combined") else log_format


TABLE: Final = LogFormat("table", split="", address="", method="", target="", status="", time="")
"""Stands for a table of groups, which has no lines."""

_REQUIRED_FIELDS: Final = ("date", "time", "cs-method", "cs-uri-stem", "sc-status")
_W3C_EXPRESSIONS: Final = ("address", "method", "target", "status", "time", "agent", "host", "query")


def with_fields(log_format: LogFormat, directive: str) -> LogFormat:
    """A W3C format with the positions of the fields that a directive names.

    Raises:
        SitemapError: a field that is needed is not among them. The message names it and the fix.
    """
    names = directive.removeprefix(FIELDS_DIRECTIVE).lower().split()
    if missing := [name for name in _REQUIRED_FIELDS if name not in names]:
        raise SitemapError(f"the log does not keep {', '.join(missing)}: let the server log these fields, too")
    cells = {name: f"f[{number}]" for number, name in enumerate(names, 1)}
    for optional in ("c-ip", "cs(user-agent)", "cs-uri-query"):
        cells.setdefault(optional, "''")
    cells["host"] = cells.get("x-host-header") or cells.get("cs-host") or cells.get("cs(host)") or "''"
    known = {name: cells[name] for name in (*_REQUIRED_FIELDS, "host", "c-ip", "cs(user-agent)", "cs-uri-query")}
    expressions = dict[str, Any]()
    for name in _W3C_EXPRESSIONS:
        expression: str = getattr(log_format, name)
        for field, cell in known.items():
            expression = expression.replace(f"{{{field}}}", cell)
        expressions[name] = expression
    # A line with another number of fields has a space in one of them, so its fields cannot be told apart.
    split = f"CASE WHEN len({log_format.split}) = {len(names)} THEN {log_format.split} END"
    return replace(log_format, split=split, **expressions)
