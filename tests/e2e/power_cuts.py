"""Lives of a daemon whose calls to the disk are all known, cut at any of them, and a judge of what
is left.

A life is recorded from its start to its end. Then the power is cut anywhere in it, as often as
wanted: what the disk holds at that moment is laid into a folder, a daemon is started on it, and
everything that the first one had told its client before that moment must be there. The next life
begins on such a disk, too.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import itertools
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from agentd.testing import PNG
from tests.e2e.disk import Call, Disk, Fate, calls_in, followed, recorder
from tests.e2e.harness import PATIENCE, Client, Gone, Home, ModelServer, texts
from tests.e2e.test_days_of_kills import check_archive
from tests.e2e.test_random_kills import failures, outcome_of, whole

SETTINGS = """context_window = 12000
[heartbeat]
active_hours_start = "00:00"
active_hours_end = "24:00"
"""
GIVEN_UP = "crashed_repeatedly"  # how a message ends that the power has cut off three times
_KEPT = (0.0, 0.5, 0.9, 1.0)  # how much of what was not synced is there
_SECTORS = (512, 4096)
_STRAYS = (".agentd-*", "*.part", "*.new")
_SOON = 10.0  # seconds after which nothing is left of what was erased

Json = dict[str, Any]


@dataclass(frozen=True)
class Item:
    """Something that a client asks for. Its text stands nowhere else."""

    kind: str
    text: str
    id: str = ""  # of a message
    key: str = "main"  # of its session


@dataclass(frozen=True)
class Ask:
    """A request, and what is there or gone once it is answered."""

    method: str
    params: Json
    puts: tuple[Item, ...] = ()
    takes: tuple[Item, ...] = ()


@dataclass
class Known:
    """What clients have asked for, and what was acknowledged before the power went."""

    asked: set[Item] = field(default_factory=set)
    kept: set[Item] = field(default_factory=set)
    leaving: set[Item] = field(default_factory=set)  # that they have asked to be erased
    gone: set[Item] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)  # by the message's id

    def bounds(self, item: Item) -> tuple[int, int]:
        """How often it may be there, at least and at most."""
        if item in self.gone:
            return 0, 0
        return int(item in self.kept - self.leaving), 1

    def hear(self, frame: Json, asks: Mapping[int, Ask]) -> bool:
        """Take over what a frame acknowledges of what was asked; whether it is anything."""
        match frame:
            case {"method": "_agentd/accepted", "params": {"messageId": message_id}}:
                messages = [item for ask in asks.values() for item in ask.puts]
                self.kept |= {item for item in messages if item.id == message_id}
            case {"id": int(number), "result": result} if number in asks:
                ask = asks[number]
                self.kept |= set(ask.puts)
                if not result.get("pending"):  # else it says that a place is left for later
                    self.gone |= set(ask.takes)
                if ask.method == "session/prompt":
                    meta = result["_meta"]
                    self.answers[meta["agentd/messageId"]] = meta["agentd/text"]
                if ask.method == "_agentd/heartbeat/run":
                    self.kept.add(Item("beat", str(result["id"])))
            case _:
                return False
        return True


@dataclass
class Talk:
    """What a client says to a daemon in one life."""

    home: Home
    client: Client
    chance: Random
    before: Known
    numbers: Iterator[int]  # none of which comes twice
    asks: dict[int, Ask] = field(default_factory=dict)

    async def spend(self) -> None:
        """Ask for some of everything, and stay until it is answered, or leave before. Something is
        answered in any case: a life that had acknowledged nothing would show nothing, wherever it
        is cut.
        """
        small = (self.note, self.fact, self.job, self.picture, self.forgetting, self.beat)
        large = (self.compaction, self.deletion, self.backup)
        answers = [self.ask(self.message()) for _ in range(self.chance.randrange(1, 4))]
        answers += [self.ask(one()) for one in self.chance.sample(small, 3)]
        async with asyncio.timeout(PATIENCE):
            stays = self.chance.random() < 0.5
            first = asyncio.ALL_COMPLETED if stays else asyncio.FIRST_COMPLETED
            await asyncio.wait(answers, return_when=first)
            answers += await self.chance.choice(large)()
            if self.chance.random() < 0.5:
                await asyncio.wait(answers)

    def ask(self, ask: Ask) -> asyncio.Future[Any]:
        """Send it."""
        answer = self.client.start(ask.method, ask.params)
        self.asks[self.client.number] = ask
        return answer

    def message(self) -> Ask:
        number = next(self.numbers)
        words = " ".join(f"w{number}{letter}" for letter in "abc")
        return _prompt(Item("message", f"three {words}", f"m{number}"))

    def picture(self) -> Ask:
        number = next(self.numbers)
        data = PNG + f"picture {number}".encode()
        image = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
        message = Item("message", f"say seen{number}x", f"m{number}")
        ask = _prompt(message, image)
        picture = Item("picture", sha256(data).hexdigest(), f"m{number}")
        return Ask(ask.method, ask.params, (message, picture))

    def note(self) -> Ask:
        text = f"noted{next(self.numbers)}x"
        return Ask("_agentd/memory/write", {"content": text}, (Item("note", text),))

    def fact(self) -> Ask:
        number = next(self.numbers)
        text = f"The code of shelf {number} is code{number}x."
        return Ask("_agentd/facts/add", {"text": text}, (Item("fact", text),))

    def job(self) -> Ask:
        text = f"ring{next(self.numbers)}x"
        return Ask("_agentd/jobs/add", {"text": text, "in": "1d"}, (Item("job", text),))

    def beat(self) -> Ask:
        return Ask("_agentd/heartbeat/run", {"force": True})

    def forgetting(self) -> Ask:
        """Of a fact of an earlier life, if there is one."""
        known = self.before.kept - self.before.leaving
        facts = sorted(item.text for item in known if item.kind == "fact")
        if not facts:
            return self.fact()
        text = self.chance.choice(facts)
        return Ask("_agentd/facts/forget", {"query": text}, takes=(Item("fact", text),))

    async def compaction(self) -> list[asyncio.Future[Any]]:
        return [self.ask(Ask("_agentd/sessions/compact", {"key": "main"}))]

    async def deletion(self) -> list[asyncio.Future[Any]]:
        """Of a conversation with something in it."""
        number = next(self.numbers)
        key = f"chat:side{number}"
        place = {"cwd": "/", "mcpServers": [], "_meta": {"agentd/key": key}}
        message = Item("message", f"say secret{number}x", f"m{number}", key)
        await self.client.call("session/new", place)
        await self.ask(_prompt(message))
        return [self.ask(Ask("_agentd/sessions/delete", {"key": key}, takes=(message,)))]

    async def backup(self) -> list[asyncio.Future[Any]]:
        name = f"backup{next(self.numbers)}x.tar.gz"
        params = {"file": str(self.home.root / name)}
        return [self.ask(Ask("_agentd/backup", params, (Item("backup", name),)))]


def _prompt(message: Item, *blocks: Json) -> Ask:
    prompt = [*blocks, {"type": "text", "text": message.text}]
    params = {"sessionId": message.key, "prompt": prompt, "_meta": {"agentd/messageId": message.id}}
    return Ask("session/prompt", params, (message,))


@dataclass(frozen=True)
class Life:
    """A life from its start to its end: the disk that it found, its calls, what was asked by the
    number of the request, and what had been known before.
    """

    disk: Disk
    calls: Sequence[Call]
    asks: Mapping[int, Ask]
    before: Known

    def acknowledgements(self) -> list[int]:
        """The cuts right behind words that acknowledge something."""
        return sorted({end for end, frame in frames(self.calls) if Known().hear(frame, self.asks)})

    def known(self, cut: int) -> Known:
        """What is known when the power goes after so many calls."""
        known = copy.deepcopy(self.before)
        known.asked |= {item for ask in self.asks.values() for item in ask.puts}
        known.leaving |= {item for ask in self.asks.values() for item in ask.takes}
        for end, frame in frames(self.calls):
            if end <= cut:
                known.hear(frame, self.asks)
        return known

    def cut(self, after: int, syncs: Callable[[str], bool] = lambda _: True) -> Disk:
        """The disk after so many calls; `syncs` tells of which paths it does what it is told by a
        sync.
        """
        disk = copy.deepcopy(self.disk)
        for call in self.calls[:after]:
            disk.follow(call, syncs=syncs)
        return disk


def frames(calls: Sequence[Call]) -> Iterator[tuple[int, Json]]:
    """What the daemon has told its clients: each frame, and how many calls there were when it was
    out.
    """
    pending: dict[int, bytes] = {}
    for end, call in enumerate(calls, 1):
        if call.kind == "S":
            *lines, pending[call.file] = (pending.get(call.file, b"") + call.data).split(b"\n")
            for line in lines:
                yield end, json.loads(line)


async def recorded(
    home: Home,
    chance: Random,
    before: Known,
    numbers: Iterator[int],
    spend: Callable[[Talk], Awaitable[None]] = Talk.spend,
) -> Life:
    """A life on that home. AssertionError if it has changed its files by calls that were not
    seen.
    """
    log = home.root.with_suffix(".calls")
    (home.root / "stderr").touch(0o600)
    disk = Disk(home.root)
    home.variables = followed(home.root, log)
    try:
        daemon = await home.start()
        talk = Talk(home, await daemon.connect(), chance, before, numbers)
        await spend(talk)
        await daemon.stop()
        life = Life(disk, tuple(calls_in(log)), talk.asks, before)
    finally:
        home.variables = {}
        log.unlink()
    unseen = life.cut(len(life.calls)).differences()
    assert not unseen, f"changed by calls that are not seen: {unseen}"
    return life


@dataclass
class Judge:
    """Looks at a home on which the power has come back."""

    home: Home
    known: Known
    found: list[str] = field(default_factory=list)
    given_up: set[str] = field(default_factory=set)  # messages

    async def judge(self) -> list[str]:
        """What is wrong with it, after a start and all that goes on by itself."""
        try:
            client = await (await self.home.start()).connect()
            async with asyncio.timeout(PATIENCE):
                while not await self._is_idle(client):
                    await asyncio.sleep(0.01)
                await self._look(client)
                await self._look_for_traces()
        except (AssertionError, Gone, TimeoutError) as error:
            self.found.append(f"does not work: {error!r}\n{self.home.complaints()}")
        finally:
            await self.home.close()
        if "Traceback" in (told := self.home.complaints()):
            self.found.append(f"an error of agentd's own: {told}")
        return self.found

    def _require(self, holds: object, what: str) -> None:
        if not holds:
            self.found.append(what)

    async def _is_idle(self, client: Client) -> bool:
        sessions = (await client.call("_agentd/status"))["sessions"]
        return not any(session["busy"] or session["queued"] for session in sessions)

    async def _look(self, client: Client) -> None:
        problems = (await client.call("_agentd/status"))["problems"]
        self.found += [f"{problem['code']}: {problem['text']}" for problem in problems]
        checks = (await client.call("_agentd/doctor"))["checks"]
        self.found += [f"doctor: {one['text']}" for one in checks if one["level"] == "fail"]
        sessions = (await client.call("_agentd/sessions/list"))["sessions"]
        rows = {one["key"]: await whole(client, one["key"]) for one in sessions}
        there = await self._count(client, list(itertools.chain.from_iterable(rows.values())))
        for item in self.known.asked | self.known.kept:
            least, most = self.known.bounds(item)
            times = there[item.kind, item.text]
            self._require(times >= least, f"{item.kind} {item.text!r} is lost")
            self._require(times <= max(most, least), f"{item.kind} {item.text!r}: {times} times")
        failed = failures(rows.get("main", []))
        for item in self.known.asked - self.known.leaving - self.known.gone:
            if item.kind == "message":
                await self._look_at(client, item, failed)

    async def _count(self, client: Client, rows: Sequence[Json]) -> Counter[tuple[str, str]]:
        """How often each thing is there, by kind and text."""
        jobs = (await client.call("_agentd/jobs/list"))["jobs"]
        facts = (await client.call("_agentd/facts/list", {"limit": 1000}))["facts"]
        beats = (await client.call("_agentd/heartbeat/history", {"limit": 1000}))["runs"]
        images = [b["sha256"] for row in rows for b in row["content"] if b["type"] == "image"]
        page = self.home.workspace / "memory" / "facts.md"
        lines = page.read_text("utf-8").splitlines() if page.exists() else []
        listed = Counter(fact["text"] for fact in facts)
        written = Counter(line.removeprefix("- ").partition(" <!--")[0] for line in lines)
        for text in listed.keys() | written.keys():
            if text.startswith("The code"):
                self._require(listed[text] == written[text], f"page and list differ: {text}")
        blobs = {file.name for file in (self.home.root / "state" / "blobs").glob("*/*")}
        self._require(blobs == set(images), "pictures and messages do not belong together")
        for name in blobs:
            file = self.home.root / "state" / "blobs" / name[:2] / name
            self._require(sha256(file.read_bytes()).hexdigest() == name, f"{name} has other bytes")
        notes = self.home.notes()
        self._require("\0" not in notes, "zeros in a note")
        changed = any(item.kind in {"note", "fact"} for item in self.known.kept)
        versions = self.home.root / "state" / "versions"
        self._require(not changed or any(versions.glob("*/log")), "no version of a file is there")
        return Counter(
            itertools.chain(
                (("message", text) for text in texts(rows, "user")),
                (("picture", name) for name in images),
                (("note", line) for line in notes.splitlines()),
                (("fact", text) for text in listed.elements()),
                (("job", job["text"]) for job in jobs),
                (("beat", str(beat["id"])) for beat in beats),
                (("backup", file.name) for file in self._archives()),
            )
        )

    def _archives(self) -> Iterator[Path]:
        """The backups that were acknowledged; each is whole."""
        for item in self.known.kept:
            if item.kind == "backup" and (file := self.home.root / item.text).exists():
                try:
                    check_archive(file)
                except AssertionError as error:
                    self.found.append(str(error))
                yield file

    async def _look_at(self, client: Client, message: Item, failed: set[str]) -> None:
        """Answered once, with all that the answer claims to have done."""
        words = message.text.split()[1:] if message.text.startswith("three ") else []
        notes = self.home.notes()
        times = {word: len(re.findall(rf"\] {word}\b", notes)) for word in words}
        self._require(max(times.values(), default=0) <= 1, f"{message.id} was done twice: {times}")
        if message not in self.known.kept:
            return
        outcome = await outcome_of(client, message.key, message.text, message.id)
        wanted = "done" if words else message.text.removeprefix("say ")
        answer = self.known.answers.get(message.id)
        if outcome == GIVEN_UP:
            self.given_up.add(message.id)
        self._require(outcome in {wanted, GIVEN_UP}, f"{message.id} ended as {outcome}")
        self._require(answer in {None, outcome}, f"{message.id} has another answer: {outcome}")
        missing = {word for word, n in times.items() if not n} - failed
        self._require(outcome != "done" or not missing, f"{message.id} was half done: {missing}")

    async def _look_for_traces(self) -> None:
        """Nothing is left of what was erased, and no temporary file."""
        erased = {item.text: re.findall(r"\w+\dx\b", item.text)[0] for item in self.known.gone}
        left = await asyncio.to_thread(self._files_with, set(erased.values()))
        end = asyncio.get_running_loop().time() + _SOON
        while left and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.1)
            left = await asyncio.to_thread(self._files_with, set(erased.values()))
        self._require(not left, f"erased, and still there: {left}")
        below = self.home.workspace, self.home.root / "state"
        strays = [file for one in below for form in _STRAYS for file in one.rglob(form)]
        self._require(not strays, f"temporary files were left: {strays}")

    def _files_with(self, words: set[str]) -> list[str]:
        held = re.compile("|".join(words).encode())
        found = []
        for file in self.home.root.rglob("*") if words else ():
            with suppress(FileNotFoundError):  # it is at work
                is_looked_at = file.is_file() and not file.name.endswith(".tar.gz")
                if is_looked_at and (word := held.search(file.read_bytes())):
                    found.append(f"{file.relative_to(self.home.root)}: {word[0].decode()}")
        return found


@dataclass
class Verdict:
    """Of how many cuts; how much had been acknowledged before them, which messages were given up,
    and said to be so, and what was wrong.
    """

    cuts: int = 0
    promises: int = 0
    given_up: set[str] = field(default_factory=set)
    found: list[str] = field(default_factory=list)


@dataclass
class Campaign:
    """Lives on one home, each of which begins where the power was cut in the one before."""

    model: ModelServer
    seed: int
    verdict: Verdict = field(default_factory=Verdict)

    def __post_init__(self) -> None:
        self._chance = Random(self.seed)
        self._numbers = itertools.count(1)
        self._name = f"cuts{self.seed}x"

    async def run(self, lives: int, cuts: int) -> Verdict:
        """So many lives, and so many cuts of each."""
        life = await self.first()
        for number in range(lives):
            if number:
                life = await self._next(life)
            for cut in self._cuts(life, cuts):
                await self.judge(life, cut, self._fate(), f"life {number}")
        return self.verdict

    async def first(self, spend: Callable[[Talk], Awaitable[None]] = Talk.spend) -> Life:
        """The life of a home in which nothing is but its configuration."""
        async with self.a_home() as home:
            home.configure(SETTINGS)
            return await recorded(home, self._chance, Known(), self._numbers, spend)

    async def _next(self, life: Life) -> Life:
        (cut,) = self._cuts(life, 1)
        async with self.a_home() as home:
            life.cut(cut).write(home.root, self._fate())
            return await recorded(home, self._chance, life.known(cut), self._numbers)

    async def judge(
        self,
        life: Life,
        cut: int,
        fate: Fate,
        where: str = "",
        syncs: Callable[[str], bool] = bool,
        harm: Callable[[Home], None] = lambda home: None,
    ) -> list[str]:
        """What is wrong when the power is cut there, and harm is done to what is left."""
        known = life.known(cut)
        async with self.a_home() as home:
            life.cut(cut, syncs).write(home.root, fate)
            harm(home)
            judge = Judge(home, known)
            found = await judge.judge()
        self.verdict.cuts += 1
        self.verdict.given_up |= judge.given_up
        self.verdict.promises += len(known.kept) + len(known.gone) + len(known.answers)
        told = f"bytes {fate.bytes} by {fate.sector}, names {fate.names}"
        place = f"seed {self.seed}, {where}, cut {cut} of {len(life.calls)}, {told}"
        self.verdict.found += [f"{place}: {one}" for one in found]
        return found

    def _cuts(self, life: Life, count: int) -> list[int]:
        """Where to cut: half of it anywhere, half right behind words that acknowledge something."""
        said = life.acknowledgements()
        anywhere = range(1, len(life.calls) + 1)
        return sorted(
            self._chance.choice(said if said and self._chance.random() < 0.5 else anywhere)
            for _ in range(count)
        )

    def _fate(self) -> Fate:
        kept, named, sector = map(self._chance.choice, (_KEPT, _KEPT, _SECTORS))
        return Fate(kept, named, sector, Random(self._chance.random()))

    @asynccontextmanager
    async def a_home(self) -> AsyncIterator[Home]:
        """An empty folder for a daemon, gone after the block."""
        root = Path(tempfile.mkdtemp(prefix="ap-"))
        home = Home(root, self.model, self._name, preloaded=recorder())
        try:
            yield home
        finally:
            await home.close()
            shutil.rmtree(root)
