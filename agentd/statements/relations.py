"""Relations between a subject and its values: which hold one value at a time, which deny another."""

from __future__ import annotations

import re

from agentd.domain.fact import Triple
from agentd.statements.normal import normalised

_ALIASES = {
    other: name
    for name, others in {
        "home": "lives in|residence|location|city|home city|lives at|home town|hometown now",
        "employer": "works at|works for|company|workplace|employed by",
        "job": "occupation|profession|works as|job title|role",
        "likes": "loves|enjoys|is a fan of|like|love",
        "dislikes": "hates|does not like|doesn't like|can't stand|dislike|hate",
        "allergic to": "allergy|allergies|has allergy|has allergy to|is allergic to",
        "uses": "use|uses tool|is using",
        "works on": "project|working on",
        "birthday": "date of birth|born on|birth date|birthdate",
        "name": "is called|is named|full name|called",
    }.items()
    for other in others.split("|")
}
_OPPOSITES = {"dislikes": "likes", "stopped using": "uses", "stopped": "does"}
_DENIALS = re.compile(r"(?:is )?(?:no longer|not|never|does not|doesn't|isn't) ")
_SINGLE = re.compile(
    r"name|age|height|weight|birthday|birth year|birthplace|home|address|origin|timezone"
    r"|nationality|citizenship|religion|pronouns|native language|mother tongue|first language"
    r"|blood type|star sign|zodiac sign|employer|job|diet|partner|wife|husband|girlfriend"
    r"|boyfriend|boss|manager|phone|email|licence plate|wifi|deadline|due date|release date"
    r"|launch date|launch|release|demo|sprint review|port|host|hostname|url|domain|ip|version|status"
    r"|budget|rent|salary|branch|database|car|bike|laptop|computer|pc|smartphone|tablet|camera|printer"
    r"|router|editor|ide|shell|terminal|browser|operating system|os|distro|bank"
    r"|health insurance|search engine|password manager|desktop environment|window manager"
    r"|coffee|wedding|anniversary|away|moving to|gym|dentist|doctor"
)
# Nobody has only one of these for certain.
_MANY = re.compile(
    r"(?:son|daughter|child|kid|brother|sister|cousin|uncle|aunt|nephew|niece|friend|colleague|neighbour"
    r"|neighbor|grandmother|grandfather|roommate|flatmate|coworker|co-worker)s? (?:name|age|birthday|home|job|employer)"
)
_SINGLE_SHAPE = re.compile(
    r"favourite .+|preference between .+|place of .+|(?:number|kind) of .+|flight to .+|the .+"
    r"|.+ (?:name|deadline|port|host|version|status|date|number|address|birthday|colour|age|phone|email"
    r"|plate|model|time|size|home|employer|job)"
    r"|(?:.+ )?(?:appointment|meeting|interview|exam|surgery|operation|checkup|check-up|reservation|flight"
    r"|conference|presentation|concert|graduation|trip|vacation|holiday|test|review|wedding)"
    r"(?: (?:with|to|at|in|for) .+)?"
)
_MEAT = ("meat", "red meat", "raw meat", "pork", "beef", "chicken")
_FISH = ("fish", "seafood", "shellfish")
# What those who keep to a diet do not eat.
_LEFT_OUT = {
    "pescatarian": frozenset(_MEAT),
    "vegetarian": frozenset((*_MEAT, *_FISH)),
    "vegan": frozenset((*_MEAT, *_FISH, "dairy", "eggs", "cheese", "animal products")),
}
_EXCLUDING = ("diet", "eats")
_LONGEST = 120  # characters: a relation is a few words


def canonical(relation: str) -> tuple[str, bool]:
    """The relation by its one name, and whether it denies its value: `dislikes` is `likes`, denied."""
    name = normalised(relation).replace("_", " ").replace("favorite", "favourite")
    name = name.replace("'s name", " name")
    name = _ALIASES.get(name, name)
    if name in _OPPOSITES:
        return _OPPOSITES[name], True
    bare = _DENIALS.sub("", name, count=1) if _DENIALS.match(name) else name
    return _ALIASES.get(bare, bare), bare != name


def is_functional(relation: str) -> bool:
    """Whether a subject has one value of it at a time, so that a new one replaces the old."""
    name, _ = canonical(relation)
    if len(name) > _LONGEST or _MANY.fullmatch(name):
        return False
    return _SINGLE.fullmatch(name) is not None or _SINGLE_SHAPE.fullmatch(name) is not None


def excludes(one: Triple, other: Triple) -> bool:
    """Whether one is a diet and the other food that it leaves out: nobody has both at a time."""
    if normalised(one.subject) != normalised(other.subject):
        return False
    told = {canonical(t.relation): normalised(t.value) for t in (one, other)}
    food, diet = told.get(("eats", False)), told.get(("diet", False))
    return food is not None and diet is not None and food in _LEFT_OUT.get(diet, ())


def slot(triple: Triple) -> str:
    """What facts that may replace each other have in common: subject and relation, normalised."""
    return f"{normalised(triple.subject)}|{canonical(triple.relation)[0]}"


def slots(triple: Triple) -> tuple[str, ...]:
    """The slots of all facts that the triple may replace."""
    subject, _, relation = slot(triple).rpartition("|")
    each = _EXCLUDING if relation in _EXCLUDING else (relation,)
    return tuple(f"{subject}|{one}" for one in each)
