"""Requests pages of one site at the same time: a slow page is waited for only briefly, so it delays no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Final

from ..http.captured_response import CapturedResponse
from ..http.messages import PROBE_GRACE_SECONDS, PROBE_TIMEOUT_SECONDS, Request, Response
from ..models import Site
from .probe_client import ProbeClient, ProbeSteps, captured_probe, describe_failure, log

MOVE_ON_SECONDS: Final = 0.5
"""Seconds after which another page is requested although this one has not answered."""


@dataclass(slots=True)
class _RunningProbe:
    path: str
    at: float
    steps: ProbeSteps
    future: Future[Response | None]
    deadline: float
    """When the request counts as hanging, by `time.monotonic`."""


class ConcurrentProbes:
    """The probes of one round. Only one thread uses it."""

    def __init__(
        self,
        client: ProbeClient,
        request: Request,
        site: Site,
        observe: Callable[[CapturedResponse], None],
        failed: Callable[[str, str], None],
    ) -> None:
        """All calls are made on the thread that calls `start` or `finish`.

        Args:
            client: makes the requests.
            request: the live request that they imitate.
            site: the site whose pages are requested.
            observe: receives the responses.
            failed: receives the decoded path of each page that gave none, and why.
        """
        self._client = client
        self._request = request
        self._site = site
        self._observe = observe
        self._failed = failed
        self._running: list[_RunningProbe] = []

    def start(self, path: str, at: float) -> None:
        """Request a decoded path at so many POSIX seconds, and give it `MOVE_ON_SECONDS` to answer.

        Raises `TooManyHanging` if no request was made.
        """
        while self._running and not self._client.has_room(self._request, len(self._running)):
            self._settle(min(probe.deadline for probe in self._running))
        steps = self._client.fetch_steps(self._request, self._site, path)
        probe = _RunningProbe(path, at, steps, next(steps), _deadline())
        self._running.append(probe)
        until = time.monotonic() + MOVE_ON_SECONDS
        while probe in self._running and time.monotonic() < until:
            self._settle(until)

    def finish(self, is_closing: Callable[[], bool]) -> None:
        """Wait for all that still run, unless the process is about to end."""
        while self._running and not is_closing():
            self._settle(min(time.monotonic() + MOVE_ON_SECONDS, *(probe.deadline for probe in self._running)))

    def _settle(self, until: float) -> None:
        """Wait for the next response, and deal with what is done and what hangs."""
        wait([probe.future for probe in self._running], max(0.0, until - time.monotonic()), FIRST_COMPLETED)
        for probe in self._running.copy():
            if probe.future.done():
                self._go_on(probe)
            elif time.monotonic() >= probe.deadline:
                self._client.give_up(probe.future)
                self._running.remove(probe)
                self._fail(probe, TimeoutError())

    def _go_on(self, probe: _RunningProbe) -> None:
        """Take the response to a request, and make the next one of the same probe."""
        try:
            try:
                probe.future, probe.deadline = probe.steps.send(probe.future.result()), _deadline()
            except StopIteration as end:
                self._observe(captured_probe(self._site, probe.path, probe.at, end.value))
            else:
                return
        except Exception as error:
            self._fail(probe, error)
        self._running.remove(probe)

    def _fail(self, probe: _RunningProbe, error: Exception) -> None:
        log.debug("the app failed on a request for %s: %r", probe.path, error)
        self._failed(probe.path, describe_failure(error))


def _deadline() -> float:
    return time.monotonic() + PROBE_TIMEOUT_SECONDS + PROBE_GRACE_SECONDS
