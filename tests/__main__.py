"""`python3 tests`: make an environment from `uv.lock` and run every check. Needs Python 3.11 or newer and nothing else.

Other arguments are passed to pytest: `python3 tests tests/unit/routing/test_hosts.py -x`, `python3 tests --long`. The
environments are in `.venv-tests/` at the top of the repository.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-tests"
BIN = "Scripts" if sys.platform == "win32" else "bin"
UV = HOME / "uv" / BIN
PROCESSES = (os.cpu_count() or 1) + 1
"""One process of tests more than there are cores, because many tests wait for their servers."""

PYTEST = f"pytest -q -n {PROCESSES} --dist worksteal"
ELSEWHERE = f'{PYTEST} -m "not slow and not engines and not servers and not browser" --hypothesis-profile few'
"""The tests with other interpreters and versions: those to which these may matter."""

BESIDE = {
    "types": "mypy",
    "users": "pyright tests/typing",
    "wheel": "uv run --quiet --isolated --no-editable --reinstall-package sitemap-middleware --no-default-groups"
    " --extra flask --extra fastapi --no-env-file -- python -I tests/wheel.py",
    "docs": f'sphinx-build --quiet --fail-on-warning --keep-going docs "{HOME / "docs"}"',
    "format": "ruff format --check .",
    "lint": "ruff check .",
    "workflows": "zizmor --offline --quiet .github",
    "layers": "lint-imports --no-cache",
}
"""Checks that keep one core busy each: two run at a time, the longest first."""

ALONE = {
    "tests": f"coverage erase && coverage run -m {PYTEST} && coverage combine --quiet && coverage report",
    "benchmarks": "python -m benchmarks --short",
}
"""Checks that use every core, or whose times would suffer."""


def main() -> int:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # container images set it; then each process compiles every module
    parser = argparse.ArgumentParser(prog="python3 tests", description=__doc__)
    parser.add_argument("--only", default=",".join([*BESIDE, *ALONE]), help="only these checks: %(default)s")
    parser.add_argument(
        "--python", default=sys.executable, help="the tests with another interpreter: a version or a path"
    )
    parser.add_argument("--lowest", action="store_true", help="the tests with the lowest versions that are allowed")
    options, to_pytest = parser.parse_known_args()
    only = options.only.split(",")
    if unknown := {*only} - {*BESIDE, *ALONE}:
        parser.error(f"unknown check {min(unknown)!r}; the checks are {', '.join([*BESIDE, *ALONE])}")
    here = environment(options.python, lowest=options.lowest)
    os.environ["PATH"] = os.pathsep.join([str(here), str(UV), os.environ["PATH"]])
    if to_pytest:
        return subprocess.run(["pytest", *to_pytest], cwd=ROOT, check=False).returncode
    if here.parent.name != "newest":
        return summary([run("tests", ELSEWHERE)])
    if "tests" in only and not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        subprocess.run(["playwright", "install", "--only-shell", "chromium"], check=False)  # else its tests are skipped
    with ThreadPoolExecutor(2) as pool:
        passed = [*pool.map(lambda name: run(name, BESIDE[name]), (name for name in BESIDE if name in only))]
    return summary(passed + [run(name, command) for name, command in ALONE.items() if name in only])


def run(name: str, command: str) -> bool:
    """Run a check, and return whether it passed. Its output is shown if it failed, or as it comes if it runs alone."""
    started = time.monotonic()
    kept = subprocess.PIPE if name in BESIDE else None
    for part in command.split(" && "):
        words = shlex.split(part)
        done = subprocess.run(words, cwd=ROOT, stdout=kept, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        if done.returncode:
            print(done.stdout or "")
            break
    state = f"{'FAILED' if done.returncode else 'passed'}, {time.monotonic() - started:.0f} s"
    print(f"== {name}: {state}", flush=True)
    return done.returncode == 0


def summary(passed: list[bool]) -> int:
    print(f"{sum(passed)} passed, {passed.count(False)} failed", flush=True)
    return int(not all(passed))


def uv(command: str) -> None:
    """Run uv, which is installed into its own environment."""
    if not (UV / "uv").exists():
        venv.create(UV.parent, with_pip=True, clear=True)
        subprocess.run([UV / "python", "-m", "pip", "install", "--quiet", "uv>=0.6"], check=True)
    subprocess.run([UV / "uv", *shlex.split(command)], cwd=ROOT, check=True)


def environment(python: str, *, lowest: bool) -> Path:
    """Make an environment, or bring it up to date; returns its folder of commands."""
    folder = HOME / ("lowest" if lowest else "newest" if python == sys.executable else f"python-{Path(python).name}")
    os.environ["UV_PROJECT_ENVIRONMENT"] = str(folder)
    groups = "" if folder.name == "newest" else "--no-default-groups --group test"
    uv(f'sync --quiet --all-extras --python "{python}" {groups}')
    if lowest:
        pins = f'"{folder / "lowest.txt"}"'
        direct = "--resolution lowest-direct --all-extras --group lowest"
        uv(f'pip compile --quiet {direct} --python "{python}" pyproject.toml -o {pins}')
        uv(f'pip install --quiet --python "{folder / BIN / "python"}" -r {pins}')
    return folder / BIN


if __name__ == "__main__":
    sys.exit(main())
