"""A pytest plugin for mutation tests: empties the package's module-level caches before the tests.

mutmut runs the tests once, and then forks a process for each mutant. A cache that the first run has filled would answer
instead of the changed function, and hide the change.
"""

from __future__ import annotations

import functools
import gc
import sys
from typing import Any

import pytest

from sitemap_middleware.bounded_cache import BoundedCache
from sitemap_middleware.request_filter.header_rules import HeaderRuleCache

from .collection_sizes import collections_of

PACKAGE = "sitemap_middleware"


def pytest_sessionstart() -> None:
    gc.unfreeze()  # what the first run froze would not be found
    for wrapper in [found for found in gc.get_objects() if type(found) is functools._lru_cache_wrapper]:
        if str(getattr(wrapper, "__module__", "")).startswith(PACKAGE):
            wrapper.cache_clear()
    modules = [module for name, module in sys.modules.items() if name.startswith(PACKAGE)]
    for module in modules:
        for name, value in list(vars(module).items()):
            empty(name, value)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have pytest make the ids of parameters again: it keeps them, and would escape their backslashes once more.

    mutmut names tests by the ids of the first run, and those with a backslash would not be found.
    """
    for mark in metafunc.definition.iter_markers("parametrize"):
        object.__setattr__(mark._param_ids_from or mark, "_param_ids_generated", None)


def empty(name: str, value: Any) -> None:
    if isinstance(value, BoundedCache | HeaderRuleCache):
        for _, collection in collections_of(value):
            if isinstance(collection, dict):
                collection.clear()
    if isinstance(value, HeaderRuleCache):
        value.harmless.clear()
    if isinstance(value, set) and name.startswith("harmless"):
        value.clear()
