"""Slash commands: what a user can type instead of a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentd.core.compaction import RoomReport
from agentd.core.errors import InvalidRequest
from agentd.core.ports import Transcripts
from agentd.core.turn import Receipt, SessionKey, Turn, TurnRequest
from agentd.interfaces.acp.acp_schema import PromptCall
from agentd.interfaces.acp.options import SessionOptions
from agentd.interfaces.acp.roles import ClientRole
from agentd.interfaces.commands.sessions import WorkingSessions

# The engine as the server needs it.


class CommandTicket(Protocol):
    """A turn that has been accepted."""

    @property
    def receipt(self) -> Receipt:
        """Proof that the request is durable."""

    async def wait(self) -> Turn:
        """How it ended; `failure` is set when it failed. Cancelling this does not end the turn."""


class SessionTurns(WorkingSessions, Protocol):
    """The one door to the engine."""

    async def submit(self, request: TurnRequest) -> CommandTicket:
        """Raises QueueFull, ShuttingDown, StorageFull, InvalidRequest."""

    def cancel(self, session: SessionKey, *, message_id: str = "") -> bool:
        """End the running turn, or that of a message; False if there is none."""


Act = Callable[[SessionKey, str], Awaitable[str]]

_UNDONE = {  # why a command that makes room left it as it was
    "below_threshold": "all that was said is saved already",
    "nothing_to_compact": "too little was said to shorten it",
    "flush": "nothing could be saved; `agentd logs` says why",
}


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """One slash command. `act` gets the session and what follows the name, and returns what to tell
    the user; `hint` says what may follow.
    """

    name: str
    description: str
    act: Act
    hint: str = ""


class Commands:
    """Runs slash commands. They are no turns: nothing of them is stored."""

    def __init__(
        self,
        turns: SessionTurns,
        store: Transcripts,
        options: SessionOptions,
        more: Sequence[SlashCommand] = (),
    ) -> None:
        """`more` are commands of other parts."""
        self._turns = turns
        self._store = store
        self._options = options
        own = (
            SlashCommand(
                "compact",
                "Shorten this conversation's context now",
                self._compact,
                "what the summary should keep",
            ),
            SlashCommand("flush", "Save what matters to memory now", self._flush),
            SlashCommand("new", "Save what matters and begin an empty context", self._new),
            SlashCommand("status", "Say how this session stands", self._status),
            SlashCommand("model", "Say or choose who answers here", self._model, "a model's name"),
            *more,
        )
        self._owners = _with_help(own)
        self._of_bound = _with_help(())

    def find(self, call: PromptCall, role: ClientRole) -> tuple[SlashCommand, str] | None:
        """The command that the user has typed and what follows its name, or None: any other text that
        begins with a slash is a message, and so is one with an image. Raises InvalidRequest for a command
        that is not for this role, and for one with text beside it that he did not type: commands take
        their words as his own.
        """
        typed = call.typed
        words = typed.split(maxsplit=1)
        if call.images or not typed.startswith("/") or words[0][1:] not in self._owners:
            return None
        command = self._of(role).get(words[0][1:])
        if command is None:
            raise InvalidRequest(
                f"there is no command {words[0]} here", cure="/help lists those there are"
            )
        if call.quoted:
            raise InvalidRequest(
                f"{words[0]} was not carried out: commands take the words that you type, and this message"
                " holds an attachment, a link or pasted text as well",
                cure="send the command alone, or say in a message what is to be done with the rest",
            )
        return command, "".join(words[1:])

    def available(self, role: ClientRole) -> dict[str, Any]:
        """The `available_commands_update` that clients complete from."""
        return {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [_advertised(command) for command in self._of(role).values()],
        }

    def _of(self, role: ClientRole) -> dict[str, SlashCommand]:
        return self._owners if role.is_owner else self._of_bound

    async def _compact(self, session: SessionKey, wish: str) -> str:
        return _say(await self._turns.compact(session, wish.strip()))

    async def _new(self, session: SessionKey, _: str) -> str:
        return f"A new context begins. {_say(await self._turns.start_over(session))}"

    async def _flush(self, session: SessionKey, _: str) -> str:
        return _say(await self._turns.flush(session))

    async def _status(self, session: SessionKey, _: str) -> str:
        info = next((i for i in await self._store.sessions() if i.key == session), None)
        if info is None:
            return f"Session {session}: nothing said yet."
        counts = f"{_count(info.turns, 'turn')}, {_count(info.rows, 'row')}"
        context = f"{_count(info.context_tokens, 'token')} in the context"
        return f"Session {session}: {counts}, {context}, {self._turns.queued(session)} waiting."

    async def _model(self, session: SessionKey, name: str) -> str:
        if name.strip():
            await self._options.set_option(session, "model", name.strip())
            return f"From the next turn on {name.strip()} answers in this session."
        offered = ", ".join(self._options.models)
        return f"{await self._options.model(session)} answers in this session, of: {offered}."


def _with_help(commands: Sequence[SlashCommand]) -> dict[str, SlashCommand]:
    """The commands by name, and one that lists them all."""
    known = {command.name: command for command in commands}

    async def tell(_session: SessionKey, _argument: str) -> str:
        return "\n".join(
            f"/{c.name}{f' [{c.hint}]' if c.hint else ''}: {c.description}" for c in known.values()
        )

    known["help"] = SlashCommand("help", "List these commands", tell)
    return known


def _advertised(command: SlashCommand) -> dict[str, Any]:
    told: dict[str, Any] = {"name": command.name, "description": command.description}
    return {**told, "input": {"hint": command.hint}} if command.hint else told


def _say(report: RoomReport) -> str:
    done = [
        word
        for word, is_done in (("flushed", report.flushed), ("compacted", report.compacted))
        if is_done
    ]
    if not done:
        why = _UNDONE.get(report.reason, f"{report.reason}; `agentd logs` says more")
        return f"Nothing was done: {why}. {_count(report.tokens_before, 'token')} in the context."
    what = " and ".join(done).capitalize()
    if not report.compacted and report.reason != "flush":  # which is all that was asked for
        why = _UNDONE.get(report.reason, f"not compacted: {report.reason}; `agentd logs` says more")
        what += f" ({why})"
    return f"{what}: {_count(report.tokens_before, 'token')} before, {report.tokens_after:,} after."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
