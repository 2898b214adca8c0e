"""A crowd of workers on one store: processes that tell of each step of their work, and may be killed in the midst of one."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from random import Random
from typing import Any

Tell = Callable[[object], None]
"""Has the parent know: before something is done, that it begins, and after it, that it is done."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.support.crowd", "tests.support.traffic"])


def _run(job: Callable[..., None], told: Connection, *arguments: Any) -> None:
    job(told.send, *arguments)


class Worker:
    """A process that does a job; what it tells is read here, to the last word before its death."""

    def __init__(self, job: Callable[..., None], *arguments: Any) -> None:
        self.hears, tells = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=_run, args=(job, tells, *arguments))
        self._process.start()
        tells.close()

    def heard(self) -> Any:
        """What it tells next; None where it has ended."""
        try:
            return self.hears.recv()
        except (EOFError, OSError):  # of what it told last, there may be a part
            return None

    def kill(self) -> list[Any]:
        """End it with SIGKILL; what it had told that was not heard yet."""
        self._process.kill()
        return list(iter(self.heard, None))

    def end(self) -> int | None:
        """Wait for its end; its status."""
        self._process.join(30)
        status = self._process.exitcode
        self._process.close()
        self.hears.close()
        return status


Batch = tuple[int, int, int]
"""Of which worker, which of its batches, and the how manieth time that it is folded."""


@dataclass
class Told:
    """What became of the work of all."""

    begun: dict[Batch, Any] = field(default_factory=dict)
    """What was told of each batch as its fold began."""
    done: set[Batch] = field(default_factory=set)
    """Those of which the fold has returned."""
    killed: int = 0
    in_midst: set[Batch] = field(default_factory=set)
    """Those during whose fold the process was killed."""
    failed: int = 0
    """Folds that the store refused, and that were done again."""


def work(job: Callable[..., None], arguments: tuple[Any, ...], workers: int, batches: int, random: Random) -> Told:
    """Have workers fold so many batches each at one time; some are killed as they fold, and others go on in their place.

    The job gets, after `tell` and the arguments, its worker's number, and from
    which batch on and the how manieth time it is to fold. It tells of
    ("begins", batch, anything) and ("done", batch). Who takes the place of one that
    was killed folds the batch that was under way again, or goes on with the next one.
    """
    told = Told()
    deaths = {(random.randrange(workers), random.randrange(batches)) for _ in range(random.randint(2, 4))}
    crowd = {number: Worker(job, *arguments, number, 0, 0) for number in range(workers)}
    try:
        while crowd:
            ready = wait([worker.hears for worker in crowd.values()], 60)
            assert ready, "nobody has told anything for a minute"
            for number, worker in list(crowd.items()):
                if worker.hears not in ready:
                    continue
                word = worker.heard()
                if word is None:
                    del crowd[number]
                    assert worker.end() == 0, f"worker {number} failed"
                    continue
                last = _note(told, word)
                if word[0] == "begins" and last[:2] in deaths:
                    deaths.remove(last[:2])
                    time.sleep(random.choice([0, random.uniform(0, 0.002), random.uniform(0, 0.02)]))  # whenever
                    for word in worker.kill():
                        last = _note(told, word)
                    told.killed += worker.end() == -signal.SIGKILL
                    del crowd[number]
                    _, batch, times = last
                    if last not in told.done:
                        told.in_midst.add(last)
                    following = (
                        (batch, times + 1) if last not in told.done and random.random() < 0.5 else (batch + 1, 0)
                    )
                    crowd[number] = Worker(job, *arguments, number, *following)
    finally:
        for worker in crowd.values():
            worker.kill()
            worker.end()
    return told


def _note(told: Told, word: Any) -> Batch:
    """Take note of what a worker told; which batch it is about."""
    what, batch, *more = word
    if what == "begins":
        told.begun[batch] = more[0] if more else None
    elif what == "done":
        told.done.add(batch)
    else:
        told.failed += 1
    return batch
