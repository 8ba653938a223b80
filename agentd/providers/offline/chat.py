"""One step of a conversation with the user: the tool to call, or the answer. Pure.

The step follows from the user's words and from what this turn's tools have answered so far; a turn
takes one tool call at most.
"""

from __future__ import annotations

import re

from agentd.domain.prompt import Prompt
from agentd.providers.offline import conversation, phrases, words
from agentd.providers.offline.answer import about, answer, quoted
from agentd.providers.offline.hits import Line, lines
from agentd.providers.offline.intent import (
    CHECKLIST,
    Ask,
    Forget,
    Intent,
    ListFiles,
    Notify,
    Read,
    Remember,
    Remind,
    Small,
    intent,
)
from agentd.providers.offline.reply import Call, Reply, Say
from agentd.providers.offline.sentences import is_question, order

_LIMIT = 20  # hits of a search
_QUOTED = 10  # lines that are listed
_CHARS = 300  # of a note that its confirmation repeats
_PATH = re.compile(r"(?:Added to|Wrote|Changed|Saved) (.{1,300})\.")
_BOOTSTRAP = ("## BOOTSTRAP.md", "## First-Run Bootstrap")


def reply(prompt: Prompt) -> Reply:
    """The next tool call, or the answer."""
    wanted = intent(conversation.own_words(prompt), conversation.now(prompt))
    if wanted == Remember(""):
        wanted = Remember(_last_statement(prompt))
    if isinstance(wanted, Small):
        return Say(_small(wanted, prompt))
    answered = conversation.done(prompt)
    if answered:
        return Say(_told(wanted, answered[-1], prompt))
    call = _call(wanted)
    if isinstance(call, Call) and call.tool not in {spec.name for spec in prompt.tools}:
        return Say(phrases.NO_TOOL.format(tool=call.tool))
    return call


def _call(wanted: Intent) -> Reply:
    match wanted:
        case Remember(fact) if fact:
            return Call("memory_write", {"content": _clean(fact)})
        case Remember():
            return Say(phrases.WHAT_TO_REMEMBER)
        case Remind(entry):
            return Call("memory_write", {"content": _clean(entry), "target": "heartbeat"})
        case Ask(text) | Forget(text):
            return _search(text)
        case Read(path):
            return Call("memory_read", {"path": path})
        case ListFiles():
            return Call("memory_tree", {"depth": 3})
        case Notify(text):
            return Call("notify", {"text": _clean(text)})
        case Small():
            return Say(_SAID[wanted])


def _search(text: str) -> Reply:
    query = words.query(text)
    return (
        Call("memory_search", {"query": query, "limit": _LIMIT}) if query else Say(phrases.NO_WORDS)
    )


def _told(wanted: Intent, done: conversation.Done, prompt: Prompt) -> str:
    """The answer from what the tool has said."""
    result = done.result
    if result.is_error:
        return _refused(wanted, result.text)
    match wanted:
        case Remember():
            return phrases.NOTED.format(path=_path(result.text), text=_written(done))
        case Remind():
            return phrases.LISTED.format(path=_path(result.text), text=_written(done))
        case Ask(question):
            return answer(question, (*lines(result.text), *_heard(prompt)))
        case Forget(topic):
            return _holding(topic, lines(result.text))
        case Notify():
            return phrases.ALERTED.format(result=result.text)
        case Read(path) if path == CHECKLIST:
            return _checklist(lines(result.text))
        case _:
            return result.text


def _refused(wanted: Intent, why: str) -> str:
    match wanted:
        case Remember():
            return phrases.NOT_NOTED.format(why=_sentence(why))
        case Remind():
            return phrases.NOT_LISTED.format(why=_sentence(why))
        case Notify():
            return phrases.NOT_ALERTED.format(why=_sentence(why))
        case _:
            return phrases.NOT_READ.format(why=_sentence(why))


def _small(kind: Small, prompt: Prompt) -> str:
    match kind:
        case Small.GREETING if _is_first(prompt):
            return f"{phrases.GREETING}\n{phrases.FIRST}"
        case Small.TIME:
            now = conversation.now(prompt)
            return phrases.TIME.format(now=now) if now else phrases.NO_TIME
        case _:
            return _SAID[kind]


_SAID = {
    Small.EMPTY: phrases.EMPTY,
    Small.GREETING: phrases.GREETING,
    Small.THANKS: phrases.WELCOME,
    Small.WHO: phrases.WHO,
    Small.HELP: phrases.HELP,
    Small.STATEMENT: phrases.STATED,
    Small.UNKNOWN: phrases.UNKNOWN,
}


def _is_first(prompt: Prompt) -> bool:
    """Whether nothing has been said yet and the questions of the first conversation are open."""
    waits = any(heading in section for section in prompt.system for heading in _BOOTSTRAP)
    return waits and not conversation.has_answered(prompt)


def _last_statement(prompt: Prompt) -> str:
    before = conversation.said_before(prompt)
    return before[-1].strip() if before and not is_question(before[-1]) else ""


def _heard(prompt: Prompt) -> tuple[Line, ...]:
    """What the user has said earlier in this conversation, which no index may hold yet."""
    return tuple(
        Line("earlier in this conversation", line.strip(), speaker="user", number=number)
        for number, text in enumerate(conversation.said_before(prompt))
        for line in (order(text) or text).split("\n")
        if line.strip()
    )


def _holding(topic: str, found: tuple[Line, ...]) -> str:
    held = about(topic, found)[:_QUOTED]
    if not held:
        return phrases.FORGET_NOTHING
    shown = (f"- {quoted(line.text, line.place)}" for line in held)
    return "\n".join((phrases.FORGET_LINES, *shown))


def _checklist(found: tuple[Line, ...]) -> str:
    entries = [
        f"- {line.text} ({line.place})" for line in found if line.is_entry and not line.is_ticked
    ]
    return "\n".join((phrases.CHECKLIST, *entries)) if entries else phrases.CHECKLIST_EMPTY


def _path(result: str) -> str:
    match = _PATH.match(result)
    return match[1] if match else "memory"


def _written(done: conversation.Done) -> str:
    text = str(done.use.input.get("content", ""))
    return text if len(text) <= _CHARS else f"{text[:_CHARS].rstrip()} […]"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _clean(text: str) -> str:
    """The text without characters that no file may hold."""
    kept = text.replace("\r\n", "\n").encode("utf-8", errors="ignore").decode()
    return "".join(c if c in "\n\t" or c.isprintable() or ord(c) > 0x9F else " " for c in kept)
