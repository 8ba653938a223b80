"""The chat on a terminal."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from agentd.app.chat.asking import (
    CTRL_C,
    LEAVE,
    AskingPrompt,
    FormField,
    OpenQuestion,
    form_fields,
    shown_form,
)
from agentd.app.chat.catalog import Catalog
from agentd.app.chat.last_exchange import fetch_last, show_exchange
from agentd.app.chat.pasting import TypedText, split_images
from agentd.app.chat.screen import Display
from agentd.app.chat.slash import help_text, misspelt, parse, session_of_answer, session_table
from agentd.app.chat.statusline import StatusLine
from agentd.app.chat.toolcalls import ShownCalls
from agentd.core.errors import AgentdError
from agentd.core.spans import Spans
from agentd.interfaces.client.attachments import smaller
from agentd.interfaces.client.connection import alone
from agentd.interfaces.client.conversation import Conversation, join_session
from agentd.interfaces.client.remote_error import RemoteError
from agentd.interfaces.client.reply import ENDINGS, Reply, marks, words
from agentd.interfaces.commands.plain import TimeFormatter

_PROMPT = "> "
_CHOOSE = "number or key (Enter stays): "
_COVERS = "always covers later changes of this file too, until BOOTSTRAP.md is gone"
_ANSWER = "answer? [y]es, [n]o, [c]ancel: "
_CLOSED = "the question is no longer open"
_NO_ANSWER = "not sent: the question comes first"
_KEPT = "the daemon is away: your message is sent when it is back (Ctrl-C drops it)"
_DROPPED = "your message was not sent"
_LATE = timedelta(minutes=1)  # an alert older than that is shown with its time
_CUT = "the answer above was cut by a fault and does not count"


class Keyboard(Protocol):
    """Port: the source of the user's messages."""

    @property
    def pasted(self) -> Spans:
        """The spans of the last message that were pasted."""

    def enter(self, session: str) -> None:
        """Set the session with which typed messages are stored from now on."""

    async def read(self, prompt: Callable[[], AskingPrompt]) -> str | None:
        """Return the next message, None if the user wants to leave."""

    def refresh(self) -> None:
        """Call the prompt again and redraw it: its text has changed."""

    def hushed(self) -> AbstractContextManager[None]:
        """Suppress the echo of keys within the block."""


class Chat:
    """A chat on a terminal. It is the Companion of its conversation: it shows what the daemon
    sends.
    """

    def __init__(
        self,
        keyboard: Keyboard,
        screen: Display,
        times: TimeFormatter,
        *,
        catalog: Catalog,
        status: StatusLine,
        wait: int | None = None,
    ) -> None:
        self._keyboard = keyboard
        self._screen = screen
        self._times = times
        self._catalog = catalog
        self._status = status
        self._wait = wait  # seconds that messages wait for the model's service; None: as configured
        self._calls = ShownCalls(times.clock)
        self._asking = OpenQuestion()
        self._alerts: set[str] = set()  # ids of the alerts that were shown
        self._session = ""
        self._saying: str | None = None  # the user's message that is being answered
        self._shown = False  # whether part of the answer has arrived over this connection
        self._accepted = False
        self._choosing = False
        self._ahead: list[TypedText] = []  # typed while a question was withdrawn; sent as messages

    async def run(self, sockets: Sequence[Path], session: str) -> None:
        """Chat until the user leaves. Raises DaemonUnreachable, RemoteError if the first session
        cannot be opened.
        """
        with self._keyboard.hushed():
            await self._visits(sockets, session)

    async def _visits(self, sockets: Sequence[Path], session: str) -> None:
        before = ""
        while session:
            try:
                wanted = await self._visit(sockets, session)
            except RemoteError as error:
                if not before:
                    raise
                self._tell(error)
                wanted, session = before, ""
            if wanted:
                self._screen.aside(f"session {wanted}")
            before, session = session, wanted

    async def _visit(self, sockets: Sequence[Path], session: str) -> str:
        """Chat in one session; returns the key of the next one, "" if the user leaves."""
        self._session = session
        async with join_session(sockets, session, self) as conversation, alone():
            self._session = conversation.session
            self._keyboard.enter(self._session)
            self._catalog.conversation = conversation
            if (exchange := await fetch_last(conversation)) is not None:
                show_exchange(exchange, self._session, self._screen, self._times)
            async with asyncio.TaskGroup() as group:
                keeping = group.create_task(self._status.keep(conversation, self._keyboard.refresh))
                try:
                    wanted = await self._converse(conversation)
                    await conversation.close()
                    return wanted
                finally:
                    keeping.cancel()

    async def _converse(self, conversation: Conversation) -> str:
        while True:
            ahead = self._ahead.pop(0) if self._ahead else None
            line = ahead.text if ahead else await self._read()
            pasted = ahead.pasted if ahead else self._keyboard.pasted
            if line is None or (line == CTRL_C and not self._asking.stands):
                return ""
            if line == CTRL_C:  # at a question of a turn that was begun elsewhere
                await self._cancel(conversation)
                continue
            if self._settled(line):
                continue
            if (command := parse(line)) is not None and command[0] != "image":
                key = await self._command(*command)
                if key is not None and key != self._session:
                    return key
            elif (unknown := misspelt(line, self._catalog.commands())) is not None:
                self._screen.aside(unknown)
            elif line.strip():
                if not await self._turn(conversation, TypedText(line, pasted)):
                    return ""
                self._status.want()

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Show a notification of the daemon."""
        if method == "_agentd/alert":
            at = str(params.get("at", ""))
            self._alert(str(params.get("id")), str(params.get("text", "")), at)
        elif params.get("sessionId") != self._session:
            return
        elif method == "_agentd/accepted":
            self._accepted = True
        elif method == "_agentd/retracted":
            self._retracted()
        elif method == "session/update":
            self._update(params.get("update") or {}, marks(params))

    async def requested(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Ask the user for a permission or to fill in a form, one question at a time; returns his
        answer.
        """
        if method == "elicitation/create" and params.get("mode") == "form":
            ask = self._filled
        elif method == "session/request_permission":
            ask = self._permitted
        else:
            return None
        async with self._asking.turn:
            try:
                return await ask(params)
            except asyncio.CancelledError:
                self._screen.aside(_CLOSED)
                raise
            finally:
                self._keyboard.refresh()

    async def _permitted(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the user for a permission."""
        options = params.get("options") or []
        self._screen.question(params.get("toolCall") or {})
        lasting = any(option.get("kind") == "allow_always" for option in options)
        if lasting and str(marks(params).get("agentd/scope", "")).startswith("bootstrap"):
            self._screen.aside(_COVERS)
        return await self._asking.ask(options, self._keyboard.refresh)

    async def _filled(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the user for the fields of a form, one by one."""
        fields = form_fields(params.get("requestedSchema") or {})
        self._screen.question(shown_form(params, fields))
        letters = {"y": "accept", "n": "decline", "c": "cancel"}
        given: dict[str, Any] = {}
        action = await self._asking.choose(_ANSWER, letters, self._keyboard.refresh)
        for field in fields if action == "accept" else ():
            value = await self._asking.line(
                field.prompt, partial(_read_field, field), self._keyboard.refresh
            )
            if value is LEAVE:
                return {"action": "cancel"}
            if value is not None:
                given[field.name] = value
        return {"action": action, "content": given} if action == "accept" else {"action": action}

    def lost(self) -> None:
        """Show that the daemon has gone."""
        safe = ", your message is safe" if self._saying is not None and self._accepted else ""
        self._screen.end_line()
        waiting = "waiting for it to come back (`agentd up` starts it)"
        self._screen.aside(f"the daemon has gone; {waiting}{safe}")

    def regained(self) -> None:
        """Show that the daemon is back; a running answer starts again."""
        again = "; the answer starts again" if self._saying is not None and self._shown else ""
        self._shown = False
        self._screen.aside(f"the daemon is back{again}")
        self._status.want()

    def made_smaller(self, name: str, size: int, made: int) -> None:
        """Show that an image was scaled down for the model."""
        self._screen.aside(smaller(name, size, made))

    async def _read(self) -> str | None:
        self._screen.still(reading=True)
        try:
            return await self._keyboard.read(self._prompt)
        finally:
            self._screen.still(reading=False)

    def _prompt(self) -> AskingPrompt:
        if question := self._asking.prompt:
            return AskingPrompt(question, is_question=True)
        return AskingPrompt(_CHOOSE, is_question=True) if self._choosing else AskingPrompt(_PROMPT)

    async def _command(self, name: str, rest: str) -> str | None:
        """Run a slash command of the chat itself; returns the key of the session to switch to, ""
        to leave, None to stay.
        """
        match name:
            case "quit":
                return ""
            case "help":
                self._screen.line(help_text(self._catalog.commands()))
            case "expand":
                call = self._calls.last
                lines = call.full(self._times.clock.monotonic()) if call else ["no tool was called"]
                self._screen.line("\n".join(lines))
            case "sessions":
                return await self._choose()
            case "switch" if rest:
                return rest
            case "switch":
                self._screen.aside("/switch KEY goes to a session, /sessions lists them")
        return None

    async def _choose(self) -> str | None:
        try:
            sessions = await self._catalog.all_sessions()
        except AgentdError as error:
            self._tell(error)
            return None
        self._screen.line(session_table(sessions, self._session, self._times))
        self._choosing = True
        try:
            line = await self._read()
        finally:
            self._choosing = False
        if line is None or line == CTRL_C or self._settled(line):
            return None
        return session_of_answer(line.strip(), sessions)

    async def _turn(self, conversation: Conversation, message: TypedText) -> bool:
        """Send a message and show its answer; False if the user leaves meanwhile."""
        self._saying, self._shown, self._accepted = message.text, False, False
        loop = asyncio.get_running_loop()
        presses = 0
        dropped = False
        self._screen.work(going_on=True)
        try:
            async with alone(), asyncio.TaskGroup() as group:
                saying = group.create_task(self._say(conversation, message))

                def interrupt() -> None:
                    nonlocal presses, dropped
                    presses += 1
                    dropped = not conversation.is_sent
                    if presses > 1 or dropped:
                        saying.cancel()
                    else:
                        cancelling = group.create_task(self._cancel(conversation))
                        saying.add_done_callback(lambda _: cancelling.cancel())

                asking = group.create_task(self._answer_questions(interrupt, saying.cancel))
                saying.add_done_callback(lambda _: asking.cancel())
                loop.add_signal_handler(signal.SIGINT, interrupt)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self._screen.work(going_on=False)
            self._saying = None
        if dropped:
            self._screen.aside(_DROPPED)
        return dropped or not saying.cancelled()

    async def _say(self, conversation: Conversation, message: TypedText) -> None:
        try:
            if not conversation.is_attached:
                self._screen.aside(_KEPT)
            said, images = await asyncio.to_thread(split_images, message)
            result = await conversation.say(
                said.text,
                uuid.uuid4().hex,
                images,
                said.pasted,
                wait=self._wait,
                until_back=True,
            )
        except AgentdError as error:
            self._screen.end_line()
            self._tell(error)
            return
        if not self._shown:
            self._screen.words(Reply().turn(result, self._session, "")["text"])
        self._screen.end_line()
        if ending := ENDINGS.get(result.get("stopReason")):
            self._screen.aside(ending)

    async def _cancel(self, conversation: Conversation) -> None:
        self._screen.aside("cancelling (Ctrl-C once more leaves; the turn then goes on)")
        await conversation.cancel()

    async def _answer_questions(
        self, interrupt: Callable[[], None], leave: Callable[[], object]
    ) -> None:
        """Read answers to questions during a turn. Ctrl-C interrupts the turn and Ctrl-D leaves, as
        they do without a question.
        """
        while True:
            await self._asking.opened.wait()
            line = await self._read()
            if line is None:
                leave()
            elif line == CTRL_C:
                interrupt()
            elif not self._settled(line) and line:
                self._ahead.append(TypedText(line, self._keyboard.pasted))
            await asyncio.sleep(0)  # let the question take its answer

    def _settled(self, line: str) -> bool:
        """Return whether the line was meant for the open question; tells the user if it is no valid
        answer.
        """
        meant = self._asking.settle(line)
        if self._asking.stands and line and line.strip():
            self._screen.aside(self._asking.complaint or _NO_ANSWER)
        return meant

    def _tell(self, error: AgentdError) -> None:
        self._screen.line(f"error: {error.message}")
        if error.cure:
            self._screen.line(f"→ {error.cure}")

    def _alert(self, alert_id: str, text: str, at: str = "") -> None:
        """Show an alert once: it may arrive both as an alert and as a notice of the session."""
        if alert_id in self._alerts:
            return
        self._alerts.add(alert_id)
        is_late = bool(at) and self._times.age(at) > _LATE
        self._screen.alert(f"{self._times.short(at)}: {text}" if is_late else text)

    def _retracted(self) -> None:
        self._screen.end_line()
        self._screen.aside(_CUT)

    def _update(self, update: Mapping[str, Any], marked: Mapping[str, Any]) -> None:
        text = words(update)
        match update.get("sessionUpdate"):
            case "agent_message_chunk" if "agentd/retracted" in marked:
                self._retracted()
            case "agent_message_chunk" if "agentd/notice" in marked:
                self._notice(text, str(marked["agentd/notice"]))
            case "agent_message_chunk":
                self._shown = True
                self._screen.words(text)
            case "user_message_chunk" if text != self._saying:
                self._screen.line(f"{_PROMPT}{text}")
            case "tool_call":
                self._screen.call_began(self._calls.start(update))
            case "tool_call_update":
                if (call := self._calls.end(update)) is not None:
                    self._screen.call_ended(call)
            case "available_commands_update":
                self._catalog.learn(update.get("availableCommands") or [])
            case "session_info_update":
                self._informed(marked)

    def _informed(self, marked: Mapping[str, Any]) -> None:
        """Handle the state of a turn: show that a turn of this chat waits for a retry, or the end
        of a turn begun elsewhere.
        """
        if self._saying is None and "agentd/turnEnded" in marked:
            self._overheard(marked)
        elif self._saying is not None and (retry := marked.get("agentd/retry")):
            self._screen.delayed(str(retry.get("text", "")), float(retry.get("seconds", 0)))

    def _overheard(self, ending: Mapping[str, Any]) -> None:
        """Handle the end of a turn whose message was not typed in this chat."""
        self._screen.end_line()
        if failure := ending.get("agentd/failureText"):
            self._tell(AgentdError(str(failure), cure=str(ending.get("agentd/failureCure") or "")))
        self._status.want()

    def _notice(self, text: str, notice: str) -> None:
        tag, _, alert_id = notice.partition(":")
        if tag == "alert":
            self._alert(alert_id, text)
        elif tag != "retry":  # the waiting line shows it
            self._screen.aside(text)


def _read_field(field: FormField, line: str) -> Any:
    """Parse the value that was typed; LEAVE if the user leaves the form. Raises ValueError."""
    return LEAVE if line.strip() == LEAVE else field.read(line)
