"""Rules for what people say of themselves in English. Phrases that are often jokes are left out."""

from __future__ import annotations

from agentd.core.fact import Category
from agentd.providers.offline.language.calendar import WHEN
from agentd.providers.offline.language.rule import (
    I_AM,
    I_HAVE,
    MY,
    NAME,
    NO_HOME,
    NO_TIME,
    PROPER,
    TASTE,
    TOWN,
    Rule,
)

_ADJECTIVE = (
    r"(?:(?:older|elder|younger|big|little|twin|other|second|new|best|good|black|white|brown|grey"
    r"|gray|ginger|baby|dear) )?"
)
_PET = (
    r"(?P<n>guinea pig|dog|cat|puppy|kitten|hamster|rabbit|parrot|horse|pony|bird|turtle|tortoise"
    r"|ferret|budgie|canary)"
)
_KIN = (
    r"(?P<n>wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|mother|father|mom|mum|dad"
    r"|mother-in-law|father-in-law|son|daughter|brother|sister|cousin|uncle|aunt|nephew|niece"
    r"|grandmother|grandfather|grandma|grandpa|roommate|flatmate|best friend)"
)
_WHO = (
    r"(?P<n>boss|manager|landlord|landlady|doctor|dentist|therapist|lawyer|accountant|coach|vet"
    r"|tax advisor|neighbou?r|colleague|co-?worker|assistant|friend|piano teacher|teacher)"
)
_SOMEONE = rf"(?:{_KIN}|{_WHO})"
_KIDS = (
    r"(?P<n>kids|children|sons|daughters|brothers|sisters|siblings|dogs|cats|rabbits|horses|pets)"
)
_COUNT = r"(?P<c>two|three|four|five|six|seven|\d)"
_CALLED = (
    r"(?: (?:is|are) (?:now )?(?:called|named)|'s (?:called|named)|'?s (?:first )?name is|'s "
    r"name's| name is)"
)
_LOWER = (
    r"(?P<v>(?!(?:not|on|in|off|up|upon|out|back|away|to|too|the|a|an|so|very|my|your|at|it|that"
    r"|this|after|for|by|home|again|over|down|into)\b)[a-zà-ÿ]{2,12})"
)
_A_NAME = NAME.replace("<v>", "<a>"), NAME.replace("<v>", "<b>")
_BY_NAME = rf"{MY} {_ADJECTIVE}{_SOMEONE},? {NAME.replace('<v>', '<w>')},?"
_GOES_ON = (
    r"(?:loves|likes|lives|works|turned|turns|starts|plays|got|wants|needs|comes|goes|went|studies"
    r"|snores|barks|sleeps|eats)"
)
_NATION = r"(?![A-Z]\w+(?:ish|ian|ese|can|man|tch)\b)"
_LANGUAGE = (
    r"(?:English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian|Turkish"
    r"|Arabic|Hebrew|Hindi|Urdu|Bengali|Tamil|Mandarin|Chinese|Cantonese|Japanese|Korean"
    r"|Vietnamese|Thai|Greek|Swedish|Norwegian|Danish|Finnish|Czech|Hungarian|Romanian|Farsi"
    r"|Swahili|Esperanto|Catalan|Bulgarian|Croatian|Serbian)"
)
_JOB = (
    r"(?:(?:software|data|civil|electrical|mechanical|senior|junior|primary school|school|high "
    r"school|freelance|graphic|web|retired|trained|registered|dental|tax|product|project|social"
    r"|research) ){0,2}(?:engineer|developer|programmer|designer|teacher|nurse|doctor|physician"
    r"|surgeon|dentist|lawyer|attorney|accountant|architect|scientist|researcher|professor"
    r"|lecturer|student|writer|author|journalist|editor|photographer|musician|chef|cook|baker"
    r"|electrician|plumber|carpenter|mechanic|pilot|firefighter|paramedic|pharmacist|psychologist"
    r"|therapist|consultant|analyst|manager|administrator|librarian|translator|farmer|gardener"
    r"|sysadmin|biologist|chemist|physicist|economist|vet|veterinarian|barista|bartender|beekeeper"
    r"|florist|midwife|social worker)"
)
_SINCE = (
    r"(?: (?:last|this) (?:week|month|year|spring|summer|autumn|fall|winter)| in \d{4}| since "
    r"[^,;:!?]{1,20}| recently| now)?"
)
_NOW = r"(?:(?:now|currently|still|also) )?"
_ALLERGEN = (
    r"(?:(?:tree |cow'?s |house )?(?:nuts?|peanuts?|hazelnuts?|walnuts?|almonds?|cashews?"
    r"|shellfish|seafood|fish|crab|shrimps?|prawns?|milk|dairy|lactose|eggs?|soya?|wheat|gluten"
    r"|rye|pollen|grass(?: pollen)?|birch(?: pollen)?|ragweed|dust(?: mites)?|mold|mould|cats?"
    r"|dogs?|cat hair|dog hair|horses|feathers|bees?|wasps?|bee stings|wasp stings|penicillin"
    r"|amoxicillin|ibuprofen|aspirin|latex|nickel|strawberries|kiwis?|apples|celery|sesame|mustard"
    r"|tomatoes|bananas|coriander))"
)
_ALLERGENS = rf"(?P<v>{_ALLERGEN}(?:(?:,| and|, and| or) {_ALLERGEN}){{0,5}})"
_FOOD = (
    r"(?:(?:red |raw )?meat|fish|pork|beef|chicken|seafood|shellfish|dairy|gluten|eggs|cheese|nuts"
    r"|peanuts|mushrooms|onions|garlic|coriander|cilantro|celery|olives|tofu|spicy food|animal "
    r"products)"
)
_DRINK = r"(?:alcohol|coffee|beer|wine|milk|soda|caffeine|tea|energy drinks)"
_MUCH = (
    r"(?: (?:any ?more|any longer|either|at all|very much|so much|a lot|as well|too|very often))?"
)
_NOT = r"(?:don't|do not|dont|never|no longer)"
_QUIT = r"(?:i(?:'ve| have)? (?:just |finally |recently )?(?:stopped|quit|gave up|given up))"
_DIET = r"(?:vegan|vegetarian|pescatarian)"
_HOW = r"(?:(?:really|absolutely|quite|usually|particularly|especially|strongly|very much) )?"
# A taste is a thing or a hobby, in three words at most; words like “this” and “my” refer to
# something at hand, which is no lasting taste.
_NO_TASTE = (
    r"(?!(?:it|this|that|these|those|the|a|an|my|your|his|her|its|our|their|you|him|them|me|us|how"
    r"|what|when|where|why|if|to|being|having|getting|waiting|paying|seeing|doing|going|working"
    r"|option|version|variant|plan|idea|both|all|one|some|any|no|not|every|everything|nothing"
    r"|people|humans|everyone|everybody|children|bugs?|meetings?|deadlines?|surprises?|errors?"
    r"|life)\b)"
)
_THING = (
    rf"{_NO_TASTE}(?-i:[a-zà-ÿ])[\w'-]*(?: (?!(?:is|are|that|when|how|better|more|one|with|like"
    rf"|as)\b)(?-i:[a-zà-ÿ])[\w'-]*)?(?: in (?:the )?{NAME.replace('(?P<v>', '(?:')})?"
)
_THINGS = rf"(?P<v>{_THING}(?:(?:,| and|, and) {_THING}){{0,3}})"
# Things that nobody claims to love in jest.
_TREAT = (
    r"(?:(?:green|black|ginger|mint|herbal|dark|milk|white|spicy|thai|indian|italian|japanese"
    r"|mexican|greek|fresh|red|classical|electronic|folk|board|card|video|science|historical|crime"
    r"|red|sparkling) )?(?:tea|coffee|chocolate|pizza|pasta|sushi|ramen|curry|cheese|bread|fish"
    r"|tofu|olives|coriander|cilantro|onions|mushrooms|garlic|celery|broccoli|spinach|tomatoes"
    r"|liquorice|licorice|marzipan|raisins|beer|wine|whisky|juice|strawberries|mangos?|apples"
    r"|bananas|food|hiking|swimming|running|cycling|climbing|skiing|sailing|dancing|cooking|baking"
    r"|gardening|knitting|reading|painting|drawing|photography|chess|football|tennis|yoga|pilates"
    r"|jazz|rock|metal|techno|opera|music|games|fiction|novels|films|cats|dogs|horses|birds|trains"
    r"|plants|mountains|museums)(?: in (?:the )?(?-i:[A-Z])[\w-]+)?"
)
_TREATS = rf"(?P<v>{_TREAT}(?:(?:,| and|, and) {_TREAT}){{0,3}})"
_FAVOURITE = (
    r"(?P<n>colou?r|food|dish|meal|band|song|singer|artist|album|film|movie|book|author|animal"
    r"|drink|tea|coffee|fruit|vegetable|city|country|season|sport|team|club|game|board game|show"
    r"|series|restaurant|language|programming language|number|flower|beer|wine|cheese|dessert|cake"
    r"|pizza|ice cream|composer|painter|composer|instrument|park|beach)"
)
_VALUE = (
    r"(?P<v>(?!(?:the|this|that|a|an|one|not|when|if|where|whatever|still|now|always|probably|to"
    r"|on|in|gone|out|over)\b)[^\s,;:!?()]+(?: [^\s,;:!?()]+){0,3}|(?-i:The [A-Z])[\w'-]*(?: "
    r"[\w'-]+){0,2})(?<!ing)(?<!today)(?<! now)(?<! again)"
)
_TOOL = rf"{NO_TIME}(?-i:[A-Z])[\w.+#-]{{1,30}}(?: (?-i:[A-Z0-9])[\w.+#-]*){{0,2}}"
_FOR = (
    r"(?P<rest>(?: (?:for|as) (?:my |our |the )?(?!(?:this|that|it|now|these|those|once|a change"
    r"|today)\b)[^,;:!?]{2,40})?)"
)
_ITEM = (
    r"(?P<n>(?!(?:our|my|the)\b)(?:project )?(?-i:[A-Z])[\w.-]*(?: (?-i:[A-Z0-9])[\w.-]*){0,2}(?: "
    r"project| app| release| launch)?|(?:[\w-]+ )?(?:project|paper|report|proposal|grant|thesis"
    r"|release|launch|migration))"
)
_MOVED = r"(?: is now| is| was moved to| has been moved to| moved to| was changed to)"
_EVENT = (
    r"(?:appointment|meeting|interview|exam|surgery|operation|checkup|check-up|reservation|wedding"
    r"|conference|presentation|concert|viva|driving test|graduation|flight|trip|vacation|holiday)"
)
_WHAT = rf"(?P<n>(?:(?!to |and |next |last |first )[\w'-]+ ){{0,2}}?{_EVENT})"
_WITH = (
    r"(?P<w> (?:with|to|at|in|for|nach|beim?|mit) (?:the |my |Dr\.? )?(?-i:[A-Z])[\w'.-]+(?: "
    r"(?-i:[A-Z])[\w'.-]*){0,2}| (?:with|at) (?:the|my) (?:dentist|doctor|boss|vet|landlord"
    r"|bank))?"
)
_STARTS = (
    r"(?: is| starts| begins| leaves| is scheduled| is set| is booked| is now)?(?: (?:on|at|for))?"
)
_ACT = (
    r"(?:(?:answer|reply|respond)(?: to)? (?:in|with|to me|me|briefly|shortly|concisely|without"
    r"|using)\b|(?:write|talk|speak) to me .|use (?:metric|imperial|celsius|bullet|british"
    r"|american|formal|informal|simple|short|24)|(?:ask|warn|tell|remind) me (?:before|first|when)"
    r"|call me (?-i:[A-Z])|email my|e-mail my|start your|end your)"
)
_CHILD = r"(?P<n>son|daughter|brother|sister|wife|husband|girlfriend|boyfriend|partner|dad|mom|mum)"
_MAKE = (
    r"(?P<v>(?:an? )?(?:(?:red|blue|green|black|white|silver|grey|gray|yellow|orange|old|new"
    r"|used) ){0,2}(?:Audi|BMW|Citro[eë]n|Dacia|Fiat|Ford|Golf|Honda|Hyundai|Kia|Mazda|Mercedes"
    r"|Mini|Nissan|Opel|Peugeot|Polo|Porsche|Prius|Renault|Seat|Skoda|Škoda|Subaru|Suzuki|Tesla"
    r"|Toyota|Volvo|VW|Volkswagen|Trek|Canyon|Giant|Specialized|Brompton)(?: "
    r"(?-i:[A-Z0-9])[\w.-]*){0,3})"
)
_CAR = (
    r"(?P<v>(?:an? )?(?:(?:red|blue|green|black|white|silver|grey|gray|yellow|orange|old|new"
    r"|used) ){0,2}(?-i:[A-Z0-9])[\w.-]*(?: (?-i:[A-Z0-9])[\w.-]*){0,3})"
)
_SERVICE = (
    r"(?P<n>laptop|computer|phone|smartphone|tablet|camera|printer|editor|ide|shell|terminal"
    r"|browser|operating system|bank|health insurance|gym|phone provider|internet provider|search "
    r"engine|password manager|calendar app|school|university|insurance)"
)

PROJECT, ORDER = Category.PROJECT, Category.INSTRUCTION

RULES = (
    # events
    Rule((
        rf"(?:{I_HAVE}) (?:booked )?(?:a|an|my|our) (?:new )?{_WHAT}{_WITH}(?: (?:on|at))? "
        rf"(?P<v>{WHEN})"
        ), "{P} {n}{w} is on {v}.", "{n}{w}"),
    Rule(rf"{MY} {_WHAT}{_WITH}{_STARTS} (?P<v>{WHEN})", "{P} {n}{w} is on {v}.", "{n}{w}"),
    Rule((
        rf"{MY} {_WHAT}{_WITH}(?: was| has been| got)? (?:moved|rescheduled|postponed|changed"
        rf"|brought forward)(?: from [\w ]{{2,20}})? to (?P<v>{WHEN})"
        ), "{P} {n}{w} is on {v}.", "{n}{w}"),
    Rule((
        rf"(?:{I_AM}|i'll be|we'll be) (?:flying|travelling|traveling) to "
        rf"{TOWN.replace('<v>', '<w>')}(?: on)? (?P<v>{WHEN})"
        ), "{P} flight to {w} is on {v}.", "flight to {w}"),
    # who he is
    Rule(rf"my (?:full |real )?name(?: is|'s) {NAME}", "{P} name is {v}.", "name"),
    Rule((
        rf"my (?P<n>first|last|middle|maiden|family) name(?: is|'s) {NAME}"
        ), "{P} {n} name is {v}.", "{n} name"),
    Rule((
        rf"(?:please call me|i go by|i(?:'m| am) called) {NAME}|(?:my )?friends call me {NAME}"
        ), "{S} is called {v}.", "called name"),
    Rule((
        rf"{I_AM} (?P<v>[1-9]\d)(?: years? old| yo)|i(?:'ve)? (?:just |recently )?turned "
        r"(?P<v>[1-9]\d)(?: (?:today|yesterday|last (?:week|month)))?"
        ), "{S} is {v} years old.", "age"),
    Rule((
        r"my (?P<n>blood type) is (?P<v>(?:ab|a|b|o|0)(?:[+-]| positive| negative)?)"
        ), "{P} {n} is {v}.", "{n}"),
    Rule((
        rf"my birthday(?: is|'s)(?: on)? (?P<v>{WHEN})|i was born on (?P<v>{WHEN})"
        ), "{P} birthday is {v}.", "birthday"),
    Rule(rf"i was born(?: and raised)? in {TOWN}", "{S} was born in {v}.", "birthplace"),
    Rule((
        r"(?:i am|i'm) (?P<v>an only child|married|divorced|widowed|engaged|pregnant|retired"
        r"|left-handed|right-handed|colou?r-?blind|diabetic|autistic|dyslexic|lactose[- "
        r"]intolerant|gluten[- ]intolerant|coeliac|celiac)"
        ), "{S} is {v}.", "is"),
    Rule((
        rf"{I_HAVE} (?P<v>(?:type [12] )?(?:diabetes|asthma|epilepsy|adhd|celiac disease|coeliac "
        r"disease|high blood pressure|hay fever|arthritis))"
        ), "{S} has {v}.", "has"),
    Rule((
        rf"i speak (?:fluent |some |a little |a bit of )?(?P<v>{_LANGUAGE}(?:(?:,| and|, and) "
        rf"(?:fluent |some |a little )?{_LANGUAGE}){{0,5}})(?: fluently| at home)?"
        ), "{S} speaks {v}.", "speaks", lists=True),
    Rule((
        r"i play (?:the )?(?P<v>piano|guitar|violin|cello|drums|bass|flute|saxophone|trumpet"
        r"|clarinet|ukulele|harp|organ|chess|tennis|football|soccer|basketball|volleyball|handball"
        r"|badminton|golf|hockey|rugby|cricket)(?: in (?:a|an|the) (?:band|orchestra|club|team"
        r"|choir)| every .{1,20}| on \w+days)?"
        ), "{S} plays {v}.", "plays"),
    Rule((
        rf"(?:i am|i'm) (?P<w>an? {_JOB}) (?:at|for|with) (?:the )?{PROPER}"
        ), "{S} is {w} at {v}.", "employer"),
    Rule((
        rf"(?:i am|i'm|i work as|my job is) (?P<v>an? {_JOB})(?: by (?:profession|trade))?"
        ), "{S} is {v}.", "job"),
    # people and pets
    Rule((
        rf"{MY} {_PET}{_CALLED} (?:{NAME}|{_LOWER})(?: now)?|the name of {MY} {_PET} is {NAME}"
        ), "{P} {n} is called {v}.", "{n} name", sole=True),
    Rule((
        rf"{MY} {_ADJECTIVE}(?:{_PET}{_CALLED} (?:{NAME}|{_LOWER})|{_SOMEONE}{_CALLED} {NAME})(?: "
        r"now)?"
        ), "{P} {n} is called {v}.", "{n} name"),
    Rule((
        rf"{MY} {_WHO}(?: is|'s) (?:now )?(?P<v>(?-i:Dr|Prof|Mr|Mrs|Ms|Frau|Herr)\.? "
        r"(?!Google)(?-i:[A-Z])[\w'-]+)"
        ), "{P} {n} is called {v}.", "{n} name"),
    Rule(rf"the name of {MY} {_SOMEONE} is {NAME}", "{P} {n} is called {v}.", "{n} name"),
    Rule((
        rf"(?:{I_HAVE}|(?:we|i)(?:'ve| have)?(?: just| recently)? (?:got|adopted|bought)) an? "
        rf"{_ADJECTIVE}(?:{_PET}|{_SOMEONE}),? (?:called|named) {NAME}"
        ), "{P} {n} is called {v}.", "{n} name"),
    Rule((
        rf"{MY} {_ADJECTIVE}(?:{_PET}|{_CHILD}),? {NAME},? {_GOES_ON} (?!(?:in|at|for|an?"
        rf"|\d+)\b)[^\d?!]{{1,80}}"
        ), "{P} {n} is called {v}.", "{n} name", passing=True),
    Rule(rf"(?:i am|i'm) married to {NO_HOME}{NAME}", "{S} is married to {v}.", "spouse name"),
    Rule((
        rf"{I_HAVE} {_COUNT} {_KIDS}(?:,|:| -)?(?: (?:called|named))? {_A_NAME[0]},? and "
        rf"{_A_NAME[1]}"
        ), "{S} has {c} {n}, {a} and {b}.", "{n}", value="{a} and {b}"),
    Rule(rf"{I_HAVE} {_COUNT} {_KIDS}", "{S} has {c} {n}.", "number of {n}", value="{c}"),
    Rule((
        rf"{_BY_NAME} (?:{_NOW}lives|is {_NOW}living) (?:now )?in {TOWN}{_SINCE}"
        ), "{P} {n} {w} lives in {v}.", "home", subject="{w}", kin=True),
    Rule((
        rf"{_BY_NAME} (?:has )?(?:just |recently )?moved to {TOWN}{_SINCE}"
        ), "{P} {n} {w} lives in {v}.", "home", subject="{w}", kin=True),
    Rule((
        rf"{_BY_NAME} (?:{_NOW}works|is {_NOW}working) (?:now )?(?:at|for) (?P<a>the "
        rf")?{PROPER}{_SINCE}"
        ), "{P} {n} {w} works at {a}{v}.", "employer", subject="{w}", kin=True),
    Rule((
        rf"{_BY_NAME} is (?:now )?(?P<v>an? {_JOB})"
        ), "{P} {n} {w} is {v}.", "job", subject="{w}", kin=True),
    Rule((
        rf"{_BY_NAME} (?:is|turned) (?:now )?(?P<v>\d{{1,2}})(?: years? old)?"
        ), "{P} {n} {w} is {v} years old.", "age", subject="{w}", kin=True),
    Rule((
        rf"{MY} {_KIN}'s birthday (?:is|'s)(?: on)? (?P<v>{WHEN})"
        ), "{P} {n}'s birthday is {v}.", "{n} birthday"),
    Rule(rf"{MY} {_KIN} {_NOW}lives in {TOWN}", "{P} {n} lives in {v}.", "{n} home"),
    Rule((
        rf"{MY} {_KIN} (?:{_NOW}works|is {_NOW}working) (?:at|for) (?P<a>the )?{PROPER}"
        ), "{P} {n} works at {a}{v}.", "{n} employer"),
    Rule(rf"{MY} {_KIN} is (?P<v>\d{{1,2}}) years old", "{P} {n} is {v} years old.", "{n} age"),
    Rule(rf"{MY} {_KIN} is (?P<v>an? {_JOB})", "{P} {n} is {v}.", "{n} job"),
    Rule(rf"{MY} {_KIN} is allergic to {_ALLERGENS}", "{P} {n} is allergic to {v}.", "{n} allergic to", lists=True),
    # places and things
    Rule((
        rf"(?:i|we) {_NOW}live (?:now )?in {TOWN}(?: now| with my .{{1,30}}| since .{{1,20}}"
        rf"|{_SINCE})"
        ), "{S} lives in {v}.", "home"),
    Rule(rf"{I_AM} {_NOW}(?:living|based) in {TOWN}", "{S} lives in {v}.", "home"),
    Rule((
        r"(?:i|we)(?:'ve| have)? (?:just |recently |now )?(?:moved|relocated) (?:from "
        rf"(?-i:[A-Z])[\w' -]{{1,40}}? )?to {TOWN}{_SINCE}(?: from (?-i:[A-Z])[\w' -]{{1,30}})?"
        ), "{S} lives in {v}.", "home"),
    Rule((
        rf"{I_AM} moving (?:from (?-i:[A-Z])[\w' -]{{1,40}}? )?to {TOWN}"
        ), "{S} is moving to {v}.", "moving to"),
    Rule((
        rf"(?:i|we) (?:no longer|don't|do not) live in {PROPER}(?: any ?more)"
        ), "{S} no longer lives in {v}.", "no longer home"),
    Rule(rf"(?:i|we) no longer live in {PROPER}", "{S} no longer lives in {v}.", "no longer home"),
    Rule((
        rf"{MY} (?P<n>home |postal |mailing |work |office )?address(?: is|'s) "
        rf"(?P<v>(?-i:[A-Z0-9])[^;:!?]{{5,90}})"
        ), "{P} {n}address is {v}.", "{n}address", loose=True),
    Rule((
        rf"{I_AM} (?:originally )?from {TOWN}(?: originally)?|i come from {TOWN}|i grew up in "
        rf"{TOWN}"
        ), "{S} comes from {v}.", "origin"),
    Rule((
        rf"{MY} (?:new )?(?P<n>car|bike|motorbike|van) is (?:now )?{_MAKE}"
        ), "{P} {n} is {v}.", "{n}"),
    Rule(rf"i (?:now )?drive {_MAKE}", "{P} car is {v}.", "car"),
    Rule((
        rf"{MY} (?:new |main )?{_SERVICE} is (?:now )?(?:(?:called|named) )?(?P<v>(?!(?:Dead"
        r"|Broken|Slow|Down|Gone|Offline|Closed)\b)(?-i:[A-Z0-9])[\w.&+-]*(?: "
        rf"(?-i:[A-Z0-9])[\w.&+-]*){{0,3}})"
        ), "{P} {n} is {v}.", "{n}"),
    Rule((
        rf"{MY} (?:new )?(?P<n>car|bike|boat|guitar|piano|printer|robot vacuum|house|van|band"
        rf"|company|blog)(?: is (?:called|named)|'s (?:called|named|name is)) {PROPER}"
        ), "{P} {n} is called {v}.", "{n} name"),
    Rule((
        rf"{MY} (?P<n>passport|visa|driving licen[cs]e|insurance|lease|contract|residence permit) "
        rf"(?:expires|ends|runs out)(?: on)? (?P<v>{WHEN})"
        ), "{P} {n} expires on {v}.", "{n} expiry date"),
    Rule((
        rf"{MY} (?:new )?(?P<n>office |work |mobile |cell |home )?(?:phone )?(?:number|phone)(?: "
        rf"is|'s) (?:now )?(?P<v>\+?\d[\d ()/.-]{{4,24}}\d)"
        ), "{P} {n}phone number is {v}.", "{n}phone number"),
    Rule((
        rf"{MY} (?:new )?(?P<n>work |office |private )?e-?mail(?: address)?(?: is|'s) (?:now "
        r")?(?P<v>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
        ), "{P} {n}email is {v}.", "{n}email"),
    # work
    Rule((
        rf"i {_NOW}work (?:now )?(?:at|for) (?P<a>the "
        rf")?(?P<v>{PROPER.removeprefix('(?P<v>')}(?P<rest>(?: in "
        rf"{NAME.replace('(?P<v>', '(?:')})?)(?: as an? .{{2,40}}| since .{{2,20}}| now)?"
        ), "{S} works at {a}{v}{rest}.", "employer"),
    Rule((
        rf"{I_AM} {_NOW}(?:working|employed) (?:at|for|by) {PROPER}"
        ), "{S} works at {v}.", "employer"),
    Rule((
        r"(?:i|i've|i have) (?:just |recently )?(?:started (?:working|a new job|my new job) at "
        rf"{PROPER}(?: as .{{2,40}})?{_SINCE}|joined {PROPER} as an? .{{2,40}})"
        ), "{S} works at {v}.", "employer"),
    Rule((
        r"(?:my (?:new )?employer is|i(?:'ve| have)?(?: got)? a new job at|i got (?:the|a) "
        rf"(?:new )?job at) {PROPER}"
        ), "{S} works at {v}.", "employer"),
    Rule((
        r"(?:i no longer work|i don't work|i do not work|i stopped working) (?:at|for) (?:the "
        rf")?{PROPER}(?: any ?more| any longer)|(?:i no longer work|i stopped working) (?:at|for) "
        rf"(?:the )?{PROPER}"
        ), "{S} no longer works at {v}.", "no longer employer"),
    Rule((
        rf"i(?:'ve| have)? (?:just |finally |recently )?(?:quit|left) my job at {PROPER}"
        ), "{S} no longer works at {v}.", "no longer employer"),
    Rule((
        rf"(?:i|we)(?:'ve| have)? (?:just |recently )?switched (?:over )?from (?P<w>{_TOOL}) to "
        rf"(?P<v>{_TOOL}){_FOR}"
        ), "{S} switched from {w} to {v}{rest}.", "uses", TASTE, past="no longer uses"),
    Rule((
        rf"(?:i|we) (?:no longer use|stopped using) (?P<v>{_TOOL})|(?:i|we) (?:don't|do not) use "
        rf"(?P<v>{_TOOL}) any ?more"
        ), "{S} no longer uses {v}.", "no longer uses", TASTE),
    Rule((
        r"(?:i|we) (?:(?:mostly|mainly|usually|always|only|now|currently) )?use "
        rf"(?P<v>{_TOOL})(?: (?:daily|every day|at work|at home))?{_FOR}"
        ), "{S} uses {v}{rest}.", "uses", TASTE),
    Rule((
        rf"(?:my|our) (?:new |side |main |current )?project is (?:called|named) {PROPER}|{I_AM} "
        r"(?:currently |now )?(?:working on|building) (?:an? (?:\w+ )?)?(?:project|app|game) "
        rf"(?:called|named|codenamed) {PROPER}|{I_AM} (?:currently |now )?working on (?:project "
        rf"{PROPER}|{PROPER} project)"
        ), "{S} works on {v}.", "works on", PROJECT),
    Rule((
        r"(?:the |our |my )?(?P<a>deadline|due date|release date|launch date) (?:for|of) (?:the "
        rf"|my |our )?{_ITEM}{_MOVED} (?:(?:on|by) )?(?P<v>{WHEN})"
        ), "The {a} of {n} is {v}.", "{a}", PROJECT, subject="{n}"),
    Rule((
        rf"(?:the |our |my )?{_ITEM}(?:'s)? (?P<a>deadline|due date|release date|launch "
        rf"date){_MOVED} (?P<v>{WHEN})"
        ), "The {a} of {n} is {v}.", "{a}", PROJECT, subject="{n}"),
    Rule((
        r"(?:i|we)(?:'ve| have)? decided (?P<v>(?:to (?:use|go with|switch to|migrate to|hire) "
        r"(?-i:[A-Z])|against (?:buying|using|hiring) )[^;:!?]{2,80})"
        ), "{S} decided {v}.", "decided", Category.DECISION, loose=True),
    Rule((
        r"(?:please |from now on,? |in (?:the )?future,? )*(?P<a>always|never),? "
        rf"(?P<v>{_ACT}[^!?]{{1,120}})"
        ), "{A} {v}.", "instruction", ORDER, value="{a} {v}", loose=True),
    Rule((
        r"(?:please )?(?:from now on|in (?:the )?future|going forward),? (?:please "
        rf")?(?P<v>(?:(?:don't|do not) )?(?:{_ACT}|push to|deploy|merge|book|include|add|put the"
        rf"|keep (?:your|answers))[^!?]{{1,120}})"
        ), "From now on, {v}.", "instruction", ORDER, loose=True),
    # tastes
    Rule((
        rf"i {_HOW}prefer (?P<v>{_THING}) (?:over|to|rather than|instead of) (?P<w>{_THING})"
        ), "{S} prefers {v} over {w}.", "preference between {pair}", TASTE),
    Rule((
        rf"i {_HOW}prefer (?P<v>(?:dark|light) mode|{_DRINK})"
        ), "{S} prefers {v}.", "prefers", TASTE),
    Rule((
        rf"{MY} (?:all-time |absolute |new )?favou?rite {_FAVOURITE} (?:is|are)(?: now)?(?: "
        rf"(?:called|named))? {_VALUE}"
        ), "{P} favourite {n} is {v}.", "favourite {n}", TASTE),
    Rule((
        rf"i {_HOW}(?:hate|dislike|detest|can't stand|cannot stand|do not like|don't like|don't "
        rf"enjoy) {_TREATS}{_MUCH}"
        ), "{S} dislikes {v}.", "dislikes", TASTE, lists=True),
    Rule(rf"i no longer (?:like|enjoy) {_THINGS}", "{S} no longer likes {v}.", "no longer likes", TASTE, lists=True),
    Rule((
        rf"i {_HOW}(?:like|love|enjoy|adore) {_TREATS}(?: (?:very much|a lot|so much))?|{I_AM} "
        rf"(?:a (?:big |huge )?fan of|fond of|really into) {_TREATS}"
        ), "{S} likes {v}.", "likes", TASTE, lists=True),
    Rule((
        rf"i(?: am|'m) (?:not|no longer) allergic to {_ALLERGENS}(?: any ?more| any longer)?"
        ), "{S} is no longer allergic to {v}.", "no longer allergic to", lists=True),
    Rule((
        r"i(?: am|'m) (?:(?:very|severely|highly|slightly|mildly|also|badly|deathly) )?allergic "
        rf"to {_ALLERGENS}|i have an? (?:severe |bad |mild )?(?P<v>{_ALLERGEN}) allergy"
        ), "{S} is allergic to {v}.", "allergic to", lists=True),
    Rule((
        rf"(?:i am|i'm) (?:no longer|not) (?:an? )?(?P<v>{_DIET}) any ?more|(?:i am|i'm) no "
        rf"longer (?:an? )?(?P<v>{_DIET})|{_QUIT} being (?:an? )?(?P<v>{_DIET})"
        ), "{S} is no longer {v}.", "no longer diet"),
    Rule((
        rf"(?:i am|i'm) (?:now )?(?:an? )?(?:strict |lifelong )?(?P<v>{_DIET})(?: now)?|i(?:'ve| "
        rf"have)? (?:became|become|went|turned) (?P<v>{_DIET})"
        ), "{S} is {v}.", "diet"),
    Rule((
        rf"i {_NOT} eat (?:any )?(?P<v>{_FOOD}(?:(?:,| or| and) {_FOOD})*){_MUCH}|{_QUIT} eating "
        rf"(?P<v>{_FOOD})"
        ), "{S} does not eat {v}.", "does not eat", TASTE, lists=True),
    Rule((
        rf"i {_NOT} drink (?:any )?(?P<v>{_DRINK}(?:(?:,| or| and) {_DRINK})*){_MUCH}|{_QUIT} "
        rf"(?:drinking )?(?P<v>{_DRINK})"
        ), "{S} does not drink {v}.", "does not drink", TASTE, lists=True),
    Rule((
        rf"i {_NOT} smoke(?: any ?more)?|{_QUIT} (?:smoking|cigarettes)|(?:i am|i'm) a non-smoker"
        ), "{S} does not smoke.", "does not smoke", value="cigarettes"),
    Rule((
        rf"i (?:now )?eat (?P<v>{_FOOD}(?:(?:,| and) {_FOOD})*) again"
        ), "{S} eats {v}.", "eats", TASTE, lists=True),
    Rule((
        rf"i (?:now )?drink (?P<v>{_DRINK}(?:(?:,| and) {_DRINK})*) again"
        ), "{S} drinks {v}.", "drinks", TASTE, lists=True),
    Rule((
        r"i (?:now )?smoke(?: again)?|(?:i am|i'm) a smoker"
        ), "{S} smokes.", "smokes", value="cigarettes"),
)  # fmt: skip

# Further rules for texts that are meant as facts: facts themselves, orders to remember, answers to
# the agent's questions.
TOLD = (
    Rule((
        rf"i {_HOW}(?:hate|dislike|detest|can't stand|cannot stand|do not like|don't like|don't "
        rf"enjoy) {_THINGS}{_MUCH}"
        ), "{S} dislikes {v}.", "dislikes", TASTE, lists=True),
    Rule((
        rf"i {_HOW}(?:like|love|enjoy|adore) {_THINGS}(?: (?:very much|a lot|so much))?|{I_AM} "
        rf"(?:a (?:big |huge )?fan of|fond of|really into) {_THINGS}"
        ), "{S} likes {v}.", "likes", TASTE, lists=True),
    Rule((
        r"(?:please |from now on,? |in (?:the )?future,? )*(?P<a>always|never),? (?P<v>(?:push to"
        r"|force-push|commit to|merge|deploy|book|add|include|send me)[^!?]{1,120})"
        ), "{A} {v}.", "instruction", ORDER, value="{a} {v}", loose=True),
    Rule((
        rf"(?:i|we) {_NOW}live (?:now )?in (?:{TOWN}|{NO_HOME}{PROPER})(?: now| with my .{{1,30}}"
        rf"| since .{{1,20}}|{_SINCE})"
        ), "{S} lives in {v}.", "home"),
    Rule((
        rf"{_BY_NAME} (?:{_NOW}lives|is {_NOW}living) (?:now )?in {PROPER}{_SINCE}"
        ), "{P} {n} {w} lives in {v}.", "home", subject="{w}", kin=True),
    Rule((
        rf"{_BY_NAME} (?:has )?(?:just |recently )?moved to {PROPER}{_SINCE}"
        ), "{P} {n} {w} lives in {v}.", "home", subject="{w}", kin=True),
    Rule(rf"{MY} {_KIN} {_NOW}lives in {NO_HOME}{PROPER}", "{P} {n} lives in {v}.", "{n} home"),
    Rule(rf"{MY} {_WHO}(?: is|'s) (?:now )?{_NATION}{NAME}", "{P} {n} is called {v}.", "{n} name"),
    Rule((
        r"(?:i|i've|i have) (?:just |recently )?(?:started(?: working| a new job| my new job)? at"
        rf"|joined) {PROPER}(?: as .{{2,40}})?{_SINCE}"
        ), "{S} works at {v}.", "employer"),
    Rule((
        rf"{MY} (?:new )?(?P<n>car|bike|motorbike|van) is (?:now )?{_CAR}"
        ), "{P} {n} is {v}.", "{n}"),
    Rule((
        r"i (?:now )?drive (?P<v>an? (?:\w+ )?(?-i:[A-Z])[\w.-]*(?: (?-i:[A-Z0-9])[\w.-]*){0,2})"
        ), "{P} car is {v}.", "car"),
    Rule((
        rf"{MY} (?:new |main )?{_SERVICE} is (?:now )?(?:(?:called|named) )?(?P<v>(?!(?:Dead"
        r"|Broken|Slow|Down|Gone|Offline|Closed)\b)(?:an? )?(?-i:[A-Z0-9])[\w.&+-]*(?: "
        rf"(?-i:[A-Z0-9])[\w.&+-]*){{0,3}})"
        ), "{P} {n} is {v}.", "{n}"),
    Rule((
        rf"{NAME.replace('<v>', '<w>')} lives in {NO_HOME}{PROPER}"
        ), "{w} lives in {v}.", "home", subject="{w}"),
    Rule((
        rf"{NAME.replace('<v>', '<w>')} works at (?P<a>the )?{PROPER}"
        ), "{w} works at {a}{v}.", "employer", subject="{w}"),
)  # fmt: skip
