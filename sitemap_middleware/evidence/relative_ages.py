"""Ages such as "3 weeks ago" or "vor 3 Wochen" are not content: they change although nobody edits the page.

A number with a unit of time is left out wherever it stands, and so are the words that stand for an age by themselves,
such as "yesterday". No grammar is needed for that, and an edit that changes nothing else is rare.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_UNIT_TEXT: Final = """
    second seconds sec secs minute minutes min mins hour hours hrs day days week weeks wks month months mos mth mths
    year years yrs decade decades moment moments fortnight fortnights sekunde sekunden sek minuten stunde stunden
    std tag tage tagen woche wochen monat monate monaten mon jahr jahre jahren jahrzehnt jahrzehnten momenten
    augenblick seconde secondes heure heures jour jours semaine semaines sem mois ans année années instant instants
    segundo segundos seg minuto minutos hora horas día días semana semanas mes meses año años momento momentos
    instante instantes secondo secondi minuti ora ore giorno giorni settimana settimane sett mese mesi anno anni
    momenti attimi istanti dia dias mês ano anos seconden minuut uur uren dag dagen weken maand maanden mnd jaar
    jaren ogenblik dgn sekunda sekundy sekund sekundę minuta minuty minut minutę godzina godziny godzin godzinę godz
    dzień dni dnia tydzień tygodnie tygodni tygodnia tyg miesiąc miesiące miesięcy miesiąca mies rok roku lata lat
    chwila chwilę chwil tydz секунда секунды секунд секунду сек минута минуты минут минуту мин час часа часов день
    дня дней неделя недели недель неделю нед месяц месяца месяцев мес год года лет момент секунди хвилина хвилини
    хвилин хвилину година години годин годину дні днів тиждень тижні тижнів тижня місяць місяці місяців місяця міс
    рік роки років року тиж тижд тиждні минути ден дни дена седмица седмици месец месеца месеци sekundi sekundu
    minutu sat sata sati dan dana tjedan tjedna tjedana sedmica sedmice sedmicu nedelja nedelje nedelju mjesec
    mjeseca mjeseci mesec meseca meseci godina godine godinu секунде минуте сат сата сати дан дана недеља недеље
    недељу године ثانیه دقیقه ساعت روز هفته ماه سال sekunder år minuter timme timmar tim dagar dygn vecka veckor månad
    månader mån ögonblick minutter minutt time timer dage dager døgn uge uger uke uker måned måneder mdr øjeblik
    øyeblikk sekunti sekuntia sekunnin minuutti minuuttia minuutin tunti tuntia tunnin päivä päivää päivän viikko
    viikkoa viikon kuukausi kuukautta kuukauden vuosi vuotta vuoden sekundou sekundami minutou minutami hodina
    hodiny hodin hodinou hodinami hodinu hod den dny dnů dní dnem dňami deň týden týdny týdnů týdnem týždeň týždňami
    měsíc měsíce měsíců měsícem měsíci mesiac mesiacmi mesiacov roky roků let lety rokem rokov rokmi týd měs sekúnd
    minút minúta minútu minúty minútou minútami hodín týždne týždňov týždňom mesiacom mesiace roka másodperc
    másodperce másodperccel perc perce perccel óra órája órával nap napja nappal hét hete héttel hónap hónapja
    hónappal éve évvel másodpercekkel percen órán napon héten hónapon éven secundă secunde oră zile săptămână
    săptămâni lună luni ani săpt saniye dakika saat gün gündür hafta yıl sene δευτερόλεπτο δευτερόλεπτα δευτ λεπτό
    λεπτά ώρα ώρες ημέρα ημέρες μέρα μέρες εβδομάδα εβδομάδες μήνα μήνας μήνες έτος έτη χρόνο χρόνια χρόνος λεπ εβδ
    detik menit minit jam hari minggu pekan bulan tahun dtk mnt mgg bln thn sejam sehari seminggu sebulan setahun
    semenit giây phút giờ ngày tuần tháng năm ثانية ثانيتين ثوان ثواني دقيقة دقيقتين دقائق ساعة ساعتين ساعات يوم
    يومين أيام يوما أسبوع أسبوعين أسابيع شهر شهرين أشهر شهور سنة سنتين سنوات عام عامين أعوام ثوانٍ ثوانِ اسبوع שניה
    שנייה שניות דקה דקות שעה שעתיים שעות יום יומיים ימים שבוע שבועיים שבועות חודש חודשיים חודשים שנה שנתיים שנים
    सेकंड सेकेंड मिनट घंटा घंटे घण्टे दिन सप्ताह हफ़्ता हफ़्ते महीना महीने माह साल वर्ष सेकंड्
"""
_UNITS: Final = frozenset(_UNIT_TEXT.split())
"""Units of time, in thirty languages."""
_SHORT_UNIT_TEXT: Final = """
    s m hr h d wk w mo yr y tg wo j an g gg u с ч дн г хв р v t md pv vk kk r év zi sn dk sa hf ay λ δ ώ ημ μ χρ
    שנ דק שע חו שב से मि घं दि स मा व
"""
_GLUED_UNITS: Final = _UNITS.union(_SHORT_UNIT_TEXT.split())
"""Units that may follow a number without a space. A short one with a space is mostly something else, such as metres."""
_AGE_TEXT: Final = """
    yesterday today tomorrow tonight soeben jetzt gestern vorgestern heute übermorgen maintenant hier avant-hier
    aujourd'hui demain après-demain récemment ahora ayer anteayer hoy mañana recientemente adesso ieri oggi domani
    dopodomani agora ontem anteontem hoje amanhã zojuist zonet gisteren eergisteren vandaag overmorgen binnenkort
    teraz wczoraj przedwczoraj dzisiaj dziś jutro pojutrze właśnie сейчас вчера позавчера сегодня завтра послезавтра
    недавно щойно зараз вчора позавчора сьогодні току-що сега днес утре вдругиден upravo jučer juče prekjučer danas
    sutra prekosutra управо сада јуче данас сутра اکنون دیروز پریروز امروز فردا nyss igår idag imorgon netop nå
    imorgen nettopp äsken nyt eilen toissapäivänä tänään huomenna juuri teď včera předevčírem dnes zítra pozítří
    tegnap tegnapelőtt holnap adineauri alaltăieri astăzi azi mâine şimdi demin dün bugün yarın τώρα χθες χτες
    προχθές σήμερα αύριο sekarang kemarin besok الآن أمس اليوم غدا עכשיו כרגע הרגע אתמול שלשום היום מחר अभी कल आज
    परसों just now right moments ago vor hace há fa atrás geleden sedan siden för temu назад тому önce lalu trước
    sitten about almost nearly environ etwa ungefähr circa ca cerca około около
"""
_AGE_WORDS: Final = frozenset(_AGE_TEXT.split())
"""Words that say when something was, or turn an amount of time into an age."""
_COUNT_TEXT: Final = """
    a an one two three four five six seven eight nine ten ein eine einem einer einen zwei drei un une deux trois una uno
    dos tres due um uma dois een één twee en ett et två jeden jedna jedną dwa один одна одну два bir iki một satu jednu
"""
_COUNTS: Final = frozenset(_COUNT_TEXT.split())
"""Words that count a unit: "an hour ago"."""

_UNSPACED: Final = re.compile(
    r"[0-9]{1,6}+ ?(?:秒|分钟|分鐘|分間|分|小时|小時|時間|天|日間|日|星期|週間|周|週|个月|個月|か月|ヶ月|カ月|月|年間"
    r"|年) ?(?:以前|之前|前)"
    r"|[0-9]{1,6}+ ?(?:초|분|시간|일|주일|주|개월|달|년) ?전"
    r"|[0-9]{1,6}+ ?(?:วินาที|นาที|ชั่วโมง|วัน|สัปดาห์|เดือน|ปี) ?(?:ที่ ?(?:แล้ว|ผ่านมา)|ก่อน)"
    r"|刚刚|剛剛|たった今|昨日|昨天|前天|今日|今天|방금|어제|오늘|เมื่อวาน|วันนี้"
)
"""Ages in languages that write no spaces between words."""
_HAS_UNSPACED: Final = re.compile("[前전ที่ก刚剛今昨방어오]")

_EDGES: Final = " \t.,;:!?()[]{}<>\"'“”„«»‹›…·•–—-|/*+~׳॰\u200e\u200f"
_NUMBER: Final = re.compile(r"[0-9]{1,6}(?:[.,][0-9]{1,2})?")
_GLUED: Final = re.compile(r"([0-9]{1,4})-?([^\W\d_]{1,12})(?:-old)?")


def without_ages(words: Sequence[str]) -> list[str]:
    """The words of a text without those of ages."""
    if any(map(_HAS_UNSPACED.search, words)):
        words = _UNSPACED.sub(" ", " ".join(words)).split()
    kinds = [*map(_kind, words)]
    if not any(kinds):
        return [*words]
    removed = {at for at, kind in enumerate(kinds) if kind == "age"}
    for at, kind in enumerate(kinds):
        if kind != "unit":
            continue
        if at and kinds[at - 1] in ("number", "count"):
            removed.update((at - 1, at))
        elif kinds[at + 1 : at + 2] == ["number"]:  # "Day 124 of our journey"
            removed.update((at, at + 1))
    return [word for at, word in enumerate(words) if at not in removed]


@lru_cache(8192)
def _kind(word: str) -> str:
    """What a word may be of an age: the "age", its "unit", a "number", a "count"; else empty."""
    plain = word.strip(_EDGES).lower().replace("’", "'")
    plain = plain.partition("(")[0]  # "week(s)", which has lost its end
    plain = plain.rpartition("'")[2]  # "l'an"
    if plain in _UNITS:
        return "unit"
    if plain in _AGE_WORDS:
        return "age"
    if plain[:1].isdigit():
        if _NUMBER.fullmatch(plain):
            return "number"
        glued = _GLUED.fullmatch(plain)
        return "age" if glued and glued[2] in _GLUED_UNITS else ""
    return "count" if plain in _COUNTS else ""
