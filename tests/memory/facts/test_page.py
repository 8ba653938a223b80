"""The page of facts keeps every byte that it did not have to change, and every fact whatever it
says.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.fact import (
    Category,
    Fact,
    FactSource,
    FactStatus,
    Provenance,
    Triple,
)
from agentd.core.turn import SessionKey
from agentd.memory.facts.page import Page, PagePart, parse
from agentd.memory.facts.page_entry import MOST_CHARS, clean, clean_triple

NOW = datetime(2026, 11, 22, 5, 11, 15, tzinfo=UTC)
REX = "The user's dog is called Rex."
LINE = (
    f"- {REX} <!-- fact id=k3f9q2ma category=personal source=explicit confidence=0.9 "
    "since=2026-11-22T05:11:15Z noted=2026-11-22T05:11:15Z from=main#12 "
    'triple="user|dog name|Rex" -->'
)


def a_fact(fact_id="k3f9q2ma", text=REX, **fields):
    first = Fact(fact_id, text, Category.PERSONAL, FactSource.EXPLICIT, 0.9, NOW, NOW)
    return replace(first, **fields)


TEXTS = st.one_of(
    st.text(),
    st.text(alphabet='<!->&;ltgamp|"\\= \n\t\r#*_`[]()x\u202e\u0000\u2028\u200dÄ字🐶', max_size=60),
    st.sampled_from(
        [
            "<!-- fact id=aaaaaaaa -->",
            "-->",
            "a <!-- b --> c",
            "&lt;!-- &amp;lt; &amp;amp;",
            "## Earlier",
            "- [ ] buy *milk*",
            '"quoted|piped\\"',
            "id=k3f9q2ma category=personal source=file",
            "字" * MOST_CHARS,
            "👩‍👩‍👧‍👦 " * 100,
            "x" * MOST_CHARS,
        ]
    ),
)
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


@st.composite
def facts(draw):
    text = clean(draw(TEXTS))[:MOST_CHARS].strip() or "x"
    parts = [draw(TEXTS) for _ in range(3)]
    status = draw(st.sampled_from([*FactStatus][:4]))
    until = draw(st.none() | st.integers(1, 99).map(lambda days: NOW + timedelta(days=days)))
    is_over = status in (FactStatus.SUPERSEDED, FactStatus.ENDED)
    return Fact(
        id=draw(st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", min_size=8, max_size=8)),
        text=text,
        category=draw(st.sampled_from(Category)),
        source=draw(st.sampled_from(FactSource)),
        confidence=draw(st.floats(0, 1)),
        valid_from=draw(TIMES),
        noted_at=draw(TIMES),
        status=status,
        valid_to=NOW + timedelta(days=draw(st.integers(-99, 0))) if is_over else until,
        superseded_by="bbbb" if status is FactStatus.SUPERSEDED else "",
        replaces=("cccc", "dddd") if status is FactStatus.PROPOSED else (),
        origin=Provenance(
            SessionKey(draw(st.sampled_from(["", "main", "chat:a b", 'x"#-->\\']))), 0
        ),
        triple=clean_triple(Triple(*parts)),
    )


def said(page: Page) -> dict[str, Fact]:
    return {i: entry.fact(i, NOW) for i, entry in page.entries().items()}


def test_a_fact_is_one_readable_line():
    fact = a_fact(
        origin=Provenance(SessionKey("main"), 12), triple=Triple("user", "dog name", "Rex")
    )
    assert Page().edited([fact]).render() == f"# Facts\n\n{LINE}\n"
    assert said(parse(LINE)) == {fact.id: fact}


@given(st.lists(facts(), max_size=8, unique_by=lambda fact: fact.id))
def test_whatever_facts_say_comes_back(found):
    page = parse("").edited(found)
    again = parse(page.render())
    assert again.render() == page.render()
    assert again == page
    assert said(again) == {fact.id: fact for fact in found}
    assert not again.troubles()


@given(
    st.text() | st.lists(st.sampled_from([LINE, "## Earlier", "- new", "", "```"])).map("\n".join)
)
def test_any_text_is_rendered_as_it_was(text):
    assert parse(text).render() == text


@given(facts(), st.data())
def test_damage_loses_no_other_line_and_drops_nothing(fact, data):
    others = [
        a_fact("aaaaaaaa", "Before."),
        a_fact("zzzzzzzz", "After.", status=FactStatus.ENDED, valid_to=NOW),
    ]
    lines = parse("").edited([others[0], replace(fact, id="mmmmmmmm"), others[1]]).render()
    rows = lines.split("\n")
    at = next(n for n, row in enumerate(rows) if "id=mmmmmmmm" in row)
    begin = data.draw(st.integers(0, len(rows[at])))
    end = data.draw(st.integers(begin, len(rows[at])))
    junk = data.draw(st.text(alphabet='\x00\ufffd<!-> "x|=\\字', max_size=8))
    rows[at] = rows[at][:begin] + junk + rows[at][end:]
    damaged = "\n".join(rows)
    page = parse(damaged)
    assert page.render() == damaged
    kept = said(page)
    assert all(kept[other.id] == other for other in others)
    edited = page.edited([a_fact("nnnnnnnn", "New.")]).render()
    assert all(row in edited.split("\n") for row in rows)


def test_untouched_lines_keep_their_bytes():
    text = (
        "---\ntitle: x\n---\r\n\n  Some *prose* &lt; -- \n"
        f"* {REX}   <!--   fact  id=k3f9q2ma -->  \r\n"
        "1. a list\n\n## Mine\n\tcode\n### Earlier\n"
    )
    page = parse(text).edited([a_fact("bbbbbbbb", "New.")])
    rows = [row for row in page.render().split("\n") if row and "bbbbbbbb" not in row]
    assert rows == [row for row in text.split("\n") if row]


def test_a_superseded_fact_moves_below_earlier_and_a_forgotten_one_leaves_a_mark():
    page = parse("").edited([a_fact(), a_fact("bbbbbbbb", "Max.")])
    over = a_fact(status=FactStatus.SUPERSEDED, valid_to=NOW, superseded_by="bbbbbbbb")
    page = page.edited([over])
    assert [line.part for line in page.lines if line.id] == [PagePart.NOW, PagePart.EARLIER]
    page = page.edited(buried={"bbbbbbbb": NOW})
    page = page.edited([a_fact("cccccccc", "Cat.")], buried={"k3f9q2ma": NOW + timedelta(1)})
    text = page.render()
    assert "Max" not in text
    assert "Rex" not in text
    assert [row for row in text.split("\n") if row][2:] == [
        "## Earlier",
        "## Forgotten",
        "<!-- forgotten id=bbbbbbbb at=2026-11-22T05:11:15Z -->",
        "<!-- forgotten id=k3f9q2ma at=2026-11-23T05:11:15Z -->",
    ]
    again = parse(text)
    assert again == page
    assert again.tombstones() == {"bbbbbbbb": NOW, "k3f9q2ma": NOW + timedelta(1)}
    assert page.edited(buried={"bbbbbbbb": NOW}) == page


def test_what_waits_for_a_yes_stands_between_what_holds_and_what_did():
    over = a_fact("bbbbbbbb", "Max.", status=FactStatus.ENDED, valid_to=NOW)
    waits = a_fact("cccccccc", "Bo.", status=FactStatus.PROPOSED, replaces=("k3f9q2ma", "x"))
    page = parse("").edited([over, waits, a_fact()])
    rows = [row.split(" <!--")[0] for row in page.render().split("\n") if row]
    assert rows == ["# Facts", f"- {REX}", "## Proposed", "- Bo.", "## Earlier", "- Max."]
    assert "status=proposed replaces=" in page.render()
    assert said(parse(page.render()))["cccccccc"] == waits
    page = page.edited([a_fact("cccccccc", "Bo.")], buried={"bbbbbbbb": NOW})
    assert [line.part for line in page.lines if line.id] == [
        PagePart.NOW,
        PagePart.NOW,
        PagePart.FORGOTTEN,
    ]


def test_a_fact_that_holds_again_moves_back_up():
    over = a_fact(status=FactStatus.SUPERSEDED, valid_to=NOW)
    page = parse("").edited([over, a_fact("bbbbbbbb", "Max.")]).edited([a_fact()])
    assert [(line.id, line.part) for line in page.lines if line.id] == [
        ("bbbbbbbb", PagePart.NOW),
        ("k3f9q2ma", PagePart.NOW),
    ]


def test_lines_may_be_adopted_cut_and_dropped():
    page = parse(f"# Facts\n- one\n- two\n{LINE}\n")
    after = page.edited([], adopted={1: a_fact("aaaaaaaa", "one")}, cut={2}, dropped={"k3f9q2ma"})
    assert [line.id for line in after.lines if line.entry] == ["aaaaaaaa"]
    assert "two" not in after.render()
    assert "Rex" not in after.render()


def test_bullets_without_a_comment_are_facts_wherever_they_stand_but_not_code_and_lists_below():
    text = (
        "# Facts\n- likes tea\n  and cake\n  - really\n* has a cat\n```\n- code\n```\n-\n"
        "## Earlier\n- is tall\n## Forgotten\n- plays chess\n## Family\n- has a son\n"
    )
    entries = [line.entry for line in parse(text).lines if line.entry]
    told = ["likes tea and cake", "has a cat", "is tall", "plays chess", "has a son"]
    assert [entry.text for entry in entries] == told
    assert not parse(text).troubles()


def test_a_bullet_goes_on_as_markdown_reads_it():
    text = (
        "- is allergic to nuts and\n"
        "to milk (all of it)\n"
        "- likes tea\n"
        "# Title\n"
        "- is tall\n"
        "> quoted\n"
        "- plays chess\n"
        "\n"
        "Prose\n"
        f"{LINE}\n"
        "More prose\n"
        "- has a cat\n"
        "```\n"
        "code\n"
        "```\n"
        "- runs\n"
        "=======\n"
    )
    page = parse(text)
    told = [line.entry.text for line in page.lines if line.entry and not line.entry.id]
    assert told == [
        "is allergic to nuts and to milk (all of it)",
        "likes tea",
        "is tall",
        "plays chess",
        "has a cat",
        "runs",
    ]
    assert page.render() == text


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_heading_in_a_block_of_code_is_none(fence):
    page = parse(f"# Facts\n{fence}sh\n## Earlier\n{fence}\n{LINE}\n")
    [held] = [line for line in page.lines if line.entry]
    assert held.part is PagePart.NOW
    again = page.edited([a_fact("aaaaaaaa", "New.", status=FactStatus.ENDED, valid_to=NOW)])
    assert [line.part for line in again.lines if line.entry] == [PagePart.NOW, PagePart.EARLIER]
    assert parse(again.render()) == again


@pytest.mark.parametrize(
    "text",
    [
        f"# Facts\n```\n## Earlier\n{LINE}\n",
        f"# Facts\n```\n## Earlier\n{LINE}\n```\n",
        f"# Facts\n```\n## Earlier\n\n{LINE}\n## Family\n```\ncode\n```\n",
    ],
    ids=["no end", "around a fact", "no end, and another block"],
)
def test_a_fence_around_agentds_own_lines_hides_no_heading(text):
    [over] = [line for line in parse(text).lines if line.entry]
    assert over.part is PagePart.EARLIER


@pytest.mark.parametrize("fence", ["```", "  ```", "~~~"])
def test_a_fence_that_never_ends_hides_no_fact(fence):
    page = parse(f"# Facts\n{fence}\nx\n\n- The user likes tea.\n")
    assert [line.entry.text for line in page.lines if line.entry] == ["The user likes tea."]


def test_keys_may_be_missing():
    entry = parse("- Tea. <!-- fact id=aaaaaaaa -->").entries()["aaaaaaaa"]
    assert not entry.is_complete
    assert entry.fact("aaaaaaaa", NOW) == a_fact("aaaaaaaa", "Tea.", source=FactSource.FILE)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("- Rex <!-- fact id=k3f9q2ma category=pets -->", "'pets'"),
        ("- Rex <!-- fact id=k3f9q2ma confidence=2 -->", "not between"),
        ("- Rex <!-- fact id=k3f9q2ma confidence=nan -->", "not between"),
        ("- Rex <!-- fact id=k3f9q2ma since=yesterday -->", "cannot be read"),
        ("- Rex <!-- fact id=k3f9q2ma since=0001-01-01 -->", "not between the years"),
        (
            "- Rex <!-- fact id=k3f9q2ma until=9999-12-31T23:59:59-05:00 -->",
            "not between the years",
        ),
        ("<!-- forgotten id=k3f9q2ma at=9999-12-31T23:59:59-05:00 -->", "no time"),
        ('- Rex <!-- fact id=k3f9q2ma triple="a|b" -->', "three fields"),
        ("- Rex <!-- fact id=k3f9q2ma id=aaaaaaaa -->", "twice"),
        ("- Rex <!-- fact id=k3f9q2ma oops -->", "cannot be read"),
        ("- Rex <!-- fact category=personal -->", "no id"),
        ("- <!-- fact id=k3f9q2ma -->", "says nothing"),
        ("- Rex <!-- fact id=k3f9q2ma", "part of a comment"),
        ("- Rex fact id=k3f9q2ma category=personal source=file -->", "part of a comment"),
        ("Rex <!-- fact id=k3f9q2ma -->", "part of a comment"),
        (f"{LINE}{LINE}", "cannot be read"),
        ("- Rex <!-- my own --> dog", "not agentd's"),
        ("<!-- forgotten id=k3f9q2ma -->", "no time"),
        ("<!-- forgotten at=2026-11-22 -->", "no id"),
        ("- R\x00x", "damaged"),
        ("- " + "x" * (MOST_CHARS + 1), "more than 4096"),
        (f"{LINE}\n{LINE}", "once more"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_kept(line, why):
    text = f"# Facts\n\n{line}\n- fine <!-- fact id=bbbbbbbb -->\n"
    page = parse(text)
    [trouble] = page.troubles()
    assert why in trouble.why
    assert trouble.line == (4 if "\n" in line else 3)
    assert trouble.cure
    assert "bbbbbbbb" in page.entries()
    changed = page.edited([a_fact("cccccccc", "New.")], buried={"bbbbbbbb": NOW}).render()
    assert f"\n{line}\n" in changed


def test_clean_text_is_one_line_without_tricks():
    assert clean(" a\n\tb\u2028c\u202ed\x00\x1b[0m\ud800  e ") == "a b cd[0m e"
    assert clean("👩‍👧 字 é") == "👩‍👧 字 é"


@given(st.lists(facts(), max_size=8, unique_by=lambda fact: fact.id), st.data())
def test_a_page_that_was_edited_is_the_one_that_its_text_is_read_as(found, data):
    """So what was written need not be read again."""
    page = parse("")
    for fact in found:
        gone = data.draw(st.sampled_from([None, *page.entries()]))
        page = page.edited([fact], buried={gone: NOW} if gone else None)
        read = parse(page.render())
        assert page == read
        assert page.layout == read.layout  # where the next change finds its places
