"""Worker processes that share a store, report each step, and may be killed at any moment."""

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

Report = Callable[[object], None]
"""Sends a message to the parent process: before a step starts, and after it is done."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.support.traffic", "tests.support.url_flood"])


def _run_jobs(pipe: Connection) -> None:
    """Run one job after the other; None reports that a job is done."""
    with suppress(EOFError):
        while True:
            job, arguments = pipe.recv()
            job(pipe.send, *arguments)
            pipe.send(None)


class Worker:
    """A process that runs jobs. Its messages are read to the last, even after it is killed."""

    def __init__(self) -> None:
        self.pipe, child_end = _processes.Pipe()
        self._process = _processes.Process(target=_run_jobs, args=(child_end,), daemon=True)
        self._process.start()
        child_end.close()

    def start(self, job: Callable[..., None], *arguments: Any) -> None:
        self.pipe.send((job, arguments))

    def receive(self) -> Any:
        """Return the next message, None once the job is done. Raise EOFError if the process has failed."""
        return self.pipe.recv()

    def kill(self) -> list[Any]:
        """Send SIGKILL; return the messages that were not received yet."""
        self._process.kill()
        messages = []
        with suppress(EOFError, OSError):  # the last message may be incomplete
            while True:
                messages.append(self.pipe.recv())
        assert self.end() == -signal.SIGKILL, "it had failed by itself"
        return [message for message in messages if message is not None]

    def end(self) -> int | None:
        """Wait until the process ends; return its exit status."""
        self.pipe.close()
        self._process.join(30)
        status = self._process.exitcode
        self._process.close()
        return status


Batch = tuple[int, int, int]
"""The worker, the number of the batch, and how often the batch was tried before."""


@dataclass
class WorkLog:
    """What all workers reported."""

    started: dict[Batch, Any] = field(default_factory=dict)
    """The content reported for each batch as its merge started."""
    done: set[Batch] = field(default_factory=set)
    """Batches whose merge returned."""
    kills: int = 0
    interrupted: set[Batch] = field(default_factory=set)
    """Batches whose process was killed during the merge."""
    failures: int = 0
    """Merges that the store refused and that were repeated."""


class WorkerPool:
    """Workers that are kept from one run to the next. A worker that was killed is replaced."""

    def __init__(self, workers: int) -> None:
        self._workers = [Worker() for _ in range(workers)]

    def run(self, job: Callable[..., None], arguments: tuple[Any, ...], batches: int, random: Random) -> WorkLog:
        """Have each worker merge so many batches, all at the same time; kill some during a merge.

        The job is called with `report`, the arguments, the worker's number, its first
        batch, and how often that batch was tried before. It reports
        ("started", batch, anything) and ("done", batch). The replacement of a killed
        worker repeats the interrupted batch or goes on with the next one.
        """
        with self._replaced_after_errors():
            return self._run(job, arguments, batches, random)

    def end(self) -> None:
        for worker in self._workers:
            worker.end()

    @contextmanager
    def _replaced_after_errors(self) -> Iterator[None]:
        """Replace all workers after an error, because nobody knows what each is doing."""
        try:
            yield
        except BaseException:
            for number, worker in enumerate(self._workers):
                with suppress(AssertionError):
                    worker.kill()
                self._workers[number] = Worker()
            raise

    def _run(self, job: Callable[..., None], arguments: tuple[Any, ...], batches: int, random: Random) -> WorkLog:
        log = WorkLog()
        planned_kills = {
            (random.randrange(len(self._workers)), random.randrange(batches)) for _ in range(random.randint(2, 4))
        }
        for number, worker in enumerate(self._workers):
            worker.start(job, *arguments, number, 0, 0)
        busy = {worker.pipe: number for number, worker in enumerate(self._workers)}
        while busy:
            ready = wait(list(busy), 100)
            assert ready, "no worker has reported anything for 100 seconds"
            for pipe in ready:
                number = busy[pipe]
                message = self._workers[number].receive()
                if message is None:
                    del busy[pipe]
                    continue
                last = _add_to_log(log, message)
                if message[0] == "started" and last[:2] in planned_kills:
                    planned_kills.remove(last[:2])
                    following = self._kill(number, log, last, random)
                    self._workers[number].start(job, *arguments, number, *following)
                    del busy[pipe]
                    busy[self._workers[number].pipe] = number
        return log

    def _kill(self, number: int, log: WorkLog, last: Batch, random: Random) -> tuple[int, int]:
        """Kill and replace a worker during a merge; return the batch and try its replacement starts with."""
        time.sleep(random.choice([0, random.uniform(0, 0.002), random.uniform(0, 0.02)]))  # at any point of the merge
        for message in self._workers[number].kill():
            last = _add_to_log(log, message)
        log.kills += 1
        self._workers[number] = Worker()
        _, batch, tries = last
        if last in log.done:
            return batch + 1, 0
        log.interrupted.add(last)
        return (batch, tries + 1) if random.random() < 0.5 else (batch + 1, 0)


def _add_to_log(log: WorkLog, message: Any) -> Batch:
    """Add a worker's message; return the batch it is about."""
    event, batch, *content = message
    if event == "started":
        log.started[batch] = content[0] if content else None
    elif event == "done":
        log.done.add(batch)
    else:
        log.failures += 1
    return batch
