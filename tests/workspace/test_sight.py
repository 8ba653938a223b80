"""The owner's private files do not exist for anybody else."""

import itertools

import pytest

from agentd.core.errors import FileMissing, PathRefused
from agentd.core.tool import FileAction, FileIntent
from agentd.core.turn import TurnRequest
from agentd.workspace.injection import Injection
from agentd.workspace.workspace_settings import WorkspaceSettings

_CANARY = "kAnArY-7731"
_PRIVATE = [
    *("USER.md", "MEMORY.md", "HEARTBEAT.md", "BOOTSTRAP.md", "user.MD", "memory.old.md"),
    *("memory/2026-11-21.md", "memory/facts.md", "memory/deep/er/x.md", "daily/2026-11-21.md"),
    *("Memory/x.md", "projects/2026-11-20-trip.md", "projects/MEMORY.md", "2026-11-21.md"),
    *("copy/memory/2026-11-21.md", "USER.md.bak", "ＵＳＥＲ.md", "2026-11-20/x.md"),
    *("Copy of MEMORY.md", "20260131.md", "journal/2026/01/31.md", "README.md", "projects/boat.md"),
    *("Shared/x.md", "shared.md", "sharedx/a.md", "projects/shared/a.md", "ｓｈａｒｅｄ/a.md"),
]
_PROMPTED = ["SOUL.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md"]
_PUBLIC = ["shared/boat.md", "shared/deep/MEMORY.md", "shared/2026-11-21.md"]


def _spellings(path: str) -> list[str]:
    return [
        path,
        f"./{path}",
        f" {path}",
        path.replace("/", "//"),
        path.replace("memory/", "daily/"),
    ]


async def _answer(files, path: str, reader) -> str:
    try:
        return (await files.read(files.canonical(path), reader)).text
    except (FileMissing, PathRefused) as error:
        return f"{type(error).__name__} {error.message} {error.cure}"


@pytest.mark.parametrize("path", _PRIVATE)
async def test_forbidden_and_absent_answer_byte_for_byte_alike(home, stranger, path: str) -> None:
    empty = {s: await _answer(home.files(), s, stranger) for s in _spellings(path)}
    home.put({path: _CANARY})
    files = home.files()
    full = {s: await _answer(files, s, stranger) for s in _spellings(path)}
    assert full == empty
    assert all(a.startswith("FileMissing") for a in full.values())
    assert not any([await files.exists(s, stranger) for s in _spellings(path)])
    assert files.problems() == ()


async def test_neither_listings_nor_counts_show_private_files(home, stranger) -> None:
    home.put(dict.fromkeys(_PUBLIC, "ours"))
    before = await home.files().tree("", 9, stranger)
    home.put(dict.fromkeys([*_PRIVATE, *_PROMPTED], _CANARY))
    files = home.files()
    assert await files.tree("", 9, stranger) == before
    for folder in ("memory", "Memory", "daily", "copy/memory", "2026-11-20", "projects", "sharedx"):
        with pytest.raises(FileMissing):
            await files.tree(folder, 3, stranger)


async def test_the_way_to_a_shared_folder_is_shown_only_where_it_leads_to_one(
    home, stranger
) -> None:
    settings = {"group_paths": ("clubs/chess/", "clubs/go", "clubs/go/inner", "none/at/all")}
    home.put({"clubs/secret.md": _CANARY, "none/x.md": _CANARY, "shared/x.md": _CANARY})
    files = home.files(**settings)
    assert await files.tree("", 9, stranger) == ()
    with pytest.raises(FileMissing):
        await files.tree("clubs", 9, stranger)
    home.put({"clubs/chess/a.md": "ours", "clubs/go/inner/b.md": "ours"})
    listed = {depth: [e.path for e in await files.tree("", depth, stranger)] for depth in (1, 2, 3)}
    assert listed[1] == ["clubs/"]
    assert listed[2] == ["clubs/", "clubs/chess/", "clubs/go/"]
    assert listed[3] == [
        "clubs/",
        "clubs/chess/",
        "clubs/chess/a.md",
        "clubs/go/",
        "clubs/go/inner/",
    ]
    below = [e.path for e in await files.tree("clubs", 1, stranger)]
    assert below == ["clubs/chess/", "clubs/go/"]
    with pytest.raises(FileMissing):
        await files.tree("none", 9, stranger)


async def test_a_file_with_a_second_name_is_absent_for_others_until_it_has_one_alone(
    home, owner, stranger
) -> None:
    home.put({"MEMORY.md": _CANARY, "shared/boat.md": "ours"})
    files = home.files()
    assert (await files.read("shared/boat.md", stranger)).text == "ours"
    absent = await _answer(files, "shared/none.md", stranger)
    (home.root / "shared" / "m.md").hardlink_to(home.root / "MEMORY.md")
    for _ in range(2):  # with the owner's reading in a cache, too
        answer = await _answer(files, "shared/m.md", stranger)
        assert answer == absent.replace("none", "m")
        assert not await files.exists("shared/m.md", stranger)
        assert [e.path for e in await files.tree("shared", 3, stranger)] == ["shared/boat.md"]
        assert (await files.read("shared/m.md", owner)).text == _CANARY
        assert not (await files.read("shared/m.md", owner)).is_shared
    (home.root / "elsewhere").hardlink_to(home.root / "shared" / "boat.md")
    assert (await _answer(files, "shared/boat.md", stranger)).startswith("FileMissing")
    (home.root / "elsewhere").unlink()
    assert (await files.read("shared/boat.md", stranger)).text == "ours"


async def test_where_nothing_is_shared_nothing_is_there(home, stranger) -> None:
    home.put(dict.fromkeys(_PUBLIC, _CANARY))
    files = home.files(group_paths=())
    assert await files.tree("", 9, stranger) == ()
    assert (await _answer(files, "shared/boat.md", stranger)).startswith("FileMissing")


async def test_the_owner_sees_it_all(home, owner) -> None:
    everything = [*_PRIVATE, *_PUBLIC, *_PROMPTED]
    home.put({path: path for path in everything})
    files = home.files()
    for path in everything:
        assert (await files.read(path, owner)).text in {path, "memory/2026-11-21.md"}
        assert await files.exists(path, owner)


async def test_others_do_see_what_is_shared(home, stranger) -> None:
    home.put({path: path for path in _PUBLIC})
    files = home.files()
    for path in _PUBLIC:
        assert (await files.read(path, stranger)).text == path
        assert not files.is_owner_only(path)
    assert all(files.is_owner_only(path) for path in [*_PRIVATE, *_PROMPTED])


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("path", ["MEMORY.md", "memory/2026-11-21.md", "daily/x.md"])
async def test_a_private_file_cannot_be_changed_or_probed(home, stranger, path, present) -> None:
    if present:
        home.put({path: _CANARY})
    files = home.files()
    answers = set()
    for digest in ("", "0" * 64):
        with pytest.raises(PathRefused) as refused:
            await files.has_seen(path, digest, stranger)
        answers.add(refused.value.message)
    intent = FileIntent(path, FileAction.APPEND, "", "x", b"x")
    with pytest.raises(PathRefused) as refused:
        await files.apply(intent, stranger)
    assert answers | {refused.value.message} == {f"{path} cannot be changed from this session"}
    if present:
        assert (home.root / path).read_text() == _CANARY


@pytest.mark.parametrize("style", ["filename", "semantic"])
async def test_no_prompt_of_a_stranger_carries_a_private_word(home, stranger, scope, style) -> None:
    home.put({**dict.fromkeys(_PROMPTED, "ours"), **dict.fromkeys(_PRIVATE, _CANARY)})
    settings = {"style": style, "daily_lookback_days": 2}
    files = home.files({"work": scope({"MEMORY.md": _CANARY})}, **settings)
    injection = Injection(files, WorkspaceSettings(**settings))
    blocks = await injection.blocks(TurnRequest(stranger.session, "hi", "1"))
    assert len(blocks) == 1
    text = blocks[0].text
    assert "ours" in text
    assert _CANARY not in text
    assert not any(
        word in text for word in ("USER", "MEMORY", "HEARTBEAT", "Daily", "Missing", "@")
    )
    audit = await injection.audit(stranger.kind)
    assert dict(audit) == dict.fromkeys(_PROMPTED, True)
    for path in _PROMPTED:  # in the prompt, and nowhere else
        assert (await _answer(files, path, stranger)).startswith("FileMissing")


async def test_a_cache_filled_by_the_owner_does_not_answer_a_stranger(
    home, owner, stranger
) -> None:
    home.put({"MEMORY.md": _CANARY})
    files = home.files()
    for reader, _ in itertools.product((owner, stranger), range(2)):
        answer = await _answer(files, "MEMORY.md", reader)
        assert (answer == _CANARY) == (reader is owner)
