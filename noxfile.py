"""Sessions of nox: `nox -s lint`. Each runs `python3 tests --only=…`, so the commands are in one place."""

import sys

import nox

nox.options.default_venv_backend = "none"  # tests/__main__.py makes the environments
nox.options.sessions = ["lint", "types", "layers", "tests", "wheel", "docs", "versions"]


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, its formatter, zizmor."""
    check(session, "lint")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy and pyright."""
    check(session, "types")


@nox.session
def layers(session: nox.Session) -> None:
    """Import-linter."""
    check(session, "layers")


@nox.session
def tests(session: nox.Session) -> None:
    """Pytest with branch coverage, this interpreter, the newest frameworks."""
    check(session, "tests")


@nox.session
def wheel(session: nox.Session) -> None:
    """The built wheel, in a clean environment."""
    check(session, "wheel")


@nox.session
def docs(session: nox.Session) -> None:
    """Sphinx; a warning is an error."""
    check(session, "docs")


@nox.session
def versions(session: nox.Session) -> None:
    """Pytest with other interpreters and with the lowest versions of the frameworks; `-- --python=3.13` for one."""
    check(session, "versions")


@nox.session
def benchmarks(session: nox.Session) -> None:
    """Each benchmark in its shortest form."""
    check(session, "benchmarks")


def check(session: nox.Session, name: str) -> None:
    session.run(sys.executable, "tests", f"--only={name}", *session.posargs, external=True)
