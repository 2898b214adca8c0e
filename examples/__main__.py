"""`python3 examples`: start a small site that has a sitemap. Needs Python 3.11 or newer and nothing else.

`python3 examples starlette` starts another: the names of all are in SERVERS below.
`python3 examples --tour` prints how a sitemap changes when its site does.
The environment is made in `.venv-examples/` at the top of the repository, with what the site needs. It is made again if
pyproject.toml changes. Nothing else is written.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import signal
import socket
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-examples"
PYTHON = HOME / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
HOST = "127.0.0.1"
HERE = str(ROOT / "examples")
WSGI = (f"{HERE}/wsgi_server.py",)
UVICORN = ("-m", "uvicorn", "--app-dir", HERE, "--log-level", "warning")
SERVERS = {
    "flask": ("-m", "flask", "--app", f"{HERE}/flask_site.py", "--debug", "run", "--no-reload", "--no-debugger"),
    "starlette": (*UVICORN, "starlette_site:app"),
    "fastapi": (*UVICORN, "fastapi_site:app"),
    "litestar": (*UVICORN, "litestar_site:app"),
    "quart": (*UVICORN, "quart_site:app"),
    "falcon": (*UVICORN, "falcon_site:app"),
    "django": (*UVICORN, "django_site:app"),
    "bottle": (*WSGI, "bottle_site:app"),
    "pyramid": (*WSGI, "pyramid_site:app"),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 examples", description="Start a small site that has a sitemap.")
    parser.add_argument("site", nargs="?", choices=SERVERS, default="flask", help="default: flask")
    parser.add_argument("--port", type=int, default=8000, help="default: 8000")
    parser.add_argument("--tour", action="store_true", help="print how a sitemap changes when its site does")
    chosen = parser.parse_args(arguments)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        make_environment("flask" if chosen.tour else chosen.site)
        if chosen.tour:
            return subprocess.run([PYTHON, f"{HERE}/tour.py"], cwd=HOME, check=False).returncode
        return serve(chosen.site, usable_port(chosen.port))
    except KeyboardInterrupt:
        print()
        return 0


def make_environment(site: str) -> None:
    """Make the environment, or install what a site needs, unless that is done."""
    stamp = HOME / f"made-for-{site}"
    built_from = fingerprint((ROOT / "pyproject.toml").read_bytes(), sys.version, str(ROOT))
    if stamp.exists() and stamp.read_text("utf-8") == built_from:
        return
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit("This Python has no ensurepip, which a new environment needs. On Debian: apt install python3-venv")
    if built_from not in [made.read_text("utf-8") for made in HOME.glob("made-for-*")]:
        print(f"Making an environment in {HOME.name} ...", flush=True)
        venv.create(HOME, clear=True, with_pip=True)
    server = [] if site == "flask" else ["uvicorn"]
    old_setuptools = ["setuptools<82"] if site == "pyramid" else []  # Pyramid imports pkg_resources
    print(f"Installing {site} and what the middleware's command and report need ...", flush=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    extras = "" if site == "starlette" else f",{site}"
    subprocess.run([*pip, "--editable", f"{ROOT}[cli,report{extras}]", *server, *old_setuptools], check=True)
    stamp.write_text(built_from, "utf-8")


def fingerprint(project: bytes, *more: str) -> str:
    """A hash of an environment's requirements."""
    return hashlib.sha256(b"\0".join((project, *(part.encode() for part in more)))).hexdigest()


def usable_port(wanted: int) -> int:
    """The port that is wanted, or a free one if it is not available."""
    with socket.socket() as probe:
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was just left counts as free
        try:
            probe.bind((HOST, wanted))
        except (OSError, OverflowError):
            probe.bind((HOST, 0))
            print(f"Port {wanted} is not available; using another one.", flush=True)
        return int(probe.getsockname()[1])


def serve(site: str, port: int) -> int:
    """Run a site's server until it ends or is interrupted."""
    folder = HOME / site  # the working directory, in which the site creates sitemap.sqlite3
    folder.mkdir(exist_ok=True)
    command = [PYTHON, *SERVERS[site], "--host", HOST, "--port", str(port)]
    # In a new session, so that Ctrl-C reaches the server once, from here.
    server = subprocess.Popen(command, cwd=folder, start_new_session=True)
    try:
        while server.poll() is None and not answers(port):
            time.sleep(0.05)
        if server.poll() is None:
            print(f"\nThe site:    http://{HOST}:{port}/", flush=True)
            print(f"Its sitemap: http://{HOST}:{port}/sitemap.xml", flush=True)
            if "--debug" in SERVERS[site]:
                print(f"Its report:  http://{HOST}:{port}/sitemap-report", flush=True)
            print(
                "Click around, and load the sitemap again: it learns the notes, nights or tips that you open.",
                flush=True,
            )
            print("Visits after you log in do not count.", flush=True)
            print(f"Why is a page listed or not? In another terminal:\n  cd {folder}", flush=True)
            print(f"  PYTHONPATH={HERE} {PYTHON} -m sitemap_middleware explain {site}_site:app /draft \\", flush=True)
            print(f"    --base-url http://{HOST}:{port}", flush=True)
            print("Ctrl-C stops the site.\n", flush=True)
        return server.wait()
    finally:
        server.terminate()
        server.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
