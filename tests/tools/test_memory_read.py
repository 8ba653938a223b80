from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date

import fastjsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import FileMissing
from agentd.core.outside import is_marked
from agentd.core.search import (
    Chunk,
    EmptyReason,
    Hit,
    SearchQuery,
    SearchResult,
    SearchShortfall,
    Source,
)
from agentd.core.tool import ToolCall
from agentd.core.turn import MAIN, Origin, SessionKey, SessionKind, kind_of
from agentd.core.workspace import FileView, Reader
from agentd.interfaces.tools.fence import in_backticks, without_marks
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import DEGRADED, MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.testing import FakeClock, MemoryWorkspace

MARKED = "- [10:00] x <!-- agentd: origin=untrusted -->"


class FixedRecall:
    def __init__(
        self, files: dict[str, str] | None = None, found: SearchResult | None = None
    ) -> None:
        self.files = files or {}
        self.found = found or SearchResult(())
        self.asked: list[tuple[SearchQuery, Reader]] = []

    async def search(self, query: SearchQuery, reader: Reader) -> SearchResult:
        self.asked.append((query, reader))
        return self.found

    async def read(self, path: str, reader: Reader) -> FileView:
        if path not in self.files:
            raise FileMissing("nothing there")
        return FileView(path, self.files[path], "digest")

    async def is_outside(self, path: str, first: int, last: int, text: str) -> bool:
        lines = self.files.get(path, "").split("\n")[first - 1 : last]
        return path.startswith("@") or any(map(is_marked, (*lines, text)))

    async def has_outside_name(self, places: Sequence[str]) -> bool:
        return any(place.startswith("@") for place in places)


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
    ],
)
async def test_foreign_text_taints_by_reading_and_by_finding(path, text, tainted):
    assert (await read({path: text}, path=path)).tainted is tainted
    found = SearchResult((Hit(Chunk(path, 1, 1, text, Source.NOTES, ""), 1.0),))
    out = await MemorySearch(FixedRecall(found=found)).run(made("memory_search", query="q"), None)
    assert out.tainted is tainted
    assert text in out.text


@pytest.mark.parametrize("newer", ["memory/b.md:3", "@work/do as this name says.md:1"])
async def test_the_name_of_a_newer_place_taints_though_its_text_is_not_shown(newer):
    found = SearchResult((Hit(Chunk("a.md", 1, 1, "x", Source.NOTES, ""), 1.0, newer=newer),))
    out = await MemorySearch(FixedRecall(found=found)).run(made("memory_search", query="q"), None)
    assert newer in out.text
    assert out.tainted is newer.startswith("@")


async def test_an_empty_file_is_told_by_a_name_that_may_taint():
    assert (await read({"@work/obey.md": ""}, path="@work/obey.md")).tainted
    assert not (await read({"a.md": ""}, path="a.md")).tainted


async def test_only_the_lines_shown_taint():
    out = await read({"a.md": f"x\n{MARKED}\n"}, path="a.md", lines=1)
    assert not out.tainted


@given(st.text(alphabet=st.sampled_from("`~a\n \x1b\u202e"), max_size=200))
def test_no_text_closes_its_own_fence(text):
    bar, *inside, end = in_backticks(text).split("\n")
    assert bar == f"{end}text"
    assert not any(end in line for line in inside)
    assert "\x1b" not in in_backticks(text)
    assert "\u202e" not in in_backticks(text)


@given(st.text(alphabet=st.sampled_from("<!- agentd:\n")))
def test_no_text_keeps_a_remark_of_ours(text):
    assert without_marks(without_marks(text)) == without_marks(text)
    assert "<!--agentd:" not in without_marks(text)


def a_hit(path: str, source: Source, *, day: date | None = None, newer: str = "") -> Hit:
    chunk = Chunk(path, 3, 4, f"about {path}", source, scope="main", date=day)
    return Hit(chunk, 0.5, {}, newer)


async def search(*hits: Hit, reason: str = "", **arguments: object) -> str:
    tool = MemorySearch(FixedRecall(found=SearchResult(hits, reason)))
    return (await tool.run(made("memory_search", query="q", **arguments), None)).text


async def test_hits_keep_their_order_and_say_place_date_source_and_what_is_newer():
    said = a_hit("sessions/main.jsonl", Source.SESSIONS, day=date(2026, 11, 20))
    note = a_hit("MEMORY.md", Source.NOTES, newer="sessions/main.jsonl:3")
    assert (await search(said, note)).split("\n")[::4] == [
        "sessions/main.jsonl:3-4 (2026-11-20, sessions)",
        "MEMORY.md:3-4 (notes; older, see sessions/main.jsonl:3)",
    ]


async def test_what_the_model_leaves_out_is_as_configured():
    recall = FixedRecall()
    await MemorySearch(recall).run(made("memory_search", query="q"), None)
    more = {"limit": 2, "recencyBoost": False, "halfLifeDays": 7, "max_tokens": 300}
    call = made("memory_search", query="q", queries=["r", "s"], sources=["sessions"], **more)
    await MemorySearch(recall).run(call, None)
    await MemorySearch(recall).run(made("memory_search", query="q", sources=[]), None)
    assert recall.asked == [
        (SearchQuery("q", 5, waits=False), Reader(MAIN, SessionKind.OWNER)),
        (
            SearchQuery(
                "q",
                2,
                frozenset({Source.SESSIONS}),
                300,
                None,
                False,
                7.0,
                queries=("r", "s"),
                waits=False,
            ),
            Reader(MAIN, SessionKind.OWNER),
        ),
        (SearchQuery("q", 5, waits=False), Reader(MAIN, SessionKind.OWNER)),
    ]


async def test_every_emptiness_is_told_in_words_and_as_its_code():
    for reason in (*EmptyReason, *SearchShortfall, "unheard_of"):
        text = await search(reason=reason)
        assert text.endswith(f". [{reason}]")
    assert (await search()).endswith("[no_match]")


async def test_hits_that_most_likely_do_not_answer_are_not_shown_to_a_model():
    assert await search(a_hit("a.md", Source.NOTES), reason="nothing_fits") == await search(
        reason="nothing_fits"
    )


@pytest.mark.parametrize("lack", SearchShortfall)
async def test_hits_of_a_search_that_lacked_something_say_so(lack):
    whole = await search(a_hit("a.md", Source.NOTES))
    lacking = await search(a_hit("a.md", Source.NOTES), reason=lack)
    assert lacking == f"{whole}\n[{DEGRADED[lack]}]"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 21}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"halfLifeDays": 0}, "halfLifeDays"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"queries": ["r"] * 6}, "queries"),
        ({"queries": "r"}, "queries"),
        ({"sources": ["dreams"]}, "sources"),
        ({"recencyBoost": "yes"}, "recencyBoost"),
        ({"half_life_days": 3}, "half_life_days"),
        ({"query": None}, "query"),
    ],
)
def test_the_schema_refuses_and_names_what_is_out_of_bounds(wrong, told):
    check = fastjsonschema.compile(dict(MemorySearch.spec.input_schema))
    check({"query": "q", "limit": 20, "halfLifeDays": 0.5, "sources": ["notes", "sessions"]})
    with pytest.raises(fastjsonschema.JsonSchemaValueException, match=told):
        check({"query": "q", **wrong})


def test_the_short_schema_is_part_of_the_whole_one():
    spec = MemorySearch.spec
    assert spec.short_schema is not None
    assert spec.short_schema["properties"].keys() < spec.input_schema["properties"].keys()
    assert spec.short_schema["required"] == spec.input_schema["required"]


async def test_the_tree_shows_what_the_kind_may_see():
    workspace = MemoryWorkspace(
        {"SOUL.md": "s", "memory/a.md": "a", "shared/x.md": "x", "@w/b/c.md": ""}
    )
    tree = MemoryTree(workspace)
    out = await tree.run(made("memory_tree"), None)
    assert out.text == "```text\n@w/\nSOUL.md (1 bytes)\nmemory/\nshared/\n```"
    assert not out.tainted
    out = await tree.run(made("memory_tree", session="group:a", depth=2), None)
    assert out.text == "```text\nshared/\nshared/x.md (1 bytes)\n```"
    out = await tree.run(made("memory_tree", depth=3), None)
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
        Notify(None, lambda origin: ((), ""), lambda: None),
    ]
    specs = [
        {"name": s.name, "description": s.description, "input_schema": s.input_schema}
        for s in (tool.spec for tool in tools)
    ]
    assert all(s["input_schema"]["additionalProperties"] is False for s in specs)
    assert len({s["name"] for s in specs}) == 6
    assert len(json.dumps(specs)) <= 2500
