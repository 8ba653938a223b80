"""The graph's text: appended to, read back, and rewritten without what is to go."""

from __future__ import annotations

import stat
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentd.domain.erasure import Needles
from agentd.domain.turn import MAIN, Kind
from agentd.domain.workspace import Reader
from agentd.errors import EditConflict, GraphError, WorkspaceError
from agentd.graph import compiler
from agentd.graph.consolidation import Consolidation
from agentd.graph.files import MOST, GraphFiles
from agentd.graph.pieces import joined, read_pieces
from agentd.graph.tuples import CompilerInput, ContextMeta, SemanticTuple
from agentd.testing import FakeClock, InMemoryGraph, MemoryWorkspace
from agentd.workspace.files import Files
from agentd.workspace.settings import WorkspaceSettings
from tests.growth import QUADRATIC, growth

NOW = datetime(2026, 11, 22, 9, 30, 15, 123456, tzinfo=UTC)
TODAY = "memory/graph/2026-11-22.0"


def compiled(*triples, at=NOW, source="chat", utterance="", session="", **more):
    tuples = tuple(SemanticTuple(*triple, 0.5, **more) for triple in triples)
    meta = ContextMeta(at, source, "main", session=session)
    return compiler.compile(CompilerInput(tuples, meta, utterance))


def episodes(*outputs):
    return [relation.episode for output in outputs for relation in output.record.relations]


@pytest.fixture
def clock():
    return FakeClock(NOW)


@pytest.fixture
def workspace(clock):
    return MemoryWorkspace(clock=clock)


@pytest.fixture
def files(workspace, clock):
    return GraphFiles(workspace, clock)


async def test_what_is_appended_is_read_back_in_order(files, workspace, clock):
    made = [compiled(("Agent", "needs", f'thing {n} }} " # Graph {{')) for n in range(3)]
    assert await files.append([made[0].graph_text, made[1].graph_text]) == (TODAY,)
    clock.jump(timedelta(days=1))
    assert await files.append([made[2].graph_text]) == ("memory/graph/2026-11-23.0",)
    loaded = await files.load()
    assert loaded.records == tuple(output.record for output in made)
    assert loaded.damage == ()
    assert (await files.load(since=NOW.date() + timedelta(days=1))).records == (made[2].record,)
    assert await files.append([]) == ()


async def test_no_folder_is_no_text(files):
    assert (await files.load()).records == ()
    assert (await files.rewrite()).paths == ()


async def test_the_day_is_the_owners(workspace):
    clock = FakeClock(datetime(2026, 11, 22, 23, 30, tzinfo=UTC), zone="Europe/Berlin")
    [path] = await GraphFiles(workspace, clock).append([compiled(("a", "is", "b")).graph_text])
    assert path == "memory/graph/2026-11-23.0"


async def test_a_day_that_says_much_goes_on_in_further_files(files, workspace):
    made = [compiled((f"s{n}", "is", "x" * 3_000)) for n in range(60)]
    paths = await files.append([output.graph_text for output in made])
    assert paths[:2] == (TODAY, "memory/graph/2026-11-22-2.0")
    assert all(len(workspace.files[path]) <= MOST for path in paths)
    [last] = await files.append([compiled(("at", "the", "end")).graph_text])
    assert last == paths[-1]
    assert await files.paths() == paths
    assert [r.relations for r in (await files.load()).records][:-1] == [
        output.record.relations for output in made
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"thing1"', '"thing9"'),  # tampered with
        ('{"id"', '{"id'),
        ("]", ""),
        ("}\n", ""),
        ('"nodes"', "}}}}"),
    ],
)
async def test_a_damaged_graph_is_named_and_the_others_load(files, workspace, old, new):
    made = [compiled((f"agent{n}", "needs", f"thing{n}")) for n in range(3)]
    await files.append([output.graph_text for output in made])
    bad = made[1].graph_text.replace(old, new)
    assert bad != made[1].graph_text
    text = made[0].graph_text + bad + made[2].graph_text
    workspace.files[TODAY] = text.encode()
    loaded = await files.load()
    assert loaded.records == (made[0].record, made[2].record)
    [damage] = loaded.damage
    first = made[0].graph_text.count("\n") + 1
    assert damage.path == TODAY
    assert first <= damage.line <= first + bad.count("\n") + 1
    assert str(damage).startswith(f"{TODAY}: line {damage.line}")
    assert "line" not in damage.why.partition(":")[2]
    await files.rewrite(episodes(made[0]))
    assert workspace.text(TODAY) == bad + made[2].graph_text


async def test_words_around_graphs_are_damage_or_comments(files, workspace):
    made = compiled(("agent", "needs", "memory"))
    workspace.files[TODAY] = f"# mine\n\n{made.graph_text}\n# more\n".encode()
    assert (await files.load()).records == (made.record,)
    assert (await files.load()).damage == ()
    workspace.files[TODAY] = f"hello\n{made.graph_text}".encode()
    loaded = await files.load()
    assert loaded.records == (made.record,)
    assert [damage.line for damage in loaded.damage] == [1]


async def test_a_file_that_cannot_be_read_is_named(files, workspace):
    made = compiled(("agent", "needs", "memory"))
    await files.append([made.graph_text])
    workspace.files["memory/graph/2026-11-21.0"] = b"\xff"
    loaded = await files.load()
    assert loaded.records == (made.record,)
    assert [(d.path, d.line) for d in loaded.damage] == [("memory/graph/2026-11-21.0", 0)]
    assert str(loaded.damage[0]).count("2026-11-21.0") == 1
    assert [d.path for d in (await files.rewrite()).unread] == ["memory/graph/2026-11-21.0"]


async def test_pieces_together_are_the_text():
    made = compiled(("a", "is", "b")).graph_text
    for text in ("", "x", made, f"\ufeff{made}{made}", f"# c\n{made} tail\n\nGraph {{\n", "Graph"):
        assert joined(read_pieces(text)) == text


async def test_rewriting_takes_out_episodes_and_what_only_they_were_about(files, workspace):
    both = compiled(
        ("agent", "needs", "memory"), ("agent", "has", "tools"), utterance="It needs and has."
    )
    other = compiled(("user", "likes", "tea"), utterance="I like tea.")
    await files.append([both.graph_text, other.graph_text])
    gone = next(r.episode for r in both.record.relations if r.predicate == "has")
    rewritten = await files.rewrite([gone])
    assert rewritten.episodes == {gone}
    assert rewritten.paths == (TODAY,)
    first, second = (await files.load()).records
    assert [r.predicate for r in first.relations] == ["needs"]
    assert [c.label for c in first.concepts if c.label == "tools"] == []
    assert second == other.record
    text = workspace.text(TODAY)
    assert "tools" not in text
    assert "It needs and has" not in text
    assert text.endswith(other.graph_text)


async def test_a_file_of_which_nothing_is_left_goes(files, workspace):
    made = compiled(("agent", "needs", "memory"))
    await files.append([made.graph_text])
    await files.rewrite(episodes(made))
    assert workspace.files == {}


async def test_rewriting_by_words_takes_aliases_sentences_and_damage(files, workspace):
    dog = compiled(("user", "has dog", "Rex"))
    alias = compiled(("pet", "is", "animal"), subject_aliases=("Rex",))
    told = compiled(("user", "likes", "walks"), utterance="I walk with Rex.")
    other = compiled(("user", "likes", "tea"))
    bad = dog.graph_text.replace("]", "")
    texts = [x.graph_text for x in (dog, alias, told, other)]
    workspace.files[TODAY] = ("".join(texts) + bad + "Graph { \n").encode()
    rewritten = await files.rewrite(says=Needles((), (("Rex", ()),)).stand_in)
    assert rewritten.episodes == set(episodes(dog))
    assert rewritten.damaged == 1
    assert "rex" not in workspace.text(TODAY).casefold()
    assert workspace.text(TODAY).endswith("Graph { \n")
    loaded = await files.load()
    assert [r.relations for r in loaded.records] == [
        x.record.relations for x in (alias, told, other)
    ]
    assert len(loaded.damage) == 1


async def test_nothing_to_take_out_changes_nothing(files, workspace):
    await files.append([compiled(("agent", "needs", "memory")).graph_text])
    workspace.authors.clear()
    assert (await files.rewrite(episodes(compiled(("x", "is", "y"))), lambda _: False)).paths == ()
    assert workspace.authors == []


async def test_a_promotion_goes_with_what_it_counts(files, workspace, clock):
    made = [compiled(("agent", "needs", "memory"), session=f"s{n}") for n in range(3)]
    store = InMemoryGraph()
    await files.append([output.graph_text for output in made])
    await store.insert([output.record for output in made])
    await Consolidation(store, files, clock).run()
    assert len((await files.load()).records) == 4
    rewritten = await files.rewrite(episodes(made[1]))
    assert len(rewritten.episodes) == 2
    assert (await files.load()).records == (made[0].record, made[2].record)


class Meddling(MemoryWorkspace):
    """A workspace whose files grow behind the back of whoever looked at them."""

    async def look(self, paths, reader):
        views = await super().look(paths, reader)
        for path in self.files.keys() & paths:
            self.files[path] += b"# by hand\n"
        return views


async def test_a_file_that_others_change_is_not_overwritten(clock):
    workspace = Meddling(clock=clock)
    files = GraphFiles(workspace, clock)
    made = compiled(("agent", "needs", "memory"))
    await files.append([made.graph_text])
    with pytest.raises(EditConflict):
        await files.rewrite(episodes(made))
    assert workspace.text(TODAY) == f"{made.graph_text}# by hand\n"


async def test_in_a_real_workspace_files_are_private_and_hidden_from_groups(tmp_path, clock):
    workspace = Files(tmp_path / "home", WorkspaceSettings(), clock, {}, tmp_path / "versions")
    (tmp_path / "home").mkdir()
    files = GraphFiles(workspace, clock)
    assert (await files.load()).records == ()
    made = [compiled((f"agent{n}", "needs", "memory")) for n in range(2)]
    await files.append([output.graph_text for output in made])
    path = tmp_path / "home" / TODAY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await files.rewrite(episodes(made[0]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == made[1].graph_text
    assert not await workspace.exists(TODAY, Reader(MAIN, Kind.GROUP))
    await files.rewrite(episodes(made[1]))
    assert not path.exists()


def garbage(path):
    path.write_bytes(b"Graph { \xff")


def dangling_link(path):
    path.symlink_to(path.parent / "nowhere")


@pytest.mark.parametrize("spoil", [garbage, Path.mkdir, dangling_link])
async def test_nothing_is_written_to_a_file_that_cannot_be_read(tmp_path, clock, spoil):
    home = tmp_path / "home"
    workspace = Files(home, WorkspaceSettings(), clock, {}, tmp_path / "versions")
    files = GraphFiles(workspace, clock)
    (home / "memory" / "graph").mkdir(parents=True)
    spoil(home / TODAY)
    made = [compiled((f"agent{n}", "needs", "memory")) for n in range(2)]
    for output in made:
        assert await files.append([output.graph_text]) == ("memory/graph/2026-11-22-2.0",)
    assert (await files.load()).records == tuple(output.record for output in made)


async def test_where_no_file_can_be_read_the_error_is_that_of_the_first(tmp_path, clock):
    workspace = Files(tmp_path, WorkspaceSettings(), clock, {}, tmp_path / "versions")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "graph").write_text("in the way")
    with pytest.raises(WorkspaceError, match=TODAY):
        await GraphFiles(workspace, clock).append([compiled(("a", "is", "b")).graph_text])


def test_the_error_of_a_piece_has_the_line_of_the_file():
    made = compiled(("a", "is", "b")).graph_text
    bad = made.replace('"version": 1', '"version": @')
    [_, piece] = read_pieces(made + bad)
    assert isinstance(piece.damage, GraphError)
    assert piece.damage.line == made.count("\n") + 3


def test_much_damage_takes_work_and_room_in_proportion():
    def read(size):
        assert len(read_pieces("Graph {\n" * size)) == size

    assert growth(read, 1_000) < QUADRATIC
    tracemalloc.start()
    pieces = read_pieces("Graph {\n" * 2_000)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000 * len(pieces)


async def test_a_large_file_of_the_users_can_be_forgotten_from(tmp_path, clock):
    workspace = Files(tmp_path / "home", WorkspaceSettings(), clock, {}, None)
    file = tmp_path / "home" / "memory" / "graph" / "own.0"
    file.parent.mkdir(parents=True)
    others = [compiled((f"agent{n}", "needs", "x" * 3_000)).graph_text for n in range(60)]
    file.write_text("".join([*others, compiled(("max", "is", "gone")).graph_text]))
    assert file.stat().st_size > 256 << 10
    done = await GraphFiles(workspace, clock).rewrite((), Needles((), (("max", ()),)).stand_in)
    assert len(done.episodes) == 1
    assert file.read_text() == "".join(others)
