"""One step of a conversation with the user: the tool to call, or the answer. Pure.

The step follows from the user's words, from the facts in the prompt, and from the results of this
turn's tool calls so far.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from msgspec.structs import replace

from agentd.core.prompt import Prompt
from agentd.providers.offline import conversation, phrases
from agentd.providers.offline.answer import AnswerLine, about, answer, lines, quote
from agentd.providers.offline.conversation import FinalText, FinishedToolCall, OfflineCall, Reply
from agentd.providers.offline.fact_answers import (
    chosen_ids,
    erased_answer,
    kept_answer,
    not_erased,
    offered_facts,
    refusal_reason,
    which,
)
from agentd.providers.offline.intent import (
    CHECKLIST,
    Ask,
    ForgetIntent,
    Intent,
    ListFiles,
    NotifyIntent,
    RememberIntent,
    Remind,
    ShowFile,
    SmallTalk,
    intent,
)
from agentd.providers.offline.language import word_forms
from agentd.providers.offline.language.claims import claims
from agentd.providers.offline.language.sentences import is_question, order

_LIMIT = 20  # hits of a search
_QUOTED = 10  # lines that are listed
_CHARS = 300  # of a note that are repeated in its confirmation
_PATH = re.compile(r"(?:Added to|Wrote|Changed|Saved) (.{1,300})\.")
_SCHEDULE = "schedule_create"
_REMEMBER, _FORGET = "remember", "forget"
_BOOTSTRAP = ("## BOOTSTRAP.md", "## First-Run Bootstrap")


def reply(prompt: Prompt) -> Reply:
    """Return the next tool call, or the answer. If the user sent an image, the answer says that it
    was not seen.
    """
    step = _step(prompt)
    if isinstance(step, FinalText) and conversation.has_image(prompt):
        return FinalText(f"{phrases.BLIND}\n{step.text}")
    return step


def _step(prompt: Prompt) -> Reply:
    tools = {spec.name for spec in prompt.tools}
    wanted = _intent_of(prompt, tools)
    if isinstance(wanted, SmallTalk):
        return FinalText(_small(wanted, prompt, is_learning=_REMEMBER in tools))
    call = _next(wanted, conversation.done(prompt), tools, prompt)
    if isinstance(call, OfflineCall) and call.tool not in tools:
        if isinstance(wanted, Ask) and (facts := conversation.facts(prompt)):
            return FinalText(answer(wanted.question, (), facts, conversation.earlier_words(prompt)))
        return FinalText(phrases.NO_TOOL.format(tool=call.tool))
    return call


def _intent_of(prompt: Prompt, tools: Container[str]) -> Intent:
    """Return what the user wants in this turn. A reply to our question which fact is meant becomes
    a request to forget the chosen ones.
    """
    said = conversation.own_words(prompt)
    if _FORGET in tools:
        ids = chosen_ids(said, offered_facts(conversation.answer_before(prompt)))
        if ids is not None:
            return ForgetIntent("", ids, _earlier_topic(prompt))
    wanted = intent(said, conversation.now(prompt))
    if isinstance(wanted, RememberIntent) and not wanted.text:
        wanted = RememberIntent(_last_statement(prompt))
    if isinstance(wanted, RememberIntent) and _REMEMBER not in tools:
        return replace(wanted, is_note=True)
    return wanted


def _earlier_topic(prompt: Prompt) -> str:
    """Return what the previous message asked to forget; "" where that message is not in
    the prompt.
    """
    before = map(intent, conversation.earlier_words(prompt)[-1:])
    return "".join(one.topic for one in before if isinstance(one, ForgetIntent))


def _next(
    wanted: Intent, done: Sequence[FinishedToolCall], tools: Container[str], prompt: Prompt
) -> Reply:
    """Return the first call, a further one where the result of the last calls for it, or the
    answer.
    """
    if wanted == ForgetIntent(""):
        return FinalText(phrases.FORGET_WHAT)
    if isinstance(wanted, ForgetIntent) and _FORGET in tools:
        return _forget(wanted, done, prompt)
    if isinstance(wanted, Remind) and wanted.objection:
        return FinalText(phrases.NOT_SCHEDULED.format(why=_sentence(wanted.objection)))
    if not done:
        return _call(wanted, tools)
    last = done[-1]
    if isinstance(wanted, RememberIntent) and last.use.name == _REMEMBER and not last.is_done:
        if why := refusal_reason(last.result.text):
            return FinalText(phrases.NOT_REMEMBERED.format(why=_sentence(why)))
        return _call(replace(wanted, is_note=True), tools)
    return FinalText(_answer_after(wanted, last, prompt))


def _forget(wanted: ForgetIntent, done: Sequence[FinishedToolCall], prompt: Prompt) -> Reply:
    """Forget facts, by the user's words, then by their English translation. Where no fact matches,
    ask about the facts that may be meant, or list the lines that mention the topic.
    """
    if not wanted.topic and not wanted.ids:
        return FinalText(phrases.NONE_ERASED)
    results = [one.result.text for one in done if one.use.name == _FORGET]
    if done and not done[-1].is_done:
        return FinalText(not_erased(_sentence(done[-1].result.text)))
    if len(done) > len(results):
        return FinalText(_not_forgotten(wanted.topic, lines(done[-1].result.text)))
    if not results:
        asked = {"query": wanted.topic or wanted.asked}
        return OfflineCall(_FORGET, {**asked, "ids": list(wanted.ids)} if wanted.ids else asked)
    if not wanted.topic or any(result != phrases.NO_FACT for result in results):
        return FinalText(erased_answer(results[-1:] if wanted.topic else results))
    if len(results) == 1 and (english := word_forms.in_english(wanted.topic)):
        return OfflineCall(_FORGET, {"query": english})
    told = (AnswerLine(i, text) for i, text in conversation.facts_by_id(prompt).items())
    if known := about(wanted.topic, tuple(told)):
        return FinalText(which([(one.place, one.text) for one in known]))
    return _search(wanted.topic)


def _not_forgotten(topic: str, found: tuple[AnswerLine, ...]) -> str:
    """List the facts that mention the topic and were found by search alone; else say that no fact
    does, and list other lines.
    """
    facts = tuple(line for line in found if line.is_fact)
    if about(topic, facts):
        return _holding(topic, facts, phrases.FACT_LINES, "")
    return _holding(topic, found, phrases.NO_FACT_LINES, phrases.NO_FACT_NOTHING)


def _call(wanted: Intent, tools: Container[str]) -> Reply:
    match wanted:
        case RememberIntent():
            return _remember(wanted)
        case Remind():
            return _remind(wanted, tools)
        case Ask(text) | ForgetIntent(text):
            return _search(text)
        case ShowFile(path):
            return OfflineCall("memory_read", {"path": path})
        case ListFiles():
            return OfflineCall("memory_tree", {"depth": 3})
        case NotifyIntent(text):
            return OfflineCall("notify", {"text": _clean(text)})
        case SmallTalk():
            return FinalText(_SAID[wanted])


def _remember(wanted: RememberIntent) -> Reply:
    if not wanted.text:
        return FinalText(phrases.WHAT_TO_REMEMBER)
    if wanted.is_note:
        return OfflineCall("memory_write", {"content": _clean(wanted.text)})
    return OfflineCall(_REMEMBER, {"text": _clean(wanted.text), "quote": wanted.text})


def _remind(wanted: Remind, tools: Container[str]) -> Reply:
    if wanted.at and _SCHEDULE in tools:
        return OfflineCall(_SCHEDULE, {"text": _clean(wanted.text), "at": wanted.at})
    return OfflineCall("memory_write", {"content": _clean(wanted.entry), "target": "heartbeat"})


def _search(text: str) -> Reply:
    query = word_forms.query(text)
    return (
        OfflineCall("memory_search", {"query": query, "limit": _LIMIT})
        if query
        else FinalText(phrases.NO_WORDS)
    )


def _answer_after(wanted: Intent, done: FinishedToolCall, prompt: Prompt) -> str:
    """Return the answer that follows from a tool's result."""
    result = done.result
    if result.is_error:
        return _refusal(wanted, done.use.name, result.text)
    match wanted:
        case RememberIntent():
            return _kept_answer(done)
        case Remind():
            phrase = phrases.SCHEDULED if done.use.name == _SCHEDULE else phrases.LISTED
            told = {"path": _path(result.text), "result": result.text}
            return phrase.format(text=_written_text(done), **told)
        case Ask(question):
            found = (*lines(result.text), *_earlier_lines(prompt))
            said = conversation.earlier_words(prompt)
            return answer(question, found, conversation.facts(prompt), said)
        case ForgetIntent(topic):
            lead = (phrases.FORGET_LINES, phrases.FORGET_NOTHING)
            return _holding(topic, lines(result.text), *lead)
        case NotifyIntent():
            return phrases.ALERTED.format(result=result.text)
        case ShowFile(path) if path == CHECKLIST:
            return _checklist(lines(result.text))
        case _:
            return result.text


def _kept_answer(done: FinishedToolCall) -> str:
    if done.use.name == _REMEMBER:
        return kept_answer(done.result.text)
    return phrases.NOTED.format(path=_path(done.result.text), text=_written_text(done))


def _refusal(wanted: Intent, tool: str, why: str) -> str:
    match wanted:
        case RememberIntent():
            return phrases.NOT_NOTED.format(why=_sentence(why))
        case Remind() if tool == _SCHEDULE:
            return phrases.NOT_SCHEDULED.format(why=_sentence(why))
        case Remind():
            return phrases.NOT_LISTED.format(why=_sentence(why))
        case NotifyIntent():
            return phrases.NOT_ALERTED.format(why=_sentence(why))
        case _:
            return phrases.NOT_READ.format(why=_sentence(why))


def _small(kind: SmallTalk, prompt: Prompt, *, is_learning: bool) -> str:
    match kind:
        case SmallTalk.GREETING if _is_first(prompt):
            return f"{phrases.GREETING}\n{phrases.FIRST}"
        case SmallTalk.TIME:
            now = conversation.now(prompt)
            return phrases.TIME.format(now=now) if now else phrases.NO_TIME
        case SmallTalk.KNOWN:
            facts = [f"{phrases.TOLD_ITEM}{fact}" for fact in conversation.facts(prompt)]
            return "\n".join((phrases.TOLD, *facts)) if facts else phrases.TOLD_NOTHING
        case SmallTalk.STATEMENT if is_learning and _states_fact(prompt):
            return phrases.LEARNT_LATER
        case _:
            return _SAID[kind]


_SAID = {
    SmallTalk.EMPTY: phrases.EMPTY,
    SmallTalk.GREETING: phrases.GREETING,
    SmallTalk.THANKS: phrases.WELCOME,
    SmallTalk.WHO: phrases.WHO,
    SmallTalk.HELP: phrases.HELP,
    SmallTalk.STATEMENT: phrases.STATED,
    SmallTalk.UNKNOWN: phrases.UNKNOWN,
}


def _states_fact(prompt: Prompt) -> bool:
    """Whether the user's message states something that will be learnt."""
    now = conversation.now(prompt)
    return bool(claims(conversation.own_words(prompt), now.date() if now else None))


def _is_first(prompt: Prompt) -> bool:
    """Whether the agent has not answered yet and the prompt has the questions for a first
    conversation.
    """
    waits = any(heading in section for section in prompt.system for heading in _BOOTSTRAP)
    return waits and not conversation.has_answered(prompt)


def _last_statement(prompt: Prompt) -> str:
    before = conversation.earlier_words(prompt)
    return before[-1].strip() if before and not is_question(before[-1]) else ""


def _earlier_lines(prompt: Prompt) -> tuple[AnswerLine, ...]:
    """Return the user's earlier words in this conversation, which may not be indexed
    yet, as lines.
    """
    now = conversation.now(prompt)
    today = f"{now:%Y-%m-%d}" if now else ""
    return tuple(
        AnswerLine(
            "earlier in this conversation", line.strip(), today, speaker="user", number=number
        )
        for number, text in enumerate(conversation.earlier_words(prompt))
        for line in (order(text) or text).split("\n")
        if line.strip()
    )


def _holding(topic: str, found: tuple[AnswerLine, ...], title: str, nothing: str) -> str:
    held = about(topic, found)[:_QUOTED]
    if not held:
        return nothing
    shown = (f"- {quote(line.text, line.place)}" for line in held)
    return "\n".join((title, *shown))


def _checklist(found: tuple[AnswerLine, ...]) -> str:
    entries = [
        f"- {line.text} ({line.place})" for line in found if line.is_entry and not line.is_ticked
    ]
    return "\n".join((phrases.CHECKLIST, *entries)) if entries else phrases.CHECKLIST_EMPTY


def _path(result: str) -> str:
    match = _PATH.match(result)
    return match[1] if match else "memory"


def _written_text(done: FinishedToolCall) -> str:
    text = str(done.use.input.get("content") or done.use.input.get("text", ""))
    return text if len(text) <= _CHARS else f"{text[:_CHARS].rstrip()} […]"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _clean(text: str) -> str:
    """Return the text without control characters and lone surrogates, which no file may hold."""
    kept = text.replace("\r\n", "\n").encode("utf-8", errors="ignore").decode()
    return "".join(c if c in "\n\t" or c.isprintable() or ord(c) > 0x9F else " " for c in kept)
