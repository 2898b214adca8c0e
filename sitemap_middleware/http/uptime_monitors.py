"""Recognises health checks and uptime monitors by their User-Agent.

They request the same path day and night, whether it is a page or not, so their requests are not evidence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_WORDS: Final = (
    *("googlehc/", "google-hc", "kube-probe", "envoy/hc", "consul health", "load balancer agent"),
    *("alwayson", "uptime", "pingdom", "statuscake", "site24x7", "newrelicpinger", "freshping", "hetrixtools"),
    *("updown.io", "check_http", "nagios", "icinga", "zabbix", "cloudflare-traffic-manager", "jetmon"),
)
_PREFIXES: Final = ("prometheus/", "monit/", "haproxy", "render/", "checkly", "gatus")
_PATTERN: Final = re.compile(r"health[-_ ]?(?:check|probe)|blackbox[-_ ]exporter|datadog/?[ ]?synthetics")
"""Parts of the User-Agents of load balancers, orchestrators and uptime monitors, in lower case.

Searching for words takes a microsecond; one pattern of all of them takes eighty.
"""

MAX_AGENT_CHARS: Final = 300
"""Characters of a User-Agent that are searched."""


def is_monitor(agent: str) -> bool:
    """Whether a User-Agent is that of a health check or an uptime monitor."""
    return _contains_monitor(agent[:MAX_AGENT_CHARS].lower())


@lru_cache(500)
def _contains_monitor(agent: str) -> bool:
    return agent.startswith(_PREFIXES) or any(word in agent for word in _WORDS) or _PATTERN.search(agent) is not None
