"""Slash commands about the conversation itself: `/compact`, `/flush`, `/new`, `/status`,
`/model`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from agentd.interfaces.commands.declaration import Group

if TYPE_CHECKING:
    from agentd.core.compaction import CompactionReport
    from agentd.core.ports import Transcripts
    from agentd.core.turn import SessionKey
    from agentd.interfaces.commands.sessions import WorkingContexts, WorkingSessions

CONVERSATION = Group("")

_UNDONE = {  # why a compaction or a flush did nothing, by its reason
    "below_threshold": "all that was said is saved already",
    "nothing_to_compact": "too little was said to shorten it",
    "flush": "nothing could be saved; `agentd logs` says why",
}

_SAVED = "What matters was saved to memory."


class ModelChoice(Protocol):
    """Port: the model that answers in a session."""

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that a session may choose, the configured one first."""

    async def model(self, session: SessionKey) -> str:
        """Return the model of the session's next turn; "" if its name is unknown."""

    async def set_option(self, session: SessionKey, name: str, value: str) -> Any:
        """Choose; `name` is "model". Raises InvalidRequest, which names the possible values."""


class ConversationCommands:
    """The slash commands of one conversation."""

    def __init__(
        self,
        turns: WorkingSessions,
        contexts: WorkingContexts,
        store: Transcripts,
        choice: ModelChoice,
    ) -> None:
        self._turns = turns
        self._contexts = contexts
        self._store = store
        self._choice = choice

    @CONVERSATION.slash(
        "compact", "Shorten this conversation's context now", "what the summary should keep"
    )
    async def compact(self, session: SessionKey, wish: str) -> str:
        """What was done, in tokens before and after."""
        return _say(await self._contexts.compact(session, wish.strip()))

    @CONVERSATION.slash("flush", "Save what matters to memory now")
    async def flush(self, session: SessionKey, _: str) -> str:
        """What was done, or why nothing."""
        return _say(await self._contexts.flush(session))

    @CONVERSATION.slash("new", "Save what matters and begin an empty context")
    async def new(self, session: SessionKey, _: str) -> str:
        """That it begins, and what was saved before."""
        report = await self._contexts.start_over(session)
        saved = _SAVED if report.flushed else ""
        return " ".join(filter(None, ("A new context begins.", saved, report.unsaved_in_words())))

    @CONVERSATION.slash("status", "Say how this session stands")
    async def status(self, session: SessionKey, _: str) -> str:
        """How much was said, how full the context is, and how many messages wait."""
        info = next((i for i in await self._store.sessions() if i.key == session), None)
        if info is None:
            return f"Session {session}: nothing said yet."
        counts = f"{_count(info.turns, 'turn')}, {_count(info.rows, 'row')}"
        context = f"{_count(info.context_tokens, 'token')} in the context"
        return f"Session {session}: {counts}, {context}, {self._turns.queued(session)} waiting."

    @CONVERSATION.slash("model", "Say or choose who answers here", "a model's name")
    async def model(self, session: SessionKey, name: str) -> str:
        """Who answers, and who could. Raises InvalidRequest for a model that cannot be chosen."""
        if name.strip():
            await self._choice.set_option(session, "model", name.strip())
            return f"From the next turn on {name.strip()} answers in this session."
        offered = ", ".join(self._choice.models)
        return f"{await self._choice.model(session)} answers in this session, of: {offered}."


def _say(report: CompactionReport) -> str:
    """Return what was saved, what became of the context, and what could not be saved."""
    size = _count(report.tokens_before, "token")
    if report.compacted:
        context = f"The context is shorter: {size} before, {report.tokens_after:,} after."
    elif report.flushed and report.reason == "flush":  # which is all that was asked for
        context = f"{size} in the context."
    elif report.flushed:
        context = f"The context stays as it is, at {size}. {_why(report)}"
    else:
        context = f"Nothing was done. {_why(report)} {size} in the context."
    saved = _SAVED if report.flushed else ""
    return " ".join(filter(None, (saved, context, report.unsaved_in_words())))


def _why(report: CompactionReport) -> str:
    """Return why nothing was saved, or nothing shortened."""
    why = _UNDONE.get(report.reason, f"the reason is {report.reason}; `agentd logs` says more")
    return f"{why[:1].upper()}{why[1:]}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
