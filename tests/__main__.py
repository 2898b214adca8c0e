"""`python3 tests`: make an environment from `uv.lock` and run every check. Needs Python 3.11 or newer and nothing else.

    --only=lint,types   only these checks
    --python=3.13       the tests with another interpreter (a version or a path), without servers and engines
    --lowest            the tests with the lowest versions that pyproject.toml allows, without servers and engines
    anything else       is passed to pytest: `python3 tests tests/unit/test_urls.py -x`, `python3 tests --long`

The environments are in `.venv-tests/` at the top of the repository.
"""

from __future__ import annotations

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
PROCESSES = (os.cpu_count() or 1) + 1
"""One process of tests more than there are cores, because many tests wait for their servers."""

PYTEST = f"pytest -q -n {PROCESSES} --dist worksteal"
ELSEWHERE = f'{PYTEST} -m "not slow and not engines and not servers and not browser" --hypothesis-profile few'
"""With other interpreters and versions: what may depend on them."""

BESIDE = {
    "types": "mypy",
    "public": "pyright --verifytypes sitemap_middleware --ignoreexternal",
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


def main(arguments: list[str]) -> int:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # container images set it; then each process compiles every module
    only = option(arguments, "--only=").split(",") if option(arguments, "--only=") else [*BESIDE, *ALONE]
    python = option(arguments, "--python=") or sys.executable
    to_pytest = [word for word in arguments if word != "--lowest" and not word.startswith(("--only=", "--python="))]
    if unknown := {*only} - {*BESIDE, *ALONE}:
        sys.exit(f"unknown check {min(unknown)!r}; the checks are {', '.join([*BESIDE, *ALONE])}")
    here = environment(python, lowest="--lowest" in arguments)
    os.environ["PATH"] = os.pathsep.join([str(here), str(uv().parent), os.environ["PATH"]])
    if to_pytest:
        return subprocess.run(["pytest", *to_pytest], cwd=ROOT, check=False).returncode
    if "--lowest" in arguments or python != sys.executable:
        return summary([run("tests", ELSEWHERE)])
    if "tests" in only and not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        subprocess.run(["playwright", "install", "--only-shell", "chromium"], check=False)  # else its tests are skipped
    with ThreadPoolExecutor(2) as pool:
        passed = [*pool.map(lambda name: run(name, BESIDE[name]), (name for name in BESIDE if name in only))]
    return summary(passed + [run(name, command) for name, command in ALONE.items() if name in only])


def option(arguments: list[str], name: str) -> str:
    """The value of an option such as `--only=`; empty if it is missing."""
    return next((word.removeprefix(name) for word in arguments if word.startswith(name)), "")


def run(name: str, command: str) -> bool:
    """Run a check; print its output if it failed, or as it comes if it runs alone. Returns whether it passed."""
    started = time.monotonic()
    kept = subprocess.PIPE if name in BESIDE else None
    failed, output = 0, ""
    for part in command.split(" && "):
        words = shlex.split(part)
        done = subprocess.run(words, cwd=ROOT, stdout=kept, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
        failed, output = done.returncode, done.stdout or ""
        if failed:
            break
    shown = output if failed else ""
    print(f"{shown}== {name}: {'FAILED' if failed else 'passed'}, {time.monotonic() - started:.0f} s", flush=True)
    return not failed


def summary(passed: list[bool]) -> int:
    print(f"{sum(passed)} passed, {passed.count(False)} failed", flush=True)
    return int(not all(passed))


def uv() -> Path:
    """The path of uv, installed into its own environment."""
    path = HOME / "uv" / BIN / "uv"
    if not path.exists():
        venv.create(HOME / "uv", with_pip=True, clear=True)
        subprocess.run([HOME / "uv" / BIN / "python", "-m", "pip", "install", "--quiet", "uv>=0.6"], check=True)
    return path


def run_uv(command: str) -> None:
    subprocess.run([uv(), *shlex.split(command)], cwd=ROOT, check=True)


def environment(python: str, *, lowest: bool) -> Path:
    """Make an environment, or bring it up to date; returns its folder of commands."""
    folder = HOME / ("lowest" if lowest else "newest" if python == sys.executable else f"python-{Path(python).name}")
    os.environ["UV_PROJECT_ENVIRONMENT"] = str(folder)
    groups = "" if folder.name == "newest" else "--no-default-groups --group test"
    run_uv(f'sync --quiet --all-extras --python "{python}" {groups}')
    if lowest:
        pins = f'"{folder / "lowest.txt"}"'
        run_uv(
            f'pip compile --quiet --resolution lowest-direct --all-extras --python "{python}" pyproject.toml -o {pins}'
        )
        run_uv(f'pip install --quiet --python "{folder / BIN / "python"}" -r {pins}')
    return folder / BIN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
