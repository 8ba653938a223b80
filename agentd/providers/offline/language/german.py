"""Rules for the most common things people say of themselves in German; the facts are in English."""

from __future__ import annotations

from agentd.core.fact import Category
from agentd.providers.offline.language.calendar import WHEN
from agentd.providers.offline.language.rule import NAME, PROPER, TASTE, TOWN, Rule

# The English word for a German one in a rule's group `n` or `v`.
ENGLISH = {
    word: english
    for english, words in {
        "dog": "hund hündin welpe", "cat": "katze kater", "rabbit": "kaninchen hase", "hamster": "hamster",
        "horse": "pferd", "bird": "vogel wellensittich", "wife": "frau ehefrau", "husband": "mann ehemann",
        "girlfriend": "freundin", "boyfriend": "freund", "son": "sohn", "daughter": "tochter",
        "brother": "bruder", "sister": "schwester", "mother": "mutter mama", "father": "vater papa",
        "boss": "chef chefin", "doctor": "hausarzt hausärztin arzt ärztin", "aunt": "tante", "uncle": "onkel",
        "dentist": "zahnarzt zahnärztin", "partner": "partner partnerin", "landlord": "vermieter vermieterin",
        "food": "essen gericht", "colour": "farbe", "film": "film", "book": "buch", "song": "lied song",
        "band": "band", "drink": "getränk", "animal": "tier", "team": "verein mannschaft", "city": "stadt",
        "vegan": "veganer veganerin vegan", "vegetarian": "vegetarier vegetarierin vegetarisch",
        "meat": "fleisch", "fish": "fisch", "alcohol": "alkohol", "coffee": "kaffee",
        "nuts": "nüsse", "peanuts": "erdnüsse", "pollen": "pollen", "milk": "milch", "cats": "katzen",
        "dogs": "hunde", "eggs": "eier", "penicillin": "penicillin", "gluten": "gluten", "dust": "hausstaub",
        "tea": "tee", "chocolate": "schokolade", "beer": "bier", "wine": "wein", "cheese": "käse", "music": "musik",
        "onions": "zwiebeln", "mushrooms": "pilze", "coriander": "koriander", "garlic": "knoblauch", "olives": "oliven",
        "flight": "flug", "appointment": "termin", "dentist appointment": "zahnarzttermin",
        "doctor's appointment": "arzttermin", "hazelnuts": "haselnüsse", "shellfish": "meeresfrüchte", "bees": "bienen", "wasps": "wespen",
    }.items()
    for word in words.split()
}  # fmt: skip

_MY = r"(?:mein|meine|unser|unsere|unsre)"
_PETS = "Hund|Hündin|Welpe|Katze|Kater|Kaninchen|Hase|Hamster|Pferd|Vogel|Wellensittich"
_PEOPLE = (
    rf"(?P<n>{_PETS}|Frau|Ehefrau|Mann|Ehemann|Freundin|Freund|Sohn|Tochter|Bruder|Schwester"
    r"|Mutter|Mama|Vater|Papa|Chefin|Chef|Hausarzt|Hausärztin|Arzt|Ärztin|Tante|Onkel|Zahnarzt"
    r"|Zahnärztin|Partnerin|Partner|Vermieterin|Vermieter)"
)
_NOW = r"(?:(?:jetzt|derzeit|zur Zeit|aktuell|inzwischen) )?"
# Capitalised words after “in”, “bei” or “für” that are no place or employer.
_NO_PLACE = (
    r"(?!(?:Angst|Scheidung|Trennung|Frieden|Ruhe|Armut|Sünde|Saus|Untermiete|Panik|Furcht"
    r"|Gedanken|Erinnerungen|Partnerschaft|Beziehung|WG|Kartons|Hotels|Luxus|Not|Extremen"
    r"|Gefangenschaft|Regen|Nacht|Tag|Kerzenlicht|Hitze|Kälte|Licht|Wind|Schnee|Sonne|Musik|Bedarf"
    r"|Gelegenheit|Dunkelheit|Tageslicht|Geld|Freunde|Essen|Kunden|Zwei|Hause"
    r"|Umme)\b)(?!\w+(?:heit|keit|ung|schaft|tät|ismus|licht|wetter)\b)"
)
_AT = rf"(?:bei|für) (?:der |dem )?{_NO_PLACE}{PROPER}"
_AT_FIRM = (
    r"(?:bei|für) (?:der |dem )?(?P<v>(?:siemens|bosch|sap|bmw|vw|volkswagen|mercedes|daimler|audi"
    r"|porsche|telekom|bayer|basf|henkel|lufthansa|db|deutschen bahn|edeka|rewe|aldi|lidl|ikea"
    r"|amazon|google|microsoft|apple|roche|novartis|nestlé|migros|coop|swisscom|dhl|zeiss|trumpf"
    r"|continental|zf|schaeffler|infineon|allianz|commerzbank|sparkasse|zalando"
    r"|(?-i:[A-ZÄÖÜ]{2,6}))(?: (?:in )?(?-i:[A-ZÄÖÜ])[\w-]+)?)"
)
_ALLERGEN = (
    r"(?:nüsse|erdnüsse|haselnüsse|pollen|milch|katzen|hunde|eier|penicillin|gluten|hausstaub"
    r"|meeresfrüchte|bienen|wespen)"
)
_ALLERGENS = rf"(?P<v>{_ALLERGEN}(?:(?:,| und| oder) {_ALLERGEN}){{0,4}})"
_TASTY = (
    r"(?:(?!(?:es|das|dies\w*|den|die|der|dein\w*|ihr\w*|euer|eure|wie|wenn|dich|sie|ihn|mein\w*"
    r"|kein\w*|variante|version|option|idee|vorschlag|montage?"
    r"|überraschungen)\b)(?:[a-zäöüß]{3,12}en )?(?-i:[A-ZÄÖÜ])[a-zäöüß-]{2,20})"
)
_TREAT = (
    r"(?:(?:[a-zäöüß]{3,12}en )?(?:schokolade|kaffee|tee|katzen|hunde|pizza|käse|fisch|wandern"
    r"|schwimmen|lesen|musik|jazz|oliven|koriander|zwiebeln|pilze|rosenkohl|wein|bier|sushi"
    r"|spargel|kino|schach|fußball|tennis|radfahren|kochen|backen|gartenarbeit|pflanzen|knoblauch"
    r"|lakritz))"
)
_DIET = r"(?P<v>veganer(?:in)?|vegan|vegetarier(?:in)?|vegetarisch)"
_TOOL = (
    r"(?P<v>(?!(?:Das|Die|Den|Der|Ein)\b)(?-i:[A-Z])[\w.+#-]{2,30}(?: "
    r"(?-i:[A-Z0-9])[\w.+#-]*){0,2})"
)
_KIND = r"(?P<n>essen|gericht|farbe|film|buch|lied|song|band|getränk|tier|verein|mannschaft|stadt)"

RULES = (
    Rule(rf"ich (?:heiße|heisse) {NAME}|mein name ist {NAME}", "{P} name is {v}.", "name"),
    Rule(r"ich bin (?P<v>[1-9]\d) jahre alt", "{S} is {v} years old.", "age"),
    Rule((
        rf"mein geburtstag ist(?: am)? (?P<v>{WHEN})|ich habe? am (?P<v>{WHEN}) geburtstag|ich "
        rf"(?:bin|wurde) am (?P<v>{WHEN}) geboren"
        ), "{P} birthday is {v}.", "birthday"),
    Rule((
        rf"{_MY} (?P<n>{_PETS}) (?:heißt|heisst) {_NOW}{NAME}(?: jetzt)?"
        ), "{P} {n} is called {v}.", "{n} name", sole=True),
    Rule((
        rf"{_MY} (?:[a-zäöü]+er |[a-zäöü]+e )?{_PEOPLE} (?:heißt|heisst) {_NOW}{NAME}(?: jetzt)?"
        rf"|{_MY} {_PEOPLE},? {NAME} (?:heißt|heisst)|der name "
        rf"{_MY.replace('meine', 'meiner|meines|meine')} {_PEOPLE} ist {NAME}"
        ), "{P} {n} is called {v}.", "{n} name"),
    Rule((
        rf"{_MY} {_PEOPLE},? {NAME.replace('<v>', '<w>')},? (?:wohnt|lebt) {_NOW}in {TOWN}"
        ), "{P} {n} {w} lives in {v}.", "home", subject="{w}", kin=True),
    Rule((
        rf"{_MY} {_PEOPLE},? {NAME.replace('<v>', '<w>')},? arbeitet {_NOW}{_AT_FIRM}"
        ), "{P} {n} {w} works at {v}.", "employer", subject="{w}", kin=True),
    Rule(rf"{_MY} {_PEOPLE} (?:wohnt|lebt) {_NOW}in {TOWN}", "{P} {n} lives in {v}.", "{n} home"),
    Rule(rf"{_MY} {_PEOPLE} arbeitet {_NOW}{_AT_FIRM}", "{P} {n} works at {v}.", "{n} employer"),
    Rule((
        rf"(?:ich|wir) (?:wohne|lebe|wohnen|leben) {_NOW}in {TOWN}(?: jetzt)?|(?:ich|wir) "
        rf"{_NOW}in {TOWN} (?:wohne|lebe|wohnen|leben)"
        ), "{S} lives in {v}.", "home"),
    Rule((
        rf"(?:ich bin|wir sind) (?:kürzlich |gerade |jetzt )?(?:von [\w -]{{2,30}}? )?nach {TOWN} "
        r"(?:um)?gezogen"
        ), "{S} lives in {v}.", "home"),
    Rule((
        rf"(?:ich wohne|wir wohnen|ich lebe) nicht mehr in {PROPER}"
        ), "{S} no longer lives in {v}.", "no longer home"),
    Rule(rf"ich komme (?:ursprünglich )?aus {TOWN}", "{S} comes from {v}.", "origin"),
    Rule((
        rf"ich arbeite {_NOW}{_AT_FIRM}(?: als .{{2,40}})?|ich {_NOW}{_AT_FIRM} arbeite"
        ), "{S} works at {v}.", "employer"),
    Rule((
        rf"ich arbeite nicht mehr {_AT}|ich habe {_AT} (?:gekündigt|aufgehört)"
        ), "{S} no longer works at {v}.", "no longer employer"),
    Rule((
        rf"ich bin (?:nicht mehr|nicht länger|nicht) allergisch (?:gegen|auf) {_ALLERGENS}"
        ), "{S} is no longer allergic to {v}.", "no longer allergic to", lists=True),
    Rule((
        rf"ich bin (?:sehr |auch |stark )?allergisch (?:gegen|auf) {_ALLERGENS}|ich allergisch "
        rf"(?:gegen|auf) {_ALLERGENS} bin"
        ), "{S} is allergic to {v}.", "allergic to", lists=True),
    Rule((
        rf"ich bin (?:kein|keine|nicht mehr) {_DIET}(?: mehr)"
        ), "{S} is no longer {v}.", "no longer diet"),
    Rule(rf"ich bin (?:jetzt )?{_DIET}|ich {_DIET} bin", "{S} is {v}.", "diet"),
    Rule((
        r"ich esse kein(?:e|en)? (?P<v>fleisch|fisch|eier|nüsse)(?: mehr)?"
        ), "{S} does not eat {v}.", "does not eat", TASTE),
    Rule((
        r"ich trinke kein(?:e|en)? (?P<v>alkohol|kaffee|milch)(?: mehr)?"
        ), "{S} does not drink {v}.", "does not drink", TASTE),
    Rule((
        r"ich habe (?:mit dem rauchen aufgehört|aufgehört zu rauchen)|ich rauche nicht(?: mehr)?"
        ), "{S} does not smoke.", "does not smoke", value="cigarettes"),
    Rule((
        rf"ich (?:hasse|verabscheue) (?P<v>{_TREAT})|ich mag (?P<v>{_TREAT}) (?:gar |überhaupt "
        rf")?nicht|ich mag kein(?:e|en)? (?P<v>{_TREAT})"
        ), "{S} dislikes {v}.", "dislikes", TASTE),
    Rule((
        rf"ich (?:mag|liebe) (?:sehr |auch )?(?P<v>{_TREAT})(?: sehr| gern| gerne)?"
        ), "{S} likes {v}.", "likes", TASTE),
    Rule((
        rf"ich (?:trinke|esse|mag) lieber (?P<v>{_TREAT}) als (?P<w>{_TREAT})"
        ), "{S} prefers {v} over {w}.", "preference between {pair}", TASTE),
    Rule((
        rf"{_MY} lieblings-?{_KIND} ist (?P<v>(?!(?:das|der|die|ein|eine|immer|gerade|alle|da|hier"
        rf"|weg|aus|leer|fertig|kalt|kaputt|noch)\b)[\wäöüß'-]+(?: [\wäöüß'-]+){{0,2}})"
        ), "{P} favourite {n} is {v}.", "favourite {n}", TASTE),
    Rule((
        rf"ich (?:benutze|nutze|verwende) {_TOOL} nicht mehr|ich (?:benutze|nutze|verwende) kein "
        rf"{_TOOL} mehr"
        ), "{S} no longer uses {v}.", "no longer uses", TASTE),
    Rule((
        r"(?:bitte )?antworte (?:mir )?(?:bitte )?(?:ab jetzt |immer |in zukunft )+(?P<v>(?:auf|in"
        r"|mit|ohne) [^;:!?]{3,60})"
        ), "Always answer {v}.", "instruction", Category.INSTRUCTION, value="always answer {v}", loose=True),
    Rule((
        r"mein (?P<n>flug|termin|zahnarzttermin|arzttermin)(?P<w> (?:nach|beim|bei|mit) [\w "
        rf"-]{{2,30}}?)? ist (?:am |um )?(?P<v>{WHEN})"
        ), "{P} {n}{w} is on {v}.", "{n}{w}"),
)  # fmt: skip

# Further rules for texts that are meant as facts, as in English.
TOLD = (
    Rule((
        rf"(?:ich|wir) (?:wohne|lebe|wohnen|leben) {_NOW}in (?:{TOWN}|{_NO_PLACE}{PROPER})(?: "
        rf"jetzt)?|(?:ich|wir) {_NOW}in {TOWN} (?:wohne|lebe|wohnen|leben)"
        ), "{S} lives in {v}.", "home"),
    Rule((
        rf"{_MY} {_PEOPLE},? {NAME.replace('<v>', '<w>')},? (?:wohnt|lebt) {_NOW}in "
        rf"{_NO_PLACE}{PROPER}"
        ), "{P} {n} {w} lives in {v}.", "home", subject="{w}", kin=True),
    Rule((
        rf"{_MY} {_PEOPLE} (?:wohnt|lebt) {_NOW}in {_NO_PLACE}{PROPER}"
        ), "{P} {n} lives in {v}.", "{n} home"),
    Rule((
        rf"{_MY} {_PEOPLE},? {NAME.replace('<v>', '<w>')},? arbeitet {_NOW}{_AT}"
        ), "{P} {n} {w} works at {v}.", "employer", subject="{w}", kin=True),
    Rule(rf"{_MY} {_PEOPLE} arbeitet {_NOW}{_AT}", "{P} {n} works at {v}.", "{n} employer"),
    Rule((
        rf"ich arbeite {_NOW}{_AT}(?: als .{{2,40}})?|ich {_NOW}{_AT} arbeite"
        ), "{S} works at {v}.", "employer"),
    Rule((
        rf"ich (?:mag|liebe) (?:sehr |auch )?(?P<v>{_TASTY})(?: sehr| gern| gerne)?"
        ), "{S} likes {v}.", "likes", TASTE),
    Rule((
        rf"ich (?:hasse|verabscheue) (?P<v>{_TASTY})|ich mag (?P<v>{_TASTY}) (?:gar |überhaupt "
        rf")?nicht|ich mag kein(?:e|en)? (?P<v>{_TASTY})"
        ), "{S} dislikes {v}.", "dislikes", TASTE),
    Rule((
        rf"ich (?:trinke|esse|mag) lieber (?P<v>{_TASTY}) als (?P<w>{_TASTY})"
        ), "{S} prefers {v} over {w}.", "preference between {pair}", TASTE),
    Rule((
        rf"ich (?:benutze|nutze|verwende) {_TOOL}(?P<rest> (?:für|als) (?!das\b|dies"
        rf"|jetzt)[^,;:!?]{{2,40}})?"
        ), "{S} uses {v}{rest}.", "uses", TASTE),
)  # fmt: skip
