"""What attackers tell a model, word by word and in many languages: data, and patterns made of it.

All patterns are for the `dense` or the `native` reading, where words touch. Every repetition has a
bound, so that matching takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from agentd.screening.disguise import densely, natively

_AROUND = 80  # characters of the dense reading in which a whole phrase fits


@dataclass(frozen=True, slots=True)
class Phrase:
    """A pattern with why it is suspicious. With `hint` it is looked for near a hint only."""

    reason: str
    pattern: re.Pattern[str]
    hint: re.Pattern[str] | None = None

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Where it stands, from the front."""
        if self.hint is None:
            yield from self.pattern.finditer(text)
            return
        first = last = 0
        for found in self.hint.finditer(text):
            if found.start() - _AROUND > last:
                yield from self.pattern.finditer(text, first, last)
                first = found.start() - _AROUND
            last = found.end() + _AROUND
        yield from self.pattern.finditer(text, first, last)


_SET_ASIDE = (
    "ignore ignoring ignores disregard disregarding forget override overrule bypass neglect"
)
_SET_ASIDE += " dismiss donotfollow dontfollow donotobey stopfollowing stopobeying nolongerfollow"
_SET_ASIDE += " payno payzero violate abandon setaside putaside disobey unlearn"
_WIPE = "delete erase clear drop cancel revoke discard nullify void skip replace supersede"
_FILL = (
    "attentionto heedto mindto everything anything whatever whichever completely entirely totally"
)
_FILL += (
    " please immediately these those that this were what your the any all every each and or you"
)
_FILL += (
    " our my of been have has just now other from told said given listed safety core developers"
)
_EARLIER = "previously previous prior above earlier preceding foregoing former initial original"
_EARLIER += " existing system hidden safety content built"
_RULE = "instruction prompt directive guideline direction rules ruleset constraint restriction"
_RULE += " safeguard guardrail programming systemmessage commands policies policy training context"
_BEHIND = "above before previously sofar earlier youweregiven youhavebeengiven youvebeengiven"
_BEHIND += " youreceived youweretold givento byyour bythedeveloper bythesystem uptonow"
_YOURS = "yourinstruction yourprompt yourguideline yourrules yourprogramming yourtraining"
_YOURS += " yoursafety yourrestriction yourconstraint yoursystemprompt yourguardrail yourdirective"
_YOURS += " yourethic yourfilter yourpolic allyourrules"

_NEVER = ("dont", "donot", "never", "shouldnot", "mustnot", "without", "cannot", "cant", "not")


def _any(words: str, read: Callable[[str], str] = densely) -> str:
    """One of the words, the longest first."""
    found = sorted({read(word) for word in words.split()}, key=lambda w: (-len(w), w))
    return f"(?:{'|'.join(found)})"


def _english() -> str:
    aside, wipe, fill = _any(_SET_ASIDE), _any(_WIPE), _any(_FILL)
    earlier, rule, behind, yours = _any(_EARLIER), _any(_RULE), _any(_BEHIND), _any(_YOURS)
    few = _any("instruction prompt directive guideline systemmessage")
    all_of_it = _any("everything anything all allofthat")
    return "|".join(
        (
            f"{aside}{fill}{{0,8}}(?:{earlier}{fill}{{0,3}}){{1,3}}{rule}",
            f"{aside}{fill}{{0,8}}{rule}s?(?:{fill}{{0,4}}|that|which){behind}",
            f"{_any('ignore disregard forget')}{all_of_it}{fill}{{0,5}}{behind}",
            f"{_any('ignore disregard')}the(?:{_any('above preceding foregoing')})and",
            f"{aside}{fill}{{0,3}}{yours}",
            f"{wipe}{fill}{{0,6}}{earlier}{fill}{{0,2}}{few}",
            f"{wipe}{fill}{{0,2}}{_any('yourinstruction yourprompt yourguideline yoursystemprompt')}",
        )
    )


# Language: to set aside | earlier, all, your | instructions, rules. The words may come in any order.
_LATIN = (
    (
        "ignorier vergiss vergesst missachte verwirf | vorherig bisherig obig fruher frueher vorangegangen "
        "vorangehend vorig deine alle | anweisung instruktion regeln vorgaben befehle systemprompt"
    ),
    (
        "ignore ignorez ignorer oublie oubliez neglige | precedent anterieur cidessus toutes vos tes | "
        "instruction consigne regles directives"
    ),
    (
        "ignora ignore ignorad olvida olvide olviden descarta | anterior previa todas tus sus | "
        "instruccion indicacion reglas ordenes directrices"
    ),
    "ignora ignorate dimentica scorda tralascia | precedent tutte tue sopra | istruzion regole direttiv",
    (
        "ignore ignora esqueca esquece desconsidere | anterior previa todas suas tuas | "
        "instruco regras orientaco diretriz"
    ),
    "negeer vergeet | eerdere vorige voorgaande bovenstaande alle | instructies opdrachten regels",
    (
        "ignorera ignorer glom glem bortse | tidigare foregaende tidligere forrige alla alle | "
        "instruktion instruks anvisning regler"
    ),
    "ignoruj zignoruj zapomnij pomin | poprzedni wczesniejsz powyzsz wszystkie | instrukcj polecen zasad",
    "ignoruj zapomen | predchozi vsechny drivejsi | pokyn instrukc pravidl",
    "yoksay unut gozardi gormezdengel dikkatealma | onceki yukaridaki tum | talimat komut kural",
    "boqua photlo quen | truoc tren moi tatca | huongdan chithi menhlenh",
    "abaikan lupakan | sebelumnya semua diatas | instruksi perintah aturan",
    "unohda ohita | aiemmat edelliset kaikki | ohjeet saannot kaskyt",
    "ignora uita | anterioare precedente toate | instructiun reguli",
)
_OTHER_SCRIPTS = (
    (
        "игнорируй игнорируйте игнорировать забудь забудьте отмени | предыдущ прежн выше все ранее | "
        "инструкци указани правил команд"
    ),
    "ігноруй ігноруйте забудь забудьте | попередн всі вище | інструкці вказівк правил",
    (
        "忽略 无视 忘记 忽視 無視 忘掉 忘記 不要理会 不要遵守 | 之前 以前 先前 上面 以上 前面 所有 此前 | "
        "指令 指示 提示 命令 规则 規則"
    ),
    "無視 忘れ 従わない | 以前 これまで 前の 上記 すべて 全て | 指示 命令 プロンプト ルール",
    "무시 잊어 | 이전 위의 지금까지 모든 | 지시 명령 프롬프트 규칙",
    "تجاهل انس تجاهلي | السابقة أعلاه جميع كل | التعليمات الأوامر القواعد",
    "अनदेखा भूल नजरअंदाज नज़रअंदाज | पिछले पूर्व सभी ऊपर | निर्देश आदेश नियम",
    "התעלם תתעלם שכח | הקודמות כל לעיל | ההוראות הנחיות הכללים",
    "αγνόησε ξέχασε | προηγούμεν όλες | οδηγίες εντολές",
    "نادیده | قبلی همه بالا | دستورات دستورالعمل قوانین",
)


def _in_any_order(rows: Iterable[str], read: Callable[[str], str]) -> str:
    patterns = []
    for row in rows:
        aside, marks, rules = (_any(words, read) for words in row.split("|"))
        patterns.append(f"{aside}(?!nicht).{{0,16}}?{marks}.{{0,16}}?{rules}")
        patterns.append(f"{aside}(?!nicht).{{0,14}}?{rules}.{{0,12}}?{marks}")
        patterns.append(f"{marks}.{{0,12}}?{rules}.{{0,14}}?{aside}")
    return "|".join(patterns)


def _asides(rows: Iterable[str], read: Callable[[str], str]) -> re.Pattern[str]:
    """The words for setting aside, of all languages."""
    return re.compile(_any(" ".join(row.partition("|")[0] for row in rows), read))


def _hiding() -> str:
    tell = _any("tell inform notify alert mention reveal disclose letting telling informing warn")
    tell = tell.replace("(?:", f"(?:{densely('notifying')}|{densely('alerting')}|", 1)
    no = _any("donot dont never mustnot shouldnot without avoid")
    of_it = _any("it this that thisto about of any anythingto ever please")
    whom = _any("user owner human operator") + "(?!s)"
    the = _any("the your our")
    secret = _any("secret hidden confidential private invisible")
    return "|".join(
        (
            f"{no}{of_it}{{0,2}}{tell}{of_it}{{0,3}}(?:{densely('to')})?{the}{whom}",
            f"{densely('hide')}{of_it}{{0,2}}{densely('from')}{the}{whom}",
            f"{_any('keep keeping')}{of_it}{{0,2}}{secret}?{densely('from')}{the}{whom}",
            (
                f"{the}{whom}{_any('must should may can')}{_any('not never')}(?:{densely('be')})?"
                f"{_any('know see notice learn find told informed aware')}"
            ),
            (
                f"{_any('secretly silently covertly quietly')}"
                f"{_any('send forward upload copy exfiltrate transmit post leak share email')}(?!s(?!e))"
            ),
            _any(
                "sagdemnutzernichts sagdembenutzernichts sagedemnutzernichts sagedembenutzernichts "
                "ohnedennutzerzuinformieren ohnedembenutzer verschweigedemnutzer nedisrienalutilisateur "
                "nedispasalutilisateur ninformepaslutilisateur noledigasalusuario noinformesalusuario "
                "nondireallutente nondirloallutente naodigaaousuario naoconteaousuario "
                "vertelhetnietaandegebruiker niemowuzytkownikowi"
            ),
        )
    )


def _persona() -> str:
    free = "unrestricted unfiltered uncensored jailbroken dan anevil freeof freefrom nolongerbound "
    free += "indevelopermode indebugmode ingodmode rootmode withoutrestriction nolongeran nolongera"
    limits = "restrictions rules limits limitations filters constraints guidelines safeguards"
    return "|".join(
        (
            f"{densely('youarenow')}{_any('a an the')}?{_any(free)}",
            (
                f"{_any('actas actlike behaveas roleplayas pretendtobe')}{_any('a an the')}?"
                f"{_any('dan unrestricted unfiltered uncensored jailbroken evil')}"
            ),
            (
                f"{_any('youhaveno actasifyouhaveno pretendyouhaveno therearenolongerany')}"
                f"{_any('more longer content safety ethical moral')}?{_any(limits)}"
            ),
            (
                f"{_any('developer debug god jailbreak sudo admin dan')}{densely('mode')}"
                f"{_any('enabled activated isnowon isnowactive unlocked')}"
            ),
            (
                f"{densely('your')}{_any('new only real true actual')}"
                f"{_any('systemprompt instructionsare instructionis taskisto goalisto roleis purposeis objectiveis')}"
            ),
            f"{_any('newsysteminstruction systempromptoverride systemoverride instructionoverride')}",
            (
                f"{_any('reveal print repeat output leak disclose showme dump tellme')}"
                f"{_any('me your the all full entire of verbatim')}{{0,4}}"
                f"{_any('systemprompt hiddenprompt hiddeninstruction initialprompt secretinstruction')}"
            ),
            (
                f"{_any('bypass disable evade circumvent turnoff')}{_any('all your the any')}{{0,3}}"
                f"{_any('safetycheck safetyfilter safetymeasure guardrail contentfilter approvalprompt')}"
            ),
            (
                f"{_any('bypass disable evade circumvent turnoff')}{_any('all your the any')}{{0,3}}"
                f"{_any('permissioncheck permissionprompt approvalcheck securitycheck injectionscan')}"
            ),
        )
    )


def _address() -> str:
    ai = _any("ai llm languagemodel aiassistant aiagent llmagent aimodel assistant")
    return "|".join(
        (
            (
                f"{_any('noteto messageto attention instructionsfor noticeto hey dear')}"
                f"{_any('the any all')}{{0,2}}{_any('aiassistant aiagent aimodel llm languagemodel ai')}"
                f"{_any('s agent assistant model reading processing please you must')}"
            ),
            (
                f"{ai}s?{_any('that which who')}?{_any('is are')}?"
                f"{_any('readingthis processingthis parsingthis summarizingthis summarisingthis')}"
            ),
            f"{_any('ifyouareanai ifyoureanai ifyouarealanguagemodel ifyouareanllm')}",
            f"{_any('ifyouareanassistant ifyouareaai ifyouarealargelanguagemodel')}",
        )
    )


OVERRIDE = Phrase("tells the agent to drop its instructions", re.compile(_english()))
DENSE_PHRASES = (
    OVERRIDE,
    Phrase(
        "tells the agent to drop its instructions",
        re.compile(_in_any_order(_LATIN, densely), re.DOTALL),
        _asides(_LATIN, densely),
    ),
    Phrase("tells the agent to hide something from the user", re.compile(_hiding())),
    Phrase("gives the agent another role or lifts its limits", re.compile(_persona())),
    Phrase("speaks to whichever model reads it", re.compile(_address())),
)
NATIVE_PHRASES = (
    Phrase(
        "tells the agent to drop its instructions",
        re.compile(_in_any_order(_OTHER_SCRIPTS, natively), re.DOTALL),
        _asides(_OTHER_SCRIPTS, natively),
    ),
    Phrase(
        "tells the agent to hide something from the user",
        re.compile(
            _any(
                "不要告诉用户 不要告訴用戶 别告诉用户 不要让用户知道 ユーザーに言わない ユーザーに知らせない "
                "ユーザーには伝えない 사용자에게알리지 사용자에게말하지 неговорипользователю "
                "несообщайпользователю неговоритепользователю لاتخبرالمستخدم",
                natively,
            )
        ),
    ),
)
TELLTALES = ("instruction", "prompt", "guideline", "directive", "rules")
"""Words without which turned letters are not worth a closer look."""
NEGATIONS = tuple(densely(word) for word in _NEVER)
