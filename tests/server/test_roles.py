"""Roles: what exists for a connection that is bound to one session, which is nothing else."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from agentd.core.errors import InvalidRequest
from agentd.core.tool import Approval, Decision
from agentd.interfaces.acp.peer import ClientRole
from agentd.interfaces.acp.slash_commands import SlashCommand

GROUP = "group:club"
OF_A_BOUND_ONE = {
    "initialize",
    "authenticate",
    "session/list",
    "session/load",
    "session/resume",
    "session/close",
    "session/prompt",
}
DOCS = Path(__file__).parents[2] / "docs" / "socket.md"  # which a test compares with the code
METHODS = sorted(
    set(
        re.findall(
            r"`(_agentd/[a-z_/]+|session/[a-z_]+|initialize|authenticate)`", DOCS.read_text()
        )
    )
    - {"_agentd/accepted", "_agentd/alert", "_agentd/log", "_agentd/stopping"}
    - {"session/update", "session/request_permission", "session/cancel"}
)
OWN = [name for name in METHODS if name.startswith("_agentd/")]
WORDS = [{"type": "text", "text": "hi"}]
# What fits the params of any method that names a session.
PARAMS = {"cwd": "/w", "mcpServers": [], "prompt": WORDS, "modeId": "ask", "configId": "model"}
PARAMS |= {"value": "other", "protocolVersion": 1, "methodId": "x", "key": "main"}


@pytest.fixture
async def club(open_house):
    """A house with a group, a chat and every own method; `reached` are those that were called."""
    reached = []

    def method(name):
        async def handle(params, peer):
            reached.append(name)
            return {"secret": "canary"}

        return handle

    async def remember(session, argument):
        reached.append("/remember")
        return "kept"

    methods = {name: method(name) for name in OWN}
    commands = (SlashCommand("remember", "Keep a fact", remember),)
    async with open_house(methods=methods, uses={"commands": commands}) as house:
        house.reached = reached
        house.owner = await (await house.client()).hello("owner")
        for key in (GROUP, "group:other", "chat:1"):
            await house.owner.new(key)
        yield house


async def bound(house, key=GROUP, name="bridge"):
    return await (await house.client()).hello(name, **{"agentd/bind": key})


def test_the_table_that_is_walked_is_the_whole_one():
    assert len(OWN) > 50
    assert {"session/new", "session/fork", "session/delete", "session/set_mode"} <= set(METHODS)


@pytest.mark.parametrize("session", ["main", "chat:1", "group:other", "group:absent", GROUP])
async def test_no_method_but_those_of_the_role_is_answered_on_a_bound_connection(club, session):
    client = await bound(club)
    sessions = {info.key for info in await club.store.sessions()}
    for name in METHODS:
        if name in {"initialize", "authenticate", "session/list"}:
            continue
        if session == GROUP and name in OF_A_BOUND_ONE:
            await client.call(name, {**PARAMS, "sessionId": session})
            continue
        error = await client.fail(name, {**PARAMS, "sessionId": session})
        if name in OF_A_BOUND_ONE:
            assert error["code"] == -32002
            assert error["message"] == f"there is no session {session!r}"
        else:
            assert error == {
                "code": -32601,
                "message": f"there is no method {name!r} on this connection",
            }
    assert club.reached == []
    assert {info.key for info in await club.store.sessions()} == sessions
    assert "canary" not in str(client.seen)


async def test_the_same_walk_reaches_everything_on_a_connection_of_the_owners(club):
    client = await (await club.client()).hello()
    for name in OWN:
        assert await client.call(name) == {"secret": "canary"}
    assert club.reached == OWN
    assert (await client.call("session/new", {**PARAMS}))["sessionId"].startswith("chat:")


async def test_an_absent_method_and_a_forbidden_one_get_the_same_answer(club):
    client = await bound(club)
    absent = await client.fail("_agentd/nonsense")
    forbidden = await client.fail("_agentd/status")
    assert json.dumps(absent).replace("nonsense", "status") == json.dumps(forbidden)


async def test_a_bound_client_talks_in_its_session_and_sees_no_other(club):
    client = await bound(club)
    opened = await client.call("session/load", {"sessionId": GROUP, **PARAMS})
    assert "configOptions" not in opened
    call_id = await client.prompt(GROUP, "hello", "m1")
    assert (await client.answer(call_id))["result"]["stopReason"] == "end_turn"
    assert client.texts() == "Hello, you"
    listed = await client.call("session/list")
    assert [info["sessionId"] for info in listed["sessions"]] == [GROUP]
    await club.owner.answer(await club.owner.prompt("main", "private"))
    assert "private" not in str(client.seen)


async def test_only_its_own_turn_can_be_cancelled(club):
    client = await bound(club)
    for session in ("main", "group:other", GROUP):
        await client.notify("session/cancel", {"sessionId": session})
    await client.call("session/list")
    assert club.turns.cancelled == [GROUP]


async def test_a_bound_client_has_no_slash_command_but_help(club):
    client = await bound(club)
    await client.call("session/resume", {"sessionId": GROUP, **PARAMS})
    available = (await client.until("session/update"))["params"]["update"]
    assert [c["name"] for c in available["availableCommands"]] == ["help"]
    for name in ("compact", "flush", "new", "status", "model", "remember"):
        error = await client.answer(await client.prompt(GROUP, f"/{name} other"))
        assert error["error"]["message"] == f"there is no command /{name} here"
    told = await client.answer(await client.prompt(GROUP, "/help"))
    assert told["result"]["_meta"]["agentd/text"] == "/help: List these commands"
    assert club.reached == []
    assert club.turns.requests == []
    await club.owner.answer(await club.owner.prompt(GROUP, "/remember it"))
    assert club.reached == ["/remember"]


async def test_the_owner_is_asked_and_nobody_who_is_bound(club):
    verdicts = []

    async def ask(request):
        approval = Approval("Write shared/x.md", "d1", "shared/x.md", "old", "new")
        verdicts.append(await club.permissions.ask(request.session, "c1", approval))

    club.turns.before_end = ask
    client = await bound(club)
    call_id = await client.prompt(GROUP, "write it")
    question = await club.owner.until("session/request_permission")
    await client.call("session/list")
    assert "session/request_permission" not in str(client.seen)
    forged = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
    for number in (question["id"], "agentd-1", 1):
        frame = {"jsonrpc": "2.0", "id": number, "result": forged}
        await client.raw(json.dumps(frame).encode() + b"\n")
    await client.call("session/list")
    assert verdicts == []
    await club.owner.reply(question, "reject_once")
    await client.answer(call_id)
    assert verdicts == [Decision.DENY]


async def test_a_question_of_a_bound_session_waits_for_the_owner_and_then_counts_as_no(club):
    verdicts = []

    async def ask(request):
        approval = Approval("Write shared/x.md", "d1", "shared/x.md", "old", "new")
        verdicts.append(await club.permissions.ask(request.session, "c1", approval))

    club.turns.before_end = ask
    await club.owner.close()
    client = await bound(club)
    call_id = await client.prompt(GROUP, "write it", "m1")
    await client.until("session/update")
    await club.clock.advance(299)
    assert verdicts == []
    await club.clock.advance(1)
    await client.answer(call_id)
    assert verdicts == [Decision.UNASKED]


async def test_binding_is_for_good(club):
    client = await bound(club)
    for meta in ({"agentd/bind": "main"}, {"agentd/bind": None}, {"agentd/bind": 1}):
        error = await client.fail("initialize", {"protocolVersion": 1, "_meta": meta})
        assert error["code"] == -32602
    for meta in ({}, {"agentd/bind": GROUP}):
        await client.call("initialize", {"protocolVersion": 1, "_meta": meta})
    assert (await client.fail("_agentd/status"))["code"] == -32601
    assert (await client.fail("session/resume", {**PARAMS, "sessionId": "main"}))["code"] == -32002


@pytest.mark.parametrize("first", ["_agentd/status", "session/list", "_agentd/nonsense"])
async def test_a_connection_that_was_used_as_the_owners_cannot_be_bound(club, first):
    client = await club.client()
    await client.answer(await client.send(first))
    meta = {"_meta": {"agentd/bind": GROUP}}
    error = await client.fail("initialize", {"protocolVersion": 1, **meta})
    assert "cannot be bound" in error["message"]
    assert await client.call("_agentd/status") == {"secret": "canary"}


async def test_a_greeting_alone_leaves_a_connection_free_to_bind(club):
    client = await (await club.client()).hello()
    await client.call("authenticate", {"methodId": "x"})
    await client.hello(**{"agentd/bind": GROUP})
    assert (await client.fail("_agentd/status"))["code"] == -32601


@pytest.mark.parametrize("key", ["", "nonsense", "../main", 7, None, ["main"], {"a": 1}])
async def test_whoever_asks_for_no_possible_session_gets_none_at_all(club, key):
    client = await club.client()
    meta = {"agentd/bind": key}
    error = await client.fail("initialize", {"protocolVersion": 1, "_meta": meta})
    assert error["code"] == -32602
    assert (await client.fail("_agentd/status"))["code"] == -32601
    assert (await client.fail("session/resume", {**PARAMS, "sessionId": "main"}))["code"] == -32002
    assert (await client.call("session/list"))["sessions"] == []


async def test_the_next_line_of_one_write_already_meets_a_bound_connection(club):
    client = await club.client()
    hello = {"protocolVersion": 1, "_meta": {"agentd/bind": GROUP}}
    lines = [("initialize", hello), *((name, {}) for name in OWN[:20])]
    frames = [
        {"jsonrpc": "2.0", "id": number, "method": name, "params": params}
        for number, (name, params) in enumerate(lines, 1)
    ]
    await client.raw(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
    assert "result" in await client.answer(1)
    for number in range(2, len(lines) + 1):
        assert (await client.answer(number))["error"]["code"] == -32601
    assert club.reached == []


async def test_a_greeting_that_wants_no_answer_binds_all_the_same(club):
    client = await club.client()
    hello = {"protocolVersion": 1, "_meta": {"agentd/bind": GROUP}}
    await client.notify("initialize", hello)
    assert (await client.fail("_agentd/status"))["code"] == -32601
    assert club.reached == []


@pytest.mark.parametrize("odd", [{"id": None}, {"id": True}, {"id": 1, "params": []}])
async def test_a_greeting_that_cannot_be_read_ends_the_connection(club, odd):
    client = await club.client()
    hello = {"protocolVersion": 1, "_meta": {"agentd/bind": GROUP}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello, **odd}
    status = {"jsonrpc": "2.0", "id": 2, "method": "_agentd/status", "params": {}}
    await client.raw(b"".join(json.dumps(one).encode() + b"\n" for one in (frame, status)))
    assert (await client.read())["error"]["code"] in {-32600, -32602}
    assert await client.read() is None
    assert club.reached == []


async def test_a_bound_client_is_not_told_the_owners_folders(club):
    await club.owner.call(
        "session/new", {**PARAMS, "cwd": "/home/me/private", "_meta": {"agentd/key": "group:own"}}
    )
    client = await bound(club, "group:own")
    (told,) = (await client.call("session/list"))["sessions"]
    assert told["cwd"] == "/"
    for cwd in ("/home/me/private", "/elsewhere"):
        (told,) = (await client.call("session/list", {"cwd": cwd}))["sessions"]
        assert told["cwd"] == cwd, "it cannot ask either"


async def test_a_session_that_is_made_later_is_there_for_who_is_bound_to_it(club):
    client = await bound(club, "group:late")
    wanted = {**PARAMS, "sessionId": "group:late"}
    assert (await client.fail("session/resume", wanted))["code"] == -32002
    assert (await client.fail("session/new", PARAMS))["code"] == -32601
    await club.owner.new("group:late")
    await client.call("session/resume", wanted)


async def test_a_bound_client_is_told_only_what_it_can_do(club):
    client = await club.client()
    meta = {"agentd/bind": GROUP}
    told = await client.call("initialize", {"protocolVersion": 1, "_meta": meta})
    assert set(told["agentCapabilities"]["sessionCapabilities"]) == {"list", "resume", "close"}


@pytest.mark.parametrize("asks", [True, False])
async def test_notifications_of_our_own_go_to_those_who_ask(club, asks):
    client = await club.client()
    hello = {"protocolVersion": 1}
    if asks:
        hello["clientCapabilities"] = {"_meta": {"agentd/notify": True}}
    await client.call("initialize", hello)
    assert (len(club.clients.listening) == 2) is asks
    await client.answer(await client.prompt("main", "hi"))
    assert ("_agentd/accepted" in [frame["method"] for frame in client.seen]) is asks


async def test_whoever_calls_a_method_of_ours_asks_for_our_notifications(club):
    client = await club.client()
    await client.call("initialize", {"protocolVersion": 1})
    assert len(club.clients.listening) == 1
    await client.call("_agentd/status")
    assert len(club.clients.listening) == 2
    assert len(club.clients.showing) == 1  # it has not said that it shows them to somebody
    await client.answer(await client.prompt("main", "hi"))
    assert "_agentd/accepted" in [frame["method"] for frame in client.seen]


async def test_no_notification_of_our_own_reaches_a_bound_client_whatever_it_asks(club):
    client = await (await club.client()).hello()
    assert len(club.clients.listening) == 2
    await client.hello(**{"agentd/bind": GROUP})
    assert len(club.clients.listening) == 1
    await client.fail("_agentd/alerts/follow")
    await client.answer(await client.prompt(GROUP, "hi"))
    assert "_agentd/" not in str(client.seen)


async def test_a_daemon_that_stops_tells_no_bound_client(open_house):
    async with open_house() as house:
        client = await bound(house)
        owner = await (await house.client()).hello()
        house.stack.pop_all()  # they stay while the daemon stops
    assert await client.read() is None
    assert (await owner.read())["method"] == "_agentd/stopping"
    await client.close()
    await owner.close()


def test_a_role_that_is_refused_stays_what_it_was():
    role = ClientRole().after("_agentd/status", {})
    with pytest.raises(InvalidRequest):
        role.after("initialize", {"_meta": {"agentd/bind": GROUP}})
    assert role.is_owner
    assert ClientRole().after("initialize", {"_meta": [1]}).is_owner
    assert ClientRole().after("authenticate", {}) == ClientRole()


async def test_many_at_once_are_bound_each_to_its_own(club):
    keys = [GROUP, "group:other"] * 8
    clients = await asyncio.gather(*(bound(club, key) for key in keys))
    for client, key in zip(clients, keys, strict=True):
        listed = await client.call("session/list")
        assert [info["sessionId"] for info in listed["sessions"]] == [key]
