"""Rules about `<image:image>`."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family("image", "Images", "The extension for images, which Google reads.")

NAMESPACE: Final = FAMILY.error(
    "image-namespace",
    "a wrong namespace for images",
    "A namespace is compared character by character. Google ignores images in any other.",
    'Write exactly `xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"`.',
)
LOC_MISSING: Final = FAMILY.error(
    "image-loc-missing",
    "an image without a URL",
    "An `image:image` needs an `image:loc`. Google reports a missing tag.",
    "Write the URL of the image, or leave the image out.",
)
LOC_INVALID: Final = FAMILY.error(
    "image-loc-invalid",
    "not the URL of an image",
    "The URL is not an absolute one of http or https. Relative URLs and `data:` URLs, as placeholders of lazily "
    "loaded images have them, are not images for Google.",
    "Write the whole URL of the image itself.",
)
DOUBLE_ESCAPED: Final = FAMILY.warning(
    "image-double-escaped",
    "the URL of an image, escaped twice",
    "The URL contains `&amp;` after the XML was read: the document has `&amp;amp;`.",
    "Escape the URL once, when the XML is written.",
)
TOO_MANY: Final = FAMILY.error(
    "image-too-many",
    "more than 1,000 images of one page",
    "Google reads 1,000 images of a page.",
    "List the images that matter.",
)
DUPLICATE: Final = FAMILY.info(
    "image-duplicate",
    "an image twice at one page",
    "The further entries say nothing.",
    "List each image of a page once.",
)
OUTDATED: Final = FAMILY.info(
    "image-outdated",
    "an element that Google no longer reads",
    "Google dropped `image:caption`, `image:title`, `image:geo_location` and `image:license` in 2022.",
    "Remove the elements.",
)
UNKNOWN: Final = FAMILY.warning(
    "image-unknown",
    "an element that the extension does not have",
    "Google ignores it.",
    "Correct its name, or remove it.",
)
