"""The chat on a terminal."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from agentd.cli.screen import Screen
from agentd.cli.times import Times
from agentd.client.connection import alone
from agentd.client.conversation import Conversation, joined
from agentd.client.errors import ConnectionLost
from agentd.client.reply import Reply, marks, words
from agentd.errors import AgentdError

_PROMPT = "> "
_ALLOW = "allow? [y]es, [n]o: "
_ALLOW_MORE = "allow? [y]es, [n]o, [a]lways: "
_COVERS = "always covers later changes of this file too, until BOOTSTRAP.md is gone"
_LATE = timedelta(minutes=1)  # an alert older than that is shown with its time
_REDONE = "the answer above was cut by a fault and is being redone"
_KINDS = {
    "y": ("allow_once", "allow_always"),
    "a": ("allow_always", "allow_once"),
    "n": ("reject_once", "reject_always"),
}
_ENDINGS = {
    "cancelled": "cancelled",
    "max_tokens": "the answer was cut at the length limit",
    "max_turn_requests": "the agent stopped: too many steps for one turn",
    "refusal": "the model refused",
}


class Keyboard(Protocol):
    """Where lines come from."""

    async def read(self, prompt: Callable[[], str]) -> str | None:
        """The next line, None when the user wants to leave."""

    def refresh(self) -> None:
        """Ask for the prompt again: it says something else now."""


class Chat:
    """A conversation on a terminal; also what hears the daemon meanwhile."""

    def __init__(self, keyboard: Keyboard, times: Times) -> None:
        self._keyboard = keyboard
        self._times = times
        self._alerts: set[str] = set()  # the ids of those that were shown
        self._screen = Screen()
        self._session = ""
        self._saying: str | None = None  # the user's message that is being answered
        self._shown = False  # whether words of the answer have come over this connection
        self._accepted = False
        self._question: asyncio.Future[str] | None = None
        self._allow = _ALLOW  # what the open question is asked with
        self._asked = asyncio.Event()
        self._ahead: list[str] = []  # typed for a question that was taken back meanwhile

    async def run(self, sockets: Sequence[Path], session: str) -> None:
        """Talk until the user leaves. Raises DaemonUnreachable, RemoteError if it cannot begin."""
        self._session = session
        async with joined(sockets, session, self) as conversation:
            self._session = conversation.session
            while True:
                line = self._ahead.pop(0) if self._ahead else await self._read()
                if self._settle(line):
                    continue
                if line is None or line.strip() == "/quit":
                    return
                if line.strip() and not await self._turn(conversation, line):
                    return

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Show what the daemon tells."""
        if method == "_agentd/alert":
            at = str(params.get("at", ""))
            self._alert(str(params.get("id")), str(params.get("text", "")), at)
        elif params.get("sessionId") != self._session:
            return
        elif method == "_agentd/accepted":
            self._accepted = True
        elif method == "_agentd/retracted":
            self._screen.aside(_REDONE)
        elif method == "session/update":
            self._update(params.get("update") or {}, marks(params))

    async def requested(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Put a question to the user."""
        if method != "session/request_permission":
            return None
        call = params.get("toolCall") or {}
        options = params.get("options") or []
        self._screen.question(call)
        lasting = any(option.get("kind") == "allow_always" for option in options)
        if lasting and str(marks(params).get("agentd/scope", "")).startswith("bootstrap"):
            self._screen.aside(_COVERS)
        self._allow = _ALLOW_MORE if lasting else _ALLOW
        self._question = asyncio.get_running_loop().create_future()
        self._asked.set()
        self._keyboard.refresh()
        try:
            return _outcome(await self._question, options)
        finally:
            self._question = None
            self._asked.clear()
            self._keyboard.refresh()

    def lost(self) -> None:
        """Tell that the daemon has gone."""
        safe = ", your message is safe" if self._saying is not None and self._accepted else ""
        self._screen.aside(f"the daemon has gone; waiting for it to come back{safe}")

    def regained(self) -> None:
        """Tell that the daemon is back; an answer that was under way begins anew."""
        again = "; the answer starts again" if self._saying is not None and self._shown else ""
        self._shown = False
        self._screen.aside(f"the daemon is back{again}")

    async def _read(self) -> str | None:
        return await self._keyboard.read(self._prompt)

    def _prompt(self) -> str:
        return _PROMPT if self._question is None else self._allow

    async def _turn(self, conversation: Conversation, text: str) -> bool:
        """One message and its answer. False when the user leaves meanwhile."""
        self._saying, self._shown, self._accepted = text, False, False
        loop = asyncio.get_running_loop()
        presses = 0
        try:
            async with alone(), asyncio.TaskGroup() as group:
                saying = group.create_task(self._say(conversation, text))
                asking = group.create_task(self._answer_questions())
                saying.add_done_callback(lambda _: asking.cancel())

                def interrupt() -> None:
                    nonlocal presses
                    presses += 1
                    if presses > 1:
                        saying.cancel()
                    else:
                        group.create_task(self._cancel(conversation))

                loop.add_signal_handler(signal.SIGINT, interrupt)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._saying = None
        return not saying.cancelled()

    async def _say(self, conversation: Conversation, text: str) -> None:
        try:
            result = await conversation.say(text, uuid.uuid4().hex)
        except AgentdError as error:
            self._screen.line(f"error: {error.message}")
            if error.cure:
                self._screen.line(f"→ {error.cure}")
            return
        if not self._shown:
            self._screen.words(Reply().turn(result, self._session, "")["text"])
        self._screen.end_line()
        if ending := _ENDINGS.get(result.get("stopReason")):
            self._screen.aside(ending)

    async def _cancel(self, conversation: Conversation) -> None:
        try:
            await conversation.cancel()
        except ConnectionLost:
            return  # `lost` has told the user
        self._screen.aside("cancelling (Ctrl-C once more leaves; the turn then goes on)")

    async def _answer_questions(self) -> None:
        while True:
            await self._asked.wait()
            line = await self._read()
            if not self._settle(line) and line:
                self._ahead.append(line)
            await asyncio.sleep(0)  # let the question take its answer

    def _settle(self, line: str | None) -> bool:
        """Take the line as the answer if a question is open; says whether it was."""
        question = self._question
        if question is None or question.done():
            return False
        letter = "n" if line is None else line.strip().lower()[:1]
        if letter in _KINDS:
            question.set_result(letter)
            self._asked.clear()
        return True

    def _alert(self, alert_id: str, text: str, at: str = "") -> None:
        """Show an alert once, whether it comes as itself or as a notice of the session first."""
        if alert_id in self._alerts:
            return
        self._alerts.add(alert_id)
        is_late = bool(at) and self._times.age(at) > _LATE
        self._screen.line(f"! {self._times.told(at)}: {text}" if is_late else f"! {text}")

    def _update(self, update: Mapping[str, Any], marked: Mapping[str, Any]) -> None:
        text = words(update)
        match update.get("sessionUpdate"):
            case "agent_message_chunk" if "agentd/retracted" in marked:
                self._screen.aside(_REDONE)
            case "agent_message_chunk" if "agentd/notice" in marked:
                tag, _, alert_id = str(marked["agentd/notice"]).partition(":")
                if tag == "alert":
                    self._alert(alert_id, text)
                else:
                    self._screen.aside(text)
            case "agent_message_chunk":
                self._shown = True
                self._screen.words(text)
            case "user_message_chunk" if text != self._saying:
                self._screen.line(f"{_PROMPT}{text}")
            case "tool_call":
                self._screen.aside(str(update.get("title", "")))
            case "tool_call_update" if update.get("status") == "failed":
                self._screen.aside(f"failed: {_tool_text(update)}")


def _tool_text(update: Mapping[str, Any]) -> str:
    """The first line of what a tool answered."""
    for part in update.get("content") or []:
        if text := words(part):
            return text.splitlines()[0]
    return "the tool"


def _outcome(letter: str, options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    for kind in _KINDS.get(letter, ()):
        for option in options:
            if option.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
    return {"outcome": {"outcome": "cancelled"}}
