"""A crowd of workers on one store: processes that tell of each step of their work, and may be killed in the midst of one."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from random import Random
from typing import Any

Tell = Callable[[object], None]
"""Has the parent know: before something is done, that it begins, and after it, that it is done."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.support.traffic", "tests.support.strangers"])


def _works(pipe: Connection) -> None:
    """Do one job after the other; None tells that one is done."""
    with suppress(EOFError):
        while True:
            job, arguments = pipe.recv()
            job(pipe.send, *arguments)
            pipe.send(None)


class Worker:
    """A process that does jobs; what it tells is read here, to the last word before its death."""

    def __init__(self) -> None:
        self.pipe, its = _processes.Pipe()
        self._process = _processes.Process(target=_works, args=(its,), daemon=True)
        self._process.start()
        its.close()

    def begin(self, job: Callable[..., None], *arguments: Any) -> None:
        self.pipe.send((job, arguments))

    def heard(self) -> Any:
        """What it tells next; None once the job is done. EOFError where the process has failed."""
        return self.pipe.recv()

    def kill(self) -> list[Any]:
        """End it with SIGKILL; what it had told that was not heard yet."""
        self._process.kill()
        words = []
        with suppress(EOFError, OSError):  # of what it told last, there may be a part
            while True:
                words.append(self.pipe.recv())
        assert self.end() == -signal.SIGKILL, "it had failed by itself"
        return [word for word in words if word is not None]

    def end(self) -> int | None:
        """Wait for its end; its status."""
        self.pipe.close()
        self._process.join(30)
        status = self._process.exitcode
        self._process.close()
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


class Crowd:
    """Workers that live on from one run to the next, but for those that are killed: others take their places."""

    def __init__(self, workers: int) -> None:
        self._workers = [Worker() for _ in range(workers)]

    def work(self, job: Callable[..., None], arguments: tuple[Any, ...], batches: int, random: Random) -> Told:
        """Have each fold so many batches, all at one time; some are killed as they fold.

        The job gets, after `status` and the arguments, its worker's number, and from
        which batch on and the how manieth time it is to fold. It tells of
        ("begins", batch, anything) and ("done", batch). Who takes the place of one that
        was killed folds the batch that was under way again, or goes on with the next one.
        """
        with self._afresh():
            return self._worked(job, arguments, batches, random)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()

    @contextmanager
    def _afresh(self) -> Iterator[None]:
        """Where something fails, who knows what each is at: all make room for others."""
        try:
            yield
        except BaseException:
            for number, worker in enumerate(self._workers):
                with suppress(AssertionError):
                    worker.kill()
                self._workers[number] = Worker()
            raise

    def _worked(self, job: Callable[..., None], arguments: tuple[Any, ...], batches: int, random: Random) -> Told:
        told = Told()
        deaths = {
            (random.randrange(len(self._workers)), random.randrange(batches)) for _ in range(random.randint(2, 4))
        }
        for number, worker in enumerate(self._workers):
            worker.begin(job, *arguments, number, 0, 0)
        busy = {worker.pipe: number for number, worker in enumerate(self._workers)}
        while busy:
            ready = wait(list(busy), 100)
            assert ready, "nobody has told anything for a long time"
            for pipe in ready:
                number = busy[pipe]
                word = self._workers[number].heard()
                if word is None:
                    del busy[pipe]
                    continue
                last = _note(told, word)
                if word[0] == "begins" and last[:2] in deaths:
                    deaths.remove(last[:2])
                    following = self._killed(number, told, last, random)
                    self._workers[number].begin(job, *arguments, number, *following)
                    del busy[pipe]
                    busy[self._workers[number].pipe] = number
        return told

    def _killed(self, number: int, told: Told, last: Batch, random: Random) -> tuple[int, int]:
        """Kill one that folds, and put another in its place; what that is to go on with."""
        time.sleep(random.choice([0, random.uniform(0, 0.002), random.uniform(0, 0.02)]))  # whenever
        for word in self._workers[number].kill():
            last = _note(told, word)
        told.killed += 1
        self._workers[number] = Worker()
        _, batch, times = last
        if last in told.done:
            return batch + 1, 0
        told.in_midst.add(last)
        return (batch, times + 1) if random.random() < 0.5 else (batch + 1, 0)


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
