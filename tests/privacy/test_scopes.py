"""What the owner's files, notes and conversations hold never reaches a session that others see."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from agentd.core.turn import MAIN, Origin, PromptScope, SessionKey, SessionKind
from agentd.core.workspace import Reader
from agentd.workspace.files import Files
from tests.privacy.conftest import (
    ANSWERED,
    GROUP,
    ISOLATED,
    LINKS,
    PRIVATE,
    PRIVATE_PATHS,
    SAID,
    SCOPES,
    SHARED,
    TODAY,
    BlindToLinks,
    House,
    OwnersEyes,
    as_json,
    canary,
    lived_in,
    lure,
)

OTHERS = (GROUP, ISOLATED)
IDENTITY = ("AGENTS", "SOUL", "USER", "IDENTITY", "TOOLS", "BOOTSTRAP", "HEARTBEAT")
_CANARY = re.compile(r"canary\d{3}zq", re.IGNORECASE)


def spellings(path: str) -> list[str]:
    """Other ways to write a path."""
    folder, _, name = path.rpartition("/")
    below = f"{folder}/" if folder else ""
    wide = name.replace("M", "\uff2d").replace("U", "\uff35")  # full-width letters
    alias = path.replace("memory/", "daily/", 1) if path.startswith("memory/") else path
    found = [
        *(path, path.lower(), path.upper(), path.swapcase(), f"{below}{wide}"),
        *(f"./{path}", f".//./{path}", path.replace("/", "//"), f" {path} ", f"{path}/"),
        *(alias, alias.upper(), f"{path}.", f"{path}\u200b", f"{path} ", f"//{path}"),
        *(f"projects/../{path}", f"/{path}", f"~/{path}", f"@/{path}", path.replace("/", "\\")),
        *(unicodedata.normalize(form, path) for form in ("NFD", "NFKC")),
    ]
    return list(dict.fromkeys(found))


WHERE = [
    *itertools.chain.from_iterable(map(spellings, PRIVATE_PATHS)),
    *("memory", "memory/", "daily", "Memory", "memory/trips", "memory_backup", "2026-11-19"),
    *("sessions/main.jsonl", "sessions/chat:diary.jsonl", "sessions", "./sessions/main.jsonl"),
    *("Sessions/main.jsonl", "sessions//main.jsonl", "sessions/heartbeat:main.jsonl"),
    *(f"@{scope}/{path}" for scope in SCOPES for path in SCOPES[scope]),
    *(
        "shared",
        "shared/",
        "shared/boat.md",
        "SHARED/boat.md",
        *LINKS,
        "shared/deep",
        "shared/none.md",
    ),
    *("projects", "journal/2026", ".", "projects/boat.md", *SHARED),
    *("@work", "@work/", "@WORK/MEMORY.md", "@family/memory/", "@nobody/MEMORY.md", "@work/daily"),
]


async def lookups(house: House, session: str) -> dict[str, str]:
    """What a session's tools say of every place and every lure, a few hundred calls."""
    wishes = []
    for path in WHERE:
        wishes += [("memory_read", {"path": path}), ("memory_tree", {"path": path, "depth": 5})]
        wishes += [("memory_get", {"path": path, "from": 1, "lines": 3})]
    wishes += [("memory_tree", {"path": p, "depth": 10}) for p in ("", ".", "/")]
    numbers = (*range(len(PRIVATE)), *range(100, 110), *range(200, 210), SAID, ANSWERED)
    wishes += [("memory_search", {"query": lure(n), "limit": 20}) for n in numbers]
    wishes += [("memory_search", {"query": q}) for q in ("lure* OR boat", "MEMORY USER", "", "!")]
    return await answers(house, session, wishes)


def writes() -> list[tuple[str, dict[str, object]]]:
    """Attempts to write where nothing may be known."""
    shapes: list[dict[str, object]] = [
        {"content": "x"},
        {"content": "x", "append": False},
        {"old_string": "lure", "new_string": "x"},
        {"content": ""},
    ]
    places = [p for p in WHERE if p not in LINKS]
    places += ["memory", "daily_log", "heartbeat", "bootstrap"]
    wishes = [
        ("memory_write", {"target": p, **shapes[n % len(shapes)]}) for n, p in enumerate(places)
    ]
    wishes += [("memory_write", {"target": p, **s}) for p in PRIVATE_PATHS for s in shapes]
    return wishes


async def answers(house: House, session: str, wishes) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(wishes), 20):  # a turn makes 25 model calls at most
        part = wishes[start : start + 20]
        for wish, text in zip(part, await house.obey(session, part), strict=True):
            found[f"{wish[0]} {sorted(wish[1].items())}"] = text
        await house.requests.start_over(SessionKey(session))  # else the prompts get very long
    return found


@pytest.mark.parametrize("session", OTHERS)
async def test_for_others_a_forbidden_thing_and_an_absent_one_are_the_same(house, bare, session):
    (bare.root / "shared" / "deep").mkdir()  # a shared folder, in which only a second name stands
    full, without = await lookups(house, session), await lookups(bare, session)
    assert full == without
    assert len(full) > 700
    # Nothing but the answers differs in a prompt, so this compares all the rest, too.
    assert house.sent(session) == bare.sent(session)
    assert not _CANARY.search(house.sent(session))


@pytest.mark.parametrize("session", OTHERS)
async def test_for_others_writing_to_a_forbidden_place_tells_nothing(house, bare, session):
    before = tree_bytes(house)
    full, without = await answers(house, session, writes()), await answers(bare, session, writes())
    assert full == without
    assert not _CANARY.search(house.sent(session))
    changed = {p for p, data in tree_bytes(house).items() if before.get(p) != data}
    assert not {p for p in changed if house.files.is_owner_only(p)}
    assert not [a for a in house.answers.questions if house.files.is_owner_only(a.path)]


async def test_with_the_filter_bypassed_the_canaries_are_seen(tmp_path: Path):
    """The negative control: these checks do find a leak where there is one."""
    house = House(tmp_path / "home", {**SHARED, **PRIVATE}, SCOPES)
    house.seen = OwnersEyes
    await lived_in(house)
    await house.use(GROUP, "memory_read", path="MEMORY.md")
    leaked = set(_CANARY.findall(house.sent(GROUP)))
    assert {canary(PRIVATE_PATHS.index("MEMORY.md"))} <= leaked
    await house.use(GROUP, "memory_search", query=lure(SAID))
    await house.use(GROUP, "memory_read", path="sessions/main.jsonl")
    assert canary(SAID) in house.sent(GROUP)
    listed = await house.use(ISOLATED, "memory_tree", depth=9)
    assert "USER.md" in listed
    await house.stop()


async def test_the_owner_finds_every_canary(house: House):
    """The other control: what is hidden from others is there to be found."""
    for number, path in enumerate(PRIVATE_PATHS):
        assert canary(number) in await house.use("main", "memory_read", path=path)
        await house.requests.start_over(SessionKey("main"))
    for number in (SAID, ANSWERED):
        assert canary(number) in await house.use("main", "memory_search", query=lure(number))
        await house.requests.start_over(SessionKey("main"))


@pytest.mark.parametrize("session", OTHERS)
async def test_a_compaction_among_others_shows_them_nothing_of_the_owner(house: House, session):
    before = len(house.provider.prompts)
    house.provider.default = "long enough to be taken for a summary of all that was said here " * 3
    for n in range(4):
        await house.say(session, f"message {n} " * 50)
    report = await house.requests.compact(SessionKey(session))
    assert report.compacted
    await house.say(session, "and now?")
    text = "\n".join(as_json(p) for p in house.provider.prompts[before:])
    assert not _CANARY.search(text)
    assert "summary of the conversation" in text
    assert house.note == PRIVATE[f"memory/{TODAY}.md"]  # no flush wrote for them


async def test_the_owners_prompt_holds_what_it_should_and_the_light_one_nothing(house: House):
    await house.say("main", "hello")
    owners = as_json(house.provider.prompts[-1])
    wanted = ("USER.md", "MEMORY.md", "HEARTBEAT.md", "BOOTSTRAP.md", f"memory/{TODAY}.md")
    assert all(canary(PRIVATE_PATHS.index(p)) in owners for p in wanted)
    await house.beat()
    light = as_json(house.provider.prompts[-1])
    assert not _CANARY.search(light)
    more = {"origin": Origin.HEARTBEAT, "context": PromptScope.SESSION}
    await house.say("main", "beat", **more)
    beat = as_json(house.provider.prompts[-1])
    assert canary(PRIVATE_PATHS.index("MEMORY.md")) in beat
    assert canary(PRIVATE_PATHS.index("HEARTBEAT.md")) not in beat


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("number", range(10))
async def test_identity_files_come_from_the_primary_only_and_memory_from_everywhere(
    house: House, scope: str, number: int
):
    path = list(SCOPES[scope])[number]
    base = {"work": 100, "family": 200}[scope]
    is_identity = path.partition(".")[0] in IDENTITY
    spelled = f"@{scope}/{path}"
    read = [
        await house.use("main", "memory_read", path=p)
        for p in (
            spelled,
            spelled.lower(),
            f"@{scope}//./{path}",
            spelled.replace("memory/", "daily/"),
        )
    ]
    listed = await house.use("main", "memory_tree", path=f"@{scope}", depth=5)
    found = await house.use("main", "memory_search", query=lure(base + number))
    await house.requests.start_over(SessionKey("main"))
    await house.say("main", "hello")
    prompt = as_json(house.provider.prompts[-1])
    token = canary(base + number)
    if is_identity:
        assert all(answer.startswith("No such file") for answer in read)
        assert f"@{scope}/{path}" not in listed
        assert token not in found
        assert token not in prompt
    else:
        assert token in read[0]
        assert token in read[2]
        assert token in read[3]
        assert f"@{scope}/{path}" in listed
        assert token in found
        assert (token in prompt) == (path != "notes/plan.md")
    reader = Reader(MAIN, SessionKind.OWNER)
    assert await house.files.exists(spelled, reader) is not is_identity


async def test_the_primarys_own_identity_wins_and_scopes_are_never_written(house: House):
    await house.say("main", "hello")
    prompt = as_json(house.provider.prompts[-1])
    assert "Be kind." in prompt
    assert "I am Ada." in prompt
    for path in ("@work/MEMORY.md", f"@work/memory/{TODAY}.md", "@family/new.md"):
        before = sorted(p.read_bytes() for p in (house.home / "work").rglob("*.md"))
        assert "only be read" in await house.use("main", "memory_write", content="x", target=path)
        assert sorted(p.read_bytes() for p in (house.home / "work").rglob("*.md")) == before


def tree_bytes(house: House) -> dict[str, bytes]:
    return {
        str(p.relative_to(house.root)): p.read_bytes() for p in house.root.rglob("*") if p.is_file()
    }


# Few, so that what one does and what another looks for often meet.
_PART = st.text("aMy 0-_.", min_size=1, max_size=6).map(lambda part: f"n{part.strip(' .')}")
_ANY = st.lists(_PART, min_size=1, max_size=3).map(lambda parts: "/".join(parts) + ".md")
_HIDDEN = _ANY | st.sampled_from(
    ["MEMORY.md", "HEARTBEAT.md", "Copy of MEMORY.md", f"memory/{TODAY}.md", "projects/boat.md"]
)
_LINKED = st.sampled_from(["shared/m.md", "shared/deep/m.md"])
_SHARED = st.sampled_from(["shared/boat.md", "shared/deep/plan.md"])
_PLACES = (
    _SHARED | _LINKED | st.sampled_from(["sessions/main.jsonl", "MEMORY.md", "projects/boat.md"])
)
_WORDS = st.sampled_from([lure(1), lure(SAID), "boat", "varnish plan", "secret", "x"])
_SESSIONS = st.sampled_from(OTHERS)


class Neighbours(RuleBasedStateMachine):
    """Two homes: in one the owner lives a private life, in the other nobody does. What others do is
    done in both, and every request made for them must be the same, byte for byte.
    """

    seen: type[Files] = Files  # the workspace of the home that has something to hide

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.secrets = itertools.count(400)
        self.made = ["MEMORY.md"]  # what the owner has written to

    @initialize()
    def open(self) -> None:
        home = Path(self.folder.name)
        self.full = House(home / "a", {**SHARED, "MEMORY.md": f"{lure(1)} {canary(1)}\n"})
        self.full.seen = self.seen
        self.bare = House(home / "b", SHARED)
        for house in (self.full, self.bare):
            (house.root / "shared" / "deep").mkdir()
            house.provider.default = (
                "a summary that is long enough to be one, about this and that " * 3
            )
            self.runner.run(house.start())

    @rule(path=_HIDDEN, word=_WORDS)
    def the_owner_edits(self, path: str, word: str) -> None:
        with contextlib.suppress(OSError):  # a folder of that name
            self.full.put(path, f"# {word}\n{self._secret()} {word} boat\n")
            self.made.append(path)

    @rule(which=st.integers(0, 20), link=_LINKED)
    def the_owner_gives_a_file_a_second_name(self, which: int, link: str) -> None:
        with contextlib.suppress(OSError):
            self.full.link(link, self.made[which % len(self.made)])

    @rule(which=st.integers(0, 20))
    def the_owner_deletes(self, which: int) -> None:
        file = self.full.root / self.made[which % len(self.made)]
        if file.is_file():
            for other in (self.full.root / "shared").rglob("*.md"):
                if other.samefile(file):
                    other.unlink()  # else it is a file of its own there, and shared
            file.unlink()

    @rule(path=_SHARED, word=_WORDS)
    def the_owner_shares(self, path: str, word: str) -> None:
        for house in (self.full, self.bare):
            house.put(path, f"# {word}\nfor all {word}\n")

    @rule(word=_WORDS, session=st.sampled_from(["main", "chat:1"]))
    def the_owner_talks_searches_and_has_it_noted(self, word: str, session: str) -> None:
        wishes = [
            ("memory_write", {"content": f"{word} {self._secret()}"}),
            ("memory_search", {"query": word}),
        ]
        self.runner.run(self.full.obey(session, wishes))
        self.runner.run(self.full.say(session, f"{word} {self._secret()}"))

    @rule()
    def a_heart_beats(self) -> None:
        self.runner.run(self.full.beat(("memory_write", {"content": self._secret()})))

    @rule()
    def the_owner_compacts(self) -> None:
        self.runner.run(self.full.requests.compact(SessionKey("main")))

    @rule()
    def the_daemon_restarts(self) -> None:
        for house in (self.full, self.bare):
            self.runner.run(house.stop())
            self.runner.run(house.start())

    @rule(session=_SESSIONS, path=_PLACES, word=_WORDS)
    def others_look(self, session: str, path: str, word: str) -> None:
        self._look(session, path, word)

    @rule(session=_SESSIONS, which=st.integers(0, 20), word=_WORDS)
    def others_look_where_the_owner_wrote(self, session: str, which: int, word: str) -> None:
        self._look(session, self.made[which % len(self.made)], word)

    def _look(self, session: str, path: str, word: str) -> None:
        wishes = [
            ("memory_read", {"path": path}),
            ("memory_search", {"query": word}),
            ("memory_tree", {"path": path.rpartition("/")[0], "depth": 4}),
        ]
        self._both(lambda house: house.obey(session, wishes))

    @rule(session=_SESSIONS, path=_SHARED | _HIDDEN, append=st.booleans())
    def others_write(self, session: str, path: str, append: bool) -> None:
        wish = {"target": path, "content": "ours", "append": append}
        self._both(lambda house: house.use(session, "memory_write", **wish))

    @rule(session=_SESSIONS)
    def others_compact(self, session: str) -> None:
        self._both(lambda house: house.say(session, "let us go on"))
        self._both(lambda house: house.requests.compact(SessionKey(session)))

    def _secret(self) -> str:
        return canary(next(self.secrets) % 1000)

    def _both(self, act) -> None:
        seen = []
        for house in (self.full, self.bare):
            before = len(house.provider.prompts)
            self.runner.run(act(house))
            seen.append([as_json(p) for p in house.provider.prompts[before:]])
        assert seen[0] == seen[1]
        assert not _CANARY.search("".join(seen[0]))

    def teardown(self) -> None:
        if hasattr(self, "bare"):
            for house in (self.full, self.bare):
                self.runner.run(house.stop())
        self.runner.close()
        self.folder.cleanup()


_SETTINGS = settings(
    max_examples=50, stateful_step_count=6, deadline=None, suppress_health_check=list(HealthCheck)
)


class ManyNeighbours(Neighbours):
    """The same, thousands of times."""


Neighbours.TestCase.settings = _SETTINGS
TestNeighbours = pytest.mark.timeout(300)(Neighbours.TestCase)
ManyNeighbours.TestCase.settings = settings(_SETTINGS, max_examples=5_000, stateful_step_count=10)
TestManyNeighbours = pytest.mark.torture(pytest.mark.timeout(7200)(ManyNeighbours.TestCase))


def test_neighbours_with_a_broken_filter_are_told_apart():
    """The negative control: such sequences do find a filter that takes everybody for the owner."""

    class Leaky(Neighbours):
        seen = OwnersEyes

    found = settings(
        _SETTINGS,
        max_examples=500,
        phases=[Phase.generate],
        derandomize=True,
        report_multiple_bugs=False,
        database=None,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Leaky, settings=found)


@pytest.mark.parametrize("seen", [Files, BlindToLinks])
async def test_only_where_second_names_count_they_hide_what_they_lead_to(tmp_path: Path, seen):
    """The negative control for links: going by paths alone would show the file."""
    house = House(tmp_path / "home", {**SHARED, **PRIVATE})
    house.seen = seen
    house.link("shared/m.md", "MEMORY.md")
    await house.start()
    await house.use(GROUP, "memory_read", path="shared/m.md")
    assert bool(_CANARY.search(house.sent(GROUP))) is (seen is BlindToLinks)
    await house.stop()


async def test_what_was_shared_under_other_settings_is_gone_before_anybody_looks(house: House):
    """The index of before the restart still has it as shared, and no look at everything has
    been.
    """
    asked = {"query": "varnish"}
    assert "The boat is blue" in await house.use(GROUP, "memory_search", **asked)
    await house.stop()
    house.group_paths = ("club/",)
    await house.start()
    await house.requests.start_over(SessionKey(GROUP))
    assert "The boat is blue" not in await house.use(GROUP, "memory_search", **asked)
    assert "No such file" in await house.use(GROUP, "memory_read", path="shared/boat.md")
    assert await house.use(GROUP, "memory_tree", depth=5) == "Nothing is below the workspace."
    assert "The boat is blue" in await house.use("main", "memory_search", **asked)
    house.put("club/rules.md", "No varnish on Sundays.\n")
    assert "Sundays" in await house.use(GROUP, "memory_search", **asked)


async def test_a_second_name_takes_a_shared_file_away_from_others(house: House):
    asked = {"query": "varnish"}
    assert "The boat is blue" in await house.use(GROUP, "memory_search", **asked)
    house.link("elsewhere.md", "shared/boat.md")
    await house.requests.start_over(SessionKey(GROUP))
    assert "The boat is blue" not in await house.use(GROUP, "memory_search", **asked)
    assert "No such file" in await house.use(GROUP, "memory_read", path="shared/boat.md")
    assert "boat" not in await house.use(GROUP, "memory_tree", path="shared")
    write = {"target": "shared/boat.md", "content": "ours"}
    refused = await house.use(GROUP, "memory_write", **write)
    assert refused == "this session cannot write shared/boat.md"
    assert house.answers.questions == []
    assert "The boat is blue" in await house.use("main", "memory_search", **asked)
    (house.root / "elsewhere.md").unlink()
    assert "The boat is blue" in await house.use(GROUP, "memory_search", **asked)


@pytest.mark.parametrize("session", OTHERS)
async def test_a_file_of_every_prompt_that_has_a_second_name_is_in_no_prompt_of_others(
    house: House, session: str
):
    (house.root / "TOOLS.md").unlink()
    house.link("TOOLS.md", "USER.md")
    await house.say(session, "hello")
    assert canary(PRIVATE_PATHS.index("USER.md")) not in house.sent(session)
    await house.say("main", "hello")
    owners = as_json(house.provider.prompts[-1])
    assert owners.count(canary(PRIVATE_PATHS.index("USER.md"))) == 2
