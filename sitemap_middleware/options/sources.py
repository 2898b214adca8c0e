"""Finds the value of each option: an argument, the framework's configuration, the environment or the default."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol

from ..exceptions import OptionError
from ..http.urls import without_password
from .value_checks import likely_name

log: logging.Logger = logging.getLogger("sitemap_middleware")

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

Form = Literal["text", "list", "flag", "number", "decimal", "object"]
"""How an option is written as text. No text stands for an object."""

_TRUE_WORDS: Final = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS: Final = frozenset({"0", "false", "no", "off"})
FLAG_WORDS: Final = "1, true, yes or on, or else 0, false, no or off"

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"[+-]?[0-9]{0,9}\.?[0-9]{1,18}")
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
        return (
            without_password(self.value) if self.name == "store" and isinstance(self.value, str | bytes) else self.value
        )

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


def variable_name(option: str) -> str:
    """The environment variable of an option, which is also its key in the framework's configuration."""
    return PREFIX + option.upper()


def collect_settings(
    table: Mapping[str, HasForm],
    arguments: Mapping[str, object],
    config: Mapping[Any, object],
    environment: Mapping[str, str],
    config_place: str = CONFIG_PLACE,
) -> dict[str, Setting]:
    """Choose the value of each option: the argument, else the framework's configuration, the environment, the default.

    None is no value if it is the default, and an empty text is none. Text in the configuration is read like text in the
    environment. Text that cannot be read stays text, which the check of the option refuses.

    Args:
        table: the options by name.
        arguments: those that were given as arguments.
        config: the framework's configuration, such as Flask's `app.config`.
        environment: the environment variables.
        config_place: how errors name a key of the configuration, which stands for ``{}``.

    Raises:
        OptionError: a list holds something that is no text.
    """
    settings = {}
    for name, option in table.items():
        variable = variable_name(name)
        setting = Setting(name, option.default, "default", f"{CONSTRUCTOR_NAME}: {name}")
        if name in arguments and (arguments[name] is not None or option.default is not None):
            setting = Setting(name, arguments[name], "argument", setting.place)
        elif (configured := _read_value(option.form, config.get(variable))) is not None:
            setting = Setting(name, configured, "config", config_place.format(variable))
        elif option.form != "object" and environment.get(variable):
            setting = Setting(name, _read_text(option.form, environment[variable]), "environment", variable)
        settings[name] = _as_list(setting) if option.form == "list" else setting
    return settings


class HasForm(Protocol):
    """What is read of a row of the table of options."""

    @property
    def default(self) -> Any: ...
    @property
    def form(self) -> Form: ...


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
    table: Mapping[str, HasForm],
    config: Mapping[Any, object],
    environment: Mapping[str, str],
    config_place: str,
) -> None:
    """Warn of each key that looks like an option's and is not read. It may belong to another package."""
    in_text = {name for name, option in table.items() if option.form != "object"}
    for keys, known_names, place in (
        (config, {*table}, config_place),
        (environment, in_text, "{} in the environment"),
    ):
        known = {name.upper() for name in known_names}
        for key in _unknown_keys(keys, known):
            likely = likely_name(key.removeprefix(PREFIX).lower(), sorted(known_names))
            log.warning(
                "%s is not read: it is no option of SitemapMiddleware; %s",
                place.format(key),
                f"did you mean {PREFIX}{likely.upper()}?" if likely else "ignore this if it belongs to another package",
            )


def _unknown_keys(keys: Iterable[object], known: Collection[str]) -> Iterator[str]:
    for key in keys:
        if isinstance(key, str) and key.startswith(PREFIX) and key.removeprefix(PREFIX) not in known:
            yield key


def _read_value(form: Form, value: object) -> Any:
    """The value of a key of the configuration; None if it is empty."""
    if isinstance(value, str):
        return _read_text(form, value) if value else None
    return bool(value) if form == "flag" and type(value) is int and value in (0, 1) else value


def _read_text(form: Form, text: str) -> Any:
    """The value that a text stands for; the text itself if it cannot be read."""
    word = text.strip()
    if form == "list":
        return tuple(item.strip() for item in _LIST_ITEM.findall(word) if item.strip())
    if form == "flag" and word.lower() in _TRUE_WORDS | _FALSE_WORDS:
        return word.lower() in _TRUE_WORDS
    if form == "number" and _INTEGER.fullmatch(word):
        return int(word)
    if form == "decimal" and _DECIMAL.fullmatch(word):
        return float(word)
    return text
