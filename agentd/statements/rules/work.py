"""Work: employers, tools, projects and what is known of them, decisions, outcomes, instructions."""

from __future__ import annotations

from agentd.domain.fact import Category
from agentd.statements.calendar import WHEN
from agentd.statements.rules.rule import I_AM, PHRASE, PROPER, rule

_WE = r"(?:i|we)(?:'ve| have)? (?:(?:just|finally|now|recently|successfully) )?"
_DAY = rf"(?:(?:on|by|at) )?(?P<v>{WHEN})"
_PARTS = r"app|api|backend|frontend|website|site|service|server|database|db|cluster|pipeline|bot|router|nas|printer|monorepo|repo|proxy|dashboard|homepage|blog|shop|daemon|gateway"
# What can have a deadline or a port: a name, a project, a part of a system told apart by a word.
_ITEM = rf"(?P<n>(?:project )?(?-i:[A-Z])[\w.-]*(?: (?-i:[A-Z0-9])[\w.-]*){{0,2}}(?: project| app| api| server| service)?|(?:[a-z]+ )?(?:{_PARTS})|project [\w-]+|[\w-]+ (?:project|paper|report|proposal|grant|thesis|release|launch|migration))"
_NOT_IT = (
    r"(?!(?:it|this|that|there|what|here|he|she|they|you|i|we|the|everything|nothing|my|our)\b)"
)
_THE = rf"(?:the |my |our )?{_NOT_IT}{_ITEM}"
_VERSION = r"(?P<v>v?\d+(?:\.\d+){0,3}(?:-?(?:rc|beta|alpha)\.?\d*)?)"
_HOST = (
    r"(?P<v>(?:https?://)?[a-z0-9][\w-]*(?:\.[\w-]+)+(?::\d+)?|localhost|\d{1,3}(?:\.\d{1,3}){3})"
)
_STATUS = r"(?P<v>done|finished|complete|completed|blocked|on hold|paused|live|in progress|in review|in beta|cancelled|canceled|archived|in production|at risk|on track|abandoned|green|red|yellow)"
_NOW = r"(?: is now| is| was moved to| moved to| was changed to| has changed to| changed to| was pushed to| has moved to| has been moved to)"
_TOOL = r"(?P<v>(?!(?:it|this|that|these|those|the|a|an|my|your|them|him|her|some|any|both|all|one|to|two|what|whatever|more|less|only|up|for|every|everything|words?|you|our|its|such|too|different|various|multiple|many|other|another|which|as)\b)[\w@.+#/-]{2,30}(?: (?-i:[A-Z0-9])[\w.+#-]*){0,3})"
_PLACE = r"(?P<rest>(?: in (?!(?:Jan|Febr)uary|March|April|May|June|July|August|(?:Sept|Nov|Dec)ember|October)(?-i:[A-Z])[\w'-]+(?: (?-i:[A-Z])[\w'-]+){0,2})?)"
_FOR = r"(?P<rest>(?: (?:for|as|on) [^,;:!?]{2,50})?)"
_ACT = r"(?:answer|reply|respond|write|use|call|send|push|commit|delete|run|ask|add|include|put|keep|show|speak|talk|address|suggest|recommend|remind|schedule|book|start|give|check|format|sign|share|mention|post|deploy|merge|touch|change|edit|open|buy|order|translate|cite|quote|wake|disturb|contact|explain|summarize|summarise|prefer|make|email|notify|create|store|save|log|print|restart|install|remove|test|avoid|begin|end|assume|convert|sort|list|round|link|attach|reveal|publish|force-push|overwrite|confirm|refer to|interrupt|message|text)"
_LOOSE = r"(?!(?:it|that|this|him|her|them|me|you|one)(?: (?:again|please|here|now|like that|anymore))?$)"
_STEP = r"(?:deploy|deployment|build|migration|release|launch|backup|upgrade|rollout|rollback|update|experiment|audit|import|export|pipeline|restore|cutover)"
_FIZZLE = r"(?!.*\b(?:this|that|these|again|first (?:one|option|approach)|second (?:one|option|approach))\b)(?!(?:go(?! with| for| live| ahead with)|sleep|stay|wait|leave|ask|try|give|watch|eat|order|rest|skip|take|come|see|let|do|be|not|just|call it|write you|talk|stop here|start over|continue|keep going|change my mind|think|have a|get up|head)\b)"

DECISION, PROJECT = Category.DECISION, Category.PROJECT
OUTCOME, ORDER = Category.OUTCOME, Category.INSTRUCTION

RULES = (
    rule(rf"i(?: now| currently| still)? work (?:now )?(?:at|for) {PROPER}{_PLACE}(?: as (?:a|an) .{{2,40}}| since .{{2,20}}| now)?", "{S} works at {v}{rest}.", "employer"),
    rule(rf"(?:{I_AM}) (?:now )?(?:working|employed) (?:at|for|by) {PROPER}", "{S} works at {v}.", "employer"),
    rule(rf"(?:i|i've|i have) (?:just |recently )?(?:started(?: working| a new job| my new job)? at|joined) {PROPER}(?: as .{{2,40}})?(?: last \w+| in \w+| this \w+)?", "{S} works at {v}.", "employer"),
    rule(rf"my (?:new |current )?(?:employer|company) is(?: called)? {PROPER}", "{S} works at {v}.", "employer"),
    rule(rf"(?:i have|i've got|i got|i have got) a new job at {PROPER}", "{S} works at {v}.", "employer"),
    rule(rf"(?:i no longer work|i don't work|i do not work|i stopped working) (?:at|for) {PROPER}(?: any ?more)?", "{S} no longer works at {v}.", "no longer works at"),
    rule(rf"i(?:'ve| have)? (?:just )?quit (?:my job )?at {PROPER}", "{S} no longer works at {v}.", "no longer works at"),
    rule(rf"{_WE}switched (?:over )?from (?P<w>[\w.+# -]{{2,30}}?) to {_TOOL}{_FOR}", "{S} switched from {w} to {v}{rest}.", "uses", Category.PREFERENCE, denied="no longer uses"),
    rule(rf"{_WE}(?:switched|migrated) (?:over )?to {_TOOL}{_FOR}", "{S} switched to {v}{rest}.", "uses", Category.PREFERENCE),
    rule(rf"(?:i|we) (?:no longer use|don't use|do not use|stopped using|never use) {_TOOL}(?: any ?more| any longer)?{_FOR}", "{S} no longer uses {v}{rest}.", "no longer uses", Category.PREFERENCE),
    rule(rf"(?:i|we) (?:(?:mostly|mainly|usually|always|only|now|currently|daily) )?use {_TOOL}(?: (?:daily|now|every day|at work|at home))?{_FOR}", "{S} uses {v}{rest}.", "uses", Category.PREFERENCE),
    rule(rf"{I_AM} (?:now |currently )?using {_TOOL}{_FOR}", "{S} uses {v}{rest}.", "uses", Category.PREFERENCE),
    rule(rf"{I_AM} (?:currently |now )?(?:working on|building|developing|leading) (?:a |an |the |my |our )?(?:side )?(?:(?:project|app|product|game|novel|book) )?(?:called |named |codenamed )?{PROPER}(?: project)?", "{S} works on {v}.", "works on", PROJECT),
    rule(rf"{I_AM} (?:currently )?(?:working on|building|writing|developing) (?P<v>(?:a|an|my) (?:[\w-]+ ){{1,4}}(?:app|book|novel|thesis|dissertation|game|compiler|library|website|startup|paper|album|bot|game engine))", "{S} works on {v}.", "works on", PROJECT),
    rule(rf"(?:my|our) (?:new |side |main |current )?project is called {PHRASE}", "{S} works on {v}.", "works on", PROJECT),
    rule(rf"(?:the |our |my )?(?P<a>deadline|due date|release date|launch date|launch|release) (?:for|of) (?:the |my |our )?{_ITEM}{_NOW} {_DAY}", "The {a} of {n} is {v}.", "{a}", PROJECT, subject="{n}"),
    rule(rf"{_THE}(?:'s)? (?P<a>deadline|due date|release date|launch date|launch){_NOW} {_DAY}", "The {a} of {n} is {v}.", "{a}", PROJECT, subject="{n}"),
    rule(rf"(?:my|our) (?P<a>deadline|due date|release date|launch date|launch|sprint review|demo){_NOW} {_DAY}", "{P} {a} is {v}.", "{a}", PROJECT),
    rule(rf"{_THE} (?:is due|launches|goes live|ships|must be done|needs to be done|has to be finished) {_DAY}", "The deadline of {n} is {v}.", "deadline", PROJECT, subject="{n}"),
    rule(rf"{_THE} (?:now )?(?:runs|listens|is running|is listening|is served)(?: now)? on port (?P<v>\d{{2,5}})(?: now)?", "The port of {n} is {v}.", "port", PROJECT, subject="{n}"),
    rule(rf"(?:the )?port (?:of|for) (?:the |my |our )?{_ITEM}{_NOW} (?P<v>\d{{2,5}})", "The port of {n} is {v}.", "port", PROJECT, subject="{n}"),
    rule(rf"{_THE}(?:'s)? port{_NOW} (?P<v>\d{{2,5}})", "The port of {n} is {v}.", "port", PROJECT, subject="{n}"),
    rule(rf"{_THE}(?:'s)? (?P<a>host|hostname|url|address|domain|ip|ip address){_NOW} {_HOST}", "The {a} of {n} is {v}.", "{a}", PROJECT, subject="{n}"),
    rule(rf"{_THE} (?:is hosted on|is hosted at|is deployed on|is deployed to|lives at) (?P<v>(?-i:[A-Z])[\w. -]{{1,30}}|[a-z0-9][\w-]*(?:\.[\w-]+)+)", "The host of {n} is {v}.", "host", PROJECT, subject="{n}"),
    rule(rf"(?:the )?(?:current )?version of (?:the |my |our )?{_ITEM}{_NOW} {_VERSION}", "The version of {n} is {v}.", "version", PROJECT, subject="{n}"),
    rule(rf"(?:the )?(?P<a>host|hostname|url|domain|address) of (?:the |my |our )?{_ITEM}{_NOW} (?P<v>(?-i:[A-Z])[\w. -]{{1,30}}|[a-z0-9][\w-]*(?:\.[\w-]+)+(?::\d+)?|localhost)", "The {a} of {n} is {v}.", "{a}", PROJECT, subject="{n}"),
    rule(rf"i work on (?!Mon|Tue|Wed|Thu|Fri|Sat|Sun|Mac|Windows|Linux){PROPER}", "{S} works on {v}.", "works on", PROJECT),
    rule(rf"{_THE}(?:'s)? (?:current )?version{_NOW} {_VERSION}", "The version of {n} is {v}.", "version", PROJECT, subject="{n}"),
    rule(r"(?:we are|we're|i am|i'm) (?:now |currently |still )?on (?P<n>(?!Page|Chapter|Line|Step|Day|Week|Level|Floor|Bus|Train)(?-i:[A-Z])[\w.+#-]{1,20}) (?P<v>v?\d+(?:\.\d+){0,3})", "The version of {n} in use is {v}.", "version", PROJECT, subject="{n}"),
    rule(rf"(?:the )?status of (?:the |my |our )?{_ITEM}{_NOW} {_STATUS}|(?:the )?(?-i:(?P<n>Project [\w-]+))(?: is| is now) {_STATUS}", "The status of {n} is {v}.", "status", PROJECT, subject="{n}"),
    rule(rf"(?:our|my|the) (?P<n>[a-z]+ team|team|company|{_PARTS}|[a-z]+ (?:{_PARTS})) (?:uses|runs on|is written in|is built with|is powered by) {PROPER}(?: as (?:its|the) [\w ]{{2,20}})?", "{P} {n} uses {v}.", "{n} uses", PROJECT),
    rule(rf"(?:the )?(?-i:(?P<n>Project [\w-]+)) (?:uses|runs on|is written in|is built with) {PROPER}", "{n} uses {v}.", "uses", PROJECT, subject="{n}"),
    rule(rf"{_WE}decided (?P<v>(?:to|not to) {_FIZZLE}[a-z][^;:!?]{{5,110}}|on (?!it|that|this|the same|something)\S[^;:!?]{{2,80}}|against (?!it|that|this)\S[^;:!?]{{2,80}}|that (?:we|the|our) [^;:!?]{{5,100}})", "{S} decided {v}.", "decided", DECISION, strict=False),
    rule(r"(?:we are|we're|we will|we'll) (?:going|go) with (?!it\b|that\b|this\b|the\b|you\b)(?P<v>[^;:!?,]{2,80})", "{S} decided to go with {v}.", "decided", DECISION),
    rule(rf"{_WE}(?:chose|picked|settled on) (?P<v>[\w.+#-]{{2,30}}(?: [\w.+#-]+){{0,3}}? (?:over|as|for|instead of) [^,;:!?]{{2,60}})", "{S} chose {v}.", "decided", DECISION),
    rule(rf"{_WE}agreed (?P<v>(?:to|on|that) (?!it|that|this|disagree)[^;:!?]{{5,100}})", "{S} agreed {v}.", "decided", DECISION, strict=False),
    rule(rf"(?:the |our |my )(?P<n>(?:[\w-]+ )?{_STEP})(?: of [\w. -]{{2,30}}| to [\w. -]{{2,30}})? (?P<v>(?:failed|succeeded|broke|was cancelled|was rolled back|was aborted|crashed|was delayed) (?:because|due to|since|after|with) [^;!?]{{3,110}})", "The {n} {v}.", "outcome", OUTCOME, strict=False, subject="{n}"),
    rule(rf"{_WE}(?:(?P<a>shipped|released|launched|migrated|deployed|published)) (?P<v>(?=[^;:!?]*(?-i:[A-Z0-9]))(?!it\b|that\b|this\b|them\b|the fix\b|a fix\b)[^;:!?]{{2,80}})", "{S} {a} {v}.", "outcome", OUTCOME),
    rule(rf"(?:{_WE}|i got )(?P<v>passed my [\w ]{{2,40}}|failed my [\w ]{{2,40}} (?:exam|test)|promoted(?: to [\w ]{{3,40}})?|accepted (?:at|to|into) (?-i:[A-Z])[\w ]{{2,40}}|won (?:the|a) [\w ]{{3,40}}|graduated(?: from (?-i:[A-Z])[\w ]{{2,40}})?|signed the (?:lease|contract)[\w ]{{0,30}})", "{S} {v}.", "outcome", OUTCOME),
    rule(rf"(?:please |from now on,? |in (?:the )?future,? |and |you (?:should|must) )*(?P<a>always|never)(?:,? please)? (?P<v>{_ACT} {_LOOSE}\S[^!?]{{1,150}})", "{A} {v}.", "instruction", ORDER, value="{a} {v}", strict=False),
    rule(rf"(?:please )?(?:from now on|in (?:the )?future|going forward),? (?:please )?(?P<v>(?:(?:don't|do not) )?{_ACT} {_LOOSE}\S[^!?]{{1,150}})", "From now on, {v}.", "instruction", ORDER, strict=False),
    rule(rf"(?:please )?don't ever (?P<v>{_ACT} {_LOOSE}\S[^!?]{{1,150}})", "Never {v}.", "instruction", ORDER, value="never {v}", strict=False),
)  # fmt: skip
