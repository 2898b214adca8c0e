"""A warning on each topic, once."""

from __future__ import annotations

import pytest

from sitemap_middleware.warn_once import WarnOnce


def test_each_topic_is_warned_of_once_by_each_object(caplog: pytest.LogCaptureFixture) -> None:
    for warn in (WarnOnce(), WarnOnce()):
        for topic, number in (("host", 1), ("host", 2), ("clock", 3)):
            warn(topic, "line %d", number)
    assert caplog.messages == ["line 1", "line 3"] * 2
