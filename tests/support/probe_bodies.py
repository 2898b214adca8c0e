"""Bodies that a probe reads whole, in part or not at all: the same cases for the clients of both protocols."""

from __future__ import annotations

import pytest

from sitemap_middleware.request_response import MAX_PROBE_BYTES

TEXT, FILM, EVENTS = "text/plain", "video/mp4", "text/event-stream"
_LONG = b"x" * (MAX_PROBE_BYTES - 2)

BODIES = pytest.mark.parametrize(
    ("media_type", "parts", "allow_truncated", "body"),
    [
        pytest.param(TEXT, [b"a", b"b"], False, b"ab", id="text"),
        pytest.param(TEXT, [_LONG, b"ab"], False, _LONG + b"ab", id="as long as may be"),
        pytest.param(TEXT, [_LONG, b"ab", b"c"], False, None, id="too long"),
        pytest.param(TEXT, [_LONG, b"ab", b"c", b"d"], True, _LONG + b"abc", id="beginning of text"),
        pytest.param(FILM, [_LONG, b"abc", b"d"], False, b"", id="too long a film"),
        pytest.param(FILM, [_LONG, b"abc", b"d"], True, _LONG + b"abc", id="beginning of a film"),
        pytest.param(EVENTS, [b"a", b"b"], False, b"", id="events"),
        pytest.param(EVENTS.upper(), [b"a", b"b"], True, b"", id="events in capitals"),
    ],
)
"""What an app sends, and the body that the client gives; None if it gives no response at all."""
