"""Where the user lives and comes from, what belongs to him, and how he is reached."""

from __future__ import annotations

from agentd.statements.calendar import WHEN
from agentd.statements.rules.rule import I_AM, I_HAVE, MY, PHRASE, PROPER, rule

_IN = r"(?:in|at)"
# A place in small letters: one or two words that are no everyday turn of phrase.
_PLACE = rf"(?:{PROPER}(?: with .{{1,40}}| since .{{1,30}}| now)?|(?P<v>(?!(?:a|an|the|this|that|my|our|your|fear|hope|peace|pain|hell|harmony|sin|luxury|poverty|constant|total|denial|it|here|there|charge|trouble|bed|work|home|interesting|different|same|two|three)\b)[a-zà-ÿ-]{{3,20}}(?: [a-zà-ÿ-]{{3,20}})?))"
_SINCE = r"(?: (?:last|this|in|on|a|two|three|about|recently|since) [^,;:!?]{1,30}| recently)?"
_A_THING = r"(?P<n>car|bike|bicycle|motorbike|motorcycle|e-bike|scooter|van|truck|boat)"
# What is called something is that; a device that is called something is still of some make.
_SERVICE = r"editor|ide|shell|terminal|browser|operating system|os|distro|bank|health insurance|insurance|gym|mobile provider|internet provider|isp|email provider|search engine|password manager|note-taking app|calendar app|calendar|desktop environment|window manager|main language|doctor's office"
_THING = rf"(?P<n>laptop|computer|pc|phone|smartphone|tablet|camera|printer|router|monitor|keyboard|tv|{_SERVICE})"
_SIZE = r"(?P<n>blood type|star sign|zodiac sign|nationality|citizenship|religion|pronouns)"
_MEASURE = r"(?P<n>(?:shoe|shirt|ring|dress|clothing|waist) size|height|weight|resting heart rate)"
_PHONE = r"(?P<v>\+?\d[\d ()/.-]{2,24}\d)"

RULES = (
    rule(rf"(?:i|we)(?: now| currently| still)? (?:live|reside) (?:now |currently )?{_IN} {_PLACE}", "{S} lives in {v}.", "home"),
    rule(rf"(?:{I_AM}) (?:currently |now )?(?:living|based|located) in {_PLACE}", "{S} lives in {v}.", "home"),
    rule(rf"(?:i|we)(?:'ve| have)? (?:just |recently |now )?(?:moved|relocated) from (?P<w>(?-i:[A-Z])[\w' -]{{1,40}}?) to {PROPER}{_SINCE}", "{S} moved from {w} to {v}.", "home"),
    rule(rf"(?:i|we)(?:'ve| have)? (?:just |recently |now )?(?:moved|relocated) to {PROPER}{_SINCE}(?: from (?-i:[A-Z])[\w -]{{1,30}})?", "{S} moved to {v}.", "home"),
    rule(rf"{I_AM} moving (?:from (?-i:[A-Z])[\w' -]{{1,40}}? )?to (?P<v>(?-i:[A-Z])[\w' -]{{1,50}})", "{S} is moving to {v}.", "moving to"),
    rule(rf"(?:i|we) (?:no longer|don't|do not) live in {PROPER}(?: any ?more)?", "{S} no longer lives in {v}.", "no longer home"),
    rule(rf"{MY} (?P<n>home |postal |mailing |work |office )?address(?: is|'s) (?P<v>[^;:!?]{{5,100}})", "{P} {n}address is {v}.", "{n}address", strict=False),
    rule(r"(?:i|we) live at (?P<v>\d[^;:!?]{4,80}|(?-i:[A-Z])[\w'.ßäöü -]{2,40} \d+\w?(?:, [^;:!?]{2,40})?)", "{P} address is {v}.", "address"),
    rule(rf"{I_AM} (?:originally )?from {PROPER}(?: originally)?|i come from (?P<v>(?-i:[A-Z])[\w -]{{2,40}})", "{S} comes from {v}.", "origin"),
    rule(rf"i grew up in {PROPER}", "{S} grew up in {v}.", "grew up in"),
    rule(r"my time ?zone is (?P<v>(?-i:[A-Z])[\w/+:-]{1,40}(?: time)?)", "{P} timezone is {v}.", "timezone"),
    rule(rf"{MY} (?:new |current )?{_A_THING} is (?:now )?(?P<v>(?:(?:a|an) )?(?:\w+ )?(?-i:[A-Z0-9])[\w .-]{{1,40}})", "{P} {n} is {v}.", "{n}"),
    rule(r"i drive (?P<v>(?:a|an) (?:\w+ ){0,2}?(?-i:[A-Z])[\w .-]{1,40})", "{P} car is {v}.", "car"),
    rule(rf"{MY} (?:new |current |main )?(?P<n>car|bike|house|flat|apartment|front door) is (?P<v>red|blue|green|black|white|silver|grey|gray|yellow|orange|brown|purple|pink)", "{P} {n} is {v}.", "{n} colour"),
    rule(rf"{MY} (?:new |current |work |default |main )?{_THING} (?:is|is now) (?P<v>(?!(?:Dead|Broken|Slow|Down|Gone|Fine|Offline|Online|Old)\b)(?:a |an )?(?:\w+ )?(?-i:[A-Z0-9])[\w .+-]{{0,40}}|vim|neovim|emacs|nano|zsh|bash|fish|firefox|chrome|linux|ubuntu|debian|arch)", "{P} {n} is {v}.", "{n}"),
    rule(rf"{MY} (?:new |current |work |default |main )?(?P<n>{_SERVICE}) is (?:called|named) {PROPER}", "{P} {n} is {v}.", "{n}"),
    rule(rf"my {_MEASURE} is (?P<v>\d[\w.,/]{{0,6}}(?: ?(?:cm|kg|m|lbs?|eu|uk|us|bpm|ft|inches|stone))?)", "{P} {n} is {v}.", "{n}"),
    rule(rf"my {_SIZE} (?:is|are) (?P<v>[\w.,/+-]{{1,15}}(?: (?:cm|kg|m|lb|lbs|positive|negative|eu|uk|us|bpm|\w+)){{0,2}})", "{P} {n} is {v}.", "{n}"),
    rule(rf"{MY} (?:monthly )?(?P<n>rent|budget|salary) is (?:now )?(?P<v>[$€£]?\d[\d.,]*k? ?(?:€|\$|£|euros?|dollars?|pounds|usd|eur|gbp)?(?: (?:a|per) month)?)", "{P} {n} is {v}.", "{n}"),
    rule(rf"{MY} (?P<n>passport|visa|driving licen[cs]e|insurance|lease|contract|residence permit) (?:expires|ends|runs out)(?: on| in)? (?P<v>{WHEN})", "{P} {n} expires on {v}.", "{n} expiry date"),
    rule(r"i weigh (?P<v>\d{2,3}(?:[.,]\d)? ?(?:kg|kilos|lbs?|pounds|stone))", "{P} weight is {v}.", "weight"),
    rule(r"i wear (?:shoe )?size (?P<v>\d[\w.,/]{0,5})(?: shoes)?|my feet are size (?P<v>\d[\w.,]{0,5})", "{P} shoe size is {v}.", "shoe size"),
    rule(rf"{MY} (?:new )?(?P<n>office |work |mobile |cell |home )?(?:phone|mobile|cell)? ?(?:phone )?(?:number|phone|mobile)(?: is|'s) (?:now )?{_PHONE}", "{P} {n}phone number is {v}.", "{n}phone number"),
    rule(rf"{MY} (?:new )?(?P<n>work |office |private |personal )?e-?mail(?: address)?(?: is|'s) (?:now )?(?P<v>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)", "{P} {n}email is {v}.", "{n}email"),
    rule(rf"{MY} (?:car's |car )?(?:licen[cs]e|number|registration) plate(?: number)?(?: is|'s) (?:now )?(?P<v>[\w -]{{3,14}})", "{P} licence plate is {v}.", "licence plate"),
    rule(rf"{MY} (?:home |guest )?(?:wi-?fi|wlan|ssid)(?: network)?(?: name|'s name)?(?: is|'s)(?: called| named)? (?P<v>(?!slow|down|broken|off|on|bad|not|very|so|working|dead|fast|great|terrible|really|too|acting)[^\s,;:!?]{{2,32}}(?: (?-i:[A-Z0-9])[\w-]*){{0,2}})", "{P} Wi-Fi is called {v}.", "wifi name"),
    rule(r"(?:my|the) (?P<n>doctor|dentist|gym|school|university|office|vet|bank|garage)(?: is|'s) (?:located )?(?:in|at|on) (?P<v>(?-i:[A-Z])[\w' .-]{2,50}(?: \d+)?)", "{P} {n} is at {v}.", "{n} address"),
    rule(rf"i keep (?:my |the )(?P<n>(?!promises?\b|eyes?\b|word\b|mind\b|head\b|hands?\b|fingers\b|faith\b|cool\b|focus\b)[a-z][\w -]{{2,30}}?) (?P<v>(?:in|under|behind|on|above|inside|next to) (?:the|my|a) {PHRASE.replace('<v>', '<w>')})", "{S} keeps the {n} {v}.", "place of {n}"),
    rule(rf"(?:my|our|the) (?P<n>spare key|passport|toolbox|first aid kit|car keys?|house keys?|backup drive|birth certificate)s? (?:is|are) (?:kept )?(?P<v>(?:in|under|behind|on|above|inside|next to) (?:the|my|a) {PHRASE.replace('<v>', '<w>')})", "{P} {n} is {v}.", "place of {n}"),
    rule(rf"{I_HAVE} (?P<v>(?:type [12] )?(?:diabetes|asthma|epilepsy|adhd|celiac disease|coeliac disease|migraines|high blood pressure|hay fever|arthritis|insomnia))", "{S} has {v}.", "has"),
)  # fmt: skip
