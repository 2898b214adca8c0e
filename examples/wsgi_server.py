"""`python wsgi_server.py bottle_site:app`: serve a WSGI site of the examples with Werkzeug's development server."""

from argparse import ArgumentParser

from werkzeug.serving import run_simple
from werkzeug.utils import import_string

if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("app")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    chosen = parser.parse_args()
    run_simple(chosen.host, chosen.port, import_string(chosen.app), threaded=True)
