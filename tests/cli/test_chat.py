"""The chat: what it shows, what it asks, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import pytest

from agentd.app.chat.catalog import Catalog
from agentd.app.chat.chat import Chat
from agentd.app.chat.pasting import TypedText
from agentd.app.chat.screen import Screen
from agentd.app.chat.statusline import StatusLine
from agentd.core.spans import Spans
from agentd.interfaces.commands.plain import TimeFormatter
from agentd.testing import PNG, FakeClock
from tests.scripted_daemon import Hangup, Refusal, ScriptedDaemon

_OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "ever", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
_CALL = {
    "toolCallId": "c1",
    "title": "memory_write SOUL.md",
    "content": [{"type": "diff", "path": "SOUL.md", "oldText": "calm\n", "newText": "brave\n"}],
}


_NOW = "2026-11-21T12:00:00+00:00"
_TIMES = TimeFormatter(FakeClock(zone="Europe/Berlin"))


class Typist:
    """A keyboard that types what it was given, then leaves; keeps the prompts it saw."""

    def __init__(self, *lines: str | TypedText | None) -> None:
        self._lines = list(lines)
        self.prompts: list[str] = []
        self.pasted: Spans = ()

    async def read(self, prompt):
        await asyncio.sleep(0)
        self.prompts.append(prompt().text)
        line = self._lines.pop(0) if self._lines else None
        self.pasted = line.pasted if isinstance(line, TypedText) else ()
        return line.text if isinstance(line, TypedText) else line

    def refresh(self) -> None:
        pass

    def enter(self, session: str) -> None:
        pass

    def hushed(self) -> AbstractContextManager[None]:
        return nullcontext()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(tmp_path / "s") as daemon:
        yield daemon


def answering(*texts: str, stop: str = "end_turn"):
    def answer(params, wire):
        for text in texts:
            wire.words("main", text)
        return {"stopReason": stop, "_meta": {"agentd/text": "".join(texts)}}

    return answer


async def talk(daemon: ScriptedDaemon, *lines: str | TypedText | None) -> Typist:
    typist = Typist(*lines)
    chat = Chat(typist, Screen(), _TIMES, catalog=Catalog(), status=StatusLine())
    await chat.run((daemon.path,), "main")
    return typist


async def test_words_are_shown_once_and_end_their_line(daemon, capsys) -> None:
    daemon.on("session/prompt", answering("Hel", "lo."))
    await talk(daemon, "hi", "  ", "/quit", "never sent")
    assert capsys.readouterr().out == "Hello.\n"
    assert len(daemon.params_of("session/prompt")) == 1


@pytest.mark.parametrize("leaving", ["/quit", None])
async def test_who_leaves_closes_the_session_and_leaves_what_runs(daemon, leaving) -> None:
    await talk(daemon, leaving)
    (closed,) = daemon.params_of("session/close")
    assert closed == {"sessionId": "main", "_meta": {"agentd/cancel": False}}


async def test_who_switches_closes_the_session_before(daemon) -> None:
    daemon.on("session/close", lambda params, wire: {})
    await talk(daemon, "/switch chat:b", "/quit")
    assert [p["sessionId"] for p in daemon.params_of("session/close")] == ["main", "chat:b"]


async def test_control_characters_of_a_model_do_not_reach_the_terminal(daemon, capsys) -> None:
    daemon.on("session/prompt", answering("a\x1b]0;pwned\x07b\x9b31m"))
    await talk(daemon, "hi")
    assert capsys.readouterr().out == "a]0;pwnedb31m\n"


async def test_tools_notices_alerts_and_retractions_are_told_apart_from_the_answer(
    daemon, capsys
) -> None:
    def answer(params, wire):
        update = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "memory_write today"}
        wire.words("main", "Wait")
        wire.notify("session/update", {"sessionId": "main", "update": update})
        wire.notify("_agentd/alert", {"id": 1, "text": "milk is out", "at": _NOW})
        wire.words("main", "milk is out", **{"agentd/notice": "alert:1"})
        wire.words("main", "tea is out", **{"agentd/notice": "alert:2"})
        wire.notify("_agentd/alert", {"id": 2, "text": "tea is out", "at": _NOW})
        wire.notify("_agentd/alert", {"id": 3, "text": "rain", "at": "2026-11-20T07:30:00+00:00"})
        wire.words("main", "history was shortened", **{"agentd/notice": "compaction"})
        learnt = {"op": "add", "id": "k3f9", "text": "You like tea.", "old": []}
        told = {"agentd/notice": "facts", "agentd/facts": [learnt]}
        wire.words("main", "remembered: You like tea.", **told)
        wire.words("main", "No, ")
        wire.notify("_agentd/retracted", {"sessionId": "main", "reason": "stream_cut"})
        wire.words("main", "Done.")
        wire.words("chat:other", "not ours")
        return {"stopReason": "max_tokens"}

    daemon.on("session/prompt", answer)
    await talk(daemon, "hi")
    assert capsys.readouterr().out.splitlines() == [
        "Wait",
        "· memory_write today",
        "! milk is out",
        "! tea is out",
        "! yesterday 08:30: rain",
        "· history was shortened",
        "· remembered: You like tea.",
        "No, ",
        "· the answer above was cut by a fault and does not count",
        "Done.",
        "· the answer was cut at the length limit",
    ]


async def test_why_an_answer_waits_is_told_where_the_wait_is_worth_a_line(daemon, capsys) -> None:
    def answer(params, wire):
        for why, seconds in (("The service failed inside.", 0.5), ("It is overloaded.", 19.2)):
            retry = {"reason": "r", "text": why, "seconds": seconds}
            update = {"sessionUpdate": "session_info_update", "_meta": {"agentd/retry": retry}}
            wire.notify("session/update", {"sessionId": "main", "update": update})
        wire.words("main", "Done.")
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)
    await talk(daemon, "hi")
    assert capsys.readouterr().out.splitlines() == ["· it is overloaded; next try in 20 s", "Done."]


async def test_that_a_message_waits_is_told_in_words_and_a_retry_only_once(daemon, capsys) -> None:
    def answer(params, wire):
        for tag, text in (
            ("retry", "It is overloaded. 20 s."),
            ("waiting", "Your message is kept."),
        ):
            content = {"type": "text", "text": text}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            update["_meta"] = {"agentd/notice": tag}
            wire.notify("session/update", {"sessionId": "main", "update": update})
        wire.words("main", "Done.")
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)
    await talk(daemon, "hi")
    assert capsys.readouterr().out.splitlines() == ["· Your message is kept.", "Done."]


@pytest.mark.parametrize(
    ("typed", "outcome"),
    [
        pytest.param(["y"], {"outcome": "selected", "optionId": "yes"}, id="yes"),
        pytest.param(["a"], {"outcome": "selected", "optionId": "ever"}, id="always"),
        pytest.param(["what?", "no"], {"outcome": "selected", "optionId": "no"}, id="no"),
    ],
)
async def test_a_question_shows_the_change_and_takes_the_answer(
    daemon, capsys, typed, outcome
) -> None:
    answers = []

    def ask(params, wire):
        question = {"sessionId": "main", "toolCall": _CALL, "options": _OPTIONS}
        answers.append(wire.ask("session/request_permission", question))
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    typist = await talk(daemon, "be brave", *typed)
    assert answers == [{"outcome": outcome}]
    assert typist.prompts[1].startswith("allow?")
    shown = capsys.readouterr().out
    assert "-calm" in shown
    assert "+brave" in shown


@pytest.mark.parametrize(
    ("options", "scope", "prompt", "covers"),
    [
        pytest.param(_OPTIONS, "bootstrap:SOUL.md", "[a]lways", True, id="for a while"),
        pytest.param([_OPTIONS[0], _OPTIONS[2]], "once", "[y]es, [n]o: ", False, id="once"),
    ],
)
async def test_a_question_says_what_always_covers(
    daemon, capsys, options, scope, prompt, covers
) -> None:
    def ask(params, wire):
        question = {"sessionId": "main", "toolCall": _CALL, "options": options}
        question["_meta"] = {"agentd/scope": scope}
        wire.ask("session/request_permission", question)
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    typist = await talk(daemon, "be brave", "y")
    assert prompt in typist.prompts[1]
    assert ("always covers later changes" in capsys.readouterr().out) is covers


async def test_what_is_to_be_allowed_hides_no_character(daemon, capsys) -> None:
    hidden = {
        "type": "diff",
        "path": "SOUL.md",
        "oldText": None,
        "newText": "a\x1b[2Kb\u202ec\x0bd",
    }

    def ask(params, wire):
        call = {**_CALL, "content": [hidden]}
        wire.ask("session/request_permission", {"toolCall": call, "options": _OPTIONS})
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    await talk(daemon, "x", "n")
    assert "+a\\u001b[2Kb\\u202ec\\u000bd\n" in capsys.readouterr().out


async def test_a_page_of_a_long_question_is_turned_and_not_allowed(daemon, capsys) -> None:
    answers = []
    turn = {"optionId": "next_page", "name": "Show page 2 of 2", "kind": "allow_once"}

    def ask(params, wire):
        question = {"sessionId": "main", "toolCall": _CALL, "options": [turn]}
        answers.append(wire.ask("session/request_permission", question))
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    typist = await talk(daemon, "x", "y")
    assert typist.prompts[1] == "next page? [y]es, [n]o: "


async def test_a_question_that_somebody_else_answered_is_taken_back(daemon, capsys) -> None:
    def ask(params, wire):
        asked = {"id": 9, "method": "session/request_permission", "params": {"toolCall": _CALL}}
        taken_back = {"method": "$/cancel_request", "params": {"requestId": 9}}
        wire.send(asked, taken_back)  # at once: the typist answers what he sees before it is gone
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    typist = await talk(daemon, "one", "two", "/quit")
    said = [params["prompt"][0]["text"] for params in daemon.params_of("session/prompt")]
    assert said == ["one", "two"]
    assert typist.prompts[-1] == "> "


async def test_a_question_is_shown_when_the_one_before_it_is_answered(daemon, capsys) -> None:
    answers, seen = {}, []

    class Looking(Typist):
        async def read(self, prompt):
            line = await super().read(prompt)
            seen.append(capsys.readouterr().out)
            return line

    def ask(params, wire):
        for number, title in enumerate(("delete all", "read a note")):
            asked = {"sessionId": "main", "toolCall": {"title": title}, "options": _OPTIONS}
            wire.send({"id": number, "method": "session/request_permission", "params": asked})
        for _ in range(2):
            answer = json.loads(wire.lines.readline())
            answers[answer["id"]] = answer["result"]["outcome"]["optionId"]
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    typist = Looking("x", "n", "y", "/quit")
    chat = Chat(typist, Screen(), _TIMES, catalog=Catalog(), status=StatusLine())
    await chat.run((daemon.path,), "main")
    assert answers == {0: "no", 1: "yes"}
    assert "delete all" in seen[1]
    assert "read a note" not in seen[1]
    assert "read a note" in seen[2]


async def test_only_what_is_offered_answers_a_question(daemon, capsys) -> None:
    answers = []

    def ask(params, wire):
        question = {"sessionId": "main", "toolCall": _CALL, "options": _OPTIONS[:1]}
        answers.append(wire.ask("session/request_permission", question))
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    typist = await talk(daemon, "x", "a", "y")
    assert typist.prompts[1:3] == ["allow? [y]es, [n]o: "] * 2
    await talk(daemon, "x", "n")
    assert answers == [
        {"outcome": {"outcome": "selected", "optionId": "yes"}},
        {"outcome": {"outcome": "cancelled"}},
    ]


async def test_a_message_typed_at_a_question_is_said_not_to_be_sent(daemon, capsys) -> None:
    def ask(params, wire):
        question = {"sessionId": "main", "toolCall": _CALL, "options": _OPTIONS}
        wire.ask("session/request_permission", question)
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", ask)
    await talk(daemon, "do it", "what is this?", "", "y", "/quit")
    assert capsys.readouterr().out.count("· not sent: the question comes first") == 1


async def test_a_failed_turn_is_told_and_the_chat_goes_on(daemon, capsys) -> None:
    def fail_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            raise Refusal(-32010, "no key", code="provider_auth", cure="set the key")
        return answering("Hello.")(params, wire)

    daemon.on("session/prompt", fail_once)
    await talk(daemon, "hi", "again")
    assert capsys.readouterr().out == "error: no key\n→ set the key\nHello.\n"


async def test_a_failed_turn_of_another_client_is_told_too(daemon, capsys) -> None:
    def overhear(params, wire):
        said = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "hi"}}
        wire.notify("session/update", {"sessionId": "main", "update": said})
        end = {"agentd/turnEnded": "m", "agentd/failureText": "no key"}
        for marks in (end | {"agentd/failureCure": "set the key"}, {"agentd/turnEnded": "m2"}):
            update = {"sessionUpdate": "session_info_update", "_meta": marks}
            wire.notify("session/update", {"sessionId": "main", "update": update})
        return {}

    daemon.on("session/resume", overhear)
    await talk(daemon, "/quit")
    assert capsys.readouterr().out == "> hi\nerror: no key\n→ set the key\n"


async def test_a_restart_in_the_middle_of_an_answer_is_told_and_loses_nothing(
    daemon, capsys
) -> None:
    def cut_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            wire.notify("_agentd/accepted", {"sessionId": "main", "messageId": "m", "seq": 1})
            wire.words("main", "Hel")
            raise Hangup
        return {"stopReason": "end_turn", "_meta": {"agentd/text": "Hello."}}

    gone = "the daemon has gone; waiting for it to come back (`agentd up` starts it)"
    daemon.on("session/prompt", cut_once)
    await talk(daemon, "hi")
    assert capsys.readouterr().out.splitlines() == [
        "Hel",
        f"· {gone}, your message is safe",
        "· the daemon is back; the answer starts again",
        "Hello.",
    ]
    first, second = daemon.params_of("session/prompt")
    assert first == second


class Away(Screen):
    """A screen before which the daemon goes away; `then` runs once a message is kept for its
    return.
    """

    def __init__(self, then) -> None:
        super().__init__()
        self.asides: list[str] = []
        self._then = then

    def aside(self, text: str) -> None:
        self.asides.append(text)
        if "your message is sent when it is back" in text:
            self._then()


class Waiting(Typist):
    """Types its first line when the daemon has gone."""

    def __init__(self, daemon: ScriptedDaemon, screen: Away, *lines: str) -> None:
        super().__init__(*lines)
        self._daemon, self._screen = daemon, screen

    async def read(self, prompt):
        if not self.prompts:
            self._daemon.__exit__()
            while not any("the daemon has gone" in text for text in self._screen.asides):
                await asyncio.sleep(0)
        return await super().read(prompt)


async def talk_alone(daemon: ScriptedDaemon, screen: Away, *lines: str) -> Typist:
    typist = Waiting(daemon, screen, *lines)
    chat = Chat(typist, screen, _TIMES, catalog=Catalog(), status=StatusLine())
    await chat.run((daemon.path,), "main")
    return typist


async def test_a_message_typed_while_the_daemon_is_away_is_sent_when_it_is_back(
    tmp_path: Path, capsys
) -> None:
    with ExitStack() as stack:
        back = ScriptedDaemon(tmp_path / "s")
        back.on("session/prompt", answering("Hello."))
        screen = Away(lambda: stack.enter_context(back))
        await talk_alone(ScriptedDaemon(tmp_path / "s").__enter__(), screen, "hi")
        (sent,) = back.params_of("session/prompt")
    assert sent["prompt"][0]["text"] == "hi"
    assert capsys.readouterr().out == "Hello.\n"


async def test_ctrl_c_drops_a_message_that_no_daemon_has_and_the_chat_goes_on(
    tmp_path: Path,
) -> None:
    screen = Away(lambda: os.kill(os.getpid(), signal.SIGINT))
    daemon = ScriptedDaemon(tmp_path / "s").__enter__()
    typist = await talk_alone(daemon, screen, "hi", "/quit")
    assert screen.asides[-1] == "your message was not sent"
    assert len(typist.prompts) == 2


async def test_ctrl_c_cancels_the_turn_and_the_chat_goes_on(daemon, capsys) -> None:
    def wait_for_cancel(params, wire):
        os.kill(os.getpid(), signal.SIGINT)
        frame = wire.lines.readline()
        assert b"session/cancel" in frame
        return {"stopReason": "cancelled"}

    daemon.on("session/prompt", wait_for_cancel)
    typist = await talk(daemon, "hi", "/quit")
    assert "· cancelled" in capsys.readouterr().out
    assert len(typist.prompts) == 2


async def test_ctrl_c_while_the_daemon_is_gone_cancels_the_turn_when_it_is_back(
    daemon, capsys
) -> None:
    taken_back = []

    def cut_once(params, wire):
        if len(daemon.params_of("session/prompt")) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            raise Hangup
        wire.notify("_agentd/accepted", {"sessionId": "main", "messageId": "m", "seq": 1})
        frames = map(json.loads, iter(wire.lines.readline, b""))
        taken_back.append(next(f for f in frames if f["method"] == "$/cancel_request"))
        raise Refusal(-32800, "the call was taken back", code="withdrawn")

    daemon.on("session/prompt", cut_once)
    typist = await talk(daemon, "hi", "/quit")
    assert len(taken_back) == 1
    assert "· cancelled" in capsys.readouterr().out
    assert len(typist.prompts) == 2


async def test_a_second_ctrl_c_leaves_while_the_turn_goes_on(daemon, capsys) -> None:
    def never_end(params, wire):
        os.kill(os.getpid(), signal.SIGINT)
        wire.lines.readline()
        os.kill(os.getpid(), signal.SIGINT)
        wire.lines.read()
        raise Hangup

    daemon.on("session/prompt", never_end)
    typist = await talk(daemon, "hi", "not read any more")
    assert len(typist.prompts) == 1


def knows(daemon: ScriptedDaemon, *keys: str) -> None:
    sessions = [{"key": key, "title": f"about {key}", "updated_at": _NOW} for key in keys]
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": sessions})


@pytest.mark.parametrize(
    "typed", [("/sessions", "2"), ("/sessions", "chat:1"), ("/switch chat:1",)], ids=" ".join
)
async def test_another_session_is_chosen_and_talked_to(daemon, capsys, typed) -> None:
    knows(daemon, "main", "chat:1")
    daemon.on("session/prompt", lambda params, wire: {"stopReason": "end_turn"})
    await talk(daemon, "here", *typed, "there")
    said = [params["sessionId"] for params in daemon.params_of("session/prompt")]
    assert said == ["main", "chat:1"]
    assert ("about chat:1" in capsys.readouterr().out) is (len(typed) == 2)


async def test_who_chooses_nothing_stays(daemon, capsys) -> None:
    knows(daemon, "main", "chat:1")
    daemon.on("session/prompt", lambda params, wire: {"stopReason": "end_turn"})
    await talk(daemon, "/sessions", "", "still here")
    assert [params["sessionId"] for params in daemon.params_of("session/prompt")] == ["main"]


async def test_a_session_that_is_refused_leads_back(daemon, capsys) -> None:
    def resume(params, wire):
        if params["sessionId"] == "7":
            raise Refusal(-32602, "'7' is no session key", code="invalid")
        return {}

    daemon.on("session/resume", resume)
    daemon.on("session/prompt", lambda params, wire: {"stopReason": "end_turn"})
    await talk(daemon, "/switch 7", "back")
    assert "'7' is no session key" in capsys.readouterr().out
    assert [params["sessionId"] for params in daemon.params_of("session/prompt")] == ["main"]


async def test_help_has_the_commands_of_the_daemon_too(daemon, capsys) -> None:
    def resume(params, wire):
        commands = [{"name": "compact", "description": "Shorten"}]
        update = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        wire.notify("session/update", {"sessionId": "main", "update": update})
        return {}

    daemon.on("session/resume", resume)
    await talk(daemon, "/expand", "/help")
    shown = capsys.readouterr().out
    assert "no tool was called" in shown
    assert "/compact   Shorten" in shown
    assert "/sessions" in shown
    assert daemon.params_of("session/prompt") == []


async def test_an_unknown_command_is_told_and_not_sent(daemon, capsys) -> None:
    offer = {"name": "status", "description": "say"}
    update = {"sessionUpdate": "available_commands_update", "availableCommands": [offer]}

    def answer(params, wire):
        wire.notify("session/update", {"sessionId": "main", "update": update})
        return {"stopReason": "end_turn"}

    daemon.on("session/prompt", answer)
    await talk(daemon, "hi", "/stauts", "/status")
    said = [params["prompt"][0]["text"] for params in daemon.params_of("session/prompt")]
    assert said == ["hi", "/status"]
    assert "there is no /stauts" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["~nobody-at-all/a.png", "a\0b.png"])
async def test_a_path_that_no_file_can_have_is_said(daemon, capsys, path: str) -> None:
    daemon.on("session/prompt", answering("Hello."))
    await talk(daemon, f"/image {path} look", "hi")
    shown = capsys.readouterr().out
    assert "cannot be read: no file can be called so" in shown
    assert shown.endswith("Hello.\n")


async def test_a_number_of_no_session_is_a_key(daemon, capsys) -> None:
    daemon.on("_agentd/sessions/list", lambda params, wire: {"sessions": [{"key": "main"}]})
    daemon.on("session/close", lambda params, wire: {})
    await talk(daemon, "/sessions", "9" * 5000, "/quit")
    assert daemon.params_of("session/resume")[1]["sessionId"] == "9" * 5000


async def test_an_image_goes_along_with_the_words_behind_it(daemon, capsys, tmp_path) -> None:
    meta = {"agentd/maxImageBytes": 100}
    daemon.on("initialize", lambda params, wire: {"protocolVersion": 1, "_meta": meta})
    daemon.on("session/prompt", answering("A cat."))
    file = tmp_path / "my cat.png"
    file.write_bytes(PNG + b"cat")
    await talk(daemon, f'/image "{file}" what is it?', "/image", f"/image {tmp_path}/none.png")
    (params,) = daemon.params_of("session/prompt")
    assert [block["type"] for block in params["prompt"]] == ["image", "text"]
    assert params["prompt"][1]["text"] == "what is it?"
    shown = capsys.readouterr().out
    assert shown.startswith("A cat.\nerror: /image needs a file\n")
    assert "none.png cannot be read" in shown


async def test_what_was_pasted_is_marked_in_the_message(daemon, tmp_path) -> None:
    meta = {"agentd/maxImageBytes": 100}
    daemon.on("initialize", lambda params, wire: {"protocolVersion": 1, "_meta": meta})
    daemon.on("session/prompt", answering("ok"))
    file = tmp_path / "a.png"
    file.write_bytes(PNG + b"cat")
    start = len(f"/image {file} ")
    await talk(
        daemon,
        TypedText("look: a b", ((6, 9),)),
        "typed",
        TypedText(f"/image {file} look: a b ", ((start + 6, start + 9),)),
    )
    first, second, third = (params["prompt"] for params in daemon.params_of("session/prompt"))
    marked = {"type": "text", "text": "look: a b", "_meta": {"agentd/paste": [[6, 9]]}}
    assert first == [marked]
    assert second == [{"type": "text", "text": "typed"}]
    assert third[1] == marked
