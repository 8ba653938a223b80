from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.domain.memory import Chunk, Found, Hit, Source
from agentd.domain.tool import ToolCall
from agentd.domain.turn import Kind, Origin, SessionKey, kind_of
from agentd.domain.workspace import FileView, Reader
from agentd.errors import FileMissing
from agentd.testing import FakeClock, MemoryWorkspace
from agentd.tools.fence import fenced, without_marks
from agentd.tools.memory_read import MemoryRead
from agentd.tools.memory_search import MemorySearch
from agentd.tools.memory_tree import MemoryTree
from agentd.tools.memory_write import MemoryWrite
from agentd.tools.notify import Notify

MARKED = "- [10:00] x <!-- agentd: origin=untrusted -->"


class FixedRecall:
    def __init__(self, files: dict[str, str] | None = None, found: Found | None = None) -> None:
        self.files = files or {}
        self.found = found or Found(())
        self.asked: list[tuple[str, Kind, int]] = []

    async def search(self, query: str, kind: Kind, limit: int, sources=None) -> Found:
        self.asked.append((query, kind, limit))
        return self.found

    async def read(self, path: str, reader: Reader) -> FileView:
        if path not in self.files:
            raise FileMissing("nothing there")
        return FileView(path, self.files[path], "digest")


def made(name: str, session: str = "main", **arguments: object) -> ToolCall:
    key = SessionKey(session)
    return ToolCall("c", name, arguments, key, kind_of(key), Origin.USER)


async def read(files: dict[str, str], **arguments: object):
    return await MemoryRead(FixedRecall(files)).run(made("memory_read", **arguments), None)


async def test_a_page_names_its_lines_and_where_it_goes_on():
    out = await read({"a.md": "1\n2\n3\n4\n"}, path="a.md", **{"from": 2, "lines": 2})
    assert out.text == "a.md:2-3\n```text\n2\n3\n```\n[1 more lines: from=4]"
    assert not out.tainted


async def test_a_long_file_comes_in_pages_that_join_to_the_whole():
    text = "".join(f"line {n} {'x' * (n % 300)}\n" for n in range(1, 900))
    got, start = [], 1
    for _ in range(100):
        out = await read({"a.md": text}, path="a.md", **{"from": start})
        assert len(out.text) < 17_000
        body = out.text.split("```text\n")[1].split("\n```")[0]
        got += body.split("\n")
        if "from=" not in out.text.rsplit("```", 1)[1]:
            break
        start = int(out.text.rsplit("from=", 1)[1].rstrip("]"))
    assert got == text.split("\n")[:-1]


async def test_a_huge_line_is_cut_and_says_so():
    out = await read({"a.md": "y" * 20_000 + " " + MARKED + "\nz\n"}, path="a.md")
    assert "characters]" in out.text
    assert out.text.endswith("from=2]")
    assert out.tainted


async def test_absent_and_past_the_end_are_plain_words():
    missing = await read({}, path="no.md")
    assert missing.is_error
    assert missing.text == "No such file: no.md"
    assert (await read({"a.md": "x"}, path="a.md", **{"from": 9})).text.startswith("a.md has 1 ")
    assert (await read({"a.md": ""}, path="a.md")).text == "a.md is empty."


@pytest.mark.parametrize(
    ("path", "text", "tainted"),
    [
        ("memory/a.md", "plain", False),
        ("memory/a.md", MARKED, True),
        ("memory/a.md", "x <!-- agentd: origin=heartbeat -->", False),
        ("@work/MEMORY.md", "plain", True),
        ("sessions/main.jsonl", "{}", False),
        ("sessions/chat:1.jsonl", "{}", False),
        ("sessions/group:a.jsonl", "{}", True),
        ("sessions/isolated:a.jsonl", "{}", True),
    ],
)
async def test_foreign_text_taints_by_reading_and_by_finding(path, text, tainted):
    assert (await read({path: text}, path=path)).tainted is tainted
    source = Source.SESSIONS if path.startswith("sessions/") else Source.NOTES
    found = Found((Hit(Chunk(path, 1, 1, text, source, False), 1.0),))
    out = await MemorySearch(FixedRecall(found=found)).run(made("memory_search", query="q"), None)
    assert out.tainted is tainted
    assert text in out.text


async def test_only_the_lines_shown_taint():
    out = await read({"a.md": f"x\n{MARKED}\n"}, path="a.md", lines=1)
    assert not out.tainted


@given(st.text(alphabet=st.sampled_from("`~a\n \x1b\u202e"), max_size=200))
def test_no_text_closes_its_own_fence(text):
    bar, *inside, end = fenced(text).split("\n")
    assert bar == f"{end}text"
    assert not any(end in line for line in inside)
    assert "\x1b" not in fenced(text)
    assert "\u202e" not in fenced(text)


@given(st.text(alphabet=st.sampled_from("<!- agentd:\n")))
def test_no_text_keeps_a_remark_of_ours(text):
    assert without_marks(without_marks(text)) == without_marks(text)
    assert "<!--agentd:" not in without_marks(text)


async def test_hits_are_told_notes_first_and_emptiness_with_its_reason():
    def hit(path: str, source: Source, score: float) -> Hit:
        return Hit(Chunk(path, 3, 4, f"about {path}", source, True), score)

    found = Found((hit("sessions/main.jsonl", Source.SESSIONS, 2), hit("a.md", Source.NOTES, 1)))
    recall = FixedRecall(found=found)
    out = await MemorySearch(recall).run(made("memory_search", query="q", limit=2), None)
    assert out.text.index("a.md:3-4") < out.text.index("sessions/main.jsonl:3-4")
    assert recall.asked == [("q", Kind.MAIN, 2)]
    for reason in ("nothing_indexed", "no_match", "empty_query", "indexing", "unheard_of"):
        search = MemorySearch(FixedRecall(found=Found((), reason)))
        assert (await search.run(made("memory_search", query="q"), None)).text


async def test_the_tree_shows_what_the_kind_may_see():
    workspace = MemoryWorkspace(
        {"SOUL.md": "s", "memory/a.md": "a", "n/x.md": "x", "@w/b/c.md": ""}
    )
    tree = MemoryTree(workspace)
    out = await tree.run(made("memory_tree"), None)
    assert out.text == "```text\n@w/\nSOUL.md (1 bytes)\nmemory/\nn/\n```"
    assert not out.tainted
    out = await tree.run(made("memory_tree", session="group:a", depth=2), None)
    assert "memory" not in out.text
    assert "n/x.md" in out.text
    assert out.tainted  # names inside another scope
    out = await tree.run(made("memory_tree", path="nowhere"), None)
    assert out.text == "Nothing is below nowhere."


def test_all_specs_are_strict_and_together_small():
    clock = FakeClock()
    tools = [
        MemoryWrite(MemoryWorkspace(), clock),
        MemoryRead(FixedRecall()),
        MemoryRead(FixedRecall(), "memory_get"),
        MemoryTree(MemoryWorkspace()),
        MemorySearch(FixedRecall()),
        Notify(None, lambda origin: ((), "")),
    ]
    specs = [
        {"name": s.name, "description": s.description, "input_schema": s.input_schema}
        for s in (tool.spec for tool in tools)
    ]
    assert all(s["input_schema"]["additionalProperties"] is False for s in specs)
    assert len({s["name"] for s in specs}) == 6
    assert len(json.dumps(specs)) <= 2200
