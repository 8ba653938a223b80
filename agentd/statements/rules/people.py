"""Who the user is, and who belongs to him: names, ages, family, pets, languages."""

from __future__ import annotations

from agentd.statements.calendar import WHEN
from agentd.statements.definite import SEVERAL
from agentd.statements.rules.rule import I_AM, I_HAVE, LIST, MY, NAME, NAMED, PHRASE, PROPER, rule

_PET = r"(?P<n>(?:guinea pig|dog|cat|puppy|kitten|hamster|rabbit|parrot|horse|pony|bird|goldfish|turtle|tortoise|ferret|snake|budgie|canary))"
_ONE = r"(?P<n>(?:ex-)?(?:wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|mother|father|mom|mum|dad|boss|manager|landlord|landlady|best friend|mother-in-law|father-in-law|doctor|dentist|therapist|lawyer|accountant|coach|son|daughter|baby|brother|sister|cousin|uncle|aunt|nephew|niece|grandmother|grandfather|grandma|grandpa|roommate|flatmate|neighbou?r|colleague|co-worker|coworker|assistant|tax advisor|vet|friend))"
_KIDS = (
    r"(?P<n>kids|children|sons|daughters|brothers|sisters|siblings|dogs|cats|rabbits|horses|pets)"
)
_COUNT = r"(?P<c>two|three|four|five|six|seven|\d)"
_CAPITAL = r"(?P<v>(?!(?:just|food|is|was|ist|war|hat|has|ate|and|or|the|googled|finally|always|never|walker|house|park|toy|will|can|also)\b)(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'.-]+){0,3})"
_ADJ = r"(?:[a-z-]+ ){0,3}?"
_CALLED = r"(?: (?:is|are) (?:called|named)|'s (?:called|named)|'?s name is|'s name's| name is)"
_NOT_NAMES = r"(?!(?:not|on|in|too|the|a|an|so|very|my|your|at|hard|spelled|written|with|pronounced|irrelevant|important)\b)"
_LANGUAGE = r"(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian|Turkish|Arabic|Hebrew|Hindi|Urdu|Bengali|Tamil|Mandarin|Chinese|Cantonese|Japanese|Korean|Vietnamese|Thai|Greek|Swedish|Norwegian|Danish|Finnish|Czech|Hungarian|Romanian|Farsi|Persian|Swahili|Latin|Esperanto|Catalan|Bulgarian|Croatian|Serbian)"
_JOB = r"(?:[a-zA-Z-]+ ){0,3}?(?:engineer|developer|programmer|designer|teacher|nurse|doctor|physician|surgeon|dentist|lawyer|attorney|accountant|architect|scientist|researcher|professor|lecturer|student|writer|author|journalist|editor|photographer|musician|artist|chef|cook|baker|electrician|plumber|carpenter|mechanic|pilot|firefighter|paramedic|pharmacist|psychologist|therapist|consultant|analyst|manager|administrator|librarian|translator|farmer|gardener|freelancer|founder|sysadmin|data scientist|biologist|chemist|physicist|economist|vet|veterinarian|barista|bartender|actor|actress|pensioner|retiree)"
# One of several who is told apart by the name: of her there is one value at a time.
_NAMED = rf"{MY} (?:(?:older|elder|younger|big|little|twin|best|good|old|new|late) )?{_ONE},? (?P<w>{_CAPITAL.removeprefix('(?P<v>').removesuffix(')')}),?"
_BY_NAME = "{n}" + NAMED
_SINCE = r"(?: (?:last|this|in|since|now|recently)\b[^,;:!?]{0,30})?"
# A thing of which there is one at a time, and whose name is no secret.
_OWN = rf"(?P<n>(?:(?-i:[a-z])[a-z-]+ ){{0,2}}?(?!(?:{SEVERAL}|names?|favou?rite|password|passphrase|passcode|pin|secret|token|key)\b)(?-i:[a-z])[a-z-]+)"

RULES = (
    rule(rf"my (?:full |real )?name(?: is|'s) {_NOT_NAMES}{NAME}", "{P} name is {v}.", "name"),
    rule(rf"my (?P<n>first|last|middle|maiden|family) name(?: is|'s) {_NOT_NAMES}{NAME}", "{P} {n} name is {v}.", "{n} name"),
    rule(rf"(?:i am|i'm) called {_CAPITAL}|(?:please |just )?call me (?P<v>(?-i:(?!Back|Later|Maybe|When|If|At|On|Tomorrow|Crazy)[A-Z])\w+)|(?:people|friends|my friends) call me (?P<v>(?-i:[A-Z])\w+)|i go by (?P<v>(?-i:[A-Z])\w+)", "{S} is called {v}.", "name"),
    rule(r"(?:hi|hello|hey|hallo)[,!.]? (?:i'm|i am|my name is|my name's) (?P<v>(?-i:[A-Z])[a-zà-ÿ]+(?<!ish)(?<!ian)(?<!can)(?<!ese)(?<!man)(?: (?-i:[A-Z])[\w'-]+)?)", "{P} name is {v}.", "name"),
    rule(rf"{I_AM} (?P<v>\d{{1,3}})(?: years? old| yo)", "{S} is {v} years old.", "age"),
    rule(r"i (?:just |recently )?turned (?P<v>\d{1,3})(?: last \w+| today| yesterday| this year)?", "{S} turned {v}.", "age"),
    rule(rf"{I_AM} (?P<v>\d(?:[.,]\d\d)? ?m|\d{{3}} ?cm|\d ?(?:ft|feet|foot|')(?: ?\d{{1,2}}(?: inch(?:es)?|\")?)?)(?: tall)?", "{S} is {v} tall.", "height"),
    rule(rf"my birthday(?: is|'s)(?: on)? (?P<v>{WHEN})", "{P} birthday is {v}.", "birthday"),
    rule(rf"i was born on (?P<v>{WHEN})", "{S} was born on {v}.", "birthday"),
    rule(r"i was born in (?P<v>(?:19|20)\d\d)", "{S} was born in {v}.", "birth year"),
    rule(rf"i was born(?: and raised)? in {PROPER}", "{S} was born in {v}.", "birthplace"),
    rule(rf"{MY} (?:\w+ )?{_PET}{_CALLED} {_NOT_NAMES}{NAME}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"the name of {MY} (?:\w+ )?{_PET} is {NAME}|{MY} {_PET} (?:answers|listens) to (?:the name )?{_CAPITAL}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{MY} {_PET},? {_CAPITAL}(?:,? [^\d?!]{{0,120}})?", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{_CAPITAL} is {MY} {_PET}(?:'s name)?", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"(?:{I_HAVE}|(?:we|i)(?:'ve| have)?(?: just| recently)? (?:got|adopted|bought)) (?:a|an|one) {_ADJ}{_PET},? (?:(?:called|named)|whose name is|and (?:his|her|its) name is) {NAME}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{I_HAVE} (?P<v>(?:a|an|one) {_ADJ}{_PET})", "{S} has {v}.", "has"),
    rule(rf"{I_HAVE} {_COUNT} {_ADJ}{_KIDS}(?:,|:| -)?(?: (?:called|named|their names are))? {_CAPITAL.replace('<v>', '<a>')},? and {_CAPITAL.replace('<v>', '<b>')}", "{S} has {c} {n}, {a} and {b}.", "{n}", value="{a} and {b}"),
    rule(rf"{I_HAVE} {_COUNT} {_ADJ}{_KIDS}", "{S} has {c} {n}.", "number of {n}", value="{c}"),
    rule(r"(?:i am|i'm) (?P<v>an only child|a twin|the (?:oldest|eldest|youngest) of \w+)", "{S} is {v}.", "is"),
    rule(rf"{MY} {_ONE}{_CALLED} {_NOT_NAMES}{NAME}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{MY} (?P<n>boss|manager|landlord|landlady|doctor|dentist|therapist|lawyer|accountant|coach|vet|tax advisor|best friend) is (?P<v>(?:Dr\.? |Mr\.? |Mrs\.? |Ms\.? |Prof\.? )?(?!(?-i:[A-Z])\w+(?:ish|ian|ese|can|man|tch)\b)(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+)?)", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"the name of {MY} {_ONE} is {NAME}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{_NAMED} (?:(?:now |currently |still )?lives|is (?:now )?living) (?:now )?in {PROPER}{_SINCE}", "{P} {n} {w} lives in {v}.", "home", subject=_BY_NAME),
    rule(rf"{_NAMED} (?:has )?(?:just |recently )?moved to {PROPER}{_SINCE}", "{P} {n} {w} moved to {v}.", "home", subject=_BY_NAME),
    rule(rf"{_NAMED} (?:(?:now |currently |still )?works|is (?:now )?working) (?:now )?(?:at|for) (?P<a>the )?{PROPER}{_SINCE}", "{P} {n} {w} works at {a}{v}.", "employer", subject=_BY_NAME),
    rule(rf"{_NAMED} is (?:now )?(?P<v>(?:a|an) {_JOB})", "{P} {n} {w} is {v}.", "job", subject=_BY_NAME),
    rule(rf"{_NAMED} (?:is|turned) (?:now )?(?P<v>\d{{1,3}})(?: years? old)?", "{P} {n} {w} is {v} years old.", "age", subject=_BY_NAME),
    rule(rf"{_NAMED.removesuffix(',?')}'s birthday (?:is|'s)(?: on)? (?P<v>{WHEN})", "{P} {n} {w}'s birthday is {v}.", "birthday", subject=_BY_NAME),
    rule(rf"{MY} {_ONE},? {_CAPITAL}(?<!Mr)(?<!Dr)(?:,? (?!said|says|told|thinks|asked|wrote)[^\d?!]{{0,120}})?", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{_CAPITAL} is {MY} {_ONE}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"{I_HAVE} (?:a|an|one) {_ADJ}{_ONE} (?:called|named) {NAME}", "{P} {n} is called {v}.", "{n} name"),
    rule(rf"(?:{I_AM} married to|i married) {_CAPITAL}", "{S} is married to {v}.", "spouse name"),
    rule(r"(?:i am|i'm) (?P<v>married|single|divorced|widowed|engaged|pregnant|retired|left-handed|right-handed|colou?r-?blind|diabetic|autistic|dyslexic|deaf|introverted)", "{S} is {v}.", "is"),
    rule(rf"{MY} {_ONE}'s birthday (?:is|'s)(?: on)? (?P<v>{WHEN})", "{P} {n}'s birthday is {v}.", "{n} birthday"),
    rule(rf"{MY} {_ONE} (?:works|is working) (?:at|for) (?P<a>the )?{PROPER}", "{P} {n} works at {a}{v}.", "{n} employer"),
    rule(rf"{MY} {_ONE}(?:,? (?-i:[A-Z])[\w-]+,?)? is (?P<v>\d{{1,3}})(?: years? old)?", "{P} {n} is {v} years old.", "{n} age"),
    rule(rf"{MY} {_ONE} lives in {PROPER}", "{P} {n} lives in {v}.", "{n} home"),
    rule(rf"{MY} {_ONE} is (?P<v>(?:a|an) {_JOB})", "{P} {n} is {v}.", "{n} job"),
    rule(rf"{MY} (?P<n>\w+) is allergic to {LIST}", "{P} {n} is allergic to {v}.", "{n} allergic to", lists=True),
    rule(rf"i speak (?:fluent |some |a little |a bit of )?(?P<v>{_LANGUAGE}(?:(?:,| and|, and) (?:fluent |some |a little )?{_LANGUAGE}){{0,5}})(?: fluently| at home)?", "{S} speaks {v}.", "speaks", lists=True),
    rule(rf"my (?P<n>native language|mother tongue|first language) is (?P<v>{_LANGUAGE})", "{P} native language is {v}.", "native language"),
    rule(rf"{I_AM} (?:currently )?learning (?P<v>{_LANGUAGE}|to (?:play|code|program|cook|sail|fly|swim|drive|knit|sew|paint|draw)(?: [^,;:]{{1,30}})?)", "{S} is learning {v}.", "learning"),
    rule(r"i play (?:the )?(?P<v>piano|guitar|violin|cello|drums|bass|flute|saxophone|trumpet|clarinet|ukulele|harp|organ|chess|tennis|football|soccer|basketball|volleyball|handball|badminton|golf|hockey|rugby|cricket)(?: in .{1,40}| every .{1,20})?", "{S} plays {v}.", "plays"),
    rule(rf"(?:i am|i'm) (?P<v>(?:a|an) {_JOB}) (?:at|for|with) (?P<w>(?-i:[A-Z])[^,;:!?]{{1,50}})", "{S} is {v} at {w}.", "employer", value="{w}"),
    rule(rf"(?:i am|i'm|i work as|my job is) (?:currently )?(?P<v>(?:a|an) {_JOB})(?: by (?:profession|trade))?", "{S} is {v}.", "job"),
    rule(r"i work as (?P<v>(?:a|an) [a-z][\w -]{2,50})", "{S} works as {v}.", "job"),
    rule(rf"my (?:job title|profession|occupation|job) is (?P<v>{_JOB})", "{P} job is {v}.", "job"),
    rule(rf"i study {PHRASE} at (?P<w>(?-i:[A-Z])[^,;:!?]{{1,50}})", "{S} studies {v} at {w}.", "studies"),
)  # fmt: skip

# What else has a name; to be tried after all other rules: some of them know better what it means.
THINGS = (
    rule(rf"{MY} (?:new |current )?{_OWN}(?: is (?:called|named)|'s (?:called|named|name is)) {PROPER}", "{P} {n} is called {v}.", "{n} name"),
)  # fmt: skip
