"""Finds the value of each option: an argument, the framework's configuration, the environment or the default."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ..exceptions import OptionError
from ..protocol.value_checks import likely_name
from ..util import log
from .store_urls import without_password

CONSTRUCTOR_NAME: Final = "SitemapMiddleware"

PREFIX: Final = "SITEMAP_"
"""How the names of environment variables and keys of the framework's configuration begin."""

CONFIG_PLACE: Final = 'app.config["{}"]'
"""How errors name a key of the configuration of Flask and Quart."""

_DEFAULT_WORDS: Final = {
    "clock": "time.time",
    "media_types": "HTML, XHTML, PDF",
    "store": "a file, sitemap.sqlite3",
}
"""How people read the default of an option whose default is None. Of any other it is "not set"."""

Source = Literal["argument", "config", "environment", "default"]

_FLAGS: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
FLAG_WORDS: Final = "1, true, yes or on, or else 0, false, no or off"

_LIST_ITEM: Final = re.compile(r"(?:<[^<>]*>|\{[^{}]*\}|[^,])+")
"""An item of a list in text. A comma within a parameter, as in "/<any(a, b):kind>", belongs to the item."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of an option, and where it comes from."""

    name: str
    value: Any
    source: Source
    place: str = field(default="", compare=False)
    """Where the value was given, for error messages."""

    def __repr__(self) -> str:
        return f"Setting({self.name!r}, {self.public_value!r}, {self.source!r})"

    @property
    def source_name(self) -> str:
        """Where the value comes from, for people: an argument, a default, or the name of the key or variable."""
        return self.source if self.source in ("argument", "default") else self.place

    @property
    def public_value(self) -> Any:
        """The value, without the password of a store's URL."""
        is_url = self.name == "store" and isinstance(self.value, str | bytes)
        return without_password(self.value) if is_url else self.value

    @property
    def shown_value(self) -> str:
        """The value, for people."""
        value = self.public_value
        if value is None:
            return _DEFAULT_WORDS.get(self.name, "not set")
        if callable(value):
            return str(getattr(value, "__qualname__", type(value).__qualname__))
        if isinstance(value, (list, tuple, Mapping)):
            return ", ".join(map(str, value)) or "none"
        return str(value)


@dataclass(frozen=True, slots=True)
class Option:
    """One option. A new one is a row of `OPTIONS`, a line of `SitemapOptions` and a field of `Options`."""

    name: str
    default: Any
    form: Literal["text", "list", "flag", "number", "decimal", "object"]
    """How it is written as text in the configuration or the environment. No text stands for an object."""
    check: Callable[[Setting], Any]
    """Returns the value to use; raises `OptionError`, which names the value, the place and the fix."""

    def of_text(self, text: str) -> Any:
        """The value that a text stands for; the text itself if it cannot be read, which `check` refuses."""
        word = text.strip()
        if self.form == "list":
            return tuple(item.strip() for item in _LIST_ITEM.findall(word) if item.strip())
        if self.form == "flag":
            return _FLAGS.get(word.lower(), text)
        with contextlib.suppress(ValueError):
            if self.form == "number":
                return int(word)
            if self.form == "decimal":
                return float(word)
        return text

    def of_config(self, value: object) -> Any:
        """The value of a key of the configuration; None if it is empty. Text is read like text in the environment."""
        if isinstance(value, str):
            return self.of_text(value) if value else None
        return bool(value) if self.form == "flag" and type(value) is int and value in (0, 1) else value


def variable_name(option: str) -> str:
    """The environment variable of an option, which is also its key in the framework's configuration."""
    return PREFIX + option.upper()


def collect_settings(
    table: Mapping[str, Option],
    arguments: Mapping[str, object],
    config: Mapping[Any, object],
    environment: Mapping[str, str],
    config_place: str,
) -> dict[str, Setting]:
    """Choose the value of each option: the argument, else the framework's configuration, the environment, the default.

    None is no value if it is the default, and an empty text is none. `config_place` is how errors name a key of the
    configuration, which stands for ``{}``. Raises `OptionError` if a list holds something that is no text.
    """
    settings = {}
    for name, option in table.items():
        variable = variable_name(name)
        setting = Setting(name, option.default, "default", f"{CONSTRUCTOR_NAME}: {name}")
        if name in arguments and (arguments[name] is not None or option.default is not None):
            setting = Setting(name, arguments[name], "argument", setting.place)
        elif (configured := option.of_config(config.get(variable))) is not None:
            setting = Setting(name, configured, "config", config_place.format(variable))
        elif option.form != "object" and environment.get(variable):
            setting = Setting(name, option.of_text(environment[variable]), "environment", variable)
        settings[name] = _as_list(setting) if option.form == "list" else setting
    return settings


def _as_list(setting: Setting) -> Setting:
    """The setting of a list, with a tuple as its value: an iterator can be read once."""
    value = setting.value
    if value is None and setting.source == "default":
        return setting
    if isinstance(value, str):
        return replace(setting, value=(value,))
    try:
        items = tuple(value)
    except TypeError:
        hint = ", or did you mean @sitemap(learn=True) on a view?" if setting.name == "learn" and value is True else ""
        raise OptionError(f"{setting.place}={value!r} is not a list of strings; give a tuple of them{hint}") from None
    for item in items:
        if not isinstance(item, str):
            raise OptionError(f"{setting.place} holds {item!r}, which is not a string")
    return replace(setting, value=items)


def warn_of_unknown_keys(
    table: Mapping[str, Option], config: Mapping[Any, object], environment: Mapping[str, str], config_place: str
) -> None:
    """Warn of each key that looks like an option's and is not read. It may belong to another package."""
    in_text = [name for name, option in table.items() if option.form != "object"]
    for keys, names, place in ((config, [*table], config_place), (environment, in_text, "{} in the environment")):
        known = {variable_name(name) for name in names}
        for key in keys:
            if not isinstance(key, str) or not key.startswith(PREFIX) or key in known:
                continue
            likely = likely_name(key.removeprefix(PREFIX).lower(), sorted(names))
            log.warning(
                "%s is not read: it is no option of SitemapMiddleware; %s",
                place.format(key),
                f"did you mean {variable_name(likely)}?" if likely else "ignore this if it belongs to another package",
            )
