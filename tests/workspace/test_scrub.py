"""What agentd wrote is masked; what the user wrote is told and left alone."""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.erasure import MASK, Erasure, PlacedWords
from agentd.core.errors import NotFound, PathRefused
from agentd.core.tool import FileAction
from agentd.core.workspace import HAND, OWNER, RESTORE, Author
from agentd.workspace.authored import MOST
from agentd.workspace.folder import Folder
from agentd.workspace.scrub import NoteEraser, VersionEraser, _Cutter
from agentd.workspace.versions import Content, Versions, folder_of

WORDS = Erasure(spans=("Quastel",))
FLUSH, MODEL = Author("flush", "main"), Author("model", "main", "call-1")
NOTE = "memory/2026-11-22.md"


async def change(files, path, text, reader, by=FLUSH, action=FileAction.APPEND) -> None:
    async with files.lock(path):
        await files.apply(await files.plan(path, action, text.encode()), reader, by)


def left(*roots) -> int:
    """How many files hold the word."""
    paths = [path for root in roots for path in root.rglob("*") if path.is_file()]
    return sum(b"quastel" in path.read_bytes().lower() for path in paths)


def notes(home, files, **more) -> NoteEraser:
    return NoteEraser(files, home.root, home.versions, **more)


async def test_lines_of_agentd_are_masked_and_lines_by_hand_stay(home, owner) -> None:
    home.put({NOTE: "# Day\nQuastel called me.\n", "other.md": "one\n- QUASTEL (mine)\n"})
    files = home.files()
    await change(files, NOTE, "- Likes tea. Lives with Quastel. Fine.\n- milk\n", owner)
    await change(files, "new.md", "quastel\n", owner, MODEL)
    eraser = notes(home, files)
    assert await eraser.erase(WORDS) == 2
    text = f"# Day\nQuastel called me.\n- Likes tea. Lives with {MASK}. Fine.\n- milk\n"
    assert (home.root / NOTE).read_text() == text
    assert (home.root / "new.md").read_text() == f"{MASK}\n"
    assert await eraser.erase(WORDS) == 0


@pytest.mark.parametrize("span", ["<!-- agentd: origin=untrusted -->", "untrusted", "Quastel <!--"])
async def test_no_words_take_the_mark_of_a_line_from_outside_away(home, owner, span) -> None:
    files = home.files()
    marked = "- [10:00] says Quastel <!-- agentd: origin=untrusted -->\n"
    await change(files, NOTE, marked, owner, Author("model", "main", "call-1", tainted=True))
    words = Erasure(marks=(PlacedWords(f"{NOTE}:1", span),), spans=(span,))
    await notes(home, files).erase(words)
    await VersionEraser(files, home.versions).erase(words)
    assert "<!-- agentd: origin=untrusted -->" in (home.root / NOTE).read_text()
    assert b"<!-- agentd: origin=untrusted -->" in await files.version(NOTE, 1)


async def test_a_line_that_the_user_changed_is_his(home, owner) -> None:
    files = home.files()
    await change(files, NOTE, "Quastel is a cat\nQuastel is black\n", owner)
    path = home.root / NOTE
    path.write_text(path.read_text().replace("black", "grey"))
    await change(files, NOTE, "and more\n", owner)
    assert await notes(home, files).erase(WORDS) == 1
    assert path.read_text() == f"{MASK} is a cat\nQuastel is grey\nand more\n"


@pytest.mark.parametrize("when", ["file.temp_written", "file.replaced"])
async def test_what_the_user_saves_while_words_are_masked_stays(home, owner, when) -> None:
    files = home.files()
    await change(files, NOTE, "- Quastel is a cat\n", owner)
    with (home.root / NOTE).open("a") as saved:

        def passing(point: str) -> None:
            if point == when and not saved.closed:
                saved.write("mine\n")
                saved.close()

        eraser = notes(home, files, folder=Folder(home.root, passing=passing))
        assert await eraser.erase(WORDS) == 1
    assert (home.root / NOTE).read_text() == f"- {MASK} is a cat\nmine\n"


async def test_a_line_is_agentds_whatever_ends_of_lines_stand_within_it(home, owner) -> None:
    files = home.files()
    await change(files, NOTE, "- Quastel\r- is a cat\r\n- Quastel\fis black\n", owner)
    assert await notes(home, files).erase(WORDS) == 2
    assert (home.root / NOTE).read_bytes().count(MASK.encode()) == 2


async def test_a_note_that_cannot_be_changed_keeps_no_other_from_being_masked(home, owner) -> None:
    home.put({"a.md": "Quastel, by hand\n"})
    files = home.files()
    await change(files, "b.md", "Quastel\n", owner)
    await change(files, "c.md", "Quastel\n", owner)
    for name in ("a.md", "b.md"):  # as copies by `cp -al` do
        (home.root.parent / name).hardlink_to(home.root / name)
    with pytest.raises(PathRefused, match=r"b\.md"):
        await notes(home, files).erase(WORDS)
    assert (home.root / "c.md").read_text() == f"{MASK}\n"
    (home.root.parent / "b.md").unlink()
    assert await notes(home, files).erase(WORDS) == 1
    assert (home.root / "a.md").read_text() == "Quastel, by hand\n"


async def test_notes_that_go_or_grow_after_they_were_listed_hold_nothing_up(home, owner) -> None:
    home.put({"b/x.md": "Quastel\n", "c.md": "Quastel\n"})
    files = home.files()
    await change(files, "d.md", "Quastel\n", owner)

    class MeanwhileOthers(NoteEraser):
        async def _entries(self):
            found = await super()._entries()
            (home.root / "b" / "x.md").unlink()
            (home.root / "b").rmdir()
            (home.root / "b").write_text("no folder any more")
            (home.root / "c.md").write_text("x" * (2 << 20))
            return found

    assert await MeanwhileOthers(files, home.root, home.versions).erase(WORDS) == 1
    assert (home.root / "d.md").read_text() == f"{MASK}\n"


async def test_what_was_restored_is_no_line_of_agentds(home, owner) -> None:
    home.put({"a.md": "Quastel by hand\n"})
    files = home.files()
    await change(files, "a.md", "nothing\n", owner, MODEL, FileAction.WRITE)
    await change(files, "a.md", "Quastel by hand\n", owner, RESTORE, FileAction.WRITE)
    assert await notes(home, files).erase(WORDS) == 0


async def test_no_version_that_is_restored_brings_it_back(home, owner) -> None:
    files = home.files()
    await change(files, NOTE, "Quastel is a cat\n", owner)
    await change(files, NOTE, "and sleeps\n", owner)
    await change(files, NOTE, "nothing\n", owner, action=FileAction.WRITE)
    assert left(home.versions) > 0
    await VersionEraser(files, home.versions).erase(WORDS)
    _, versions = await files.history(NOTE)
    assert len(versions) > 1
    for version in versions:
        await files.restore(NOTE, version.number, None)
        assert left(home.root, home.versions) == 0
    assert (home.root / NOTE).read_text().startswith(MASK)


async def test_a_sentence_over_lines_of_both_stays_whole(home, owner) -> None:
    home.put({"a.md": "my cat is\n"})
    files = home.files()
    await change(files, "a.md", "called Quastel\n", owner)
    said = Erasure(spans=("my cat is called Quastel",))
    assert await notes(home, files).erase(said) == 0
    assert (home.root / "a.md").read_text() == "my cat is\ncalled Quastel\n"
    await change(files, "b.md", "my cat is\n", owner)
    await change(files, "b.md", "called Quastel\n", owner)
    assert await notes(home, files).erase(said) == 1
    assert (home.root / "b.md").read_text() == f"{MASK}\n"


async def test_older_lines_are_known_from_the_versions_and_so_are_lines_of_long_ago(
    home, owner
) -> None:
    files = home.files()
    await change(files, "a.md", "Quastel one\n", owner)
    for number in range(60):
        await change(files, "a.md", f"line {number}\n", owner)
    assert await notes(home, files).erase(WORDS) == 1, "known by its hash alone"
    await change(files, "b.md", "Quastel two\n", owner)
    for record in home.versions.glob("*/lines"):
        record.unlink()  # as agentd of former times left it
    assert await notes(home, files).erase(WORDS) == 1


async def test_versions_are_masked_and_still_told_apart(home, owner) -> None:
    home.put({"a.md": "Quastel by hand\n"})
    files = home.files()
    for text in ("tea\n", "- Quastel again. Yes.\n", "milk\n"):
        await change(files, "a.md", text, owner)
    await change(files, "a.md", "short\n", owner, MODEL, FileAction.WRITE)
    _, before = await files.history("a.md")
    assert left(home.versions)
    [name] = home.versions.glob("*/path")
    name.unlink()  # once it was not written for a file that was there before
    eraser = VersionEraser(files, home.versions)
    assert await eraser.erase(WORDS) == 4
    assert left(home.versions) == 0
    _, after = await files.history("a.md")
    assert [(v.number, v.at, v.by) for v in after] == [(v.number, v.at, v.by) for v in before]
    whole = f"{MASK} by hand\ntea\n- {MASK} again. Yes.\nmilk\n".encode()
    assert await files.version("a.md", 4) == whole
    assert await files.version("a.md", 1) == f"{MASK} by hand\n".encode()
    assert [v.digest for v in after][1] == hashlib.sha256(whole).hexdigest()
    kept = [path.name for path in home.versions.glob("*/*") if len(path.name) == 64]
    assert len(kept) == 2, "a content that only grew is kept once"
    assert await eraser.erase(WORDS) == 0
    await files.restore("a.md", 4, None)
    await change(files, "a.md", "more\n", owner)
    assert [v.number for v in (await files.history("a.md"))[1]] == [7, 6, 5, 4, 3, 2, 1]


async def test_lines_are_agentds_after_their_versions_were_masked(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "Quastel\n", owner)
    for record in home.versions.glob("*/lines"):
        record.unlink()
    await VersionEraser(files, home.versions).erase(WORDS)
    assert await notes(home, files).erase(WORDS) == 1


async def test_a_version_whose_content_is_damaged_loses_it(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "Quastel\n", owner, MODEL, FileAction.WRITE)
    await change(files, "a.md", "Quastel too\n", owner, MODEL, FileAction.WRITE)
    folder_of = next(home.versions.glob("*/log")).parent
    (folder_of / hashlib.sha256(b"Quastel\n").hexdigest()).write_text("Quastel cut")
    await VersionEraser(files, home.versions).erase(WORDS)
    assert left(home.versions) == 0
    with pytest.raises(NotFound):
        await files.version("a.md", 1)
    assert await files.version("a.md", 2) == f"{MASK} too\n".encode()


async def test_a_change_that_a_crash_cut_is_no_hindrance(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "Quastel\n", owner)
    versions = Versions(home.versions)
    at = home.clock.now()
    versions.begin("a.md", Content(b"Quastel\n"), Content(b"Quastel\nmore\n"), MODEL, at)
    await VersionEraser(files, home.versions).erase(WORDS)
    assert left(home.versions) == 0
    await notes(home, files).erase(WORDS)
    await change(files, "a.md", "other\n", owner)
    assert await files.version("a.md", 2) == f"{MASK}\nother\n".encode()


async def test_files_of_others_are_left_to_them(home, owner) -> None:
    files = home.files()
    await change(files, "memory/facts.md", "Quastel\n", owner)
    eraser = notes(home, files, apart=frozenset({"memory/facts.md"}))
    assert await eraser.erase(WORDS) == 0


async def written(source):
    return [one async for texts in source.texts() for one in texts]


async def test_lines_that_are_shipped_are_nobodys_words(home, owner) -> None:
    home.put({"BOOTSTRAP.md": "# Hello\n3. When may I wake you?\nin May, please\n\n# Mine\n"})
    shipped = {"BOOTSTRAP.md": {"# Hello", "3. When may I wake you?", ""}, "other.md": {"# Mine"}}
    files = home.files()
    await change(files, NOTE, "milk\n", owner)
    eraser = notes(home, files, shipped=shipped)
    kept = [one for one in await written(eraser) if one.where != f"{NOTE}:1"]
    assert [(one.where, one.text, one.by_user) for one in kept] == [
        ("BOOTSTRAP.md:3", "in May, please", True),
        ("BOOTSTRAP.md:5", "# Mine", True),
    ]
    assert await eraser.erase(Erasure(marks=(PlacedWords("BOOTSTRAP.md:3", "May"),))) == 1
    assert f"in {MASK}, please" in (home.root / "BOOTSTRAP.md").read_text()


async def test_a_mark_counts_at_its_paragraph_whoever_wrote_it(home, owner) -> None:
    home.put({NOTE: "# Day\ntea with Anna\n\n- tea\n"})
    files = home.files()
    await change(files, NOTE, "- tea for Quastel,\n  and more tea\n- milk\n", owner)
    texts = await written(notes(home, files))
    assert [(one.where, one.text, one.by_user) for one in texts] == [
        (f"{NOTE}:1", "# Day\ntea with Anna", True),
        (f"{NOTE}:4", "- tea", True),
        (f"{NOTE}:5", "- tea for Quastel,\n  and more tea", False),
        (f"{NOTE}:7", "- milk", False),
    ]
    assert all(one.at is not None and one.at > home.clock.now() for one in texts)
    marks = (
        PlacedWords(f"{NOTE}:5", "more tea"),
        PlacedWords(f"{NOTE}:4", "tea"),
        PlacedWords(f"{NOTE}:1", "coffee"),
    )
    assert await notes(home, files).erase(Erasure(marks=marks)) == 2
    text = f"# Day\ntea with Anna\n\n- {MASK}\n- tea for Quastel,\n  and {MASK}\n- milk\n"
    assert (home.root / NOTE).read_text() == text


async def test_a_mark_in_a_version_counts_for_that_paragraph_in_all_of_them(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "- tea\n", owner)
    await change(files, "a.md", "- tea and milk\n", owner)
    await change(files, "a.md", "nothing\n", owner, MODEL, FileAction.WRITE)
    eraser = VersionEraser(files, home.versions)
    texts = await written(eraser)
    assert [(one.where, one.text) for one in texts] == [
        ("a.md@1:1", "- tea"),
        ("a.md@2:2", "- tea and milk"),
        ("a.md@3:1", "nothing"),
    ]
    erasure = Erasure(marks=(PlacedWords("a.md@1:1", "tea"), PlacedWords("b.md@1:1", "nothing")))
    assert await eraser.erase(erasure) == 2
    assert await files.version("a.md", 2) == f"- {MASK}\n- tea and milk\n".encode()
    assert await eraser.erase(erasure) == 0


async def test_the_lines_of_forgotten_facts_go_from_what_their_page_was(home, owner) -> None:
    files, page = home.files(), "memory/facts.md"
    lines = (
        '- Ulm it is. <!-- fact id=k3f9 triple="user|home|Ulm" -->\n- Tea. <!-- fact id=k3f9b -->\n'
    )
    await change(files, page, lines, owner, Author("facts"))
    await change(files, "a.md", lines, owner)
    eraser = VersionEraser(files, home.versions)
    assert await eraser.erase(Erasure(ids=("k3f9",))) == 1
    assert await files.version(page, 1) == b"- Tea. <!-- fact id=k3f9b -->\n"
    assert await files.version("a.md", 1) == lines.encode()


async def test_the_version_of_a_page_that_lost_a_fact_stays_equal_to_the_page(home, owner) -> None:
    files, page = home.files(), "memory/facts.md"
    author = Author("facts")
    await change(files, page, "- Ulm. <!-- fact id=k3f9 -->\n", owner, author)
    tombstone = "<!-- forgotten id=k3f9 at=2026-11-29T10:45:14.602406Z -->\n"
    await change(files, page, tombstone, owner, author, FileAction.WRITE)
    assert await VersionEraser(files, home.versions).erase(Erasure(ids=("k3f9",))) == 1
    assert await files.version(page, 1) == b""
    assert await files.version(page, 2) == tombstone.encode()
    await change(files, page, "- Tea. <!-- fact id=abcd -->\n", owner, author)
    _, versions = await files.history(page)
    assert [version.by.kind for version in versions] == ["facts"] * 3


@pytest.mark.parametrize("line", ["- Ulm <!-- forgotten id=k3f9 at=1 -->", "<!-- fact id=k3f9 -->"])
async def test_no_line_with_words_counts_as_a_tombstone(home, owner, line) -> None:
    files, page = home.files(), "memory/facts.md"
    await change(files, page, f"{line}\n", owner, Author("facts"))
    assert await VersionEraser(files, home.versions).erase(Erasure(ids=("k3f9",))) == 1
    assert await files.version(page, 1) == b""


async def test_without_anything_there_is_nothing_to_do(home) -> None:
    files = home.files()
    assert await notes(home, files).erase(WORDS) == 0
    assert await VersionEraser(files, home.versions).erase(WORDS) == 0


async def test_the_record_of_lines_is_bounded_and_private(home, owner) -> None:
    files = home.files()
    for part in range(3):
        lines = "".join(f"{part} {number}\n" for number in range(MOST // 2))
        await change(files, "a.md", lines, owner, MODEL, FileAction.WRITE)
    [record] = home.versions.glob("*/lines")
    assert record.stat().st_size <= 8 * MOST
    assert record.stat().st_mode & 0o077 == 0
    assert (home.versions / "key").stat().st_mode & 0o077 == 0
    assert Versions(home.versions).own("a.md", [b"2 9999", b"nothing"]) == [True, False]
    assert HAND.kind != OWNER.kind


async def test_the_text_of_the_graph_is_left_to_the_graph_and_has_no_versions(home, owner) -> None:
    files, path = home.files(), "memory/graph/2026-11-22.0"
    await change(files, path, '{ "label": "quastel" }\n', owner)
    await change(files, path, '{ "label": "quastel too" }\n', owner)
    await change(files, "memory/graph/aliases.md", "quastel = cat\n", owner)
    assert await notes(home, files).erase(WORDS) == 1
    assert (home.root / path).read_text().count("quastel") == 2
    assert (await files.history(path))[1] == ()
    await VersionEraser(files, home.versions).erase(WORDS)
    assert left(home.versions) == 0


async def test_of_many_files_only_the_paragraphs_of_those_that_are_wanted_are_told(
    home, owner
) -> None:
    home.put({f"{n}.md": f"# {n}\n\n- one\n- two\n" for n in range(20)})
    home.put({"mine.md": "Quastel\n\nother\n"})
    files = home.files()
    await change(files, NOTE, "Quastel, it said\n", owner)

    class Looking:
        others = 0

        def may_be(self, text, where):
            return "Quastel" in text

        def pass_over(self, count):
            self.others += count

    looking = Looking()
    found = [one async for texts in notes(home, files).texts(looking) for one in texts]
    assert [one.text for one in found] == ["Quastel, it said", "Quastel", "other"]
    assert looking.others == 3 * 20
    versions = VersionEraser(files, home.versions)
    found = [one async for texts in versions.texts(looking) for one in texts]
    assert [one.text for one in found] == ["Quastel, it said"]


async def test_versions_that_do_not_say_it_are_not_written_again(home, owner) -> None:
    files = home.files()
    for text in ("one thing\n", "Quastel, it said\n", "another thing\n"):
        await change(files, NOTE, text, owner, action=FileAction.WRITE)
    folder = home.versions / folder_of(NOTE)
    before = {file.name: file.stat().st_ino for file in folder.iterdir()}
    assert await VersionEraser(files, home.versions).erase(WORDS) == 1
    after = {file.name: file.stat().st_ino for file in folder.iterdir()}
    same = [name for name in before if before[name] == after.get(name)]
    digests = [hashlib.sha256(t).hexdigest() for t in (b"one thing\n", b"another thing\n")]
    assert set(digests) <= set(same)
    assert left(home.versions) == 0


async def test_lines_of_forgotten_facts_go_from_versions_of_their_page(home, owner) -> None:
    lines = [
        f"- Says {n}. <!-- fact id={i} since=2026 -->"
        for n, i in enumerate(("ab1c", "ab1", "k2", "ab1"))
    ]
    files = home.files()
    page = "\n".join(["# Facts", "", *lines])
    await change(files, "memory/facts.md", page, owner, Author("facts"), FileAction.WRITE)
    await VersionEraser(files, home.versions).erase(Erasure(ids=("ab1",)))
    left_ = "\n".join(["# Facts", "", lines[0], lines[2], ""])
    assert (await files.version("memory/facts.md", 1)).decode() == left_


LINES = st.lists(
    st.sampled_from(
        [
            b"- Ulm. <!-- fact id=k3f9 -->\n",
            b"- Tea. <!-- fact id=abcd -->\n",
            b"Quastel\n",
            b"my cat\n",
            b"is Quastel, he said. Yes.\n",
            b"\xff Quastel\n",
            b"\n",
            b"<!-- agentd:\n",
            b"origin=untrusted -->\n",
            b"without an end of a line",
        ]
    ),
    min_size=1,
    max_size=8,
)
SAID = Erasure(spans=("Quastel", "my cat is Quastel", "agentd"), sentences=("he said",))


@given(LINES, st.booleans())
def test_what_begins_a_longer_content_loses_the_same_as_by_itself(lines, is_page):
    ids = ("k3f9",) if is_page else ()
    cut = _Cutter(SAID, {}, ids)
    whole = cut(b"".join(lines))
    for count in range(len(lines), 0, -1):
        content = b"".join(lines[:count])
        if (size := cut.new_size(len(content))) is not None:
            assert whole[:size] == _Cutter(SAID, {}, ids)(content)


@given(LINES, LINES, st.booleans())
def test_versions_lose_the_same_together_as_each_by_itself(first, second, is_page):
    path = "memory/facts.md" if is_page else NOTE
    texts = [b"".join(lines[:n]) for lines in (first, second) for n in range(1, len(lines) + 1)]
    wanted = [_Cutter(SAID, {}, ("k3f9",) if is_page else ())(text) for text in texts]
    with TemporaryDirectory() as root:
        versions, folder = Versions(Path(root)), folder_of(path)
        old = Content(None)
        for text in texts:
            new = Content(text)
            versions.begin(path, old, new, MODEL, datetime(2026, 11, 22, tzinfo=UTC))
            versions.finish(path, old, new)
            old = new
        cut = _Cutter(SAID, {}, ("k3f9",) if is_page else ())
        changed = versions.rewrite(folder, cut, cut.new_size)
        assert changed == sum(a != b for a, b in zip(texts, wanted, strict=True))
        assert [data for _, data in versions.contents(folder)] == wanted


async def test_a_page_that_grew_is_looked_through_once(home, owner) -> None:
    files, page = home.files(), "memory/facts.md"
    for n in range(5):
        await change(files, page, f"- Tea {n}. <!-- fact id=abc{n} -->\n", owner, Author("facts"))
    looked = []

    class Looked(Erasure):
        def found(self, text, *where, begins=None):
            looked.append(text)
            return super().found(text, *where, begins=begins)

    calls = []

    class Called(_Cutter):
        def __call__(self, data):
            calls.append(data)
            return super().__call__(data)

    cut = Called(Looked(spans=("Tea 1",)), {}, ("abc0",))
    assert Versions(home.versions).rewrite(folder_of(page), cut, cut.new_size) == 5
    assert len(looked) == len(calls) == 1
    assert await files.version(page, 2) == f"- {MASK}. <!-- fact id=abc1 -->\n".encode()
    _, versions = await files.history(page)
    for version in versions:
        content = await files.version(page, version.number)
        assert version.digest == hashlib.sha256(content).hexdigest()


async def looked_through(eraser) -> list[str]:
    return [one.text for some in [some async for some in eraser.texts()] for one in some]


async def test_a_note_that_changed_since_it_was_looked_through_is_read_again(home, owner) -> None:
    files = home.files()
    for path in ("same.md", "grown.md", "swapped.md"):
        await change(files, path, "Rex barks\n", owner)
    eraser = notes(home, files, now_ns=lambda: time.time_ns() + 10**10)
    assert await looked_through(eraser) == ["Rex barks"] * 3
    await change(files, "grown.md", "Quastel barks\n", owner)
    await change(files, "swapped.md", "Quastel purr\n", owner, MODEL, FileAction.WRITE)
    await change(files, "new.md", "Quastel\n", owner)
    assert await eraser.erase(WORDS) == 3
    assert left(home.root) == 0


async def test_what_notes_say_is_held_no_longer_than_until_it_is_erased(home, owner) -> None:
    files = home.files()
    await change(files, "a.md", "Quastel barks\n", owner)
    eraser = notes(home, files, now_ns=lambda: time.time_ns() + 10**10)
    await looked_through(eraser)
    assert len(eraser._read_before) == 1
    slow = eraser.texts()
    await anext(slow)
    assert await eraser.erase(WORDS) == 1
    assert len(eraser._read_before) == 0
    await anext(slow, None)
    assert len(eraser._read_before) == 0
    assert await looked_through(eraser) == [f"{MASK} barks"]
    young = notes(home, files)
    await looked_through(young)
    assert len(young._read_before) == 0, "a stamp as young as this may hide a second change"


async def test_what_a_crash_left_behind_a_version_is_erased_with_it(home, owner) -> None:
    files = home.files()
    await change(files, NOTE, "one\n", owner)
    await change(files, NOTE, "two\n", owner)
    content = home.versions / folder_of(NOTE) / hashlib.sha256(b"one\n").hexdigest()
    assert content.read_bytes() == b"one\ntwo\n"
    content.write_bytes(b"one\ntwo\nQuastel\n")  # a power cut came before the list
    await VersionEraser(files, home.versions).erase(WORDS)
    assert left(home.versions) == 0
    assert [await files.version(NOTE, n) for n in (1, 2)] == [b"one\n", b"one\ntwo\n"]


@pytest.mark.parametrize("damaged", [b"", b'[{"number": 1, "at', b"[1]", b"{}", b"7", b"[" * 9_999])
async def test_a_damaged_list_of_versions_hides_none_and_holds_nothing_up(home, owner, damaged):
    files = home.files()
    await change(files, NOTE, "one\n", owner, action=FileAction.WRITE)
    await change(files, NOTE, "Quastel\n", owner, action=FileAction.WRITE)
    (home.versions / folder_of(NOTE) / "log").write_bytes(damaged)
    kept = (await files.history(NOTE))[1]
    assert sorted([await files.version(NOTE, one.number) for one in kept]) == [
        b"Quastel\n",
        b"one\n",
    ]
    await notes(home, files).erase(WORDS)
    assert await VersionEraser(files, home.versions).erase(WORDS) == 1
    await change(files, NOTE, "three\n", owner, action=FileAction.WRITE)
    assert left(home.root, home.versions) == 0
    assert len((await files.history(NOTE))[1]) == 3
