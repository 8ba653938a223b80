"""A rule for one form of sentence in the first person, and patterns that rules share."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from msgspec import Struct

from agentd.core.fact import Category
from agentd.providers.offline.language.calendar import MONTHS, WEEKDAYS

MY = r"(?:my|our)"
I_AM = r"(?:i am|i'm|im|we are|we're)"
I_HAVE = r"(?:i have|i've got|i have got|we have|we've got)"
_NAMED_TIMES = "christmas|easter|weihnachten|ostern|winter|today|tomorrow|heute|morgen"
_TIMES = "|".join((*MONTHS, *WEEKDAYS, _NAMED_TIMES))
NO_TIME = rf"(?!(?:{_TIMES})s?\b)"
# Capitalised words in the place of a name that are no names.
_NO_NAME = (
    rf"{NO_TIME}(?!(?:this|that|here|there|it|i|just|not|the|a|an|and|or|is|was|mine|work|life"
    r"|batman|superman|god|karma|legion|nobody|programm|myself|home|full|dead|broken|slow|offline"
    r"|gone|closed"
    r"|das|der|die|ist|hat|hase)\b)"
)
# Things that people live in, or are married to, in jest.
NO_HOME = (
    r"(?!(?:google|netflix|excel|word|outlook|teams|slack|zoom|emacs|vim|linux|bed|work|hell"
    r"|narnia|mordor"
    r"|mars|venus|atlantis|neverland|wonderland|hogwarts|erebor|krypton)\b)"
)
_CAP = r"(?-i:[A-ZÀ-Þ])[\w'&+#-]*"
# A name: one to four capitalised words. The group is `v`.
NAME = rf"(?P<v>(?:(?-i:Dr|Prof|Mr|Mrs|Ms|Frau|Herr)\.? )?{_NO_NAME}{_CAP}(?: {_CAP}){{0,3}})"
# A name of a place, firm or thing, which may contain words like “of” and “the”.
PROPER = (
    rf"(?P<v>{_NO_NAME}(?-i:[A-ZÀ-Þ0-9])[\w'.&+#/-]*"
    r"(?: (?!24/7)(?:(?-i:[A-ZÀ-Þ0-9])[\w'.&+#/-]*|of|the|and|am|im|an der|de|la|upon)){0,4})"
)
# Places. People also live in, move to and come from other things, so only known places count.
TOWN = (
    r"(?P<v>(?i:(?:(?:new|bad|san|santa|los|las|st\.?|saint|den|the|buenos|rio de|tel|hong|kuala"
    r"|cape|abu|salt lake|frankfurt am|freiburg im) )?"
    r"(?:aachen|aarhus|amsterdam|antwerp|athens|augsburg|austin|australia|austria|bali|bamberg"
    r"|barcelona|basel"
    r"|beijing|belgium|berlin|bern|bielefeld|bilbao|birmingham|bochum|bologna|bonn|bordeaux|boston"
    r"|braunschweig"
    r"|bremen|brighton|bristol|brno|brussels|bucharest|budapest|cairo|cambridge|canada|cardiff"
    r"|chemnitz|chicago"
    r"|cologne|copenhagen|cork|dallas|darmstadt|delhi|denmark|denver|detroit|dortmund|dresden"
    r"|dubai|dublin"
    r"|duisburg|düsseldorf|edinburgh|eindhoven|england|erfurt|erlangen|essen|finland|florence"
    r"|france|frankfurt|freiburg|fulda"
    r"|galway|geneva|genf|germany|ghent|gießen|glasgow|gothenburg|göttingen|granada|graz|greece"
    r"|groningen|hague|haifa|halle"
    r"|hamburg|hannover|hanover|heidelberg|helsinki|houston|hungary|india|ingolstadt|innsbruck"
    r"|ireland|istanbul|italy"
    r"|japan|jena|jerusalem|karlsruhe|kassel|kiel|koblenz|konstanz|krakow|köln|lausanne|leeds"
    r"|leiden|leipzig"
    r"|lille|lima|linz|lisbon|lisboa|liverpool|ljubljana|london|lucerne|lund|luzern|lyon|lübeck"
    r"|madrid|magdeburg|mainz|malmö"
    r"|manchester|mannheim|marburg|marseille|melbourne|mexico|mexico city|miami|milan|montpellier"
    r"|montreal|munich|münchen|münster"
    r"|nairobi|nantes|naples|netherlands|nice|norway|nuremberg|nürnberg|oldenburg|osaka|oslo"
    r"|osnabrück|ottawa|oxford|paderborn"
    r"|palermo|paris|perth|philadelphia|poland|porto|portland|portugal|potsdam|poznan|prague"
    r"|regensburg|riga|rome|rostock"
    r"|rotterdam|saarbrücken|salzburg|scotland|seattle|seoul|seville|sheffield|singapore|sofia"
    r"|spain|stockholm"
    r"|strasbourg|stuttgart|sweden|switzerland|sydney|taipei|tallinn|thessaloniki|tokyo|toronto"
    r"|trier|trieste|tübingen|turin"
    r"|ulm|uppsala|utrecht|valencia|vancouver|venice|verona|vienna|vilnius|wales|warsaw|weimar"
    r"|wien|wiesbaden|winterthur"
    r"|wolfsburg|wrocław|wuppertal|würzburg|york|york city|zagreb|zürich|zurich|homburg|jose|diego"
    r"|francisco|angeles|vegas|aires|janeiro"
    r"|aviv|kong|lumpur|town|dhabi|lake city|main|breisgau|louis|gallen)"
    r"|(?-i:[A-ZÄÖÜ][a-zäöüß]{2,12}(?:burg|berg|heim|stadt|dorf|hausen|furt|kirchen|haven|bruck"
    r"|brück|weiler|ingen|münde|stedt)))"
    r"(?:, (?-i:[A-Z])[\w'-]+)?)"
)
TASTE = Category.PREFERENCE

_GROUP = re.compile(r"\(\?P<([a-z]+)>")


class Rule(Struct, frozen=True):
    """A pattern for a clause, and the claim that a match makes.

    `pattern` must match a whole clause, in any case. `told`, `relation`, `value` and `subject` are
    format strings over its named groups, with `{S}` for “The user” and `{P}` for “The user's”. With
    `lists` each member of a list in `v` makes a claim. With `kin`, the name `w` of the person makes
    a claim, too. `past` is the relation of a second claim, about the former value `w`.
    """

    pattern: str
    told: str
    relation: str
    category: Category = Category.PERSONAL
    value: str = "{v}"
    lists: bool = False
    subject: str = "user"
    kin: bool = False
    past: str = ""
    loose: bool = False  # the value may be any words
    passing: bool = False  # the clause says more than the claim
    sole: bool = False  # the user has only one of the kind, so a new name replaces the old

    def match(self, clause: str) -> re.Match[str] | None:
        """Match the whole clause; None if it has another form."""
        return _compile(self.pattern).fullmatch(clause)


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile the pattern at its first use. A group that occurs in several alternatives gets a
    number from the second on (`v2`).
    """
    seen: Counter[str] = Counter()
    return re.compile(
        _GROUP.sub(lambda match: _numbered_group(match[1], seen), pattern), re.IGNORECASE
    )


def _numbered_group(name: str, seen: Counter[str]) -> str:
    seen[name] += 1
    return f"(?P<{name}{seen[name] if seen[name] > 1 else ''}>"
