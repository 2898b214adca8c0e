"""Ages in words, as pages of many languages and habits write them."""

from __future__ import annotations

from typing import Final

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 24 * HOUR

_SIZES: Final = (365 * DAY, 30 * DAY, 7 * DAY, DAY, HOUR, MINUTE)

AGES: Final[dict[str, tuple[str, str]]] = {
    "English": ("Posted {} ago", "year/years month/months week/weeks day/days hour/hours minute/minutes"),
    "German": (
        "Veröffentlicht vor {}",
        "Jahr/Jahren Monat/Monaten Woche/Wochen Tag/Tagen Stunde/Stunden Minute/Minuten",
    ),
    "French": ("Publié il y a {}", "an/ans mois/mois semaine/semaines jour/jours heure/heures minute/minutes"),
    "Spanish": ("Publicado hace {}", "año/años mes/meses semana/semanas día/días hora/horas minuto/minutos"),
    "Italian": ("Pubblicato {} fa", "anno/anni mese/mesi settimana/settimane giorno/giorni ora/ore minuto/minuti"),
    "Portuguese": ("Publicado há {}", "ano/anos mês/meses semana/semanas dia/dias hora/horas minuto/minutos"),
    "Dutch": ("{} geleden geplaatst", "jaar/jaar maand/maanden week/weken dag/dagen uur/uur minuut/minuten"),
    "Swedish": ("Publicerad för {} sedan", "år/år månad/månader vecka/veckor dag/dagar timme/timmar minut/minuter"),
    "Polish": ("Dodano {} temu", "rok/lata miesiąc/miesiące tydzień/tygodnie dzień/dni godzinę/godziny minutę/minuty"),
    "Russian": ("Опубликовано {} назад", "год/года месяц/месяца неделю/недели день/дня час/часа минуту/минуты"),
    "short": ("{} ago", "y/y mo/mo w/w d/d h/h m/m"),
}
"""By language, the phrase an age stands in, and the units from the longest on: of one, and of several."""

LANGUAGES: Final = (*AGES, "timesince")
"""`timesince` is Django's filter: two units, as in "3 weeks, 2 days ago"."""


def age(language: str, seconds: float) -> str:
    """The age of a thing in a language, as pages write it."""
    phrase, units = AGES["English" if language == "timesince" else language]
    parts: list[str] = []
    rest = max(seconds, MINUTE)
    for size, unit in zip(_SIZES, units.split(), strict=True):
        singular, plural = unit.split("/")
        number = int(rest // size)
        rest -= number * size
        if number:
            space = "" if language == "short" else " "
            parts.append(f"{number}{space}{singular if number == 1 else plural}")
        if parts and (language != "timesince" or len(parts) == 2):
            break
    return phrase.format(", ".join(parts))
