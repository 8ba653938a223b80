"""The owner's private files do not exist for anybody else."""

import itertools

import pytest

from agentd.domain.tool import FileAction, FileIntent
from agentd.domain.turn import TurnRequest
from agentd.errors import FileMissing, PathRefused
from agentd.workspace.injection import Injection
from agentd.workspace.settings import WorkspaceSettings

_CANARY = "kAnArY-7731"
_PRIVATE = [
    *("USER.md", "MEMORY.md", "HEARTBEAT.md", "BOOTSTRAP.md", "user.MD", "memory.old.md"),
    *("memory/2026-11-21.md", "memory/facts.md", "memory/deep/er/x.md", "daily/2026-11-21.md"),
    *("Memory/x.md", "projects/2026-11-20-trip.md", "projects/MEMORY.md", "2026-11-21.md"),
    *("copy/memory/2026-11-21.md", "USER.md.bak", "ＵＳＥＲ.md", "2026-11-20/x.md"),
]
_PUBLIC = ["SOUL.md", "AGENTS.md", "TOOLS.md", "IDENTITY.md", "README.md", "projects/boat.md"]


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
    home.put({path: _CANARY for path in _PRIVATE if path != "projects/MEMORY.md"})
    home.put({"projects/MEMORY.md": _CANARY})
    files = home.files()
    now = {e.path for e in await files.tree("", 9, stranger)}
    assert {e.path for e in before} == now - {"copy/"}  # a plain folder, whose content stays hidden
    for folder in ("memory", "Memory", "daily", "copy/memory", "2026-11-20"):
        with pytest.raises(FileMissing):
            await files.tree(folder, 3, stranger)


async def test_the_owner_sees_it_all(home, owner) -> None:
    home.put({path: path for path in [*_PRIVATE, *_PUBLIC]})
    files = home.files()
    for path in [*_PRIVATE, *_PUBLIC]:
        assert (await files.read(path, owner)).text in {path, "memory/2026-11-21.md"}
        assert await files.exists(path, owner)


async def test_others_do_see_what_is_not_private(home, stranger) -> None:
    home.put({path: path for path in _PUBLIC})
    files = home.files()
    for path in _PUBLIC:
        assert (await files.read(path, stranger)).text == path
        assert not files.is_owner_only(path)
    assert all(files.is_owner_only(path) for path in _PRIVATE)


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
    home.put({**dict.fromkeys(_PUBLIC, "ours"), **dict.fromkeys(_PRIVATE, _CANARY)})
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
    assert {path for path, _ in await injection.audit(stranger.kind)} == set(_PUBLIC[:4])


async def test_a_cache_filled_by_the_owner_does_not_answer_a_stranger(
    home, owner, stranger
) -> None:
    home.put({"MEMORY.md": _CANARY})
    files = home.files()
    for reader, _ in itertools.product((owner, stranger), range(2)):
        answer = await _answer(files, "MEMORY.md", reader)
        assert (answer == _CANARY) == (reader is owner)
