"""Finds the public hosts that the headers of a request name besides Host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .header_rules import HOST_HEADERS

HOST_PARAMETER: Final = re.compile(r'\bhost\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;,\s]*))', re.IGNORECASE)
"""The parameter of a Forwarded header (RFC 7239) that names the Host."""


def forwarded_hosts(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The public hosts that a proxy, or a client that claims to be one, states."""
    hosts: list[str] = []
    for name, value in headers:
        if name == "forwarded":
            hosts += [quoted or bare for quoted, bare in HOST_PARAMETER.findall(value)]
        elif name in HOST_HEADERS:
            hosts += [host.strip() for host in value.split(",")]
    return hosts
