"""What the user likes, dislikes, prefers, eats and must not eat."""

from __future__ import annotations

from agentd.domain.fact import Category
from agentd.statements.rules.rule import I_AM, I_HAVE, LIST, MY, PHRASE, rule

_HOW = r"(?:(?:really|absolutely|also|quite|generally|usually|particularly|especially|still|just|always|strongly|do|much|very much) ){0,2}"
_DIET = r"(?:vegan|vegetarian|pescatarian|flexitarian)"
_TRAIT = r"(?:lactose[- ]intolerant|gluten[- ]intolerant|coeliac|celiac|halal|kosher)"
_QUIT = r"i(?:'ve| have)? (?:just |finally )?(?:stopped|quit|gave up|given up)"
_SINCE = r"(?: in \d{4}| last \w+)?"
_BEGAN = r"i(?:'ve| have)? (?:just |now )?(?:started|begun|began|gone back to|went back to|resumed)"
_FOOD = r"(?:(?:red |raw )?meat|fish|pork|beef|chicken|seafood|shellfish|dairy|gluten|sugar|eggs|cheese|nuts|peanuts|bread|animal products|mushrooms|onions|garlic|spicy food|fast food)"
_DRINK = r"(?:alcohol|coffee|beer|wine|milk|soda|caffeine|tea|energy drinks)"
_ENOUGH = r"(?: (?:any ?more|any longer|either|at all|very much|much|so much|a lot|as well|too))?"
_NOT = r"(?:don't|do not|dont)"
_SHORT_LIST = LIST.replace("{0,78}", "{0,78}?")  # what tells how much stays out of it
TASTE = Category.PREFERENCE

RULES = (
    rule(rf"i {_HOW}prefer {PHRASE} (?:over|to|rather than|instead of) (?P<w>[^,;:!?]{{1,60}})", "{S} prefers {v} over {w}.", "preference between {pair}", TASTE),
    rule(rf"i {_HOW}like {PHRASE} (?:better|more) than (?P<w>[^,;:!?]{{1,60}})", "{S} prefers {v} over {w}.", "preference between {pair}", TASTE),
    rule(rf"i {_HOW}prefer {PHRASE}", "{S} prefers {v}.", "prefers", TASTE),
    rule(rf"{MY} (?:all-time |absolute |new )?favou?rite (?P<n>[\w' -]{{2,40}}?) (?:is|are|was always|has always been|is now)(?: (?:called|named)(?= (?-i:[A-Z0-9])))? {PHRASE}", "{P} favourite {n} is {v}.", "favourite {n}", TASTE),
    rule(rf"{PHRASE} (?:is|are) my (?:all-time |absolute )?favou?rite (?P<n>(?!of\b|one\b|thing\b)[\w' -]{{2,40}})", "{P} favourite {n} is {v}.", "favourite {n}", TASTE),
    rule(rf"i {_HOW}(?:hate|dislike|detest|loathe|can't stand|cannot stand|cant stand) {LIST}", "{S} dislikes {v}.", "dislikes", TASTE),
    rule(rf"i {_NOT} (?:really |particularly )?(?:like|enjoy|care for) {_SHORT_LIST}{_ENOUGH}", "{S} does not like {v}.", "dislikes", TASTE),
    rule(rf"i no longer (?:like|enjoy|love) {LIST}", "{S} no longer likes {v}.", "dislikes", TASTE),
    rule(rf"i {_HOW}(?:like|love|enjoy|adore) {_SHORT_LIST}(?: (?:very much|a lot|so much|as ever))?", "{S} likes {v}.", "likes", TASTE),
    rule(rf"{I_AM} (?:a )?(?:big |huge |great |massive |really )?(?:fan of|fond of|(?:really )?into) {LIST}", "{S} likes {v}.", "likes", TASTE),
    rule(rf"i(?: am|'m|m)? ?(?:not allergic|no longer allergic|not allergic anymore) to {LIST}(?: any ?more| any longer)?", "{S} is no longer allergic to {v}.", "no longer allergic to", lists=True),
    rule(rf"{I_AM} (?:(?:very|severely|highly|slightly|mildly|also|badly|deathly|really) ){{0,2}}allergic to {LIST}", "{S} is allergic to {v}.", "allergic to", lists=True),
    rule(rf"{I_HAVE} (?:a|an) (?:severe |bad |mild |slight |strong )?(?P<v>[a-z]+(?: [a-z]+)?) allergy", "{S} is allergic to {v}.", "allergic to"),
    rule(rf"{I_HAVE} (?:a |an )?(?:severe |bad |mild |slight )?(?:allergy|allergies) to {LIST}", "{S} is allergic to {v}.", "allergic to", lists=True),
    rule(rf"{I_AM} (?P<v>[a-z]+)[- ]intolerant", "{S} is {v}-intolerant.", "intolerant of"),
    rule(rf"{I_AM} (?:no longer|not) (?:a |an )?(?P<v>{_DIET})(?: any ?more)?", "{S} is no longer {v}.", "not diet"),
    rule(rf"{_QUIT} being (?:a |an )?(?P<v>{_DIET}){_SINCE}", "{S} is no longer {v}.", "not diet"),
    rule(rf"{I_AM} (?:no longer|not) (?:a |an )?(?P<v>{_TRAIT}|teetotal|teetotall?er)(?: any ?more)?", "{S} is no longer {v}.", "no longer is"),
    rule(rf"{I_AM} (?:now )?(?:a |an )?(?:strict |lifelong )?(?P<v>{_DIET})(?: now)?", "{S} is {v}.", "diet"),
    rule(rf"{I_AM} (?:now )?(?:a |an )?(?P<v>{_TRAIT})(?: now)?", "{S} is {v}.", "is"),
    rule(rf"{I_AM} (?:now )?(?:a )?(?P<v>teetotal|teetotall?er)(?: now)?", "{S} is {v}.", "not drinks", value="alcohol"),
    rule(rf"{I_AM} (?:now )?(?:a )?(?P<v>non-smoker)(?: now)?", "{S} is a non-smoker.", "not smokes", value="cigarettes"),
    rule(rf"{I_AM} (?:no longer|not) a (?P<v>smoker)(?: any ?more)?", "{S} is no longer a smoker.", "not smokes", value="cigarettes"),
    rule(rf"{I_AM} (?:now )?(?:a )?(?P<v>smoker)(?: again| now)?", "{S} is a smoker.", "smokes", value="cigarettes"),
    rule(r"i (?:have |'ve )?(?:became|become|turned|went) (?P<v>vegan|vegetarian|pescatarian)(?: last \w+| in \w+| recently)?", "{S} is {v}.", "diet"),
    rule(rf"i (?:{_NOT}|never|no longer) eat (?:any )?(?P<v>{_FOOD}(?:(?:,| or| and) {_FOOD})*){_ENOUGH}", "{S} does not eat {v}.", "not eats", TASTE),
    rule(rf"i (?:{_NOT}|never|no longer) drink (?:any )?(?P<v>{_DRINK}(?:(?:,| or| and) {_DRINK})*){_ENOUGH}", "{S} does not drink {v}.", "not drinks", TASTE),
    rule(rf"i (?:{_NOT}|never|no longer) (?P<v>smoke){_ENOUGH}", "{S} does not smoke.", "not smokes", value="cigarettes"),
    rule(rf"{_QUIT} (?P<v>smoking|cigarettes){_SINCE}", "{S} has given up {v}.", "not smokes", value="cigarettes"),
    rule(rf"{_QUIT} (?P<v>drinking){_SINCE}", "{S} has given up {v}.", "not drinks", value="alcohol"),
    rule(rf"{_QUIT} (?:drinking )?(?P<v>alcohol|coffee|caffeine|beer|wine|soda|energy drinks){_SINCE}", "{S} has given up {v}.", "not drinks"),
    rule(rf"{_QUIT} eating (?P<v>{_FOOD}){_SINCE}", "{S} has given up eating {v}.", "not eats"),
    rule(rf"{_QUIT} (?P<v>vaping|sugar|gambling){_SINCE}", "{S} has given up {v}.", "given up"),
    rule(rf"(?:i (?:now |do |also )?eat|{I_AM} (?:now )?eating|{_BEGAN} (?:to eat|eating)) (?P<v>{_FOOD}(?:(?:,| or| and) {_FOOD})*) again", "{S} eats {v}.", "eats", TASTE, lists=True),
    rule(rf"(?:i (?:now |do |also )?eat|{_BEGAN} (?:to eat|eating)) (?P<v>(?:red )?meat|fish|seafood|dairy|animal products)", "{S} eats {v}.", "eats", TASTE),
    rule(rf"(?:i (?:now |do |also )?drink|{I_AM} (?:now )?drinking|{_BEGAN} (?:to drink|drinking)) (?P<v>{_DRINK}(?:(?:,| or| and) {_DRINK})*) again", "{S} drinks {v}.", "drinks", TASTE, lists=True),
    rule(rf"i (?:now )?(?P<v>smoke)(?: again)?|{_BEGAN} (?:to )?(?P<v>smoke|smoking)(?: again)?", "{S} smokes.", "smokes", value="cigarettes"),
    rule(r"i (?:usually |always |normally )?(?:take|drink) my coffee (?P<v>[a-z][\w ,]{2,40})", "{S} takes their coffee {v}.", "coffee", TASTE),
)  # fmt: skip
