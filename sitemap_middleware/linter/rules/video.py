"""Rules about `<video:video>`."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("video", "Videos", "The extension for videos, which Google reads.")

NAMESPACE: Final = FAMILY.error(
    "video-namespace",
    "a wrong namespace for videos",
    "A namespace is compared character by character. Google ignores videos in any other.",
    'Write exactly `xmlns:video="http://www.google.com/schemas/sitemap-video/1.1"`.',
)
INCOMPLETE: Final = FAMILY.error(
    "video-incomplete",
    "a required element is missing",
    "A video needs `thumbnail_loc`, `title`, `description`, and `content_loc` or `player_loc`. Google reports a "
    "missing tag and ignores the video.",
    "Add the element, or leave the video out.",
)
URL_INVALID: Final = FAMILY.error(
    "video-url-invalid",
    "not a URL",
    "The thumbnail, the file and the player need absolute URLs of http or https.",
    "Write the whole URL.",
)
URL_OF_PAGE: Final = FAMILY.warning(
    "video-url-of-page",
    "the page in place of the video",
    "`content_loc` is the file of the video and `player_loc` its player. Neither is the page that shows it.",
    "Write the URL of the file or of the player.",
)
TOO_LONG: Final = FAMILY.warning(
    "video-too-long",
    "a text that is too long",
    "`description` has at most 2,048 characters, and `uploader` 255.",
    "Shorten the text.",
)
DURATION: Final = FAMILY.error(
    "video-duration",
    "not a duration",
    "The duration is a number of whole seconds from 1 to 28,800.",
    "Write the seconds, such as `754`, or leave the element out.",
)
DATE: Final = FAMILY.error(
    "video-date",
    "not a date",
    "`publication_date` and `expiration_date` are dates or datetimes with a time zone.",
    "Write `2024-05-01` or `2024-05-01T10:00:00Z`.",
)
EXPIRED: Final = FAMILY.warning(
    "video-expired",
    "a video that has expired",
    "`expiration_date` has passed, so Google shows the video no more.",
    "Remove the video, or the date.",
)
VALUE: Final = FAMILY.error(
    "video-value",
    "a value that the extension does not allow",
    "`rating` is a number from 0.0 to 5.0, `view_count` a whole number; `family_friendly`, `requires_subscription` "
    "and `live` are `yes` or `no`; `restriction` names countries and `platform` names `web`, `mobile` or `tv`, "
    "both with the attribute `relationship` as `allow` or `deny`. Google reports an invalid value.",
    "Correct the value, or leave the element out.",
)
TAGS: Final = FAMILY.warning(
    "video-tags",
    "more than 32 tags",
    "A video has at most 32 tags.",
    "Keep the tags that matter.",
)
OUTDATED: Final = FAMILY.info(
    "video-outdated",
    "an element that Google no longer reads",
    "Google dropped `video:price`, `video:category`, `video:gallery_loc` and the attributes of `video:player_loc`.",
    "Remove them.",
)
UNKNOWN: Final = FAMILY.warning(
    "video-unknown",
    "an element that the extension does not have",
    "Google ignores it.",
    "Correct its name, or remove it.",
)
