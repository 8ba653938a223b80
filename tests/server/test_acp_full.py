"""The protocol in full: what is advertised is there, and what is there works as it says."""

import pytest
from acp.meta import AGENT_METHODS

from agentd.core.errors import Busy
from agentd.core.message import Text, ToolResult, ToolUse
from agentd.core.transcript import ApprovalMode, Choices, NewRow, RowRole
from agentd.core.turn import SessionKey, StopReason, Turn, TurnRequest
from agentd.interfaces.acp.slash_commands import SlashCommand
from tests.server.conftest import check_frame

ALWAYS = {"session/new", "session/prompt", "session/set_mode", "session/set_config_option"}


def updates(client, kind):
    found = [f["params"]["update"] for f in client.seen if f["method"] == "session/update"]
    return [update for update in found if update["sessionUpdate"] == kind]


async def is_routed(client, method):
    frame = await client.answer(await client.send(method, {"sessionId": 1}))
    return frame.get("error", {}).get("code") != -32601


async def test_every_capability_is_routed_and_every_routed_method_is_advertised(house):
    client = await house.client()
    told = await client.call("initialize", {"protocolVersion": 1})
    can = told["agentCapabilities"]
    advertised = {f"session/{name}" for name in can["sessionCapabilities"]}
    advertised |= {"session/load"} if can["loadSession"] else set()
    known = {name for name in AGENT_METHODS.values() if name.startswith("session/")}
    routed = {name for name in known - {"session/cancel"} if await is_routed(client, name)}
    assert routed == advertised | ALWAYS
    assert can["promptCapabilities"] == {"image": False, "audio": False, "embeddedContext": True}


async def test_every_way_to_open_a_session_tells_its_modes_and_options(house):
    client = await (await house.client()).hello()
    made = await client.call("session/new", {"cwd": "/w", "mcpServers": []})
    key = {"sessionId": made["sessionId"], "cwd": "/w", "mcpServers": []}
    for opened in (
        made,
        await client.call("session/load", key),
        await client.call("session/resume", key),
        await client.call("session/fork", key),
    ):
        assert opened["modes"]["currentModeId"] == "auto"
        assert [mode["id"] for mode in opened["modes"]["availableModes"]] == ["auto", "ask"]
        values = {option["id"]: option["currentValue"] for option in opened["configOptions"]}
        assert values == {"mode": "auto", "model": "usual", "effort": "default"}


async def test_a_mode_is_kept_and_told_to_all_clients_of_the_session(house):
    first, second = await (await house.client()).hello(), await (await house.client()).hello()
    key = await first.new()
    await second.resume(key)
    await first.call("session/set_mode", {"sessionId": key, "modeId": "ask"})
    assert (await house.store.choices(SessionKey(key))).mode is ApprovalMode.ASK
    await second.call("session/list")
    assert [u["currentModeId"] for u in updates(second, "current_mode_update")] == ["ask"]
    [told] = updates(second, "config_option_update")
    assert told["configOptions"][0]["currentValue"] == "ask"
    third = await (await house.client()).hello()
    opened = await third.call("session/resume", {"sessionId": key, "cwd": "/"})
    assert opened["modes"]["currentModeId"] == "ask"


async def test_options_are_kept_and_all_of_them_come_back(house):
    client = await (await house.client()).hello()
    for option, value in (("model", "other"), ("effort", "high"), ("mode", "ask")):
        params = {"sessionId": "main", "configId": option, "value": value}
        answer = await client.call("session/set_config_option", params)
        values = {o["id"]: o["currentValue"] for o in answer["configOptions"]}
        assert values[option] == value
    assert await house.store.choices(SessionKey("main")) == Choices(
        ApprovalMode.ASK, "other", "high"
    )
    for option, value in (("model", "usual"), ("effort", "default"), ("mode", "auto")):
        params = {"sessionId": "main", "configId": option, "value": value}
        await client.call("session/set_config_option", params)
    assert await house.store.choices(SessionKey("main")) == Choices()


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("session/set_mode", {"modeId": "yolo"}, "yolo"),
        (
            "session/set_config_option",
            {"configId": "model", "value": "x"},
            "there is no model 'x' to choose",
        ),
        ("session/set_config_option", {"configId": "colour", "value": "x"}, "colour"),
        ("session/set_config_option", {"configId": "model", "value": True}, "value"),
    ],
)
async def test_what_is_not_offered_is_refused(house, method, params, words):
    client = await (await house.client()).hello()
    error = await client.fail(method, {"sessionId": "main", **params})
    assert error["code"] == -32602
    assert words in error["message"]
    assert await house.store.choices(SessionKey("main")) == Choices()


@pytest.mark.parametrize("source", ["main", "chat:one", "group:family", "isolated:job"])
async def test_a_fork_has_the_same_history_and_kind_and_a_life_of_its_own(house, source):
    client = await (await house.client()).hello()
    if source != "main":
        await client.new(source)
    await client.answer(await client.prompt(source, "one"))
    made = await client.call("session/fork", {"sessionId": source, "cwd": "/"})
    key = made["sessionId"]
    assert key.partition(":")[0] == ("chat" if source == "main" else source.partition(":")[0])
    assert [row.text for row in await house.store.rows(key)] == ["one", "Hello, you"]
    await client.answer(await client.prompt(key, "two"))
    assert len(await house.store.rows(SessionKey(source))) == 2
    assert (await client.fail("session/fork", {"sessionId": "chat:no", "cwd": "/"}))[
        "code"
    ] == -32002


async def test_who_leaves_what_runs_behind_cancels_nothing_and_has_left(open_house):
    left = []
    async with open_house(hooks={"closed": left.append}) as house:
        client = await (await house.client()).hello()
        key = await client.new()
        await client.call("session/close", {"sessionId": key, "_meta": {"agentd/cancel": False}})
        assert (house.turns.cancelled, left) == ([], [key])
        await client.resume(key)
        await client.call("session/close", {"sessionId": key, "_meta": {"agentd/cancel": True}})
        assert house.turns.cancelled == [key]


async def test_closing_cancels_what_runs_unless_others_watch(house):
    first, second = await (await house.client()).hello(), await (await house.client()).hello()
    key = await first.new()
    await second.resume(key)
    await first.call("session/close", {"sessionId": key})
    assert house.turns.cancelled == []
    first.seen.clear()
    await second.answer(await second.prompt(key, "hi"))
    await first.call("session/list")
    assert first.seen == []
    await second.call("session/close", {"sessionId": key})
    assert house.turns.cancelled == [key]
    assert (await first.fail("session/close", {"sessionId": "chat:no"}))["code"] == -32002


async def test_a_deleted_session_is_gone_and_deleting_it_again_is_no_error(house):
    client = await (await house.client()).hello()
    key = await client.new()
    await client.answer(await client.prompt(key, "one"))
    for _ in range(2):
        assert await client.call("session/delete", {"sessionId": key}) == {}
    listed = await client.call("session/list")
    assert [session["sessionId"] for session in listed["sessions"]] == ["main"]
    assert (await client.fail("session/resume", {"sessionId": key, "cwd": "/"}))["code"] == -32002
    assert (await client.fail("session/delete", {"sessionId": "main"}))["code"] == -32602


async def test_a_session_at_work_is_not_deleted(open_house):
    async def busy(session):
        raise Busy("it is at work", cure="wait")

    async with open_house(hooks={"erase": busy}) as house:
        client = await (await house.client()).hello()
        error = await client.fail("session/delete", {"sessionId": await client.new()})
        assert (error["code"], error["data"]["cure"]) == (-32012, "wait")


async def test_a_turn_ends_with_how_full_the_context_is(house):
    client = await (await house.client()).hello()
    await client.answer(await client.prompt("main", "hi"))
    while not updates(client, "session_info_update"):
        client.seen.append(await client.read())
    [usage] = updates(client, "usage_update")
    assert (usage["used"], usage["size"]) == (7, 1000)


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
async def test_who_opens_a_session_is_told_how_full_its_context_is(house, method):
    first = await (await house.client()).hello()
    key = await first.new()
    await first.call("session/list")  # what follows an answer has come when the next one has
    assert updates(first, "usage_update") == [], "nothing was said yet"
    await first.answer(await first.prompt(key, "hi"))

    async def told():
        client = await (await house.client()).hello()
        await client.call(method, {"sessionId": key, "cwd": "/w", "mcpServers": []})
        await client.call("session/list")
        return [(update["used"], update["size"]) for update in updates(client, "usage_update")]

    assert await told() == [(7, 1000)]
    history = await house.store.load(key)
    await house.store.swap(key, history.generation, history.rows[-1].seq + 1, "they talked")
    assert await told() == [], "that was measured on a context that is no more"


async def test_commands_are_advertised_with_what_may_follow_them(open_house):
    heard = []

    async def act(session, text):
        heard.append((session, text))
        return f"done: {text}"

    more = (SlashCommand("remember", "Note something", act, "what"),)
    async with open_house(uses={"commands": more}) as house:
        client = await (await house.client()).hello()
        key = await client.new()
        await client.call("session/list")
        [told] = updates(client, "available_commands_update")
        hints = {c["name"]: c.get("input", {}).get("hint") for c in told["availableCommands"]}
        assert hints["remember"] == "what"
        assert set(hints) == {"compact", "flush", "new", "status", "model", "remember", "help"}
        await client.answer(await client.prompt(key, "/remember  tea at\nfive "))
        assert heard == [(key, "tea at\nfive ")]
        assert client.texts() == "done: tea at\nfive "


async def test_the_model_of_a_session_is_said_and_chosen_in_words(house):
    client = await (await house.client()).hello()
    await client.answer(await client.prompt("main", "/model"))
    assert client.texts() == "usual answers in this session, of: usual, other."
    await client.answer(await client.prompt("main", "/model other"))
    assert (await house.store.choices(SessionKey("main"))).model == "other"
    frame = await client.answer(await client.prompt("main", "/model gone"))
    assert frame["error"]["message"] == "there is no model 'gone' to choose"
    assert frame["error"]["data"]["cure"] == "choose usual, other"


async def test_whoever_opens_a_session_or_speaks_is_noticed_and_who_asks_is_not(open_house):
    opened = []
    async with open_house(hooks={"on_session": lambda: opened.append(1)}) as house:
        client = await (await house.client()).hello()
        await client.call("session/list")
        assert opened == []
        key = await client.new()
        assert len(opened) == 1
        await client.resume(key)
        await client.answer(await client.prompt(key, "hi"))
        assert len(opened) == 3


async def test_several_calls_of_one_answer_are_replayed_each_with_its_result(house):
    key = SessionKey("chat:tools")
    receipt = await house.store.receive(TurnRequest(key, "go", "m"))
    await house.store.begin(receipt.turn_id)
    uses = (ToolUse("a", "memory_read", {"path": "x"}), ToolUse("b", "memory_read", {}))
    rows = (
        NewRow(RowRole.ASSISTANT, (uses[0], Text("Looking."), uses[1])),
        NewRow(RowRole.USER, (ToolResult("a", "1"), ToolResult("b", "2", is_error=True))),
        NewRow(RowRole.ASSISTANT, (Text("Done."),)),
    )
    await house.store.finish(receipt.turn_id, Turn(key, "m", "Done.", StopReason.END_TURN), rows)
    client = await (await house.client()).hello()
    await client.call("session/load", {"sessionId": key, "cwd": "/", "mcpServers": []})
    shown = [
        (u["sessionUpdate"], u.get("toolCallId") or u["content"]["text"])
        for u in (f["params"]["update"] for f in client.seen)
        if u["sessionUpdate"] != "available_commands_update"
    ]
    assert shown == [
        ("user_message_chunk", "go"),
        ("agent_message_chunk", "Looking."),
        ("tool_call", "a"),
        ("tool_call_update", "a"),
        ("tool_call", "b"),
        ("tool_call_update", "b"),
        ("agent_message_chunk", "Done."),
    ]


def test_the_checks_of_this_folder_can_fail():
    wrong = {"method": "session/update", "params": {"sessionId": "main", "update": {"x": 1}}}
    with pytest.raises(ValueError, match="validation error"):
        check_frame(wrong, {})
    with pytest.raises(ValueError, match="validation error"):
        check_frame({"id": 1, "result": {}}, {1: "session/new"})
