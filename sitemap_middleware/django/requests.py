"""Makes the adapters' exchanges of Django's `HttpRequest`.

In sync mode, a request is read as WSGI gives it, in async mode as ASGI does. Either server may use either mode: Django
changes the mode for middleware that has only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..adapters.asgi_exchange import ASGIExchange
from ..adapters.asgi_exchange import key_of as asgi_key
from ..adapters.wsgi_exchange import WSGIExchange
from ..adapters.wsgi_exchange import key_of as wsgi_key
from ..http.messages import TEST_CLIENT_WAIT_SECONDS, WAIT_SECONDS_KEY

if TYPE_CHECKING:
    from django.http import HttpRequest


def wsgi_exchange(request: HttpRequest, app: Any) -> WSGIExchange:
    """A request in sync mode."""
    environ: dict[str, Any] = request.META
    path, root = environ["PATH_INFO"], environ["SCRIPT_NAME"]  # Django decodes them, and applies FORCE_SCRIPT_NAME
    if not (path.isascii() and root.isascii()):
        environ = {**environ, "PATH_INFO": _raw(path), "SCRIPT_NAME": _raw(root)}
    if "wsgi.url_scheme" not in environ:  # of an ASGI server
        version = getattr(request, "scope", {}).get("http_version", "1.1")
        environ = {
            **environ,
            "wsgi.url_scheme": request.scheme or "http",
            "wsgi.multithread": True,
            "SERVER_PROTOCOL": f"HTTP/{version}",
        }
    if type(environ.get("wsgi.input")).__module__ == "django.test.client":
        environ = {
            **environ,
            WAIT_SECONDS_KEY: TEST_CLIENT_WAIT_SECONDS,
        }  # tests keep to one thread and one transaction
    return WSGIExchange(app, environ, wsgi_key(environ), _no_server)


def asgi_exchange(request: HttpRequest, app: Any) -> ASGIExchange:
    """A request in async mode."""
    scope: dict[str, Any] = getattr(request, "scope", None) or _scope_of(request)
    return ASGIExchange(app, scope, asgi_key(scope) or (), _no_server)


def _no_server(*_: Any, **__: Any) -> Any:
    """Stands for the server's `send` and `start_response`: Django calls the server."""
    raise NotImplementedError


def _scope_of(request: HttpRequest) -> dict[str, Any]:
    """The scope of a request of a WSGI server."""
    headers = [
        (name.lower().encode("latin-1"), str(value).encode("latin-1", "replace"))
        for name, value in request.headers.items()
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": request.META.get("SERVER_PROTOCOL", "HTTP/1.1").removeprefix("HTTP/"),
        "method": request.method or "GET",
        "scheme": request.scheme or "http",
        "path": request.path,
        "root_path": request.path.removesuffix(request.path_info),
        "query_string": request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
        "headers": headers,
        "client": (request.META.get("REMOTE_ADDR", ""), 0),
        "server": (request.META.get("SERVER_NAME", ""), 0),
    }


def _raw(text: str) -> str:
    """Text as WSGI gives it: its bytes as Latin-1."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
