"""Mutation tests: each module is changed in many small ways, and its own tests must notice nine of ten changes.

`TESTS` names the test files that state the rules of a module. Only these run, so a change
counts as noticed only where one would look for it, and a mutant takes about a second.
Each module is tried in a folder of its own, `.venv-tests/mutation/<module>`, from its own copy of the sources.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

TESTS = {
    "pages.evidence": "evidence contrary echoes lastmod",
    "pages.html": "html facts nesting",
    "pages.headers": "evidence directives",
    "pages.observation": "evidence canonical html content doubts",
    "pages.directives": "directives html evidence",
    "anonymity": "anonymity",
    "pages.lastmod": "lastmod evidence",
    "adapters.wsgi": "adapters unobservable app_calls passthrough ends own_requests test_clients",
    "adapters.asgi": "adapters unobservable app_calls passthrough ends own_requests test_clients",
    "watching.observer": "repeats learning content status",
    "listing.catalog": "publisher decorator options",
    "listing.candidates": "publisher decorator options routes_mixed shadowed",
    "publishing.response": "publisher streaming",
    "robots": "robots",
    "rulebook": "robots",
    "location": "canonical documents robots hosts",
    "pages.contrary": "contrary evidence",
    "pages.templates": "templates",
    "pages.contents": "templates",
    "pages.ages": "ages facts content",
    "pages.clocks": "lastmod evidence",
    "pages.decoding": "decoding content",
    "pages.digests": "html facts content templates",
    "pages.echoes": "echoes",
    "pages.effort": "ages facts bounds",
    "pages.facts": "facts html",
    "pages.lifetimes": "templates content facts",
    "pages.numbers": "ticks",
    "pages.nesting": "nesting html bounds",
    "pages.rate": "rate",
    "pages.surroundings": "lastmod templates evidence rate",
    "pages.ticks": "ticks",
    "adapters.asked": "prober own_requests app_shapes",
    "adapters.bodies": "app_shapes passthrough streaming content bounds",
    "adapters.inside": "app_shapes passthrough ends bounds own_requests",
    "adapters.loop": "ends doubts values",
    "adapters.own_requests": "own_requests prober verify",
    "adapters.streaming": "streaming app_shapes",
    "watching.sampler": "content bounds rate",
}
"""The test files (`tests/test_<name>.py`) of each module that is tried, by its name within the package."""

KILLED: dict[int | None, str] = {0: "survived", 5: "untested", 33: "untested", 34: "skipped", None: "not run"}
"""What became of a mutant, by how its tests ended (`mutmut.core`); with any other status, a test noticed it."""

SEED = 2026


@dataclass
class Trial:
    """What became of the mutants of one module."""

    module: str
    made: int
    ends: dict[str, str]

    @property
    def killed(self) -> int:
        return sum(end == "killed" for end in self.ends.values())

    def __str__(self) -> str:
        tried = f"all {self.made}" if len(self.ends) == self.made else f"{len(self.ends)} of {self.made}"
        lines = [f"{self.module:24} {tried:>12} {self.killed / max(1, len(self.ends)):7.1%}"]
        lines += [f"    {name}: {end}" for name, end in self.ends.items() if end != "killed"]
        return "\n".join(lines)


def mutation(mutmut: Path, root: Path, home: Path, arguments: list[str]) -> int:
    """Try the modules named, or all of `TESTS`; `--sample N` tries N mutants of each, always the same ones.

    Print what became of them. At least nine of ten mutants must be noticed.
    """
    sample = 0
    if "--sample" in arguments:
        place = arguments.index("--sample")
        sample = int(arguments[place + 1])
        arguments = arguments[:place] + arguments[place + 2 :]
    modules = [name.removeprefix("sitemap_middleware.") for name in arguments] or list(TESTS)
    if unknown := [name for name in modules if name not in TESTS]:
        print(f"tests/mutation.py names no tests of {', '.join(unknown)}")
        return 2
    trials = []
    for module in modules:
        trials.append(try_module(mutmut, root, home / "mutation" / module, module, sample))
        print(trials[-1], flush=True)
    killed, tried = sum(trial.killed for trial in trials), sum(len(trial.ends) for trial in trials)
    print(f"\n{killed:,} of {tried:,} mutants killed: {killed / max(1, tried):.1%}")
    return int(killed < 0.9 * tried)


def try_module(mutmut: Path, root: Path, folder: Path, module: str, sample: int) -> Trial:
    """Make the mutants of a module, and run its tests with each of them, or with a sample."""
    prepare(root, folder, module)
    run = [mutmut, "run", "--max-children", str(min(2, os.cpu_count() or 1))]
    no_mutant = "only-make-the-mutants"  # mutmut has no command that does it alone
    made_by = subprocess.run([*run, no_mutant], cwd=folder, env=environ(mutmut), capture_output=True, check=False)
    made = sorted(ends_of(folder))
    if not made or no_mutant.encode() not in made_by.stderr:
        raise SystemExit(f"no mutants of {module}: {(made_by.stdout + made_by.stderr).decode()[-3000:]}")
    names = sorted(random.Random(SEED).sample(made, sample)) if 0 < sample < len(made) else made
    done = subprocess.run([*run, *names], cwd=folder, env=environ(mutmut), capture_output=True, check=False)
    ends = {name: KILLED.get(ends_of(folder)[name], "killed") for name in names}
    if done.returncode or "not run" in Counter(ends.values()):
        raise SystemExit(f"mutants of {module} were not run: {(done.stdout + done.stderr).decode()[-3000:]}")
    return Trial(module, len(made), {name: end for name, end in ends.items() if end != "skipped"})


def prepare(root: Path, folder: Path, module: str) -> None:
    """A folder with a copy of the sources, set up to change this module alone and to run its tests alone."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    settings = (root / "pyproject.toml").read_text("utf-8")
    for name in ("sitemap_middleware", "tests", *tomllib.loads(settings)["tool"]["mutmut"]["also_copy"]):
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(root / name, folder)
    own = {
        "only_mutate": [f"sitemap_middleware/{module.replace('.', '/')}.py"],
        "pytest_add_cli_args_test_selection": [f"tests/test_{name}.py" for name in TESTS[module].split()],
    }
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
    settings, found, rest = settings.partition("[tool.mutmut]")
    assert found, "pyproject.toml has no [tool.mutmut]"
    comment, _, rest = rest.partition("\n")
    (folder / "pyproject.toml").write_text(f"{settings}{found}{comment}\n{lines}{rest}", "utf-8")


def environ(mutmut: Path) -> dict[str, str]:
    """The environment without a path to sources that are not changed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "PATH": f"{mutmut.parent}{os.pathsep}{os.environ['PATH']}"}


def ends_of(folder: Path) -> dict[str, int | None]:
    """How the tests of each mutant ended, by mutmut's own record."""
    ends: dict[str, int | None] = {}
    for file in (folder / "mutants").rglob("*.py.meta"):
        ends |= json.loads(file.read_text())["exit_code_by_key"]
    return ends
