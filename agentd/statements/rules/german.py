"""The commonest things people say about themselves in German; what is stated is told in English."""

from __future__ import annotations

from collections.abc import Iterator

from agentd.domain.fact import Category
from agentd.statements.calendar import WHEN
from agentd.statements.rules.rule import LIST, NAME, NAMED, PHRASE, PROPER, Rule, rule
from agentd.statements.rules.taste import TASTE

_MY = r"(?:mein|meine|unser|unsere|unsre)"
_CAPITAL = r"(?P<v>(?!(?:ist|war|hat|und|oder|das|der|die|wird|kann|will|hatte)\b)(?-i:[A-ZÄÖÜ])[\w'-]+(?: (?-i:[A-ZÄÖÜ])[\w'.-]+){0,3})"
_KIN = {
    "dog": "Hund|Hündin|Welpe", "cat": "Katze|Kater", "rabbit": "Kaninchen|Hase",
    "hamster": "Hamster", "horse": "Pferd", "bird": "Vogel|Wellensittich", "wife": "Frau|Ehefrau",
    "husband": "Mann|Ehemann", "girlfriend": "Freundin", "boyfriend": "Freund", "son": "Sohn",
    "daughter": "Tochter", "brother": "Bruder", "sister": "Schwester", "mother": "Mutter|Mama",
    "father": "Vater|Papa", "boss": "Chef|Chefin", "doctor": "Hausarzt|Hausärztin|Arzt|Ärztin",
    "dentist": "Zahnarzt|Zahnärztin", "partner": "Partner|Partnerin",
}  # fmt: skip
_ANIMALS = ("dog", "cat", "rabbit", "hamster", "horse", "bird")
_NOW = r"(?:jetzt |derzeit |zur zeit |aktuell )?"
_FAVOURITES = {
    "food": "essen|gericht", "colour": "farbe", "film": "film", "book": "buch", "song": "lied|song",
    "band": "band", "drink": "getränk", "animal": "tier", "team": "verein|mannschaft",
    "city": "stadt", "tea": "tee", "language": "sprache", "game": "spiel",
}  # fmt: skip
_SOFT = r"(?:(?:sehr|wirklich|gern|gerne|besonders|am liebsten|auch|total|ja) ){0,2}"
_PLACE = rf"(?:{PROPER}|(?P<v>(?!(?:der|die|das|den|dem|einem|einer|diesem|meinem|angst|frieden)\b)[a-zäöüß-]{{3,20}}))"


def _kin(kind: str, words: str) -> Rule:
    pattern = rf"{_MY} (?:{words}) (?:heißt|heisst) (?:jetzt )?{NAME}|{_MY} (?:{words}),? {_CAPITAL}(?:,? [^\d?!]{{0,80}})?"
    return rule(pattern, f"{{P}} {kind} is called {{v}}.", f"{kind} name")


def _of_kin(kind: str, words: str) -> Iterator[Rule]:
    """Where a relative lives and works, with the name or without."""
    who = rf"{_MY} (?:{words})"
    by_name = rf"{who},? {_CAPITAL.replace('<v>', '<w>')},?"
    lives, works = (
        rf"(?:wohnt|lebt) {_NOW}in {_PLACE}",
        rf"arbeitet {_NOW}(?:bei|für) (?:der |dem )?{PROPER}",
    )
    told = f"{{P}} {kind}"
    yield rule(f"{by_name} {lives}", f"{told} {{w}} lives in {{v}}.", "home", subject=kind + NAMED)
    yield rule(
        f"{by_name} {works}", f"{told} {{w}} works at {{v}}.", "employer", subject=kind + NAMED
    )
    yield rule(f"{who} {lives}", f"{told} lives in {{v}}.", f"{kind} home")
    yield rule(f"{who} {works}", f"{told} works at {{v}}.", f"{kind} employer")


def _favourite(kind: str, words: str) -> Rule:
    pattern = rf"{_MY} lieblings-?(?:{words}) ist {PHRASE}"
    return rule(pattern, f"{{P}} favourite {kind} is {{v}}.", f"favourite {kind}", TASTE)


RULES = (
    *(r for kind, words in _KIN.items() if kind not in _ANIMALS for r in _of_kin(kind, words)),
    *(_kin(kind, words) for kind, words in _KIN.items()),
    *(_favourite(kind, words) for kind, words in _FAVOURITES.items()),
    rule(rf"ich (?:heiße|heisse) {NAME}|mein name ist {NAME}", "{P} name is {v}.", "name"),
    rule(r"ich bin (?P<v>\d{1,3}) jahre alt", "{S} is {v} years old.", "age"),
    rule(rf"mein geburtstag ist(?: am)? (?P<v>{WHEN})|ich habe? am (?P<v>{WHEN}) geburtstag|ich (?:bin|wurde) am (?P<v>{WHEN}) geboren", "{P} birthday is {v}.", "birthday"),
    rule(rf"(?:ich|wir) (?:wohne|lebe|wohnen|leben) (?:jetzt |derzeit |zur zeit |aktuell )?in {_PLACE}", "{S} lives in {v}.", "home"),
    rule(rf"(?:ich bin|wir sind) (?:kürzlich |gerade |jetzt )?(?:von (?P<w>[\w -]{{2,30}}?) )?nach {PROPER} (?:um)?gezogen", "{S} moved to {v}.", "home"),
    rule(rf"ich komme (?:ursprünglich )?aus {PROPER}", "{S} comes from {v}.", "origin"),
    rule(rf"ich arbeite (?:jetzt |derzeit )?(?:bei|für) (?:der |dem )?{PROPER}(?: als .{{2,40}})?", "{S} works at {v}.", "employer"),
    rule(rf"ich arbeite nicht mehr (?:bei|für) (?:der |dem )?{PROPER}", "{S} no longer works at {v}.", "no longer works at"),
    rule(r"ich arbeite als (?P<v>(?-i:[A-ZÄÖÜ])[\w -]{2,40})", "{S} works as {v}.", "job"),
    rule(rf"ich bin (?:nicht mehr|nicht länger|nicht) allergisch (?:gegen|auf) {LIST}", "{S} is no longer allergic to {v}.", "no longer allergic to", lists=True),
    rule(rf"ich bin {_SOFT}allergisch (?:gegen|auf) {LIST}|ich habe eine (?P<v>[\w-]+?)-?allergie", "{S} is allergic to {v}.", "allergic to", lists=True),
    rule(r"ich bin (?:jetzt )?(?:ein |eine )?(?:veganer(?:in)?|vegan)", "{S} is vegan.", "diet", value="vegan"),
    rule(r"ich bin (?:jetzt )?(?:ein |eine )?(?:vegetarier(?:in)?|vegetarisch)", "{S} is vegetarian.", "diet", value="vegetarian"),
    rule(rf"ich (?:hasse|verabscheue) {LIST}|ich mag (?P<v>[^\s;:!?][^;:!?]{{0,60}}?) (?:gar |überhaupt )?nicht(?: so)?(?: gern| gerne)?|ich mag (?:gar |überhaupt )?kein(?:e|en)? (?P<v>[^\s;:!?][^;:!?]{{0,60}})", "{S} dislikes {v}.", "dislikes", TASTE),
    rule(rf"ich (?:mag|liebe) {_SOFT}{LIST}", "{S} likes {v}.", "likes", TASTE),
    rule(r"ich (?:trinke|esse|nehme|nutze|benutze) lieber (?P<v>[\w -]{2,40}) als (?P<w>[\w -]{2,40})|ich (?:bevorzuge|mag) (?P<v>[\w -]{2,40}) (?:gegenüber|lieber als|mehr als) (?P<w>[\w -]{2,40})", "{S} prefers {v} over {w}.", "preference between {pair}", TASTE),
    rule(rf"ich bevorzuge {PHRASE}", "{S} prefers {v}.", "prefers", TASTE),
    rule(r"ich (?:benutze|nutze|verwende) (?P<v>(?!es|das|die|den|der|ein|eine|einen|mein|meine|meinen|dich|dieses|keine?n?\b)[\w.+#-]{2,30}(?: (?-i:[A-Z0-9])[\w.+#-]*){0,2})(?P<rest> (?:für|als|zum) [^,;:!?]{2,40})?", "{S} uses {v}{rest}.", "uses", TASTE),
    rule(r"ich (?:benutze|nutze|verwende) (?P<v>[\w.+#-]{2,30}) nicht mehr|ich (?:benutze|nutze|verwende) kein (?P<v>[\w.+#-]{2,30}) mehr", "{S} no longer uses {v}.", "no longer uses", TASTE),
    rule(r"(?:ich bin|wir sind) von (?P<w>[\w.+#-]{2,30}) (?:zu|auf) (?P<v>[\w.+#-]{2,30}) (?:gewechselt|umgestiegen)", "{S} switched from {w} to {v}.", "uses", TASTE, denied="no longer uses"),
    rule(r"wir haben (?:entschieden|beschlossen),? (?P<v>(?!das\b|es\b)[^;:!?]{8,100})", "{S} decided: {v}.", "decided", Category.DECISION, strict=False),
    rule(r"(?:bitte )?antworte (?:mir )?(?:bitte )?(?:ab jetzt |immer |in zukunft )+(?P<v>(?:auf|in|mit|ohne) [^;:!?]{3,60})", "Always answer {v}.", "instruction", Category.INSTRUCTION, value="always answer {v}"),
    rule(rf"mein (?:flug|termin)(?P<n> (?:nach|beim|bei|mit) [\w -]{{2,30}}?)? ist (?:am |um )?(?P<v>{WHEN})", "{P} appointment{n} is on {v}.", "appointment{n}"),
    rule(r"meine (?:handynummer|telefonnummer|nummer) ist (?P<v>\+?\d[\d ()/.-]{4,20}\d)", "{P} phone number is {v}.", "phone number"),
)  # fmt: skip
