"""The same site as a plain script on the standard library's server, which handles no signals."""

import sys
from wsgiref.simple_server import make_server

from tests.apps.dated_site import flask_app

if __name__ == "__main__":
    with make_server("127.0.0.1", int(sys.argv[1]), flask_app) as server:
        server.serve_forever()
