"""Monitors: health checks and uptime monitors, known by their User-Agent.

They ask for the same path day and night, whether it is a page or not, so that their requests are no evidence of one.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .bounded_cache import BoundedCache

_WORDS: Final = (
    *("googlehc/", "google-hc", "kube-probe", "envoy/hc", "consul health", "load balancer agent"),
    *("alwayson", "uptime", "pingdom", "statuscake", "site24x7", "newrelicpinger", "freshping", "hetrixtools"),
    *("updown.io", "check_http", "nagios", "icinga", "zabbix", "cloudflare-traffic-manager", "jetmon"),
)
_BEGINNINGS: Final = ("prometheus/", "monit/", "haproxy", "render/", "checkly", "gatus")
_PATTERN: Final = re.compile(r"health[-_ ]?(?:check|probe)|blackbox[-_ ]exporter|datadog/?[ ]?synthetics")
"""What is in lower case in the User-Agents of load balancers, orchestrators and uptime monitors.

To look for words takes a microsecond, and for one pattern of all of them eighty.
"""

MAX_AGENT_CHARS: Final = 300
"""Characters of a User-Agent that are looked at."""

_agent_cache: Final = BoundedCache[Any, bool](500)
"""Whether the User-Agents that came lately are those of monitors."""


def is_monitor(agent: str | bytes) -> bool:
    """Whether a User-Agent is that of a health check or an uptime monitor."""
    known = _agent_cache.get(agent)
    if known is None:
        head = agent[:MAX_AGENT_CHARS]
        known = _is_monitors((head if isinstance(head, str) else head.decode("latin-1")).lower())
        if len(agent) <= MAX_AGENT_CHARS:
            _agent_cache.put(agent, known)
    return known


def _is_monitors(agent: str) -> bool:
    return agent.startswith(_BEGINNINGS) or any(word in agent for word in _WORDS) or _PATTERN.search(agent) is not None
