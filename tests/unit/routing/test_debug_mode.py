"""The debug flag of each framework."""

from __future__ import annotations

import bottle
import falcon
import flask
import pytest
from django.conf import settings
from starlette.applications import Starlette

from sitemap_middleware.routing.framework_detection import is_debug

from ...support import django_project as _settings  # noqa: F401 (configures Django)


@pytest.mark.parametrize("debug", [True, False])
def test_the_flag_of_the_app(*, debug: bool) -> None:
    app = flask.Flask("debugged")
    app.debug = debug
    assert is_debug(app) is debug
    assert is_debug(Starlette(debug=debug)) is debug


@pytest.mark.parametrize("debug", [True, False])
def test_the_flag_of_the_framework(monkeypatch: pytest.MonkeyPatch, *, debug: bool) -> None:
    from django.core.handlers.wsgi import WSGIHandler

    monkeypatch.setattr(settings, "DEBUG", debug)
    monkeypatch.setattr(bottle, "DEBUG", debug)
    assert is_debug(WSGIHandler()) is debug
    assert is_debug(bottle.Bottle()) is debug


def test_an_app_without_a_flag_is_not_in_debug_mode() -> None:
    assert not is_debug(falcon.App())
    assert not is_debug(object())
