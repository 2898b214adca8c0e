"""Monitors: health checks and uptime monitors, known by their User-Agent.

They ask for the same path day and night, whether it is a page or not, so that their requests are no evidence of one.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .lately import Lately

_MONITORS: Final = re.compile(
    r"""
    health[-_ ]?(?:check|probe) | googlehc/ | google-hc | kube-probe | envoy/hc | consul[ ]health
    | load[ ]balancer[ ]agent
    | alwayson | uptime | pingdom | statuscake | site24x7 | newrelicpinger | freshping | hetrixtools | updown\.io
    | blackbox[- _]exporter | ^prometheus/ | check_http | nagios | icinga | zabbix | ^monit/ | ^haproxy | ^render/
    | cloudflare-traffic-manager | datadog/?[ ]?synthetics | datadogsynthetics | ^checkly | ^gatus | jetmon
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""User-Agents of what only asks whether the app runs: load balancers, orchestrators, uptime monitors."""

LONGEST_AGENT: Final = 300
"""Characters of a User-Agent that are looked at."""

_agents: Final = Lately[Any, bool](500)
"""Whether the User-Agents that came lately are those of monitors."""


def is_monitor(agent: str | bytes) -> bool:
    """Whether a User-Agent is that of a health check or an uptime monitor."""
    known = _agents.get(agent)
    if known is None:
        head = agent[:LONGEST_AGENT]
        known = _MONITORS.search(head if isinstance(head, str) else head.decode("latin-1")) is not None
        if len(agent) <= LONGEST_AGENT:
            _agents.put(agent, known)
    return known
