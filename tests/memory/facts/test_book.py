"""The book of facts: its page, what becomes of what the user does to it, and what a failure
costs.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest
from msgspec.structs import replace

from agentd.core import failpoints
from agentd.core.errors import (
    EditConflict,
    FileUnreadable,
    InvalidRequest,
    NotFound,
    StorageError,
    StorageFull,
)
from agentd.core.fact import (
    Category,
    ChangeKind,
    Evidence,
    FactSource,
    FactStatus,
    OperationKind,
    Provenance,
    Refusal,
    Triple,
)
from agentd.core.failpoints import FailpointError
from agentd.core.turn import MAIN
from agentd.core.workspace import FACTS_PATH as PATH
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import FactIndexDouble, MemoryWorkspace
from tests.memory.facts.books import CHAT, MAX, REX, TEA

BO = "The user's dog is called Bo."
BOOKS = [f"The user owns {n} books." for n in range(12)]
PROPOSED, SUPERSEDED, ENDED = FactStatus.PROPOSED, FactStatus.SUPERSEDED, FactStatus.ENDED


# The page


async def test_a_fact_is_on_the_page_in_the_rows_and_found(home):
    said = home.said(REX)
    [learned] = await home.learn(said, marks={MAIN: 4})
    assert f"- {REX} <!-- fact id={learned.fact.id} " in home.page
    assert f"from=main#{said.evidence[0].seq}" in home.page
    assert await home.store.marks() == {MAIN: 4}
    assert [hit.fact for hit in await home.book.find("dog?", 5)] == [learned.fact]
    assert home.workspace.authors[-1].kind == "facts"
    await home.check()


async def test_marks_move_without_a_fact_too_and_leave_the_page_alone(home):
    assert await home.learn(marks={CHAT: 7}) == ()
    assert await home.store.marks() == {CHAT: 7}
    assert PATH not in home.workspace.files


async def test_history_of_an_id_that_nobody_knows_is_an_error(home):
    with pytest.raises(NotFound) as caught:
        await home.book.history("nobody")
    assert caught.value.cure


async def test_a_line_written_by_hand_becomes_a_fact_and_gets_its_comment(home):
    home.write(f"# Facts\n\nMine:\n- {REX}\n\nmore prose")
    await home.book.sync()
    [fact] = await home.book.all()
    assert (fact.text, fact.source, fact.confidence) == (REX, FactSource.FILE, 0.9)
    assert home.page.startswith(f"# Facts\n\nMine:\n- {REX} <!-- fact id={fact.id} ")
    assert home.page.endswith("\n\nmore prose")
    assert await home.ops() == [("add", False)]
    await home.check()


async def test_a_line_written_by_hand_replaces_nothing_and_a_repeated_one_is_taken_in(home):
    await home.add(REX)
    home.write(home.page + f"- the user's dog is called  Rex\n- {BO}\n")
    await home.book.sync()
    assert await home.texts() == [REX, BO]
    assert home.page.count("Rex") == 1
    await home.check()


async def test_an_edited_line_is_a_new_version(home):
    [first] = await home.add(MAX)
    home.clock.jump(timedelta(days=1))
    home.edit("Max.", "Rex.")
    await home.book.sync()
    [now] = [fact for fact in await home.book.all() if fact.is_active]
    assert (now.text, now.source, now.valid_from) == (REX, FactSource.FILE, home.clock.now())
    assert now.id != first
    assert [fact.text for fact in await home.book.history(now.id)] == [MAX, REX]
    assert await home.ops() == [("edit", False), ("add", False)]
    await home.check()


async def test_what_is_changed_in_the_comment_along_with_the_words_is_taken_in_with_them(home):
    rex = Triple("user", "dog name", "Rex")
    later, before = home.clock.now() + timedelta(days=40), home.clock.now() - timedelta(days=40)
    [old, _] = await home.add(REX, TEA, triple=rex)
    home.edit(REX, MAX)
    home.edit("category=personal", "category=project")
    home.edit("|Rex", "|Max")
    home.edit("since=", f"until={later:%Y-%m-%dT%H:%M:%SZ} since={before:%Y-%m-%d} x=")
    home.write(re.sub(r" x=\S+", "", home.page, count=1))
    await home.book.sync()
    new = next(fact for fact in await home.book.all() if fact.text == MAX)
    assert (new.category, new.valid_to) == (Category.PROJECT, later.replace(microsecond=0))
    assert (new.triple, new.valid_from.date()) == (replace(rex, value="Max"), before.date())
    assert (new.source, (await home.fact(old)).superseded_by) == (FactSource.FILE, new.id)
    await home.check()


async def test_what_a_comment_says_of_the_old_words_does_not_stand_for_the_new_ones(home):
    until = home.clock.now() + timedelta(days=40)
    triple = Triple("user", "dog name", "Rex")
    await home.add(REX, triple=triple, confidence=0.4, valid_to=until)
    home.edit(REX, MAX)
    home.clock.jump(timedelta(days=1))
    await home.book.sync()
    new = next(fact for fact in await home.book.all() if fact.text == MAX)
    assert (new.triple, new.confidence, new.valid_from) == (None, 0.9, home.clock.now())
    assert new.valid_to == until, "the line says so"


async def test_items_that_are_no_facts_are_told_and_keep_nothing_from_being_forgotten(home):
    await home.add(REX, *BOOKS)
    home.write(f"{home.page}- Family\n  - Ada\n1. Bo\n```\n  - code\n2. code\n```\n")
    await home.book.sync()
    [problem] = home.book.problems()
    assert problem.code == "facts_refused"
    assert "2 lines" in problem.text
    assert "numbered or indented" in problem.text
    home.take_out(REX)
    await home.book.sync()
    assert (home.forgotten.begun, await home.book.parked()) == ([REX], ())
    assert "  - Ada\n1. Bo\n" in home.page


async def test_values_of_the_comment_may_be_edited_and_left_out(home):
    [first] = await home.add(REX, source=FactSource.EXPLICIT)
    home.edit("category=personal source=explicit confidence=0.9", "confidence=0.4")
    await home.book.sync()
    [fact] = await home.book.all()
    assert (fact.confidence, fact.category, fact.id) == (0.4, Category.PERSONAL, first)
    assert "source=explicit confidence=0.4" in home.page
    await home.check()


async def test_a_deleted_line_is_forgotten_and_its_id_stays_dead(home):
    await home.add(REX, TEA)
    before = home.page
    evidence = await home.evidence("f001")
    home.take_out("Rex")
    await home.book.sync()
    assert (home.forgotten.begun, home.forgotten.rounds) == ([REX], 1)
    assert home.forgotten.evidence == evidence
    assert await home.texts() == [TEA]
    assert "<!-- forgotten id=f001" in home.page
    assert await home.evidence("f001") == []
    assert (await home.ops())[0] == ("forget", False)
    await home.check()
    home.write(before)
    await home.book.sync()
    assert await home.texts() == [TEA]
    assert "Rex" not in home.page
    assert [problem.code for problem in home.book.problems()] == ["facts_revived"]
    await home.check()


async def test_a_line_moved_below_earlier_has_ended_and_one_moved_up_holds_again(home):
    await home.add(REX, TEA)
    line = next(line for line in home.page.split("\n") if "Rex" in line)
    home.take_out("Rex")
    home.write(f"{home.page}\n## Earlier\n\n{line}\n")
    await home.book.sync()
    assert (await home.texts(), await home.texts(ENDED)) == ([TEA], [REX])
    assert home.forgotten.begun == []
    await home.check()


async def test_a_proposed_line_moved_up_by_hand_is_a_yes_with_all_it_replaces(home):
    [rex] = await home.add(REX)
    [proposed] = await home.learn(home.said(MAX, OperationKind.REPLACE, rex, is_proven=False))
    line = next(line for line in home.page.split("\n") if "Max" in line)
    home.take_out("Max", "## Proposed")
    home.write(home.page.replace("# Facts\n\n", f"# Facts\n\n{line}\n"))
    await home.book.sync()
    assert await home.texts() == [MAX]
    assert (await home.fact(proposed.fact.id)).source is FactSource.EXPLICIT
    assert (await home.fact(rex)).superseded_by == proposed.fact.id
    assert "status=proposed" not in home.page
    assert (await home.ops())[0] == ("accept", False)
    await home.check()
    home.opened()
    await home.check()
    await home.book.undo()
    assert (await home.texts(), await home.texts(PROPOSED)) == ([REX], [MAX])
    await home.check()


async def test_a_line_without_a_comment_is_a_new_fact_below_any_heading(home):
    [rex] = await home.add(REX)
    await home.replace(MAX, rex)
    home.write(home.page + f"- {TEA}\n")
    await home.book.sync()
    assert await home.texts() == [MAX, TEA]
    assert home.page.index("likes tea") < home.page.index("## Earlier")
    assert home.book.problems() == ()
    home.opened()
    await home.check()


@pytest.mark.parametrize("is_above", [True, False])
async def test_of_a_line_and_its_edited_copy_the_one_that_was_there_stands_for_the_fact(
    home, is_above
):
    [rex, _] = await home.add(REX, TEA)
    line = next(line for line in home.page.split("\n") if REX in line)
    copy = line.replace(REX, MAX)
    home.edit(line, f"{copy}\n{line}" if is_above else f"{line}\n{copy}")
    for _ in range(2):
        assert await home.texts() == [REX, TEA]
        assert [one.code for one in home.book.problems()] == ["facts_unreadable"]
        home.opened()
    await home.replace(BO, rex)
    home.opened()
    assert sorted(await home.texts()) == sorted([BO, TEA]), "no copy brings back what was replaced"
    home.edit(copy, f"- {MAX}")
    assert sorted(await home.texts()) == sorted([BO, MAX, TEA])
    await home.check()


async def test_a_copy_of_what_was_replaced_does_not_hold_again_after_a_start(home):
    [rex] = await home.add(REX)
    line = next(line for line in home.page.split("\n") if REX in line)
    await home.replace(MAX, rex)
    home.edit("# Facts\n", f"# Facts\n\n{line}\n")
    home.opened()
    assert await home.texts() == [MAX]
    assert await home.book.rebuild() == 2
    assert await home.texts() == [MAX]


async def test_a_line_with_an_id_that_nobody_knows_is_taken_unless_it_holds_a_secret(home):
    await home.add(REX)
    home.write(
        home.page
        + "- The user's password is hunter2hunter2. <!-- fact id=abcd -->\n"
        + f"- {TEA} <!-- fact id=abce -->\n"
    )
    await home.book.sync()
    assert await home.texts() == [REX, TEA]
    assert [problem.code for problem in home.book.problems()] == ["facts_refused"]
    assert "hunter2" in home.page


async def test_copies_of_a_page_with_what_was_forgotten_are_erased_too(home):
    [rex, tea] = await home.add(REX, TEA)
    before = home.page
    await home.book.forget([rex])
    home.write(before)  # out of some editor's undo
    await home.book.sync()
    assert (home.forgotten.begun, home.forgotten.rounds) == ([REX, REX], 2)
    home.write(before.replace(REX, "The user keeps bees."))  # an id in the wrong place
    await home.book.sync()
    assert home.forgotten.begun == [REX, REX]
    assert [fact.id for fact in await home.book.all() if fact.is_active] == [tea]


async def test_many_lines_gone_at_once_are_parked_and_answered(home):
    await home.add(*BOOKS)
    whole = home.page
    home.take_out(*(f"owns {n} " for n in range(6)))
    await home.book.sync()
    assert home.forgotten.begun == []
    assert len(await home.book.parked()) == 6
    assert len(await home.texts()) == 12
    assert [problem.code for problem in home.book.problems()] == ["facts_parked"]
    assert "1 facts" not in home.book.problems()[0].text
    await home.check()
    home.opened()
    assert len(await home.book.restore_parked()) == 6
    assert sorted(home.page.split("\n")) == sorted(whole.split("\n"))
    assert not home.book.problems()
    await home.check()
    home.take_out(*(f"owns {n} " for n in range(3)))
    await home.book.sync()
    assert len(await home.book.parked()) == 3, "a quarter of them is many, too"
    await home.book.accept_parked()
    assert len(home.forgotten.begun) == 3
    assert await home.book.parked() == ()
    assert await home.store.parked_ids() == ()
    await home.check()


@pytest.mark.parametrize("count", [2, 4, 5])
async def test_a_page_with_its_title_alone_forgets_nothing_however_few_its_facts_were(home, count):
    await home.add(*BOOKS[:count])
    home.write("# Facts\n")
    await home.book.sync()
    assert (home.forgotten.begun, len(await home.book.parked())) == ([], count)
    await home.book.restore_parked()
    home.take_out("owns 0 ")  # one line is meant
    await home.book.sync()
    assert (len(home.forgotten.begun), await home.book.parked()) == (1, ())


@pytest.mark.parametrize("left", [None, "", "\n \n"])
async def test_a_lost_page_forgets_nothing(home, left):
    await home.add(REX)
    if left is None:
        del home.workspace.files[PATH]
    else:
        home.write(left)
    await home.book.sync()
    assert [fact.text for fact in await home.book.parked()] == [REX]
    await home.add(TEA)
    assert [fact.text for fact in await home.book.parked()] == [REX]
    await home.book.restore_parked()
    assert await home.texts() == [REX, TEA]
    await home.check()


async def test_damage_keeps_good_lines_and_forgets_nothing(home):
    await home.add(REX, *BOOKS[:9])
    home.edit("The user owns 3 books. <!-- fact id=", "The user\x00ow")
    home.take_out("Rex")
    await home.book.sync()
    assert len(await home.texts()) == 10
    assert home.forgotten.begun == []
    assert {p.code for p in home.book.problems()} == {"facts_unreadable", "facts_parked"}
    damaged = home.page
    await home.add(TEA)
    assert all(line in home.page for line in damaged.split("\n"))


async def test_bytes_that_are_no_text_keep_no_other_line_from_being_read(home):
    [rex, _] = await home.add(REX, BOOKS[3])
    bad = b"- The user's caf\xe9 is called N\xf6rd.\n\xff\xfe\x80\n"
    home.workspace.files[PATH] += bad
    home.workspace.files[PATH] += f"- {TEA}\n".encode()
    home.opened()
    await home.book.sync()
    assert await home.texts() == [REX, BOOKS[3], TEA]
    [problem] = home.book.problems()
    assert problem.code == "facts_unreadable"
    assert "not UTF-8" in problem.text
    await home.add("The user owns a boat.")
    await home.book.forget([rex])
    assert bad in home.workspace.files[PATH]
    assert REX.encode() not in home.workspace.files[PATH]
    home.workspace.files[PATH] = home.workspace.files[PATH].replace(bad, b"")
    await home.book.sync()
    assert home.book.problems() == ()


async def test_a_damaged_line_that_names_its_fact_is_not_taken_for_gone(home):
    await home.add(REX, *BOOKS[:9])
    home.edit(f"- {REX}", "- The user's dog\x00is called Rex.")
    home.take_out("owns 3 books")
    await home.book.sync()
    assert [fact.text for fact in await home.book.parked()] == [BOOKS[3]]
    await home.book.accept_parked()
    assert home.forgotten.begun == [BOOKS[3]]
    assert REX in await home.texts()
    home.edit("dog\x00is", "dog is")
    await home.book.sync()
    assert home.book.problems() == ()
    assert home.page.count(REX) == 1
    await home.check()


async def test_lines_that_must_not_become_facts_stay_and_are_named(home):
    home.write(f"# Facts\n\n- The user's password is hunter2hunter2.\n- {TEA}\n- [forgotten]\n")
    await home.book.sync()
    assert await home.texts() == [TEA]
    assert "\n- The user's password is hunter2hunter2.\n" in home.page
    [problem] = home.book.problems()
    assert problem.code == "facts_refused"
    assert "line 3" in problem.text
    assert "line 5: it says nothing" in problem.text
    assert "hunter2" not in problem.text


async def test_a_page_that_cannot_be_read_serves_what_was_known(home):
    await home.add(REX)
    page = home.page
    home.workspace.files[PATH] = page.encode("utf-16")
    assert [hit.fact.text for hit in await home.book.find("dog", 5)] == [REX]
    assert [problem.code for problem in home.book.problems()] == ["facts_page_unreadable"]
    home.opened()
    assert [hit.fact.text for hit in await home.book.find("dog", 5)] == [REX]
    with pytest.raises(FileUnreadable):
        await home.add(TEA)
    assert home.workspace.files[PATH] == page.encode("utf-16")
    home.write(page)
    await home.book.sync()
    assert not home.book.problems()


async def test_rows_made_anew_from_the_page_are_identical(home, tmp_path):
    [old] = await home.add(MAX)
    home.clock.jump(timedelta(hours=1, microseconds=7))
    await home.replace(REX, old, triple=Triple("user", "dog | name", "R\\e|x"))
    [gone, ended, _] = await home.add("Gone.", "Ended.", "Tea | <!-- \\ -->.", confidence=1 / 3)
    await home.learn(home.said("", OperationKind.END, ended))
    await home.learn(home.said("Maybe.", OperationKind.REPLACE, old, is_proven=False))
    await home.add("A plan.", valid_to=home.clock.now() + timedelta(days=3))
    await home.book.forget([gone])
    before = await home.store.facts()
    evidence = await home.store.evidence([fact.id for fact in before])
    assert await home.book.rebuild() == len(before) == 7
    assert await home.store.facts() == before
    assert await home.store.evidence([fact.id for fact in before]) == evidence
    async with Database.open(tmp_path / "other" / "state.db", STATE) as db:
        home.store = SqliteFacts(db)
        home.opened()
        assert sorted(await home.book.all(), key=lambda fact: (fact.noted_at, fact.id)) == list(
            before
        )
        await home.check()


async def test_an_unchanged_page_is_looked_at_and_not_written(home):
    await home.add(REX)
    writes = len(home.workspace.authors)
    home.opened()
    for _ in range(3):
        await home.book.find("dog", 5)
        await home.book.sync()
    assert len(home.workspace.authors) == writes


# Forgetting


async def test_a_forgotten_fact_is_an_id_and_its_erasing_is_begun_with_its_evidence(home):
    [rex, tea] = await home.add(REX, TEA)
    evidence = await home.evidence(rex)
    assert (await home.book.preview([rex])).places == {"preview": 1}
    assert await home.texts() == [REX, TEA]
    report = await home.book.forget([rex], also=[2])
    assert report.places == {"notes": 1}
    assert (home.forgotten.begun, home.forgotten.evidence, home.forgotten.also) == (
        [REX],
        evidence,
        [2],
    )
    assert "Rex" not in home.page
    assert await home.book.find("dog Rex", 5) == []
    fact = await home.fact(rex)
    assert (fact.text, fact.status, fact.as_json()["text"]) == ("", FactStatus.FORGOTTEN, None)
    await home.check()
    for unknown in ([rex], [tea, "nobody"]):
        with pytest.raises(NotFound):
            await home.book.forget(unknown)
        with pytest.raises(NotFound):
            await home.book.preview(unknown)
    assert await home.texts() == [TEA]


async def test_what_is_over_and_what_is_proposed_can_be_forgotten_too(home):
    [rex] = await home.add(REX)
    await home.replace(MAX, rex)
    [proposed] = await home.learn(home.said(BO, is_proven=False))
    await home.book.forget([rex, proposed.fact.id])
    assert home.forgotten.begun == [REX, BO]
    assert await home.texts() == [MAX]
    await home.check()


# Taking back


async def test_an_addition_that_is_taken_back_is_as_if_it_had_never_been(home):
    [rex] = await home.add(REX)
    undone = await home.book.undo()
    assert (undone.op, undone.new, undone.undone) == (ChangeKind.ADD, rex, True)
    assert await home.book.all() == ()
    assert "Rex" not in home.page
    assert await home.evidence(rex) == []
    assert home.forgotten.begun == []
    assert await home.ops() == [("add", True)]
    with pytest.raises(NotFound):
        await home.book.undo()
    await home.check()
    home.opened()
    await home.check()
    [again] = await home.learn(home.said(REX))
    assert again.is_new


@pytest.mark.parametrize("words", [REX, "The user has a dog called Rex."])
async def test_what_was_taken_back_is_not_read_out_of_the_same_words_again(home, words):
    triple = Triple("user", "dog name", "Rex")
    said = home.said(REX, triple=triple)
    await home.learn(said)
    await home.book.undo()
    [again] = await home.learn(replace(said, text=words))
    assert again.reason is Refusal.FORGOTTEN
    assert await home.texts() == []
    home.opened()
    [later] = await home.learn(home.said(words, triple=triple))
    assert later.is_new
    [known] = await home.learn(home.said(words, triple=triple))
    assert known.fact == await home.fact(later.fact.id)


async def test_a_change_that_was_taken_back_is_not_made_by_the_same_words_again(home):
    [rex, tea] = await home.add(REX, TEA)
    changed = home.said(MAX, OperationKind.REPLACE, rex)
    ended = home.said("", OperationKind.END, tea)
    await home.learn(changed, ended)
    home.clock.jump(timedelta(minutes=1))
    await home.book.undo()
    await home.book.undo()
    await home.learn(changed, ended)
    await home.learn(replace(changed, text="The user's dog goes by Max."))  # in other words
    assert await home.texts() == [REX, TEA]
    await home.check()


async def test_what_was_rejected_is_not_proposed_for_the_same_words_again(home):
    doubtful = home.said(REX, is_proven=False)
    [waits] = await home.learn(doubtful)
    await home.book.reject([waits.fact.id])
    [again] = await home.learn(doubtful)
    assert again.reason is Refusal.FORGOTTEN
    assert await home.book.all() == ()


async def test_a_yes_that_was_taken_back_is_not_given_by_the_same_words_again(home):
    await home.learn(home.said(REX, is_proven=False))
    proof = home.said(REX)
    await home.learn(proof)
    home.clock.jump(timedelta(minutes=1))
    await home.book.undo()
    await home.learn(proof)
    assert await home.texts(PROPOSED) == [REX]


async def test_a_replacement_that_is_taken_back_lets_the_old_one_hold(home):
    [rex, _] = await home.add(REX, TEA)
    before = await home.fact(rex)
    await home.replace(MAX, rex)
    await home.book.undo()
    assert await home.fact(rex) == before
    assert await home.texts() == [REX, TEA]
    assert home.page.count("## Earlier\n\n") <= 1
    await home.check()


async def test_an_end_that_is_taken_back_never_was(home):
    [rex, plan] = await home.add(REX, TEA)
    await home.learn(home.said("", OperationKind.END, rex))
    until = home.clock.now() + timedelta(days=3)
    await home.learn(home.said("", OperationKind.END, plan, valid_to=until))
    await home.book.undo()
    await home.book.undo()
    facts = await home.book.all()
    assert [(f.status, f.valid_to) for f in facts] == [(FactStatus.ACTIVE, None)] * 2
    await home.check()


async def test_an_edit_by_hand_that_is_taken_back_has_the_old_line(home):
    [rex] = await home.add(REX)
    home.edit("Rex.", "Max.")
    await home.book.sync()
    await home.book.undo()
    assert await home.texts() == [REX]
    assert (await home.fact(rex)).is_active
    assert "Max" not in home.page
    assert home.forgotten.begun == []
    await home.check()


async def test_a_merger_is_taken_back(home):
    [one, other] = await home.add("The user owns a boat.", "A boat is owned by the user.")
    change = await home.book.merge(one, [other])
    assert (change.op, change.new, change.old) == (ChangeKind.MERGE, one, (other,))
    assert await home.texts() == ["The user owns a boat."]
    assert (await home.fact(other)).superseded_by == one
    assert len(await home.evidence(one)) == 2
    await home.check()
    await home.book.undo(change.id)
    assert len(await home.texts()) == 2
    await home.check()


@pytest.mark.parametrize(
    ("keep", "others", "error"),
    [
        ("f001", ["f001"], InvalidRequest),
        ("f001", [], InvalidRequest),
        ("f001", ["nobody"], NotFound),
        ("nobody", ["f001"], NotFound),
        ("f001", ["f003"], NotFound),  # it holds no longer
    ],
)
async def test_only_two_facts_that_hold_can_be_merged(home, keep, others, error):
    await home.add(REX, TEA, MAX)
    await home.learn(home.said("", OperationKind.END, "f003"))
    with pytest.raises(error) as caught:
        await home.book.merge(keep, others)
    assert caught.value.cure
    assert len(await home.texts()) == 2
    await home.check()


async def test_a_yes_that_is_taken_back_is_a_proposal_again(home):
    [rex] = await home.add(REX)
    [proposed] = await home.learn(home.said(MAX, OperationKind.REPLACE, rex, is_proven=False))
    await home.book.accept([proposed.fact.id])
    await home.book.undo()
    assert (await home.texts(), await home.texts(PROPOSED)) == ([REX], [MAX])
    assert (await home.fact(proposed.fact.id)).replaces == (rex,)
    await home.check()
    await home.book.accept([proposed.fact.id])
    assert await home.texts() == [MAX]


async def test_a_session_takes_back_what_was_told_in_it(home):
    [rex, tea] = [
        (await home.learn(home.said(text), session=session))[0]
        for text, session in ((REX, CHAT), (TEA, MAIN))
    ]
    undone = await home.book.undo(session=CHAT)
    assert undone.new == rex.fact.id
    with pytest.raises(NotFound):
        await home.book.undo(session=CHAT)
    assert (await home.book.undo()).new == tea.fact.id


async def test_a_change_is_taken_back_by_its_number_and_only_once(home):
    await home.add(REX, TEA)
    await home.book.undo(1)
    assert await home.texts() == [TEA]
    with pytest.raises(InvalidRequest, match="already") as caught:
        await home.book.undo(1)
    assert caught.value.cure
    with pytest.raises(NotFound) as missing:
        await home.book.undo(99)
    assert missing.value.cure
    assert await home.texts() == [TEA]
    await home.check()


async def test_what_a_later_change_stands_on_is_taken_back_after_it(home):
    [rex] = await home.add(REX)
    second = await home.replace(MAX, rex)
    third = await home.replace(BO, second.fact.id)
    with pytest.raises(InvalidRequest, match=f"change {third.change.id} came after") as caught:
        await home.book.undo(second.change.id)
    assert f"change {third.change.id} first" in caught.value.cure
    assert await home.texts() == [BO]
    for expected in ([MAX], [REX], []):
        await home.book.undo()
        assert await home.texts() == expected
        await home.check()


@pytest.mark.parametrize("victim", ["old", "new", "newest"])
async def test_nothing_is_taken_back_behind_a_forgetting(home, victim):
    [old] = await home.add(REX)
    second = await home.replace(MAX, old)
    third = await home.replace(BO, second.fact.id)
    ids = {"old": old, "new": second.fact.id, "newest": third.fact.id}
    await home.book.forget([ids[victim]])
    before = await home.store.facts()
    for number in (1, second.change.id, third.change.id):
        with pytest.raises(InvalidRequest, match="forgotten"):
            await home.book.undo(number)
    with pytest.raises(InvalidRequest, match="erased"):
        await home.book.undo((await home.book.changes(1))[0].id)
    with pytest.raises(NotFound):
        await home.book.undo()
    assert await home.store.facts() == before
    await home.check()


async def test_what_was_changed_after_a_forgetting_can_be_taken_back(home):
    [rex] = await home.add(REX)
    second = await home.replace(MAX, rex)
    await home.book.forget([rex])
    await home.replace(BO, second.fact.id)
    await home.book.undo()
    assert await home.texts() == [MAX]
    with pytest.raises(NotFound):
        await home.book.undo()
    await home.check()


async def test_only_by_its_number_is_something_else_taken_back_that_is_older_than_a_forgetting(
    home,
):
    [rex, _] = await home.add(REX, TEA)
    await home.book.forget([rex])
    for session in (None, MAIN):
        with pytest.raises(NotFound) as caught:
            await home.book.undo(session=session)
    with pytest.raises(NotFound, match="since the last forgetting") as caught:
        await home.book.undo()
    assert "agentd facts undo 2" in caught.value.cure
    assert await home.texts() == [TEA]
    await home.book.undo(2)
    assert await home.texts() == []
    assert await home.ops() == [("forget", False), ("add", True), ("add", False)]
    await home.check()


async def test_what_was_done_by_hand_since_is_taken_in_before_anything_is_taken_back(home):
    [rex] = await home.add(REX)
    await home.replace(MAX, rex)
    home.write(home.page.replace("Max.", "Bo.") + f"- {TEA}\n")
    with pytest.raises(InvalidRequest, match="came after"):
        await home.book.undo(2)
    await home.book.undo()  # the line that was written
    await home.book.undo()  # the edit
    assert await home.texts() == [MAX]
    await home.check()


async def test_a_rejected_proposal_and_unknown_ones_cannot_be_accepted(home):
    [proposed] = await home.learn(home.said(MAX, is_proven=False))
    [rex] = await home.add(REX)
    await home.book.reject([proposed.fact.id])
    for fact_id in (proposed.fact.id, rex, "nobody"):
        for deed in (home.book.accept, home.book.reject):
            with pytest.raises(NotFound) as caught:
                await deed([fact_id])
            assert caught.value.cure
    assert await home.texts() == [REX]


# What goes without being erased


async def test_put_aside_facts_stay_as_history(home):
    ids = await home.add(*BOOKS[:3])
    [aside] = await home.book.end_facts({ids[1]: ""})
    assert (aside.status, aside.superseded_by) == (ENDED, "")
    [other] = await home.book.end_facts({ids[0]: ids[2]})
    assert (other.status, other.superseded_by) == (SUPERSEDED, ids[2])
    assert [fact.id for fact in await home.book.history(ids[0])] == [ids[0], ids[2]]
    assert await home.book.end_facts({ids[2]: "gone", "nobody": "", ids[1]: ""}) == ()
    assert await home.texts() == [BOOKS[2]]
    await home.check()


async def test_a_deleted_session_is_named_no_more(home):
    evidence = (Evidence(home.clock.now(), CHAT, 3, 0, 4),)
    await home.learn(home.said(REX, evidence=evidence), home.said(TEA))
    assert await home.book.unlink(CHAT) == 1
    assert "chat:a" not in home.page
    assert [fact.origin.session for fact in await home.book.all()] == ["", MAIN]
    assert (await home.book.all())[0].origin == Provenance()
    await home.check()


# Failures


@pytest.mark.parametrize("deed", ["learn", "replace", "forget", "edit", "delete", "accept", "end"])
async def test_a_crash_between_page_and_rows_is_made_good(home, deed):
    [bo, _] = await home.add(BO, TEA)
    [waits] = await home.learn(home.said("The user likes cake.", is_proven=False))
    before = await home.store.facts()
    said = {
        "learn": home.said("Cake."),
        "replace": home.said(REX, OperationKind.REPLACE, bo),
        "end": home.said("", OperationKind.END, bo),
    }
    failpoints.arm("facts.written:1:raise")
    if deed == "edit":
        home.edit("Bo", "Rex")
    if deed == "delete":
        home.take_out("Bo")
    deeds = {
        "forget": lambda: home.book.forget([bo]),
        "accept": lambda: home.book.accept([waits.fact.id]),
    }
    with pytest.raises(FailpointError):
        await (home.learn(said[deed]) if deed in said else deeds.get(deed, home.book.sync)())
    assert await home.store.facts() == before
    home.opened()
    await home.book.sync()
    active = {
        "learn": [BO, TEA, "Cake."],
        "replace": [TEA, REX],
        "edit": [TEA, REX],
        "accept": [BO, TEA, "The user likes cake."],
    }
    assert sorted(await home.texts()) == sorted(active.get(deed, [TEA]))
    if deed in ("forget", "delete"):
        assert (home.forgotten.begun, home.forgotten.rounds) == ([BO], 1)
        assert len(await home.store.tombstones()) == 1
    else:
        assert home.forgotten.begun == []
    await home.check()
    page = home.page
    await home.book.sync()
    assert home.page == page


async def test_the_running_book_recovers_from_a_failure_too(home):
    [bo] = await home.add(BO)
    failpoints.arm("facts.written:1:raise")
    with pytest.raises(FailpointError):
        await home.learn(home.said(REX, OperationKind.REPLACE, bo), home.said(TEA))
    assert sorted(await home.texts()) == [TEA, REX]
    await home.check()


class Meddled(MemoryWorkspace):
    """A workspace whose disk may be full, or into whose page somebody writes."""

    is_full = False
    meanwhile = ()

    async def apply(self, intent, reader, by=None):
        if self.is_full:
            raise StorageFull("full")
        if self.meanwhile:
            line, *self.meanwhile = self.meanwhile
            self.files[PATH] = self.files.get(PATH, b"") + line.encode()
        await super().apply(intent, reader, by)


async def meddled(home):
    home.workspace = Meddled(clock=home.clock)
    home.opened()


async def test_what_could_not_be_written_was_not_learnt(home):
    await meddled(home)
    [bo] = await home.add(BO)
    home.workspace.is_full = True
    with pytest.raises(StorageFull):
        await home.learn(home.said(REX, OperationKind.REPLACE, bo), home.said(TEA), marks={MAIN: 9})
    home.workspace.is_full = False
    assert await home.texts() == [BO]
    assert await home.store.marks() == {}
    assert await home.ops() == [("add", False)]
    await home.check()


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("deed", ["undo an addition", "undo a replacement", "reject"])
async def test_what_fails_while_it_is_taken_back_is_never_forgotten_for_it(home, deed, restarts):
    await meddled(home)
    [bo] = await home.add(BO)
    if deed == "undo a replacement":
        await home.replace(REX, bo)
    if deed == "reject":
        [waits] = await home.learn(home.said(TEA, is_proven=False))
    home.workspace.is_full = True
    with pytest.raises(StorageFull):
        await (home.book.reject([waits.fact.id]) if deed == "reject" else home.book.undo())
    home.workspace.is_full = False
    if restarts:
        home.opened()
    await home.book.sync()
    assert home.forgotten.begun == []
    assert await home.store.tombstones() == {}
    words = {fact.text for fact in await home.book.all()}
    assert BO in words
    assert {fact.status for fact in await home.book.all()} <= {
        FactStatus.ACTIVE,
        SUPERSEDED,
        PROPOSED,
    }
    await home.check()


class Refusing(SqliteFacts):
    """Rows that cannot be written."""

    is_full = False

    async def write(self, write):
        if self.is_full:
            raise StorageError("The disk refused.")
        return await super().write(write)


@pytest.mark.parametrize("restarts", [False, True])
async def test_rows_that_cannot_be_written_are_made_from_the_page(home, restarts):
    home.store = Refusing(home.db)
    home.opened()
    [bo] = await home.add(BO)
    home.store.is_full = True
    with pytest.raises(StorageError):
        await home.learn(home.said(REX, OperationKind.REPLACE, bo), marks={MAIN: 9})
    with pytest.raises(StorageError):
        await home.book.all()
    home.store.is_full = False
    if restarts:
        home.opened()
    assert await home.texts() == [REX]
    assert await home.store.marks() == {}, "it is read again, and known then"
    [again] = await home.learn(home.said(REX, OperationKind.REPLACE, bo), marks={MAIN: 9})
    assert not again.is_new
    assert home.forgotten.begun == []
    await home.check()


async def test_an_undo_whose_rows_cannot_be_written_changes_nothing(home):
    home.store = Refusing(home.db)
    home.opened()
    [bo] = await home.add(BO)
    await home.replace(REX, bo)
    page = home.page
    home.store.is_full = True
    with pytest.raises(StorageError):
        await home.book.undo()
    home.store.is_full = False
    assert home.page == page
    assert await home.texts() == [REX]
    assert await home.ops() == [("replace", False), ("add", False)]
    await home.check()


@pytest.mark.parametrize("restarts", [False, True])
async def test_an_undo_that_a_crash_cut_is_in_doubt_and_can_be_done_again(home, restarts):
    [bo] = await home.add(BO)
    replaced = await home.replace(REX, bo)
    failpoints.arm("facts.written:1:raise")
    with pytest.raises(FailpointError):
        await home.book.undo()
    if restarts:
        home.opened()
    await home.book.sync()
    assert home.forgotten.begun == []
    assert [fact.text for fact in await home.book.parked()] == [REX]
    assert (await home.ops())[0] == ("replace", False)
    undone = await home.book.undo(replaced.change.id)
    assert undone.old == (bo,)
    assert await home.texts() == [BO]
    assert home.book.problems() == ()
    await home.check()


async def test_what_others_write_meanwhile_is_taken_in_first(home):
    await meddled(home)
    home.workspace.meanwhile = [f"- {TEA}\n", f"- {REX}\n"]
    [learned] = await home.learn(home.said(REX))
    assert not learned.is_new
    assert sorted(await home.texts()) == [TEA, REX]
    await home.check()
    home.workspace.meanwhile = [f"- line {n}\n" for n in range(30)]
    with pytest.raises(EditConflict) as caught:
        await home.learn(home.said("The user likes cake."))
    assert caught.value.cure
    home.workspace.meanwhile = []
    assert "The user likes cake." not in await home.texts()
    await home.check()


async def test_an_undo_on_a_page_that_others_write_meanwhile_is_done_once(home):
    await meddled(home)
    [bo] = await home.add(BO)
    await home.replace(REX, bo)
    home.workspace.meanwhile = [f"- {TEA}\n"]
    await home.book.undo(2)
    await home.book.sync()
    assert sorted(await home.texts()) == [TEA, BO]
    assert home.forgotten.begun == []
    await home.check()


async def test_a_turn_that_is_cancelled_half_way_leaves_a_book_that_works(home):
    class Slow(MemoryWorkspace):
        waits = False

        async def apply(self, intent, reader, by=None):
            if self.waits:
                await asyncio.Event().wait()
            await super().apply(intent, reader, by)

    home.workspace = Slow(clock=home.clock)
    home.opened()
    [bo] = await home.add(BO)
    home.workspace.waits = True
    task = asyncio.create_task(home.learn(home.said(REX, OperationKind.REPLACE, bo)))
    await home.clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    home.workspace.waits = False
    assert await home.texts() == [BO]
    await home.add(TEA)
    await home.check()


class _Failing(FactIndexDouble):
    """An index that fails once when it is told of changes: with an error, or as the task is
    cancelled.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fails: type[BaseException] | None = None

    async def put(self, facts):
        self._fail()
        await super().put(facts)

    async def remove(self, fact_ids):
        self._fail()
        await super().remove(fact_ids)

    def _fail(self) -> None:
        if fails := self.fails:
            self.fails = None
            raise fails("the index could not be used")


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError])
@pytest.mark.parametrize("deed", ["learn", "replace", "undo", "forget"])
async def test_what_is_stored_is_known_although_the_index_failed_to_take_it(home, deed, error):
    home.opened(_Failing())
    bo, _ = await home.add(BO, TEA)
    doing = {
        "learn": lambda: home.add(REX),
        "replace": lambda: home.replace(REX, bo),
        "undo": home.book.undo,
        "forget": lambda: home.book.forget([bo]),
    }
    told = []
    home.book.listen(lambda: told.append(1))
    home.index.fails = error
    with pytest.raises(error):
        await doing[deed]()
    after = {"learn": [BO, TEA, REX], "replace": [TEA, REX], "undo": [BO], "forget": [TEA]}
    assert await home.texts() == after[deed]
    await home.check()
    assert told, "who keeps something made of facts hears of it"


async def test_who_listens_is_told_after_each_change_and_not_without_one(home):
    told = []
    home.book.listen(lambda: told.append(1))
    await home.add(REX)
    assert len(told) == 1
    await home.learn(marks={MAIN: 3})
    await home.book.all()
    assert len(told) == 1
    home.edit("Rex.", "Max.")
    await home.book.sync()
    await home.book.undo()
    assert len(told) == 3


async def test_operations_at_the_same_time_come_one_after_the_other(home):
    said = [home.said(text, source=FactSource.EXPLICIT) for text in BOOKS]
    await asyncio.gather(*(home.learn(one) for one in said), home.book.sync())
    assert sorted(await home.texts()) == sorted(BOOKS)
    await home.check()


async def test_what_is_refused_does_not_end_up_on_the_page(home):
    said = replace(home.said(REX), text="The user's key is sk-ant-REDACTED")
    [refused] = await home.learn(said)
    assert refused.reason is Refusal.CREDENTIAL
    assert PATH not in home.workspace.files
