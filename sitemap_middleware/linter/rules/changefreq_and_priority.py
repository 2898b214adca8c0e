"""Rules about `<changefreq>` and `<priority>`."""

from __future__ import annotations

from typing import Final

from .base import Family

FAMILY: Final = Family(
    "hints", "changefreq and priority", "Hints that Google and Bing ignore. Some smaller crawlers read them."
)

CHANGEFREQ_INVALID: Final = FAMILY.error(
    "changefreq-invalid",
    "a word that the protocol does not have",
    "The protocol has `always`, `hourly`, `daily`, `weekly`, `monthly`, `yearly` and `never`. Google reports other "
    "values as errors.",
    "Write one of the seven words, or leave the element out.",
)
CHANGEFREQ_CASE: Final = FAMILY.warning(
    "changefreq-case",
    "a word in upper case",
    "The words of the protocol are in lower case, and validators refuse others.",
    "Write the word in lower case.",
)
CHANGEFREQ_UNIFORM: Final = FAMILY.info(
    "changefreq-uniform",
    "the same changefreq everywhere",
    "A value that all pages share says nothing of any.",
    "Leave the element out.",
)
PRIORITY_INVALID: Final = FAMILY.error(
    "priority-invalid",
    "not a number from 0.0 to 1.0",
    "Google reports the value as an error.",
    "Write a number from 0.0 to 1.0, with a point, or leave the element out.",
)
PRIORITY_UNIFORM: Final = FAMILY.info(
    "priority-uniform",
    "the same priority everywhere",
    "Priority compares the pages of one site. A value that all pages share says nothing of any.",
    "Leave the element out.",
)
