"""The words in which each language writes ages. Data only; the rules are in `relative_time`."""

from __future__ import annotations

from typing import Final, NamedTuple


class Language(NamedTuple):
    """How a language writes ages. Words are separated by spaces, phrases by "|"."""

    units: str
    before: str
    """Phrases that make an age of the amount that follows."""
    after: str
    """Phrases that make an age of the amount before."""
    counts: str
    """Words that stand for numbers, and what may stand around a number."""
    days: str
    """Phrases that are ages by themselves."""


LANGUAGES: Final = (
    Language(  # English
        "second seconds sec secs s minute minutes min mins m hour hours hr hrs h day days d week weeks "
        "wk wks w month months mo mos mth mths year years yr yrs y decade decades moment moments "
        "fortnight fortnights",
        "in|last|past|next|previous|this|within the next",
        "ago|back|left|remaining|to go|from now|old|earlier|later|until now|away|since|without|until",
        "a an one two three four five six seven eight nine ten eleven twelve few several couple of about "
        "almost over around nearly approximately less more than the half business working and",
        "just now|right now|yesterday|today|tomorrow|moments ago|recently|tonight|a while ago|in a while",
    ),
    Language(  # German
        "sekunde sekunden sek minute minuten min stunde stunden std tag tage tagen tg woche wochen wo "
        "monat monate monaten mon jahr jahre jahren j jahrzehnt jahrzehnten moment momenten augenblick s "
        "m h",
        "vor|in|noch|seit|letzte|letzten|letzter|letztes|vergangene|vergangenen|nächste|nächsten|"
        "nächster|nächstes|vorige|vorigen|voriges|binnen",
        "her|alt|verbleibend|verbleiben|übrig|später|ab jetzt|seit|ohne|bis",
        "ein eine einem einer einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf paar "
        "wenige wenigen einige einigen etwa ungefähr ca fast über rund knapp mehr weniger als und den der",
        "gerade eben|gerade|soeben|jetzt|gestern|vorgestern|heute|morgen|übermorgen|gleich",
    ),
    Language(  # French
        "seconde secondes sec s minute minutes min m heure heures h jour jours j semaine semaines sem "
        "mois an ans année années moment instant instants",
        "il y a|dans|depuis|encore|il reste|reste|plus que|voici|voilà",
        "depuis|sans|avant|restant|restants|restante|restantes|dernier|dernière|derniers|dernières|passé|passée|prochain|"
        "prochaine|plus tard",
        "un une deux trois quatre cinq six sept huit neuf dix onze douze quelques environ presque plus "
        "moins de que d et",
        "à l'instant|maintenant|hier|avant-hier|aujourd'hui|demain|après-demain|récemment",
    ),
    Language(  # Spanish
        "segundo segundos seg s minuto minutos min m hora horas h día días d semana semanas sem mes "
        "meses m año años momento momentos instante instantes",
        "hace|desde hace|en|dentro de|quedan|queda|faltan|falta|últimos|últimas",
        "desde|sin|atrás|restantes|pasado|pasada|pasados|pasadas|próximo|próxima|que viene",
        "un una unos unas dos tres cuatro cinco seis siete ocho nueve diez once doce pocos pocas algunos "
        "algunas cerca alrededor casi más menos de que y aproximadamente",
        "ahora mismo|ahora|justo ahora|ayer|anteayer|hoy|mañana|recientemente|en un rato",
    ),
    Language(  # Italian
        "secondo secondi sec s minuto minuti min ora ore h giorno giorni g settimana settimane sett mese "
        "mesi anno anni momento momenti attimi istanti gg",
        "tra|fra|mancano|manca|ancora|da|ultimi|ultime|in",
        "da quando|senza|fa|rimanenti|rimasti|rimaste|scorso|scorsa|prossimo|prossima|or sono|da ora",
        "un un' uno una due tre quattro cinque sei sette otto nove dieci undici dodici alcuni alcune "
        "pochi poche circa quasi più meno di e qualche",
        "proprio ora|adesso|poco fa|ieri|l'altro ieri|oggi|domani|dopodomani|tra poco|fra poco",
    ),
    Language(  # Portuguese
        "segundo segundos seg s minuto minutos min hora horas h dia dias d semana semanas sem mês meses "
        "mes ano anos momento momentos instantes",
        "há|ha|faz|em|daqui a|dentro de|faltam|falta|restam|resta|últimos|últimas",
        "desde|sem|atrás|restantes|passado|passada|próximo|próxima",
        "um uma dois duas três quatro cinco seis sete oito nove dez onze doze poucos poucas alguns "
        "algumas cerca quase aproximadamente mais menos de que e",
        "agora mesmo|agora|agora há pouco|ontem|anteontem|hoje|amanhã|daqui um pouco|daqui a pouco",
    ),
    Language(  # Dutch
        "seconde seconden sec s minuut minuten min uur uren u dag dagen d week weken w maand maanden mnd "
        "jaar jaren j moment ogenblik dgn",
        "over|nog|sinds|vorige|afgelopen|volgende|binnen",
        "geleden|resterend|over|oud|sinds|zonder|tot",
        "een één twee drie vier vijf zes zeven acht negen tien elf twaalf paar enkele ongeveer bijna "
        "ruim meer minder dan circa ca en",
        "zojuist|zonet|nu|net|gisteren|eergisteren|vandaag|morgen|overmorgen|recent|binnenkort",
    ),
    Language(  # Polish
        "sekunda sekundy sekund sekundę sek s minuta minuty minut minutę min godzina godziny godzin "
        "godzinę godz dzień dni dnia tydzień tygodnie tygodni tygodnia tyg miesiąc miesiące miesięcy "
        "miesiąca mies rok roku lata lat chwila chwilę chwil g tydz",
        "za|zostało|zostały|pozostało|pozostały|jeszcze|w zeszłym|w ubiegłym",
        "temu|pozostało|do końca|od teraz",
        "jeden jedna jedną dwa dwie trzy cztery pięć kilka kilkanaście około prawie ponad mniej więcej niż i",
        "przed chwilą|teraz|wczoraj|przedwczoraj|dzisiaj|dziś|jutro|pojutrze|właśnie teraz|właśnie",
    ),
    Language(  # Russian
        "секунда секунды секунд секунду сек с минута минуты минут минуту мин час часа часов ч день дня "
        "дней дн неделя недели недель неделю нед месяц месяца месяцев мес год года лет г момент",
        "через|осталось|остался|осталась|ещё|еще|спустя|прошлый|прошлая|прошлую|прошлом|на прошлой|в прошлом",
        "назад|осталось|спустя|тому назад",
        "один одну одна два две три четыре пять несколько пару около почти примерно более менее больше меньше чем и",
        "только что|сейчас|вчера|позавчера|сегодня|завтра|послезавтра|недавно",
    ),
    Language(  # Ukrainian
        "секунда секунди секунд секунду сек хвилина хвилини хвилин хвилину хв година години годин годину "
        "год день дні днів дня тиждень тижні тижнів тижня місяць місяці місяців місяця міс рік роки "
        "років року с дн тиж р тижд тиждні",
        "через|залишилось|залишилося|за",
        "тому|тому назад|назад",
        "один одну два дві три чотири пять декілька кілька близько майже понад і та кількох",
        "щойно|зараз|вчора|позавчора|сьогодні|завтра|через мить",
    ),
    Language(  # Bulgarian
        "секунда секунди сек минута минути мин час часа ч ден дни дена седмица седмици месец месеца месеци "
        "година години",
        "преди|след|миналата|миналия|следващата|следващия|остават",
        "назад|остават",
        "един една едно два две три четири пет няколко около почти повече по-малко от и",
        "току-що|сега|вчера|онзи ден|днес|утре|вдругиден",
    ),
    Language(  # Croatian, Bosnian and Serbian, in both scripts
        "sekunda sekunde sekundi sekundu minuta minute minut minuti minutu min sat sata sati h dan dana "
        "tjedan tjedna tjedana sedmica sedmice sedmicu nedelja nedelje nedelju mjesec mjeseca mjeseci "
        "mesec meseca meseci godina godine godinu "
        "секунда секунде секунди секунду минут минута минуте минути мин сат сата сати дан дана недеља недеље недељу "
        "месец месеца месеци година године годину",
        "prije|pre|za|još|prošli|prošle|prošlog|пре|за|још|прошле|прошлог",
        "ranije|раније",
        "jedan jedna jednu jednog dva dvije dve tri četiri pet nekoliko oko skoro gotovo više manje od i "
        "један једну два две три четири пет неколико око скоро више мање од и",
        "upravo sada|upravo|sada|jučer|juče|prekjučer|danas|sutra|prekosutra|управо|сада|јуче|данас|сутра",
    ),
    Language(  # Persian
        "ثانیه دقیقه ساعت روز هفته ماه سال",
        "",
        "پیش|قبل|دیگر|گذشته|بعد",
        "یک دو سه چهار پنج چند حدود تقریبا بیش از کمتر و",
        "اکنون|دیروز|پریروز|امروز|فردا|لحظاتی پیش|هم اکنون",
    ),
    Language(  # Swedish
        "sekund sekunder sek s minut minuter min timme timmar tim h dag dagar d dygn vecka veckor v "
        "månad månader mån år ögonblick",
        "för|om|i|förra|senaste|nästa|sista",
        "sedan|sen|kvar|återstår|gammal|gammalt|från nu",
        "en ett två tre fyra fem sex sju åtta nio tio några ungefär nästan över cirka ca drygt mer mindre än och",
        "just nu|nyss|alldeles nyss|nu|igår|i går|i förrgår|idag|i dag|imorgon|i morgon|ett tag sedan",
    ),
    Language(  # Danish and Norwegian
        "sekund sekunder sek s minut minutter minutt min time timer t dag dage dager døgn d uge uger uke "
        "uker u måned måneder md mdr mnd år øjeblik øyeblikk",
        "for|om|sidste|siste|forrige|næste|neste|innen",
        "siden|tilbage|igen|igjen|gammel|gammelt|fra nu|fra nå",
        "en et ett to tre fire fem seks syv sju otte åtte ni ti få nogle noen par cirka ca omkring "
        "omtrent næsten nesten over mere mer mindre end enn og",
        "lige nu|akkurat nå|netop|nu|nå|i går|igår|i forgårs|i dag|idag|i morgen|imorgen|nå nettopp|nettopp|om litt",
    ),
    Language(  # Finnish
        "sekunti sekuntia sekunnin s minuutti minuuttia minuutin min tunti tuntia tunnin t päivä päivää "
        "päivän pv viikko viikkoa viikon vk kuukausi kuukautta kuukauden kk vuosi vuotta vuoden v",
        "viime|ensi",
        "sitten|kuluttua|päästä|jäljellä|vanha|tästä",
        "yksi kaksi kolme neljä viisi muutama muutaman noin lähes yli ja",
        "juuri nyt|äsken|hetki sitten|nyt|eilen|toissapäivänä|tänään|huomenna|juuri äsken|juuri",
    ),
    Language(  # Czech and Slovak
        "sekunda sekundy sekund sekundou sekundami sekundu minuta minuty minut minutou minutami minutu "
        "min hodina hodiny hodin hodinou hodinami hodinu hod den dny dnů dní dnem dňami deň dni týden "
        "týdny týdnů týdnem týždeň týždňami měsíc měsíce měsíců měsícem měsíci mesiac mesiacmi mesiacov "
        "rok roky roků roků let lety rokem rokov rokmi s h týd měs r sekúnd minút minúta minútu minúty "
        "minútou minútami hodín týždne týždňov týždňom mesiacom mesiace roka",
        "před|pred|za|zbývá|zbývají|ještě|minulý|minulou|o",
        "zpět|nazpět|zbývá|naspäť",
        "jeden jednu jedna jednou dva dvě dvěma tři třemi několik několika pár asi přibližně téměř více než a",
        "právě teď|teď|včera|předevčírem|dnes|zítra|pozítří|práve teraz|pred chvíľou|před chvílí",
    ),
    Language(  # Hungarian
        "másodperc másodperce másodperccel perc perce perccel óra órája órával nap napja nappal hét hete "
        "héttel hónap hónapja hónappal év éve évvel másodpercekkel percen órán napon héten hónapon éven",
        "még|múlt|jövő",
        "ezelőtt|múlva|van hátra|maradt|óta|belül",
        "egy két három négy öt néhány pár kb körülbelül majdnem több mint és",
        "épp most|most|tegnap|tegnapelőtt|ma|holnap|éppen most",
    ),
    Language(  # Romanian
        "secundă secunde sec minut minute min oră ore h zi zile săptămână săptămâni lună luni an ani săpt",
        "acum|în urmă cu|peste|de acum|au rămas|mai sunt|în|într-un|într-o",
        "în urmă|rămase",
        "o un una două doi trei patru cinci câteva câțiva aproximativ aproape peste mai puțin mult de și "
        "într-un într-o",
        "chiar acum|adineauri|ieri|alaltăieri|astăzi|azi|mâine|în curând",
    ),
    Language(  # Turkish
        "saniye sn dakika dk saat sa gün gündür hafta hf ay yıl sene",
        "son|geçen|gelecek|kalan",
        "önce|sonra|kaldı|kalan|içinde",
        "bir iki üç dört beş birkaç yaklaşık neredeyse az fazla ve",
        "az önce|şimdi|şu anda|demin|dün|bugün|yarın",
    ),
    Language(  # Greek
        "δευτερόλεπτο δευτερόλεπτα δευτ λεπτό λεπτά λ ώρα ώρες ημέρα ημέρες μέρα μέρες εβδομάδα "
        "εβδομάδες μήνα μήνας μήνες έτος έτη χρόνο χρόνια χρόνος δ λεπ ώ ημ εβδ μ χρ",
        "πριν|πριν από|σε|απομένουν",
        "πριν|ακόμα|από τώρα",
        "ένα ένας μία μια έναν δύο τρεις τρία τέσσερα λίγα λίγες περίπου σχεδόν πάνω από και",
        "μόλις τώρα|τώρα|χθες|χτες|προχθές|σήμερα|αύριο|σε λίγο",
    ),
    Language(  # Indonesian and Malay
        "detik saat menit minit jam hari minggu pekan bulan tahun dtk mnt h mgg bln thn sejam sehari "
        "seminggu sebulan setahun semenit",
        "dalam|sisa|dlm",
        "yang lalu|lalu|lagi|tersisa|kemudian|dari sekarang",
        "satu dua tiga empat lima beberapa sekitar hampir lebih kurang dari dan",
        "baru saja|sekarang|kemarin|hari ini|besok",
    ),
    Language(  # Vietnamese
        "giây phút giờ ngày tuần tháng năm",
        "cách đây|còn|sau|trong|trong vòng",
        "trước|nữa|còn lại|tới|ngày tới",
        "một hai ba bốn vài khoảng gần hơn và",
        "vừa xong|vừa mới|hôm qua|hôm nay|ngày mai|ngày hôm qua|hiện tại|một lúc",
    ),
    Language(  # Arabic
        "ثانية ثانيتين ثوان ثواني دقيقة دقيقتين دقائق ساعة ساعتين ساعات يوم يومين أيام يوما أسبوع "
        "أسبوعين أسابيع شهر شهرين أشهر شهور سنة سنتين سنوات عام عامين أعوام ثوانٍ ثوانِ اسبوع",
        "منذ|قبل|خلال|بعد|باقي|متبقي",
        "مضت|متبقية|من الآن",
        "واحد واحدة حوالي تقريبا أكثر أقل من بضع و",
        "الآن|أمس|اليوم|غدا|خلال لحظات",
    ),
    Language(  # Hebrew
        "שניה שנייה שניות דקה דקות שעה שעתיים שעות יום יומיים ימים שבוע שבועיים שבועות חודש חודשיים "
        "חודשים שנה שנתיים שנים שנ דק שע חו שב",
        "לפני|בעוד|תוך|עוד|נותרו|אחרי",
        "נותרו",
        "אחד אחת שני שתי כמה מספר כ-",
        "עכשיו|כרגע|הרגע|אתמול|שלשום|היום|מחר|זה עתה",
    ),
    Language(  # Hindi
        "सेकंड सेकेंड मिनट घंटा घंटे घण्टे दिन सप्ताह हफ़्ता हफ़्ते महीना महीने माह साल वर्ष से मि घं दि स मा व सेकंड्",
        "",
        "पहले|में|बाद|शेष|बाकी",
        "एक दो तीन कुछ लगभग करीब से अधिक और",
        "अभी|कल|आज|परसों",
    ),
)
