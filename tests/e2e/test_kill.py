"""The daemon is killed at every failpoint; nothing that was acknowledged is lost or done twice.

In each case a message, a compaction, a beat or a fact hits the point while another message has been
accepted and waits. Then a second program writes into today's note, and the daemon starts again.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import json
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import Struct

from agentd.core.failpoints import NAMES
from agentd.testing import PNG
from tests.e2e.harness import PATIENCE, Client, Home, ModelServer, Refused, a_home, texts
from tests.e2e.model_server import CANARY
from tests.finding import holding
from tests.waiting import until

AT_ONCE = 3  # homes whose daemons run side by side
SCRIBBLE = "- a line of another program"
LEAK = "mark-leak in the cellar"
PLAIN = "say mark-hello"
TOOLS = (
    "do write mark-one & write mark-two & read notes/list.md; patch notes/list.md old new; "
    "say mark-finished"
)
QUEUED = "write mark-queued"
GATE = "gate mark-gate"

_PLAIN_POINTS = ("turn.begun", "turn.streaming", "turn.answered", "turn.finished")
# Where an answer that has come matters, or a request that is made again: tried in short over both
# wires.
_ON_THE_WIRE = (
    *("image.stored", "turn.streaming", "turn.answered", "turn.assistant_stored", "tool.done"),
    *("turn.results_stored", "flush.done", "compaction.summarised", "beat.verdict"),
)


class Scenario:
    """What a daemon does when it meets its point, and what must be true of it afterwards."""

    session = "main"

    def __init__(self, home: Home) -> None:
        self.home = home

    def prepare(self) -> None:
        """Put files in their places."""

    async def provoke(self, client: Client) -> None:
        """Make the point be hit. The daemon dies on the way."""
        raise NotImplementedError

    async def resume(self, client: Client) -> None:
        """Ask for the same again and look at what comes."""
        raise NotImplementedError

    async def queue(self, client: Client, message_id: str, text: str) -> None:
        """Have a message accepted that waits behind what runs."""
        client.prompt(text, message_id, self.session)
        await client.wait_accepted(message_id)

    async def verify(self, client: Client) -> None:
        """Nothing twice, nothing missing."""
        rows = await client.export(self.session)
        said = texts(rows, "user")
        assert said.count(GATE) == said.count(QUEUED) == 1, said
        assert texts(rows, "assistant").count("passed mark-gate") == 1
        notes = self.home.notes()
        assert notes.count(SCRIBBLE + "\n") == 1, notes
        assert notes.count("] mark-queued\n") == 1, notes


class Message(Scenario):
    """A message whose turn meets the point."""

    text, answer = PLAIN, "mark-hello"

    def prepare(self) -> None:
        folder = self.home.workspace / "notes"
        folder.mkdir()
        (folder / "list.md").write_text("old\n")

    async def provoke(self, client: Client) -> None:
        await self.queue(client, "gate", GATE)
        await self.queue(client, "subject", self.text)
        await self.queue(client, "queued", QUEUED)
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def resume(self, client: Client) -> None:
        assert await client.say(self.text, "subject") == self.answer
        assert await client.say(self.text, "subject") == self.answer

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        rows = await client.export()
        assert texts(rows, "user").count(self.text) == 1
        assert texts(rows, "assistant").count(self.answer) == 1
        listed = (self.home.workspace / "notes" / "list.md").read_text()
        expected = (
            {"mark-one": 0, "mark-two": 0} if self.text == PLAIN else {"mark-one": 1, "mark-two": 1}
        )
        assert {word: self.home.notes().count(word) for word in expected} == expected
        assert listed == ("old\n" if self.text == PLAIN else "new\n")


class Arriving(Message):
    """A message that dies while it is taken in: stored, and nobody told."""

    async def provoke(self, client: Client) -> None:
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        client.prompt(self.text, "subject")
        await self.home.model.open_gate(self.home.name, "mark-gate")


class Showing(Message):
    """A message that dies between its image and itself: nobody was told, it is sent again."""

    async def provoke(self, client: Client) -> None:
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        self._show(client)
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def resume(self, client: Client) -> None:
        await self._show(client)
        await super().resume(client)

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        (file,) = (self.home.root / "state" / "blobs").glob("*/*")
        shown = [b for row in await client.export() for b in row["content"] if b["type"] == "image"]
        assert [image["sha256"] for image in shown] == [file.name]

    def _show(self, client: Client) -> asyncio.Future[Any]:
        data = base64.b64encode(PNG + b"mark-image").decode()
        image = {"type": "image", "data": data, "mimeType": "image/png"}
        prompt = [image, {"type": "text", "text": self.text}]
        meta = {"agentd/messageId": "subject"}
        params = {"sessionId": self.session, "prompt": prompt, "_meta": meta}
        return client.start("session/prompt", params)


class Calling(Message):
    """A message whose tools meet the point."""

    text, answer = TOOLS, "mark-finished"


class Compacting(Scenario):
    """A compaction, with its flush, meets the point."""

    SAID = tuple(f"say mark-fact{n} 48{n}1234567" for n in range(4))

    async def provoke(self, client: Client) -> None:
        for number, text in enumerate(self.SAID):
            await client.say(text, f"fact{number}")
        await self.queue(client, "gate", GATE)
        client.start("_agentd/sessions/compact", {"key": "main"})
        await self._wait_in_lane(client)
        await self.queue(client, "queued", QUEUED)
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def resume(self, client: Client) -> None:
        await client.say(QUEUED, "queued")
        await client.call("_agentd/sessions/compact", {"key": "main"})

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        rows = await client.export()
        kept = [line for line in self.home.notes().splitlines() if CANARY in line]
        words = [word for line in kept for word in line.split() if word.startswith("mark-fact")]
        assert sorted(words) == ["mark-fact0", "mark-fact1", "mark-fact2", "mark-fact3"], kept
        assert [t for t in texts(rows, "user") if "fact" in t] == list(self.SAID)
        assert texts(rows, "summary")
        await client.say("say mark-later", "later")
        asked = json.dumps(self.home.requests()[-1]["messages"])
        assert "4801234567" in asked, "the summary has lost what it stands for"

    async def _wait_in_lane(self, client: Client) -> None:
        while True:
            status = await client.call("_agentd/status")
            if any(s["key"] == "main" and s["queued"] for s in status["sessions"]):
                return
            await asyncio.sleep(0.02)


class Beating(Scenario):
    """A beat or its alert meets the point; the messages wait in another session."""

    session = "chat:other"

    def prepare(self) -> None:
        (self.home.workspace / "HEARTBEAT.md").write_text(f"- [ ] report {LEAK}\n")

    async def provoke(self, client: Client) -> None:
        place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": self.session}}
        await client.call("session/new", place)
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        client.start("_agentd/heartbeat/run", {"force": True})

    async def resume(self, client: Client) -> None:
        runs = (await client.call("_agentd/heartbeat/history", {}))["runs"]
        assert (runs[-1]["outcome"], runs[-1]["reason"]) == ("failed", "interrupted")
        if not any(run["outcome"] == "alert" for run in runs):
            await client.call("_agentd/heartbeat/run", {"force": True})
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        heard = [client.alerts for client in self.home.clients]
        await until(lambda: any(heard), "the alert is shown")
        assert {text for alerts in heard for text in alerts} == {LEAK}
        found = (await client.call("_agentd/alerts/list"))["alerts"]
        assert [alert["text"] for alert in found] == [LEAK]
        await until_async(
            client,
            "_agentd/alerts/list",
            lambda found: set(found["alerts"][0]["delivered"].values()) == {"sent"},
        )
        assert texts(await client.export(), "notice") == [LEAK]


class Alerting(Beating):
    """The alert is durable before the point; it arrives without another beat."""

    async def resume(self, client: Client) -> None:
        runs = (await client.call("_agentd/heartbeat/history", {}))["runs"]
        assert [(run["outcome"], run["reason"]) for run in runs] == [("alert", "alert")]
        await self.home.model.open_gate(self.home.name, "mark-gate")


class Asking(Beating):
    """The question of a job meets the point in its slot, which is not used again."""

    job: int

    def prepare(self) -> None:
        """Nothing: the words are the job's own."""

    async def provoke(self, client: Client) -> None:
        place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": self.session}}
        await client.call("session/new", place)
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        job = {"text": f"report {LEAK}", "in": "1s", "ask": True, "session": "main"}
        self.job = (await client.call("_agentd/jobs/add", job))["id"]

    async def resume(self, client: Client) -> None:
        runs = (await client.call("_agentd/jobs/history", {}))["runs"]
        assert (runs[-1]["outcome"], runs[-1]["reason"]) == ("failed", "interrupted")
        assert [run["due"] for run in runs[:-1]] == [None] * (len(runs) - 1), "a slot came twice"
        if not any(run["outcome"] == "alert" for run in runs):
            await client.call("_agentd/jobs/run", {"id": self.job})
        await self.home.model.open_gate(self.home.name, "mark-gate")


class Deleting(Scenario):
    """A deletion meets the point: the session is gone, its words still stand in the files."""

    SAID = "say mark-forgotten"

    async def provoke(self, client: Client) -> None:
        place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": "chat:gone"}}
        await client.call("session/new", place)
        await client.say(self.SAID, "gone", "chat:gone")
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        client.start("_agentd/sessions/delete", {"key": "chat:gone"})

    async def resume(self, client: Client) -> None:
        with pytest.raises(Refused):
            await client.export("chat:gone")
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        await until(lambda: not self._found(), "no file holds a word of the deleted session")

    def _found(self) -> bool:
        return bool(holding(self.home.root, b"mark-forgotten"))


class Learning(Scenario):
    """A fact meets the point; it is told again, and is known once."""

    TOLD = "my hamster is Quastelbury"

    async def provoke(self, client: Client) -> None:
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        client.start("_agentd/facts/add", {"text": self.TOLD})

    async def resume(self, client: Client) -> None:
        again = await client.call("_agentd/facts/add", {"text": self.TOLD})
        assert not again["new"], "the page has it, and nobody knows"
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        page = (self.home.workspace / "memory" / "facts.md").read_text("utf-8")
        assert page.count("hamster is Quastelbury") == 1, page
        (fact,) = (await client.call("_agentd/facts/list", {}))["facts"]
        assert fact["text"] == "The user's hamster is Quastelbury."


class Relating(Learning):
    """The graph meets the point with its tables ahead of its text; both say the fact, and once."""

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        question = {"question": "FIND fact FROM user DEPTH 1"}
        rows = (await client.call("_agentd/facts/query", question))["rows"]
        assert [row["label"] for row in rows] == ["quastelbury"]
        await client.call("_agentd/facts/export-graph")
        (file,) = (self.home.workspace / "memory" / "graph").glob("*.0")
        assert file.read_text("utf-8").count('"label": "quastelbury"') == 1


class Logging(Relating):
    """The chain of the graph meets the point; what it was about is entered again, and it is
    sound.
    """

    def prepare(self) -> None:
        self.home.configure("[graph]\nchain = true\n")

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        found = await client.call("_agentd/facts/chain")
        assert found["entries"] >= 2, found
        assert (found["bad"], found["changed"]) == (None, []), found


class Erasing(Scenario):
    """What erases a fact meets the point: the fact is gone, and then every byte of what says it."""

    SAID = "My hamster is called Quastelbury"

    async def provoke(self, client: Client) -> None:
        told = await client.call("_agentd/facts/add", {"text": f"{self.SAID}."})
        place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": "chat:pets"}}
        await client.call("session/new", place)
        await client.say(f"say {self.SAID}", "told", "chat:pets")
        await client.say("say Quastelbury", "said", "chat:pets")
        assert self._found()
        await self.queue(client, "gate", GATE)
        await self.queue(client, "queued", QUEUED)
        client.start("_agentd/facts/forget", {"query": told["fact"]["id"]})
        await self.home.model.open_gate(self.home.name, "mark-gate")

    async def resume(self, client: Client) -> None:
        """Nothing: it is finished without being asked for again."""

    async def verify(self, client: Client) -> None:
        await super().verify(client)
        await until(lambda: not self._found(), "no file says the forgotten fact")
        assert not (await client.call("_agentd/facts/list", {}))["facts"]
        said = texts(await client.export("chat:pets"), "user")
        assert said == ["say [forgotten]", "say Quastelbury"]

    def _found(self) -> bool:
        return bool(holding(self.home.root, self.SAID.encode()))


class Case(Struct, frozen=True):
    """Which hit of a point kills whom."""

    scenario: type[Scenario]
    count: int = 1


CASES = {
    "image.stored": Case(Showing),
    "turn.received": Case(Arriving, 3),
    **{name: Case(Message, 2) for name in _PLAIN_POINTS},
    "turn.assistant_stored": Case(Calling),
    **{name: Case(Calling) for name in NAMES if name.startswith(("tool.", "file."))},
    "turn.results_stored": Case(Calling),
    **{name: Case(Compacting) for name in NAMES if name.startswith(("flush.", "compaction."))},
    **{name: Case(Beating) for name in NAMES if name.startswith("beat.")},
    **{name: Case(Asking) for name in NAMES if name.startswith("job.")},
    **{name: Case(Deleting) for name in NAMES if name.startswith(("session.", "store."))},
    "facts.written": Case(Learning),
    "graph.chained": Case(Logging),
    "graph.written": Case(Relating),
    **{name: Case(Erasing) for name in NAMES if name.startswith("erasure.")},
    **{name: Case(Alerting) for name in NAMES if name.startswith("alert.")},
}


async def until_async(client: Client, method: str, holds: Any) -> None:
    """Return when what `method` answers is as it should be."""
    async with asyncio.timeout(PATIENCE):
        while not holds(await client.call(method)):
            await asyncio.sleep(0.02)


class Story(Struct, frozen=True):
    """A kill at one point, of a daemon that asks its model in the words of a wire. If `again` is a
    point too, the recovery is killed there.
    """

    point: str
    again: str = ""
    wire: str = "anthropic"


async def killed_at(model: ModelServer, story: Story) -> str:
    """The whole story, and what the first new message after it is answered."""
    point, again = story.point, story.again
    case = CASES[point]
    async with a_home(model, wire=story.wire) as home:
        scenario = case.scenario(home)
        home.furnish()
        scenario.prepare()
        daemon = await home.start(f"{point}:{case.count}")
        client = await daemon.connect()
        await scenario.provoke(client)
        await daemon.killed()
        home.scribble(SCRIBBLE)
        if again:
            await die_again(home, scenario, again)
        daemon = await home.start()
        client = await daemon.connect()
        await scenario.resume(client)
        await answered(client, scenario)
        await scenario.verify(client)
        answer = await client.say("say mark-next", "next", scenario.session)
        await daemon.stop()
    return answer


async def answered(client: Client, scenario: Scenario) -> None:
    """The message that had been accepted is answered; it is not sent again for that."""
    async with asyncio.timeout(PATIENCE):
        while "done" not in texts(await client.export(scenario.session), "assistant"):
            await asyncio.sleep(0.02)
    assert await client.say(QUEUED, "queued", scenario.session) == "done"


async def die_again(home: Home, scenario: Scenario, point: str) -> None:
    """A second life that ends at another point, or is killed when it has come through."""
    daemon = await home.start(point)
    await home.model.open_gate(home.name, "mark-gate")
    try:
        client = await daemon.connect()
        await scenario.resume(client)
    except Exception:  # noqa: BLE001 - whatever a dying daemon does to its client
        await asyncio.sleep(0)
    await daemon.kill()


class Sweep:
    """Runs the stories side by side on a thread, so that each test waits for its own only."""

    def __init__(self, model: ModelServer, stories: Iterable[Story]) -> None:
        self._model = model
        self.told: dict[Story, concurrent.futures.Future[str]] = {
            story: concurrent.futures.Future() for story in stories
        }
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.thread.start()

    async def _run(self) -> None:
        slots = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as group:
            for story in self.told:
                group.create_task(self._tell(story, slots))

    async def _tell(self, story: Story, slots: asyncio.Semaphore) -> None:
        async with slots:
            try:
                answer = await killed_at(self._model, story)
            except BaseException as error:  # noqa: BLE001 - raised where the test waits
                self.told[story].set_exception(error)
            else:
                self.told[story].set_result(answer)


@pytest.fixture(scope="module")
def sweep(model: ModelServer, request: pytest.FixtureRequest) -> Iterator[Sweep]:
    """The stories of the points that were asked for."""
    chosen = [
        Story(**item.callspec.params)
        for item in request.session.items
        if isinstance(item, pytest.Function) and "sweep" in item.fixturenames
    ]
    sweep = Sweep(model, chosen)
    yield sweep
    sweep.thread.join()


def test_every_point_has_a_story() -> None:
    assert set(CASES) == set(NAMES)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("point", CASES)
def test_a_kill_loses_nothing(sweep: Sweep, point: str) -> None:
    assert sweep.told[Story(point)].result() == "mark-next"


@pytest.mark.timeout(150)
@pytest.mark.parametrize("wire", ["openai"])
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(point, marks=() if point in _ON_THE_WIRE else pytest.mark.torture)
        for point in CASES
    ],
)
def test_a_kill_loses_nothing_over_chat_completions_either(
    sweep: Sweep, point: str, wire: str
) -> None:
    assert sweep.told[Story(point, wire=wire)].result() == "mark-next"


@pytest.mark.torture
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("again", ["turn.begun", "tool.settled", "turn.finished"])
@pytest.mark.parametrize("point", CASES)
def test_a_second_kill_during_the_recovery_loses_nothing(
    sweep: Sweep, point: str, again: str
) -> None:
    assert sweep.told[Story(point, again)].result() == "mark-next"


@pytest.mark.timeout(150)
@pytest.mark.parametrize("point", ["", "alert.stored", "alert.sent"])
async def test_a_reminder_that_is_due_while_nobody_lives_comes_once(
    model: ModelServer, point: str
) -> None:
    """The process dies before the reminder is due, or in its slot, and is away for a while."""
    async with a_home(model) as home:
        daemon = await home.start(point)
        client = await daemon.connect()
        job = {"text": "stand up", "in": "1s"}
        due = (await client.call("_agentd/jobs/add", job))["next_due"]
        if not point:
            await daemon.kill()
        await daemon.killed()
        await until(lambda: datetime.now(UTC) > datetime.fromisoformat(due), "it is due")
        for _ in range(2):  # it does not come again with a later start either
            daemon = await home.start()
            client = await daemon.connect()
            await until_async(client, "_agentd/jobs/history", lambda found: found["runs"])
            (run,) = (await client.call("_agentd/jobs/history", {}))["runs"]
            assert (run["due"], run["outcome"], run["text"]) == (due, "alert", "stand up")
            (alert,) = (await client.call("_agentd/alerts/list"))["alerts"]
            assert alert["text"] == "stand up"
            await until_async(
                client,
                "_agentd/alerts/list",
                lambda found: set(found["alerts"][0]["delivered"].values()) == {"sent"},
            )
            assert texts(await client.export(), "notice") == ["stand up"]
            jobs = (await client.call("_agentd/jobs/list"))["jobs"]
            assert [job["id"] for job in jobs] == ["heartbeat", "graph"]
            await daemon.stop()
        assert not home.requests(), "a reminder asks no model"
