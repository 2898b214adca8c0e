"""`python3 tests`: make the environments and run every check. Needs Python 3.11 or newer and nothing else.

Environments live in `.venv-tests/` at the top of the repository. They are rebuilt if the requirements in pyproject.toml
change.

    --quick              this interpreter and the newest frameworks only
    --only=lint,docs     only these checks (CONTRIBUTING.md lists them)
    --python=3.13        only this version in the check `versions`
    --long               only the tests marked long, with many more examples
    anything else        is passed to pytest
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing
from contextvars import ContextVar
from functools import partial
from pathlib import Path

if __package__:  # imported by `python3 -m tests.real_apps`
    from .support.browser import BROWSERS
else:  # `python3 tests` runs this file outside of its package
    from support.browser import BROWSERS

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-tests"
BIN = "Scripts" if sys.platform == "win32" else "bin"
FRAMEWORKS = (
    "bottle",
    "click",
    "django",
    "falcon",
    "fastapi",
    "flask",
    "litestar",
    "pyramid",
    "rich",
    "starlette",
    "werkzeug",
)
"""Frameworks and the libraries of the command line: those whose lowest versions are tested."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REQUIREMENTS = [PROJECT["build-system"], PROJECT["project"], PROJECT["dependency-groups"], PROJECT["tool"]["uv"]]
"""The environments are rebuilt if these change. The package itself is installed in editable mode."""

NEWEST_ONLY = (
    "apps/test_real_apps",
    "integration/test_date_accuracy",
    "integration/test_files",
    "integration/test_wrong_clocks",
    "servers/test_large_sites",
    "servers/test_report_in_browser",
    "servers/test_processes",
    "servers/test_servers",
    "stores/test_concurrent_workers",
    "stores/test_contract",
    "stores/test_crawler_visits",
    "stores/test_damage",
    "stores/test_data_loss",
    "stores/test_failures",
    "stores/test_larger_blocks",
    "stores/test_many_paths",
    "stores/test_network_partition",
    "stores/test_postgres",
    "stores/test_reads_during_writes",
    "stores/test_redis",
    "stores/test_refresh",
    "stores/test_restored_backup",
    "unit/access_logs/test_importer",
    "unit/stores/test_permanent_page_slots",
)
"""Test files that run with the newest frameworks only: they need servers and engines that other environments lack, or
state rules that do not depend on the interpreter and the frameworks."""

FRAMEWORK_FREE = (
    "integration/test_content_changes",
    "unit/access_logs",
    "unit/crawlers",
    "unit/evidence",
    "unit/linter",
    "unit/listing/test_bulk_learned_entries",
    "unit/listing/test_path_set",
    "unit/listing/test_routes_unsafe_to_request",
    "unit/observation/test_trust_in_foreign_host_headers",
    "unit/observation/test_unusual_routing_headers",
    "unit/rendering/test_stored_chunk_codec",
    "unit/rendering/test_chunked_document",
    "unit/rendering/test_publisher",
    "unit/rendering/test_removed_documents",
    "unit/rendering/test_xml",
    "unit/request_filter/test_header_rules",
    "unit/stores",
    "unit/test_value_history",
)
"""Tests of rules to which the interpreter may matter (its parsers, its compression, its SQLite), but no framework.

The lowest versions of the frameworks run with the interpreter of the covered tests, and therefore without these. Of the
other interpreters, the last one runs them.
"""

FIRST_AND_LAST = (
    "integration/test_app_shapes",
    "integration/test_documentation",
    "integration/test_hostile_input",
    "integration/test_learning_settings",
    "integration/test_private_pages",
    "integration/test_scenarios",
    "servers/test_examples",
    "unit/adapters/test_probe_headers_without_visitor",
    "unit/cli",
    "unit/listing",
    "unit/rendering",
    "unit/report",
    "unit/request_filter",
    "unit/routing",
    "unit/test_checked_options",
    "unit/test_hosts",
    "unit/test_option_sources",
    "unit/test_patterns",
    "unit/test_robots",
    "unit/test_separate_sitemap_per_test",
    "unit/test_sitemap_decorator",
)
"""Tests that interpreters between the first and the last leave out if others run, too.

What works in an older and in a newer version of Python works in between: what is left shows that the package, its
adapters and its stores start and serve there. `--python` runs all tests of one interpreter.
"""

BUILD_EPOCH = "1700000000"
"""The time of all files in the distributions that are compared, in POSIX seconds."""

PROCESSES = (os.cpu_count() or 1) + 1
"""One process of tests more than there are cores, because many tests wait for their servers."""

KEPT: ContextVar[list[str] | None] = ContextVar("KEPT", default=None)
"""What a check that runs beside another one has printed, to be shown when it ends; None prints at once."""

SECONDS: list[tuple[str, float, int]] = []
"""The title, seconds and exit status of each command that was run."""

FAILED: list[tuple[str, list[str]]] = []
"""The title of each command that failed, and the lines of its output that tell why."""

MOST_LINES = 60
"""So many lines of each failed command are printed again at the end: services keep the end of a long log only."""

LATER: list[Callable[[], Iterator[int]]] = []
"""What runs beside the check `versions`, so that no core is idle; at the end if that check does not run."""

BEING_MADE: dict[tuple[str, str], Future[Path]] = {}
"""The environments that are made in the background, by interpreter and versions."""


def main(arguments: list[str]) -> int:
    quick, long = "--quick" in arguments, "--long" in arguments
    only, python = option(arguments, "--only="), option(arguments, "--python=")
    more = [word for word in arguments if word != "--quick" and not word.startswith(("--only=", "--python="))]
    started = time.monotonic()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # container images set it; then each process compiles every module
    uv = installed_uv()
    if long or (more and not quick and not only):
        here = environment(uv, sys.executable, "newest")
        return run([here / "python", "-m", "pytest", *more], "the tests named")
    names = only.split(",") if only else [*USUAL[: -1 if quick else None]]
    if unknown := set(names) - set(CHECKS):
        sys.exit(f"unknown check {unknown.pop()!r}; the checks are {', '.join(CHECKS)}")
    light = [name for name in LIGHT if name in names]
    with ThreadPoolExecutor(1) as maker:
        for key in dict.fromkeys(needed_environments(uv, names, python)):
            BEING_MADE[key] = maker.submit(made_environment, uv, *key)
        checks = [partial(CHECKS[name], uv, more, python) for name in light]
        statuses = list(beside_each_other(checks, 2)) if len(light) > 1 else []
        rest = [name for name in names if len(light) < 2 or name not in light]
        statuses += [status for name in rest for status in CHECKS[name](uv, more, python)]
        statuses += [status for check in LATER for status in check()]
    failed = sum(status != 0 for status in statuses)
    print("\n seconds  check")
    for title, seconds, status in SECONDS:
        print(f"{seconds:8.0f}  {title}{': FAILED' * (status != 0)}")
    for title, lines in FAILED:
        print(f"\n== {title}: FAILED", *lines, sep="\n")
    print(f"\n{time.monotonic() - started:.0f} s; checks: {len(statuses) - failed} passed, {failed} failed", flush=True)
    return int(failed > 0)


def beside_each_other(checks: Iterable[Callable[[], Iterable[int]]], most: int) -> Iterator[int]:
    """Run checks, at most so many at a time, and print the output of each when it ends. Yields their exit statuses."""

    def kept(check: Callable[[], Iterable[int]]) -> tuple[list[int], list[str]]:
        lines: list[str] = []
        KEPT.set(lines)  # each thread has its own
        return list(check()), lines

    with ThreadPoolExecutor(most) as pool:
        for future in as_completed([pool.submit(kept, check) for check in checks]):
            statuses, lines = future.result()
            print("\n".join(lines), flush=True)
            yield from statuses


def say(text: str) -> None:
    """Print at once, or with the other output of the check."""
    kept = KEPT.get()
    if kept is None:
        print(text, flush=True)
    else:
        kept.append(text)


def option(arguments: list[str], name: str) -> str:
    """Return the value of an option such as `--only=`; empty if it is missing."""
    return next((word.removeprefix(name) for word in arguments if word.startswith(name)), "")


# The checks, which are also the sessions of nox. Each yields the exit statuses of its commands.


def lint(uv: Path, _more: list[str], _python: str) -> Iterator[int]:
    here = environment(uv, sys.executable, "newest")
    yield run([here / "ruff", "format", "--check", "."], "format")
    yield run([here / "ruff", "check", "."], "lint")
    yield run([here / "zizmor", "--offline", "--quiet", ".github"], "workflows")


def types(uv: Path, _more: list[str], _python: str) -> Iterator[int]:
    here = environment(uv, sys.executable, "newest")
    yield run([here / "mypy"], "types")
    complete: list[str | Path] = [here / "pyright", "--verifytypes", "sitemap_middleware", "--ignoreexternal"]
    env = {"PYTHONPATH": str(ROOT)}
    yield run(complete, "types of public names, by pyright", env=env, after="Symbols used in public interface:")
    yield run([here / "pyright", "--pythonpath", here / "python", "tests/typing"], "types of user code, by pyright")


def layers(uv: Path, _more: list[str], _python: str) -> Iterator[int]:
    yield run([environment(uv, sys.executable, "newest") / "lint-imports", "--no-cache"], "layers")


def tests(uv: Path, more: list[str], _python: str) -> Iterator[int]:
    here = environment(uv, sys.executable, "newest")
    if not any(map(shutil.which, BROWSERS)):
        yield run([here / "playwright", "install", "--only-shell", "chromium"], "Chromium, of Playwright")
    yield covered(here, more or ["-m", "not uncovered and not slow"])
    if not more:
        LATER.append(partial(without_coverage, here))


def without_coverage(here: Path) -> Iterator[int]:
    yield run([here / "python", *pytest(), "-m", "uncovered or slow", *uncovered()], "tests, without coverage")


def docs(uv: Path, _more: list[str], _python: str) -> Iterator[int]:
    sphinx = environment(uv, sys.executable, "docs") / "sphinx-build"
    yield run([sphinx, "--quiet", "--fail-on-warning", "--keep-going", "docs", HOME / "docs-html"], "docs")


def versions(uv: Path, _more: list[str], wanted: str) -> Iterator[int]:
    selected = cells(uv, wanted)
    if not selected:
        say(f"Python {wanted} is not installed")
        FAILED.append(("versions", [f"Python {wanted} is not installed"]))
        yield 1
        return
    *others, last = selected
    each = max(1, PROCESSES // len(selected))  # every process collects all tests, so a few for each are the quickest
    checks = [
        partial(cell, uv, *other, each + 1, FRAMEWORK_FREE)  # it has twice as many tests as those in between
        if other[2] == "lowest"
        else partial(cell, uv, *other, each, FRAMEWORK_FREE + FIRST_AND_LAST)
        for other in others
    ]
    rest = max(each, PROCESSES - each * len(others)) + bool(others)  # because the last one has more tests
    checks.append(partial(cell, uv, *last, rest, FRAMEWORK_FREE if last[2] == "lowest" else ()))
    checks += LATER
    LATER.clear()
    if len(checks) > 1:
        print(f"\n-- at the same time: {'; '.join(name for name, _, _ in selected)}", flush=True)
        yield from beside_each_other(checks, len(checks))
    else:
        yield from checks[0]()


def cell(
    uv: Path, name: str, python: str, frameworks: str, processes: int, left_out: tuple[str, ...], *more: str
) -> Iterator[int]:
    """Run the tests of an environment, without those left out and `NEWEST_ONLY`."""
    left_out += NEWEST_ONLY
    command = [environment(uv, python, frameworks) / "python", *pytest(processes), *fewer_tests(left_out), *more]
    free = {"PYTHON_GIL": "0"} if name.endswith("without the GIL") else None
    yield run(command, f"{name}, {frameworks}", env=free)


def cells(uv: Path, wanted: str) -> list[tuple[str, str, str]]:
    """The name, interpreter and versions of each cell: the lowest with this interpreter, the newest with others."""
    return [
        (name, python, "lowest" if python == sys.executable else "newest")
        for name, python in interpreters(uv)
        if not wanted or wanted in name.split()
    ]


def benchmarks(uv: Path, _more: list[str], _python: str) -> Iterator[int]:
    yield run([environment(uv, sys.executable, "newest") / "python", "-m", "benchmarks", "--short"], "benchmarks")


def run(
    command: list[str | Path], title: str, *, env: dict[str, str] | None = None, cwd: Path = ROOT, after: str = ""
) -> int:
    """Run a command under a title; print if it failed, and return its status.

    If `after` is given, only what follows it in the command's output is printed.
    """
    kept = KEPT.get()
    say(f"\n== {title}")
    started = time.monotonic()
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    at_terminal = kept is None and not after and sys.stdout.isatty()  # it has colours, and keeps what it printed
    lines: list[str] = []
    with subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PATH": path, **(env or {})},
        stdout=None if at_terminal else subprocess.PIPE,
        stderr=None if kept is None else subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            lines.append(line.rstrip("\n"))
            if kept is None and not after:
                print(line, end="", flush=True)
    status = process.returncode
    SECONDS.append((title, time.monotonic() - started, status))
    if after:
        lines = "\n".join(lines).rpartition(after)[2].strip().splitlines()
    if lines and (kept is not None or after):
        say("\n".join(lines))
    if status:
        FAILED.append((title, telling_lines(lines)))
        say(f"== {title}: FAILED with status {status}")
    return status


def telling_lines(output: list[str]) -> list[str]:
    """Return the lines of a failed command's output to print again: its end; of pytest, the failures and their names."""
    starts = [number for number, line in enumerate(output) if re.fullmatch(r"=+ (FAILURES|ERRORS) =+", line)]
    telling = output[starts[0] :] if starts else output
    if starts and len(telling) > MOST_LINES:  # leave out the sources in the tracebacks
        telling = [line for line in telling if re.match(r"E  |[=_]{3}|FAILED |ERROR |\S+:\d+: ", line)]
    return telling[-MOST_LINES:]


def installed_uv() -> Path:
    """Return the path of uv, installed into its own environment."""
    uv = HOME / "uv" / BIN / "uv"
    if not uv.exists():
        venv.create(HOME / "uv", with_pip=True, clear=True)
        subprocess.run([HOME / "uv" / BIN / "python", "-m", "pip", "install", "--quiet", "uv>=0.6"], check=True)
    return uv


def interpreters(uv: Path) -> list[tuple[str, str]]:
    """Return the name and path of one installed CPython for each supported minor version, this one first."""
    command = [uv, "python", "list", "--only-installed", "--no-python-downloads", "--output-format", "json"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    by_version = {sys.version_info[:2]: sys.executable}
    candidates = [
        (python["version"], python["path"])
        for python in listed
        if python["implementation"] == "cpython" and python.get("variant", "default") == "default"
    ]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates += [(folder.name, str(folder / "bin" / "python3")) for folder in sorted(pyenv.glob("3.*"))]
    for version, path in candidates:
        numbers = re.fullmatch(r"(3)\.(\d+)\.\d+", version)
        if numbers and (minor := (int(numbers[1]), int(numbers[2]))) >= (3, 11):
            by_version.setdefault(minor, path)
    free_threaded = [
        (python["version"], python["path"]) for python in listed if python.get("variant") == "freethreaded"
    ]
    first, *others = by_version.items()
    return [
        *((f"Python {major}.{minor}", path) for (major, minor), path in (first, *sorted(others))),
        *((f"Python {version} without the GIL", path) for version, path in free_threaded[:1]),
    ]


def needed_environments(uv: Path, names: list[str], wanted: str) -> Iterator[tuple[str, str]]:
    """Yield the interpreter and versions of each environment that checks need, the first one first."""
    if {*names} - {"docs", "versions"}:
        yield sys.executable, "newest"
    if "docs" in names:
        yield sys.executable, "docs"
    if "versions" in names:
        for _, python, versions in cells(uv, wanted):
            yield python, versions


def environment(uv: Path, python: str, versions: str) -> Path:
    """Return the `bin` folder of an environment; wait for it if it is being made."""
    being_made = BEING_MADE.get((python, versions))
    return being_made.result() if being_made else made_environment(uv, python, versions)


def made_environment(uv: Path, python: str, versions: str) -> Path:
    """Return the `bin` folder of an environment with this interpreter and these versions; make it if it is outdated."""
    label = hashlib.sha256(python.encode()).hexdigest()[:8]
    folder = HOME / f"{versions}-{label}"
    stamp = folder / "requirements-digest"
    digest = hashlib.sha256(f"{python}\n{json.dumps(REQUIREMENTS)}".encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        print(f"-- making {folder.relative_to(ROOT)}", flush=True)
        subprocess.run(
            [uv, "venv", "--quiet", "--clear", "--no-python-downloads", "--python", python, folder], check=True
        )
        pip = [uv, "pip", "install", "--quiet", "--python", folder / BIN / "python"]
        group = "dev" if (python, versions) == (sys.executable, "newest") else "test"
        group = versions if versions == "docs" else group
        subprocess.run([*pip, "--editable", ROOT, "--group", f"{ROOT / 'pyproject.toml'}:{group}"], check=True)
        if versions == "lowest":
            subprocess.run([*pip, *lowest()], check=True)
        stamp.write_text(digest)
    return folder / BIN


def pytest(processes: int = PROCESSES) -> list[str | Path]:
    """Return the arguments of Python that run tests in so many processes."""
    return ["-m", "pytest", "-q", *(["-n", str(processes), "--dist", "worksteal"] if processes > 1 else [])]


def uncovered() -> list[Path]:
    """Return the files with tests marked `uncovered` or `slow`.

    Coverage would double the time of these tests, and other tests reach the same lines.
    """
    marks = ("mark.uncovered", "mark.slow")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [file for file in files if any(mark in file.read_text("utf-8") for mark in marks)]


def fewer_tests(left_out: Iterable[str]) -> list[str]:
    """Return the arguments of pytest for environments other than the newest: without these files and folders."""
    tests = ROOT / "tests"
    paths = [tests / name if (tests / name).is_dir() else tests / f"{name}.py" for name in left_out]
    if missing := [path.relative_to(ROOT).as_posix() for path in paths if not path.exists()]:
        sys.exit(f"tests/__main__.py names files that do not exist: {', '.join(missing)}")
    ignored = [f"--ignore={path.relative_to(ROOT)}" for path in paths]
    # Cells that run at the same time have no cache in common.
    return [*ignored, "-m", "not once and not uncovered", "--hypothesis-profile", "few", "-p", "no:cacheprovider"]


def lowest() -> list[str]:
    """Return the requirements that pin each of `FRAMEWORKS` to the lowest version pyproject.toml declares."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = [*PROJECT["project"]["dependencies"], *(requirement for extra in extras for requirement in extra)]
    frameworks = {requirement for requirement in declared if re.split(r"[^a-z0-9-]", requirement)[0] in FRAMEWORKS}
    pinned = sorted(requirement.replace(">=", "==") for requirement in frameworks)
    assert len(pinned) == len(FRAMEWORKS), pinned
    return [*pinned, "quart==0.18.4"]  # the last that works with the lowest Flask


def covered(here: Path, more: list[str]) -> int:
    """Run tests with branch coverage, this interpreter and the newest frameworks; report the coverage."""
    data = HOME / "coverage"
    for old in HOME.glob("coverage*"):
        old.unlink()
    env = {"COVERAGE_FILE": str(data)}
    coverage: list[str | Path] = [here / "coverage"]
    status = run([*coverage, "run", *pytest(), *more], "tests, with branch coverage", env=env)
    remove_unfinished(HOME)
    subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, env={**os.environ, **env}, check=False)
    return status or run([*coverage, "report"], "coverage", env=env)


COVERAGE_TABLES = {"arc", "context", "coverage_schema", "file", "line_bits", "meta", "tracer"}


def remove_unfinished(folder: Path) -> None:
    """Remove coverage files of processes that were killed while they wrote: `coverage combine` ends at some of them."""
    for file in sorted(folder.glob("coverage.*")):
        if file.name.endswith("-journal"):
            continue
        try:
            with closing(sqlite3.connect(file)) as database:  # SQLite itself takes back what its journal has
                tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
                whole = tables >= COVERAGE_TABLES and database.execute("PRAGMA quick_check").fetchall() == [("ok",)]
                whole = whole and database.execute("SELECT count(*) FROM coverage_schema").fetchall() == [(1,)]
        except sqlite3.DatabaseError:
            whole = False
        if not whole:
            print(f"-- without {file.name}: its process was killed while it wrote", flush=True)
            file.unlink()


def wheel(uv: Path, _more: list[str], _python: str) -> Iterator[int]:
    """Build the wheel and the source distribution, check them, and try the wheel outside of the sources."""
    here = environment(uv, sys.executable, "newest")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for build in ("first", "second"):
            subprocess.run(
                [uv, "build", "--quiet", "--out-dir", folder / build, ROOT],
                env={**os.environ, "SOURCE_DATE_EPOCH": BUILD_EPOCH},
                check=True,
            )
        built = [*(folder / "first").glob("*.whl"), *(folder / "first").glob("*.tar.gz")]
        yield same_bytes(built, folder / "second")
        yield run([here / "twine", "check", "--strict", *built], "the metadata of the distributions")
        yield run([here / "check-wheel-contents", built[0]], "the files of the wheel")
        subprocess.run(
            [uv, "venv", "--quiet", "--no-python-downloads", "--python", sys.executable, folder / "env"], check=True
        )
        python = folder / "env" / BIN / "python"
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, f"{built[0]}[flask,fastapi]"], check=True)
        yield run([python, "-I", ROOT / "tests" / "wheel.py"], "the built wheel", cwd=folder)


def same_bytes(built: list[Path], other: Path) -> int:
    """Compare two builds of the same sources; return 1 and print which files differ if some do."""
    say("\n== reproducible builds")
    differing = [path.name for path in built if path.read_bytes() != (other / path.name).read_bytes()]
    say(f"== FAILED: {', '.join(differing)} differ" if differing else f"{len(built)} files are equal")
    if failed := bool(differing) or len(built) != 2:
        FAILED.append(("reproducible builds", differing or [f"{len(built)} distributions were built instead of 2"]))
    return int(failed)


CHECKS = {
    "lint": lint,
    "types": types,
    "layers": layers,
    "docs": docs,
    "wheel": wheel,
    "tests": tests,
    "versions": versions,
    "benchmarks": benchmarks,
}
USUAL = [name for name in CHECKS if name != "benchmarks"]  # the tests run each benchmark in its shortest form
LIGHT = ("types", "docs", "wheel", "lint", "layers")
"""Checks that keep one core busy, so two run at a time. The longest come first."""
assert USUAL[-1] == "versions"  # which --quick leaves out


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
