"""Writes requests as the access logs of web servers have them, in every format that the command crawlers reads."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from backports import zstd

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
BINGBOT = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


class Hit(NamedTuple):
    """A request and the status of its response."""

    target: str
    """As the client sent it: percent-encoded, perhaps with a query string."""
    agent: str = GOOGLEBOT
    address: str = "66.249.66.1"
    status: int = 200
    at: int = 1_764_000_000
    method: str = "GET"
    host: str = "bakery.example"


def _escaped(text: str) -> str:
    """A text as Apache writes it between quotes."""
    return re.sub(
        r"[\x00-\x1f\x7f]", lambda char: f"\\x{ord(char[0]):02x}", text.replace("\\", "\\\\").replace('"', '\\"')
    )


def _moment(hit: Hit) -> datetime:
    return datetime.fromtimestamp(hit.at, UTC)


def common(hit: Hit) -> str:
    time = f"{_moment(hit):%d/%b/%Y:%H:%M:%S +0000}"
    return f'{hit.address} - - [{time}] "{hit.method} {_escaped(hit.target)} HTTP/1.1" {hit.status} 512'


def combined(hit: Hit) -> str:
    return f'{common(hit)} "https://bakery.example/" "{_escaped(hit.agent)}"'


def vhost_combined(hit: Hit) -> str:
    return f"{hit.host}:443 {combined(hit)}"


def traefik_clf(hit: Hit) -> str:
    return f'{combined(hit)} 17 "web@docker" "http://10.0.0.2:8000" 3ms'


def nginx_json(hit: Hit) -> str:
    fields = {
        "time_iso8601": _moment(hit).isoformat(),
        "remote_addr": hit.address,
        "request_method": hit.method,
        "request_uri": hit.target,
        "status": str(hit.status),
        "http_user_agent": hit.agent,
        "host": hit.host,
    }
    return json.dumps(fields)


def caddy_json(hit: Hit) -> str:
    request = {
        "remote_ip": hit.address,
        "client_ip": hit.address,
        "method": hit.method,
        "host": hit.host,
        "uri": hit.target,
        "headers": {"User-Agent": [hit.agent]},
    }
    line = {"level": "info", "ts": hit.at + 0.25, "logger": "http.log.access", "request": request, "status": hit.status}
    return json.dumps(line)


def traefik_json(hit: Hit) -> str:
    fields = {
        "ClientAddr": f"{hit.address}:4711",
        "ClientHost": hit.address,
        "RequestMethod": hit.method,
        "RequestPath": hit.target,
        "RequestHost": hit.host,
        "DownstreamStatus": hit.status,
        "StartUTC": f"{_moment(hit):%Y-%m-%dT%H:%M:%S}.123456789Z",
        "request_User-Agent": hit.agent,
        "level": "info",
    }
    return json.dumps(fields)


def alb(hit: Hit) -> str:
    address = f"[{hit.address}]" if ":" in hit.address else hit.address
    agent = hit.agent.replace('"', "\\x22")
    return (
        f"https {_moment(hit):%Y-%m-%dT%H:%M:%S}.186641Z app/bakery/50dc6c495c0c9188 {address}:2817 10.0.0.1:80 0.086"
        f' 0.048 0.037 {hit.status} {hit.status} 0 57 "{hit.method} https://{hit.host}:443{hit.target} HTTP/1.1" "{agent}"'
        ' ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281" "bakery.example" "-" 1'
    )


_CLOUDFRONT = (
    "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent)"
    " cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol"
)


def cloudfront(hit: Hit) -> str:
    path, _, query = hit.target.partition("?")
    cells = [f"{_moment(hit):%Y-%m-%d}", f"{_moment(hit):%H:%M:%S}", "FRA2", "512", hit.address, hit.method]
    cells += ["d111.cloudfront.net", path.replace("%", "%25"), str(hit.status), "-", quote(hit.agent, safe="/();+:.,")]
    return "\t".join([*cells, query or "-", "-", "Hit", "abc==", hit.host, "https"])


WRITERS: dict[str, Callable[[Hit], str]] = {
    "common": common,
    "combined": combined,
    "forwarded": lambda hit: combined(hit._replace(address=f"{hit.address}, 10.0.0.1")),
    "vhost-combined": vhost_combined,
    "traefik-clf": traefik_clf,
    "nginx-json": nginx_json,
    "caddy-json": caddy_json,
    "caddy-wall": lambda hit: re.sub(r"[\d.]+,", f'"{_moment(hit):%Y/%m/%d %H:%M:%S}.250",', caddy_json(hit), count=1),
    "traefik-json": traefik_json,
    "alb": alb,
    "cloudfront": cloudfront,
}
DIRECTIVES = {"cloudfront": f"#Version: 1.0\n#Fields: {_CLOUDFRONT}\n"}


def log_text(name: str, hits: Iterable[Hit]) -> str:
    return DIRECTIVES.get(name, "") + "".join(f"{WRITERS[name](hit)}\n" for hit in hits)


def write_log(file: Path, name: str, hits: Iterable[Hit]) -> Path:
    data = log_text(name, hits).encode()
    if file.suffix == ".gz":
        data = gzip.compress(data)
    elif file.suffix == ".zst":
        data = zstd.compress(data)
    file.write_bytes(data)
    return file
