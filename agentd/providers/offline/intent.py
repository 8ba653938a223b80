"""Read by fixed rules what the user wants, from the user's own words. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from enum import Enum, auto

from msgspec import Struct

from agentd.providers.offline.language import word_forms
from agentd.providers.offline.language.calendar import is_time, plain_entry, split_time
from agentd.providers.offline.language.claims import claims
from agentd.providers.offline.language.sentences import bare, is_question, order, split

_CHARS = 2_000  # looked at by the rules; a text to be noted is never cut
_FACT_CHARS = 500  # longest fact; a longer text becomes a note
CHECKLIST = "HEARTBEAT.md"


class SmallTalk(Enum):
    """Requests and remarks that need no tool."""

    EMPTY = auto()
    GREETING = auto()
    THANKS = auto()
    WHO = auto()
    HELP = auto()
    TIME = auto()
    KNOWN = auto()
    STATEMENT = auto()
    UNKNOWN = auto()


class RememberIntent(Struct, frozen=True):
    """Keep `text` as a fact or, if `is_note`, in a note; "" means the user's previous message."""

    text: str
    is_note: bool = False


class ForgetIntent(Struct, frozen=True):
    """Erase the facts about `topic`, or those of the `ids`; without both, ask what is meant.
    `asked` is the topic for which the user was offered these ids.
    """

    topic: str
    ids: tuple[str, ...] = ()
    asked: str = ""


class Remind(Struct, frozen=True):
    """Send `text` once at the local time `at`, "2026-11-22 09:00". Where `at` is "" or there is no
    tool for reminders, put `entry` on the checklist. `objection` says why the time cannot be used;
    then the user is told so and nothing is scheduled.
    """

    entry: str
    text: str = ""
    at: str = ""
    objection: str = ""


class ShowFile(Struct, frozen=True):
    """Show a file."""

    path: str


class ListFiles(Struct, frozen=True):
    """Show the list of files."""


class NotifyIntent(Struct, frozen=True):
    """Send an alert now."""

    text: str


class Ask(Struct, frozen=True):
    """Find the answer to a question."""

    question: str


Intent = (
    SmallTalk | RememberIntent | ForgetIntent | Remind | ShowFile | ListFiles | NotifyIntent | Ask
)

_LIST = r"(?:heartbeat(?:\.md)?|check ?list|to-?do(?: list)?|todos|task list|tasks|list)"
_ADD = re.compile(
    rf"(?:add|put|write) (?P<task>.+?) (?:to|on|onto|in|into) (?:my |the |your )?"
    rf"(?:heartbeat )?{_LIST}(?P<rest>(?: .*)?)[.!]?",
    re.IGNORECASE,
)
_REMIND = re.compile(
    r"(?P<time>(?:every|each|in|on|at|tomorrow|today|tonight|daily|weekly)\b.{1,60}? ,?"
    r"|)(?:please )?"
    r"(?:remind me|set (?:me )?a reminder)(?P<link> (?:to|about|of|that|for))?:? (?P<task>.+)",
    re.IGNORECASE,
)
_DAY_AND_MONTH = re.compile(r"\.\d{1,2}\Z")
_SHOW_LIST = re.compile(
    rf"(?:(?:what(?:['’]s| is| else is)?|anything|show(?: me)?|read(?: me)?|list)(?: (?:on|in))? )"
    rf"(?:my |the |your )?(?:open )?{_LIST}[ ?.!]*",
    re.IGNORECASE,
)
_READ = re.compile(
    r"(?:show|read|open|print|cat|display)(?: me)? (?:the |my )?(?:file )?"
    r"[`\"']?(?P<path>[^\s`\"'?]{1,300}\.(?:md|jsonl|txt))[`\"']?(?: please)?[ ?.!]*",
    re.IGNORECASE,
)
_TODAY = re.compile(
    r"(?:(?:show|read|open)(?: me)? (?:my |the )?(?:today['’]?s? |daily )notes?"
    r"|what (?:did i|have i) (?:note|noted|write down|written down) today)[ ?.!]*",
    re.IGNORECASE,
)
_FILES = re.compile(
    r"(?:list|show|what)(?: me)?(?: all| my| the| your| memory)*(?: memory)? (?:files|notes)"
    r"(?: (?:are|do) .{0,30})?[ ?.!]*",
    re.IGNORECASE,
)
_NOTIFY = re.compile(
    r"(?:notify|alert) me(?: right)?(?: now)?(?: (?:that|about|of))?[:,]? "
    r"(?!when|if|whenever|at|in|on|every|tomorrow|as soon)(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(
    r"(?:forget|erase|delete|remove|vergiss)"
    r"(?:,? (?:that|about|(?:all|everything|what)(?: (?:that )?(?:i|you) (?:said|told you|know"
    r"|learnt|learned))? (?:about|of)|dass|alles über))?"
    r"(?::)? (?P<topic>.+)",
    re.IGNORECASE | re.DOTALL,
)
_NOTE = re.compile(
    (
        r"note\b|(?:make|take) a note|(?:write|jot)\b|for the record|(?:save|store)\b|notier|anota"
        r"|apunta"
    ),
    re.IGNORECASE,
)
_ENTRY = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|\[[ xX]?\])\s|Remember to\b")
_SMALL = {
    SmallTalk.GREETING: (
        "hi|hello|hey|hallo|hola|bonjour|salut|servus|moin|good morning|good evening|good "
        "afternoon|guten morgen|guten tag|hi there|hello there|hey there|hello agentd|hi "
        "agentd|how are you|hello how are you|hi how are you|yo|ping"
    ),
    SmallTalk.THANKS: (
        "thanks|thank you|thx|danke|merci|gracias|thanks a lot|thank you very "
        "much|ok|okay|great|cool|nice|good|perfect|ok thanks|great thanks|never "
        "mind|nevermind|bye|goodbye|good night"
    ),
    SmallTalk.WHO: "who are you|what are you|who is this|are you an ai|are you a language model"
    "|what is agentd|wer bist du|qui es tu|quién eres|are you there|what s your name"
    "|what is your name",
    SmallTalk.HELP: (
        "help|help me|what can you do|what can i say|what do you do|commands|how do you work|how "
        "does this work|how do i set a key|how do i set up a key|how do i set up a "
        "model|hilfe|aide|ayuda|was kannst du"
    ),
    SmallTalk.TIME: (
        "what time is it|what s the time|what is the time|what day is it|what day is it "
        "today|what day is today|what is the date|what s the date|what is today s date|what date "
        "is it|what is the date today|what time is it now"
    ),
    SmallTalk.KNOWN: (
        "who am i|what do you know about me|what do you know of me|what do you remember about "
        "me|what have i told you|what have i told you about me|what did i tell you about me|tell "
        "me about me|wer bin ich|was weißt du über mich|was weißt du von mir"
    ),
}
_FORGET_WHAT = frozenset(
    [
        "forget it",
        "forget that",
        "forget this",
        "forget about it",
        "forget about that",
        "forget everything",
        "forget all",
        "forget",
        "vergiss es",
        "vergiss das",
        "vergiss alles",
        "vergiss",
    ]
)
_BY_WORDS = {text: small for small, texts in _SMALL.items() for text in texts.split("|")}
_STATES = re.compile(
    r"\b(?:i|i['’]m|i['’]ve|my|mine|me|we|our|us|ich|mein\w{0,2}|wir|unser\w{0,2}|je|mon|ma|mes"
    r"|nous|notre"
    r"|yo|mi|mis|nosotros|nuestr[oa]|is|are|was|were|has|had|have|will|ist|sind|est|sont|es"
    r"|está)\b",
    re.IGNORECASE,
)


def intent(text: str, now: datetime | None = None) -> Intent:
    """Return what the text asks for. `now` is the owner's wall time, for relative dates."""
    if not any(map(str.isalnum, text)):
        return SmallTalk.EMPTY if not text.strip() else SmallTalk.UNKNOWN
    plain = word_forms.normal(bare(text)[:200]).removesuffix(" please").removesuffix(" bitte")
    if plain in _FORGET_WHAT:
        return ForgetIntent("")
    if small := _BY_WORDS.get(word_forms.normal(text[:200]).removesuffix(" please")):
        return small
    if (fact := order(text)) is not None:
        return RememberIntent(fact, _is_note(text, fact))
    head = " ".join(bare(text)[:_CHARS].split())
    for rule in _RULES:
        if found := rule(head, now):
            return found
    if is_question(text):
        return Ask(_questions(text))
    asked = [piece for piece in split(text[-_CHARS:]) if is_question(piece)]
    if asked:
        return Ask(" ".join(asked))
    return SmallTalk.STATEMENT if _STATES.search(text[:_CHARS]) else SmallTalk.UNKNOWN


def _is_note(said: str, asked: str) -> bool:
    """Whether text to be kept goes into a note: it is more than a sentence, an entry of a list, a
    task, or asked for as a note and not understood as a claim.
    """
    text = asked.strip()
    if len(text) > _FACT_CHARS or "\n" in text or len(list(split(text))) > 1:
        return True
    if _NOTE.match(bare(said)) and not claims(text):
        return True
    return _ENTRY.match(text) is not None or bool(text and not word_forms.terms(text))


def _questions(text: str) -> str:
    """Return the questions of a text of several sentences."""
    return " ".join(p for p in split(text[-_CHARS:]) if is_question(p)) or text


def _without_marks(text: str) -> str:
    """Return the text without punctuation at its end, except the point of a day and month: “on
    31.5.”.
    """
    bare = text.rstrip("?!. ")
    is_date = text.startswith(".", len(bare)) and _DAY_AND_MONTH.search(bare, max(0, len(bare) - 3))
    return f"{bare}." if is_date else bare


def _task(head: str, now: datetime | None) -> Intent | None:
    if match := _ADD.fullmatch(head):
        found = split_time(f"{match['task'].strip(chr(34))} {match['rest']}", now)
        return Remind(found.entry, objection=found.objection)
    if match := _REMIND.fullmatch(head):
        when, task = match["time"], _without_marks(match["task"])
        if not match["link"] and " to " in task:  # “remind me WHEN to TASK”
            before, _, task = task.partition(" to ")
            when = f"{before} {when}"
        found = split_time(f"{task} {when}", now)
        if found.objection:
            return Remind(found.entry, objection=found.objection)
        if found.marks and when.strip() and not is_time(when, now):
            # The understood part of “every weekday at 6:30” would be another time, so the entry
            # keeps the user's words.
            return Remind(f"- [ ] {when.strip(' ,')}: {plain_entry(task)}")
        return Remind(found.entry, found.task if found.at else "", found.at)
    return None


def _files(head: str, now: datetime | None) -> Intent | None:
    if _SHOW_LIST.fullmatch(head):
        return ShowFile(CHECKLIST)
    if match := _READ.fullmatch(head):
        return ShowFile(match["path"])
    if _TODAY.fullmatch(head) and now is not None:
        return ShowFile(f"memory/{now:%Y-%m-%d}.md")
    return ListFiles() if _FILES.fullmatch(head) else None


def _others(head: str, _now: datetime | None) -> Intent | None:
    if match := _NOTIFY.fullmatch(head):
        return NotifyIntent(match["text"].strip())
    if match := _FORGET.fullmatch(head):
        return ForgetIntent(match["topic"].rstrip("?!. "))
    return None


_RULES: tuple[Callable[[str, datetime | None], Intent | None], ...] = (_task, _files, _others)
