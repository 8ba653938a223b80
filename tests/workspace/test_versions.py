"""Of every file that agentd changes the last versions are kept, with who made them."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import AgentdError, EditConflict, NotFound, PathRefused
from agentd.core.tool import FileAction
from agentd.core.workspace import OWNER, RESTORE, Author
from agentd.workspace.changes import GrowingDigest
from agentd.workspace.versions import Content, Versions, folder_of
from tests import finding

MODEL = Author("model", "main", "call-1")
AT = datetime(2026, 11, 21, tzinfo=UTC)


async def change(files, path, text, reader, by=MODEL, action=FileAction.WRITE) -> None:
    async with files.lock(path):
        await files.apply(await files.plan(path, action, text.encode()), reader, by)


async def told(files, path) -> list[tuple[int, str, int]]:
    """Number, author and size of each version, the oldest first."""
    _, versions = await files.history(path)
    return [(v.number, v.by.kind, v.size) for v in reversed(versions)]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_the_last_fifty_versions_are_kept_privately(home, owner) -> None:
    files = home.files()
    for i in range(60):
        home.clock.jump(timedelta(seconds=1))
        await change(files, "a.md", f"text {i}", owner)
    now, versions = await files.history("a.md")
    assert now == digest("text 59")
    assert [v.number for v in versions] == list(range(60, 10, -1))
    assert [v.digest for v in versions] == [digest(f"text {i}") for i in range(59, 9, -1)]
    assert versions[0].at - versions[1].at == timedelta(seconds=1)
    assert versions[0].by == MODEL
    assert await files.version("a.md", 11) == b"text 10"
    with pytest.raises(NotFound):
        await files.version("a.md", 10)
    for path in home.versions.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


async def test_what_the_owner_wrote_by_hand_is_kept_before_it_is_changed(home, owner) -> None:
    home.put({"a.md": "mine"})
    files = home.files()
    await change(files, "a.md", "yours", owner)
    home.put({"a.md": "mine again"})
    await change(files, "a.md", "!", owner, Author("heartbeat"), FileAction.APPEND)
    assert await told(files, "a.md") == [
        (1, "hand", 4),
        (2, "model", 5),
        (3, "hand", 10),
        (4, "heartbeat", 12),
    ]
    assert await files.version("a.md", 1) == b"mine"
    assert await files.version("a.md", 3) == b"mine again"


async def test_a_file_that_only_grows_is_kept_once_in_all_its_lengths(home, owner) -> None:
    files = home.files()
    for i in range(20):
        await change(files, "a.md", f"line {i}\n", owner, action=FileAction.APPEND)
    whole = (home.root / "a.md").read_bytes()
    for number in range(1, 21):
        lines = [f"line {i}\n" for i in range(number)]
        assert await files.version("a.md", number) == "".join(lines).encode()
    contents = [p for p in home.versions.rglob("*") if p.is_file() and len(p.name) == 64]
    assert [p.read_bytes() for p in contents] == [whole]


@pytest.mark.parametrize("where", ["beginning", "middle", "end"])
async def test_noise_in_a_list_of_versions_is_told_and_costs_only_what_it_hit(
    home, owner, where
) -> None:
    files = home.files()
    for i in range(10):
        await change(files, "a.md", f"line {i}\n", owner, action=FileAction.APPEND)
    before = {version.number: version for version in (await files.history("a.md"))[1]}
    folder = home.versions / folder_of("a.md")
    data = bytearray((folder / "log").read_bytes())
    at = {"beginning": 0, "middle": len(data) // 2, "end": len(data) - 60}[where]
    data[at : at + 60] = bytes(range(128, 188))
    (folder / "log").write_bytes(data)
    assert files.problems() == ()
    for count in (9, 10):
        kept = (await files.history("a.md"))[1]
        found = [version for version in kept if before.get(version.number) == version]
        assert len(found) >= 8, kept
        for version in found:
            lines = "".join(f"line {i}\n" for i in range(version.number))
            assert await files.version("a.md", version.number) == lines.encode()
        (problem,) = files.problems()
        assert problem.code == "versions_damaged"
        assert "former versions of a.md was damaged" in problem.text
        await change(files, "a.md", f"line {count}\n", owner, action=FileAction.APPEND)
    (aside,) = home.versions.glob("*.damaged")
    assert str(aside) in problem.text
    assert aside.read_bytes() == data
    assert home.files().problems() == (problem,)  # after a restart, too
    aside.unlink()
    assert files.problems() == ()


async def test_of_a_list_with_a_gap_no_line_beyond_it_is_taken_as_written_by_agentd(
    home, owner
) -> None:
    files = home.files()
    await change(files, "a.md", "agent's\n", owner)
    await change(files, "a.md", "agent's\nowner's\n", owner, Author("owner"))
    await change(files, "a.md", "agent's\nowner's\nmore\n", owner)
    folder = home.versions / folder_of("a.md")
    listed = json.loads((folder / "log").read_bytes())
    text = json.dumps(listed).replace(json.dumps(listed[1]), "noise")
    (folder / "log").write_text(text)
    (folder / "lines").unlink(missing_ok=True)
    lines = [b"agent's\n", b"owner's\n", b"more\n"]
    assert Versions(home.versions).own("a.md", lines) == [True, False, False]


async def test_what_is_added_to_a_long_file_alone_is_written_to_its_versions(home, owner) -> None:
    home.put({"a.md": "a line of a long note\n" * 5_000})
    files = home.files()
    await change(files, "a.md", "one\n", owner, action=FileAction.APPEND)
    (content,) = [p for p in home.versions.rglob("*") if p.is_file() and len(p.name) == 64]
    before = content.stat()
    await change(files, "a.md", "two\n", owner, action=FileAction.APPEND)
    after = content.stat()
    assert after.st_ino == before.st_ino
    assert after.st_size == before.st_size + len("two\n")


async def test_a_part_that_a_crash_left_behind_a_content_is_in_no_version(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "one\n", owner, action=FileAction.APPEND)
    (content,) = [p for p in home.versions.rglob("*") if p.is_file() and len(p.name) == 64]
    with content.open("ab") as file:
        file.write(b"tw")
    await change(files, "a.md", "three\n", owner, action=FileAction.APPEND)
    assert await files.version("a.md", 1) == b"one\n"
    assert await files.version("a.md", 2) == b"one\nthree\n"
    await change(files, "a.md", "four\n", owner, action=FileAction.APPEND)
    assert await files.version("a.md", 3) == b"one\nthree\nfour\n"


async def test_forms_that_part_again_are_all_kept(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "one\n", owner, action=FileAction.APPEND)
    await change(files, "a.md", "two\n", owner, action=FileAction.APPEND)
    await files.restore("a.md", 1, None)
    await change(files, "a.md", "three\n", owner, action=FileAction.APPEND)
    texts = [await files.version("a.md", number) for number in (1, 2, 3, 4)]
    assert texts == [b"one\n", b"one\ntwo\n", b"one\n", b"one\nthree\n"]


async def test_words_that_are_masked_are_in_no_content_that_had_grown(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "one\n", owner, action=FileAction.APPEND)
    await change(files, "a.md", "secret\n", owner, action=FileAction.APPEND)
    versions = Versions(home.versions)
    for kept in versions.folders():
        versions.rewrite(kept, lambda data: data.replace(b"secret\n", b""), lambda _: None)
    assert not [p for p in home.versions.rglob("*") if p.is_file() and b"secret" in p.read_bytes()]
    assert await files.version("a.md", 1) == await files.version("a.md", 2) == b"one\n"


async def test_a_version_comes_back_as_one_of_its_own(home, owner) -> None:
    files = home.files()
    for text in ("one", "two"):
        await change(files, "MEMORY.md", text, owner)
    home.put({"MEMORY.md": "by hand"})
    await files.restore("MEMORY.md", 1, None)
    assert (home.root / "MEMORY.md").read_text() == "one"
    assert [by for _, by, _ in await told(files, "MEMORY.md")] == [
        "model",
        "model",
        "hand",
        RESTORE.kind,
    ]
    assert await files.version("MEMORY.md", 3) == b"by hand"
    await files.restore("MEMORY.md", 1, digest("one"))
    assert len(await told(files, "MEMORY.md")) == 4


async def test_a_file_that_has_changed_meanwhile_is_not_restored_over(home, owner) -> None:
    files = home.files()
    for text in ("one", "two"):
        await change(files, "a.md", text, owner)
    home.put({"a.md": "three"})
    with pytest.raises(EditConflict):
        await files.restore("a.md", 1, digest("two"))
    assert (home.root / "a.md").read_text() == "three"
    await files.restore("a.md", 1, digest("three"))
    assert (home.root / "a.md").read_text() == "one"


async def test_a_deleted_file_comes_back(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "here", owner)
    await change(files, "a.md", "", owner, action=FileAction.DELETE)
    assert await told(files, "a.md") == [(1, "model", 4), (2, "model", 0)]
    with pytest.raises(NotFound):
        await files.restore("a.md", 2, None)
    await files.restore("a.md", 1, None)
    assert (home.root / "a.md").read_text() == "here"


async def test_versions_are_of_the_own_workspace_only(home, tmp_path) -> None:
    files = home.files({"work": tmp_path / "other"})
    for path in ("@work/a.md", "../a.md", ".git/config"):
        with pytest.raises(PathRefused):
            await files.history(path)
        with pytest.raises(PathRefused):
            await files.restore(path, 1, None)


async def test_without_a_place_for_versions_none_are_kept(home, owner) -> None:
    home.versions = None
    files = home.files()
    await change(files, "a.md", "a", owner)
    assert await files.history("a.md") == (digest("a"), ())
    with pytest.raises(AgentdError):
        await files.version("a.md", 1)


@pytest.mark.parametrize("was_done", [True, False])
async def test_a_crash_between_announcing_and_noting_is_made_good(home, owner, was_done) -> None:
    home.put({"a.md": "new" if was_done else "old"})
    Versions(home.versions).begin("a.md", Content(b"old"), Content(b"new"), MODEL, AT)
    files = home.files()
    first = [(1, "hand", 3), (2, "model", 3)] if was_done else [(1, "hand", 3)]
    assert await told(files, "a.md") == first
    await change(files, "a.md", "newer", owner, OWNER)
    assert await told(files, "a.md") == [*first, (len(first) + 1, "owner", 5)]
    assert await files.version("a.md", len(first)) == (b"new" if was_done else b"old")


async def test_a_content_that_was_damaged_is_not_given_back(home, owner) -> None:
    files = home.files()
    for text in ("one", "two"):
        await change(files, "a.md", text, owner)
    next(home.versions.rglob(digest("one"))).write_bytes(b"0ne")
    with pytest.raises(NotFound):
        await files.version("a.md", 1)
    assert await files.version("a.md", 2) == b"two"


async def test_contents_kept_before_there_was_a_list_are_still_there(home, owner) -> None:
    files = home.files()
    folder = home.versions / hashlib.sha256(b"a.md").hexdigest()[:32]
    folder.mkdir(parents=True)
    (folder / "path").write_text("a.md")
    (folder / f"20260101T000000.000000Z-{digest('old')}").write_text("old")
    home.put({"a.md": "now"})
    assert await told(files, "a.md") == [(1, "hand", 3)]
    await change(files, "a.md", "later", owner)
    assert await told(files, "a.md") == [(1, "hand", 3), (2, "hand", 3), (3, "model", 5)]
    assert await files.version("a.md", 1) == b"old"


async def test_a_place_that_cannot_be_written_stops_the_change_not_the_file(home, owner) -> None:
    home.put({"a.md": "old"})
    home.versions.write_text("in the way")
    files = home.files()
    with pytest.raises((AgentdError, OSError)):
        await change(files, "a.md", "new", owner)
    assert (home.root / "a.md").read_text() == "old"


def test_large_contents_have_fewer_versions(tmp_path) -> None:
    versions, old = Versions(tmp_path / "versions", afforded=128 << 10), None
    for size in (10, 60 << 10, 61 << 10, 62 << 10, 63 << 10):
        new = size.to_bytes(4, "big") + bytes(size)
        versions.begin("big.md", Content(old), Content(new), OWNER, AT)
        versions.finish("big.md", Content(old), Content(new))
        old = new
    assert [v.size >> 10 for v in versions.of("big.md", "")] == [63, 62]


async def test_a_version_says_whether_its_author_had_read_text_from_outside(home, owner) -> None:
    files = home.files()
    tainted = Author("model", "main", "call-2", tainted=True)
    await change(files, "a.md", "one", owner)
    await change(files, "a.md", "two", owner, tainted)
    _, versions = await files.history("a.md")
    assert [version.by for version in versions] == [tainted, MODEL]


async def test_a_version_of_former_times_is_clean(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "one", owner)
    (log,) = home.versions.rglob("log")
    rows = json.loads(log.read_text())
    log.write_text(json.dumps([{**row, "by": row["by"][:3]} for row in rows]))
    _, versions = await files.history("a.md")
    assert [version.by for version in versions] == [MODEL]


KEY = "ghp_" + "a1B2" * 9


async def test_of_a_content_with_a_key_nothing_is_kept_and_the_file_stays_as_it_is(home, owner):
    home.put({"a.md": f"mine {KEY}\n"})
    files = home.files()
    await change(files, "a.md", "more\n", owner, action=FileAction.APPEND)
    assert (home.root / "a.md").read_text() == f"mine {KEY}\nmore\n"
    home.put({"a.md": "clean\n"})
    await change(files, "a.md", "again\n", owner, action=FileAction.APPEND)
    _, versions = await files.history("a.md")
    assert [v.number for v in versions] == [4, 3, 2, 1]
    assert await files.version("a.md", 4) == b"clean\nagain\n"
    assert await files.version("a.md", 3) == b"clean\n"
    for number in (1, 2):
        with pytest.raises(NotFound):
            await files.version("a.md", number)
    assert not finding.holding(home.versions, KEY.encode())


async def test_an_older_version_is_kept_when_a_key_is_added_behind_it(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "plain\n", owner)
    with (home.root / "a.md").open("a", encoding="utf-8") as file:
        file.write(f"{KEY}\n")
    await change(files, "a.md", "more\n", owner, action=FileAction.APPEND)
    assert await files.version("a.md", 1) == b"plain\n"
    assert not finding.holding(home.versions, KEY.encode())


@given(st.lists(st.sampled_from([b"a" * 70_000, b"b" * 70_000, b"c"]), max_size=6), st.data())
def test_contents_that_go_on_have_the_digest_of_all_of_it(parts, data):
    digests, content = GrowingDigest(), b""
    for part in parts:
        before, content = content, data.draw(st.sampled_from([content + part, part, content]))
        for one in (before, content, before):
            assert digests.of(one) == hashlib.sha256(one).hexdigest()
        digests.let_go(before)
    assert digests.of(None) == ""


async def test_of_contents_that_grew_the_longest_are_told(home, owner) -> None:
    files = home.files()
    for text in ("one\n", "two\n"):
        await change(files, "a.md", text, owner, action=FileAction.APPEND)
    await change(files, "a.md", "other\n", owner)
    assert list(Versions(home.versions).longest(folder_of("a.md"))) == [b"other\n", b"one\ntwo\n"]


async def test_folders_of_marks_alone_are_not_told_until_contents_are_kept_there(
    home, owner
) -> None:
    files, versions = home.files(), Versions(home.versions)
    assert versions.folders() == {}
    await files.record_outside_names(["sessions/chat:a.jsonl"])
    folder = home.versions / folder_of("sessions/chat:a.jsonl")
    long_ago = 1_000_000_000
    os.utime(folder, (long_ago, long_ago))
    assert folder.is_dir()
    assert versions.folders() == versions.folders() == {}
    await change(files, "a.md", "one\n", owner)
    assert versions.folders() == {folder_of("a.md"): "a.md"}
    (folder / "log").write_text("[]")
    assert set(versions.folders()) == {folder_of("a.md"), folder.name}
