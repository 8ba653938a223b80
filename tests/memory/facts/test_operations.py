"""What operations do to what is known, with the book that carries them out."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.fact import (
    ChangeKind,
    Evidence,
    FactOperation,
    FactSource,
    FactStatus,
    OperationKind,
    Refusal,
    Triple,
)
from agentd.core.turn import MAIN
from agentd.memory.facts import changes
from agentd.memory.facts.draft import OperationContext
from agentd.memory.facts.known import Digests, Known, Tombstones
from agentd.testing import FakeClock
from tests.growth import QUADRATIC, growth
from tests.memory.facts.books import CHAT, MAX, REX, TEA

ACTIVE, SUPERSEDED, ENDED, PROPOSED = (
    FactStatus.ACTIVE,
    FactStatus.SUPERSEDED,
    FactStatus.ENDED,
    FactStatus.PROPOSED,
)
EXPLICIT, FILE, EXTRACTED = FactSource.EXPLICIT, FactSource.FILE, FactSource.EXTRACTED
KASSEL, FULDA = "The user lives in Kassel.", "The user lives in Fulda."
DAY = timedelta(days=1)


# Adding


async def test_what_is_said_is_a_fact_with_its_evidence_and_its_change(home):
    triple = Triple("user", "dog name", "Rex")
    said = home.said(REX, triple=triple)
    [learned] = await home.learn(said, session=CHAT)
    fact = learned.fact
    assert (fact.text, fact.status, fact.confidence, fact.triple) == (REX, ACTIVE, 0.6, triple)
    assert (fact.valid_from, fact.noted_at, fact.valid_to) == (said.at, said.at, None)
    assert fact.origin == said.evidence[0].origin
    [evidence] = await home.evidence(fact.id)
    assert (evidence.session, evidence.start, evidence.end) == (MAIN, 0, 10)
    assert (learned.change.op, learned.change.new, learned.change.session) == (
        ChangeKind.ADD,
        fact.id,
        CHAT,
    )
    [listed] = await home.book.changes(10)
    assert listed == learned.change
    assert listed.id > 0
    await home.check()


@pytest.mark.parametrize(
    ("source", "sure"), [(EXPLICIT, 0.9), (FILE, 0.9), (EXTRACTED, 0.6)], ids=str
)
async def test_what_is_asked_for_is_surer_than_what_is_read(home, source, sure):
    [fact_id] = await home.add(REX, source=source)
    assert (await home.fact(fact_id)).confidence == sure


async def test_two_that_hold_at_once_both_stay(home):
    await home.add("The user has a son, Tom.", "The user has a son, Ben.")
    assert len(await home.texts()) == 2


@pytest.mark.parametrize(
    "again", [REX, " the user’s  dog is called REX ", "user's dog is called Rex"]
)
async def test_known_words_are_the_same_fact_said_once_more(home, again):
    [fact_id] = await home.add(REX)
    [learned] = await home.learn(home.said(again))
    assert (learned.fact.id, learned.is_new, learned.change) == (fact_id, False, None)
    assert len(await home.book.all()) == 1
    assert len(await home.evidence(fact_id)) == 2
    assert await home.ops() == [("add", False)]
    await home.check()


async def test_the_opposite_in_the_same_words_is_another_fact(home):
    await home.add("The user lent Paul 50 euros.", "Paul lent the user 50 euros.")
    assert len(await home.texts()) == 2


# Saying again


async def test_each_new_saying_makes_it_surer_but_never_sure(home):
    [fact_id] = await home.add(REX)
    seen = [0.6]
    for _ in range(4):
        [learned] = await home.learn(home.said("", OperationKind.SAME, fact_id))
        seen.append(learned.fact.confidence)
    assert seen == sorted(set(seen))
    assert 0.9 < seen[-1] < 0.95
    await home.check()


async def test_the_same_row_counts_once_however_often_it_is_read(home):
    first = home.said(REX)
    row = first.evidence[0].seq
    again = home.said(REX, row=row, at=first.at)
    same = home.said("", OperationKind.SAME, "f001", row=row, at=first.at)
    await home.learn(first, again, same)
    await home.learn(again, same)
    assert (await home.fact("f001")).confidence == 0.6
    assert len(await home.evidence("f001")) == 1


async def test_what_was_read_and_is_then_asked_for_is_as_sure_as_that(home):
    [fact_id] = await home.add(REX)
    [learned] = await home.learn(home.said(REX, source=EXPLICIT))
    assert (learned.fact.id, learned.fact.source, learned.is_new) == (fact_id, EXPLICIT, False)
    assert learned.fact.confidence >= 0.9
    await home.learn(home.said(REX))
    assert (await home.fact(fact_id)).source is EXPLICIT
    await home.check()


async def test_a_triple_that_was_missing_is_taken_and_none_is_replaced(home):
    [fact_id] = await home.add(REX)
    dog = Triple("user", "dog name", "Rex")
    await home.learn(home.said("", OperationKind.SAME, fact_id, triple=dog))
    await home.learn(
        home.said("", OperationKind.SAME, fact_id, triple=Triple("user", "pet", "Rex"))
    )
    assert (await home.fact(fact_id)).triple == dog


# The later word


@pytest.mark.parametrize("old", [EXPLICIT, FILE, EXTRACTED])
@pytest.mark.parametrize("new", [EXPLICIT, EXTRACTED])
async def test_the_later_word_holds_whoever_kept_the_earlier_one(home, old, new):
    [kassel] = await home.add(KASSEL, source=old)
    learned = await home.replace(FULDA, kassel, source=new)
    assert await home.texts() == [FULDA]
    [gone] = learned.gone
    assert (gone.id, gone.status, gone.superseded_by) == (kassel, SUPERSEDED, learned.fact.id)
    assert gone.valid_to == learned.fact.valid_from
    assert learned.change.op is ChangeKind.REPLACE
    assert learned.change.old == (kassel,)
    assert [f.text for f in await home.book.history(kassel)] == [KASSEL, FULDA]
    assert home.page.index("## Earlier") < home.page.index("Kassel")
    await home.check()


async def test_what_was_said_before_it_but_read_after_it_is_history(home):
    early = home.said(KASSEL, OperationKind.REPLACE, "f001")
    [fulda] = await home.add(FULDA)
    [learned] = await home.learn(early)
    assert await home.texts() == [FULDA]
    assert (learned.fact.status, learned.fact.superseded_by) == (SUPERSEDED, fulda)
    assert learned.gone == ()
    await home.check()


async def test_what_was_said_again_since_is_not_replaced_by_an_earlier_word(home):
    [kassel] = await home.add(KASSEL)
    moved = home.said(FULDA, OperationKind.REPLACE, kassel)
    over = home.said("", OperationKind.END, kassel)
    await home.learn(home.said("", OperationKind.SAME, kassel))
    [learned, ended] = await home.learn(moved, over)
    assert await home.texts() == [KASSEL]
    assert learned.fact.superseded_by == kassel
    assert ended.reason is Refusal.UNKNOWN_ID
    await home.check()


async def test_of_several_that_it_replaces_only_the_older_ones_go(home):
    [old] = await home.add(KASSEL)
    said = home.said("The user lives in Hanau.", OperationKind.REPLACE, old, "f002")
    [new] = await home.add(FULDA)
    [learned] = await home.learn(said)
    assert await home.texts() == [FULDA]
    assert learned.fact.superseded_by == new
    assert [f.id for f in learned.gone] == [old]
    assert (await home.fact(old)).superseded_by == learned.fact.id
    await home.check()


async def test_what_is_replaced_in_known_words_goes_for_the_fact_that_has_them(home):
    [kassel, fulda] = await home.add(KASSEL, FULDA)
    learned = await home.replace(FULDA, kassel)
    assert (learned.fact.id, learned.is_new, [f.id for f in learned.gone]) == (
        fulda,
        False,
        [kassel],
    )
    assert learned.change.old == (kassel,)
    await home.check()
    await home.book.undo()
    assert await home.texts() == [KASSEL, FULDA], "what was known before stays known"
    await home.check()


async def test_who_moves_back_has_a_new_fact_of_the_old_words(home):
    [kassel] = await home.add(KASSEL)
    moved = await home.replace(FULDA, kassel)
    back = await home.replace(KASSEL, moved.fact.id)
    assert back.is_new
    assert back.fact.id != kassel
    assert await home.texts() == [KASSEL]


async def test_an_operation_on_a_superseded_fact_means_its_successor(home):
    [kassel] = await home.add(KASSEL)
    fulda = (await home.replace(FULDA, kassel)).fact.id
    [same] = await home.learn(home.said("", OperationKind.SAME, kassel))
    assert same.fact.id == fulda
    third = await home.replace("The user lives in Hanau.", kassel)
    assert [f.id for f in third.gone] == [fulda]
    [ended] = await home.learn(home.said("", OperationKind.END, fulda))
    assert [f.id for f in ended.gone] == [third.fact.id]
    assert await home.texts() == []
    await home.check()


@pytest.mark.parametrize("op", [OperationKind.END, OperationKind.SAME])
async def test_an_operation_on_what_does_not_hold_changes_nothing_and_says_so(home, op):
    [ended, forgotten, kept] = await home.add(REX, MAX, TEA)
    await home.learn(home.said("", OperationKind.END, ended))
    await home.book.forget([forgotten])
    before = await home.store.facts()
    for ids in (("nobody",), (ended,), (forgotten,), ("nobody", ended, forgotten)):
        [learned] = await home.learn(home.said("", op, *ids))
        assert (learned.reason, learned.change) == (Refusal.UNKNOWN_ID, None)
    assert await home.store.facts() == before
    assert home.book.not_kept == {"unknown_id": 4}
    assert kept in {fact.id for fact in await home.book.all() if fact.is_active}


async def test_a_replacement_of_what_does_not_hold_is_an_addition(home):
    [forgotten] = await home.add(MAX)
    await home.book.forget([forgotten])
    learned = await home.replace(REX, "nobody", forgotten)
    assert (learned.is_new, learned.gone) == (True, ())
    assert learned.change.op is ChangeKind.ADD
    assert await home.texts() == [REX]
    await home.check()


# Ending


async def test_what_ends_without_a_new_value_is_ended(home):
    [fact_id] = await home.add("The user drinks coffee.")
    said = home.said("", OperationKind.END, fact_id)
    [learned] = await home.learn(said)
    [gone] = learned.gone
    assert (gone.status, gone.valid_to, gone.superseded_by) == (ENDED, said.at, "")
    assert (learned.change.op, learned.change.new) == (ChangeKind.END, "")
    assert said.evidence[0].seq in {one.seq for one in await home.evidence(fact_id)}
    await home.check()


async def test_what_will_end_holds_until_then_and_ends_by_itself(home):
    [fact_id] = await home.add("The user works at Bosch.")
    until = home.clock.now() + 30 * DAY
    [learned] = await home.learn(home.said("", OperationKind.END, fact_id, valid_to=until))
    assert await home.texts() == ["The user works at Bosch."]
    assert learned.gone[0].valid_to == until
    await home.check()
    home.clock.jump(31 * DAY)
    assert await home.texts() == []
    assert await home.texts(ENDED) == ["The user works at Bosch."]
    assert home.page.index("## Earlier") < home.page.index("Bosch")
    await home.check()


async def test_a_plan_with_a_date_ends_by_itself_after_a_restart_too(home):
    [exam] = await home.add("The exam is on 12 June.", valid_to=home.clock.now() + DAY)
    home.opened()
    assert len(await home.texts()) == 1
    home.clock.jump(2 * DAY)
    home.opened()
    assert await home.texts() == []
    assert (await home.fact(exam)).status is ENDED
    assert home.forgotten.begun == []
    await home.check()


async def test_what_is_over_when_it_is_read_is_kept_as_ended(home):
    said = home.said("The exam is on 12 June.", valid_to=home.clock.now() + DAY)
    home.clock.jump(2 * DAY)
    [learned] = await home.learn(said)
    assert learned.fact.status is ENDED
    await home.check()


# What nothing proves


async def test_what_is_not_proven_waits_for_the_users_yes(home):
    [rex] = await home.add(REX)
    [learned] = await home.learn(home.said(MAX, OperationKind.REPLACE, rex, is_proven=False))
    assert (learned.fact.status, learned.fact.replaces) == (PROPOSED, (rex,))
    assert learned.change is None
    assert await home.texts() == [REX]
    assert home.page.index("## Proposed") < home.page.index("Max")
    await home.check()
    [yes] = await home.book.accept([learned.fact.id])
    assert (yes.fact.status, yes.fact.source, yes.fact.confidence) == (ACTIVE, EXPLICIT, 0.9)
    assert await home.texts() == [MAX]
    assert (await home.fact(rex)).superseded_by == learned.fact.id
    assert yes.change.op is ChangeKind.ACCEPT
    await home.check()


async def test_what_is_proposed_twice_is_there_once(home):
    for _ in range(2):
        await home.learn(home.said(MAX, is_proven=False))
    assert await home.texts(PROPOSED) == [MAX]


async def test_a_known_fact_that_nothing_proves_is_not_made_surer(home):
    [rex] = await home.add(REX)
    [learned] = await home.learn(home.said(REX, is_proven=False))
    assert (learned.fact.id, learned.fact.confidence, learned.is_new) == (rex, 0.6, False)


@pytest.mark.parametrize("op", [OperationKind.END, OperationKind.SAME])
async def test_nothing_ends_or_is_said_again_without_proof(home, op):
    [rex] = await home.add(REX)
    [learned] = await home.learn(home.said("", op, rex, is_proven=False))
    assert learned.reason is Refusal.UNPROVEN
    assert (await home.fact(rex)).confidence == 0.6


@pytest.mark.parametrize("op", [OperationKind.ADD, OperationKind.SAME])
async def test_what_was_proposed_and_is_said_holds_with_its_proof(home, op):
    [rex] = await home.add(REX)
    [proposed] = await home.learn(home.said(MAX, OperationKind.REPLACE, rex, is_proven=False))
    text, ids = (MAX, ()) if op is OperationKind.ADD else ("", (proposed.fact.id,))
    [learned] = await home.learn(home.said(text, op, *ids))
    assert (learned.fact.id, learned.fact.status) == (proposed.fact.id, ACTIVE)
    assert (learned.fact.source, learned.fact.confidence) == (EXTRACTED, 0.6)
    assert [fact.id for fact in learned.gone] == [rex]
    assert len(await home.evidence(proposed.fact.id)) == 1
    await home.check()


async def test_what_was_proposed_does_not_replace_what_was_said_later_than_its_proof(home):
    proof = home.said(MAX)
    [rex] = await home.add(REX)
    [proposed] = await home.learn(home.said(MAX, OperationKind.REPLACE, rex, is_proven=False))
    await home.learn(proof)
    assert await home.texts() == [REX, MAX]
    assert (await home.fact(proposed.fact.id)).is_active


async def test_a_rejected_proposal_is_gone_and_comes_again_when_it_is_said(home):
    [proposed] = await home.learn(home.said(MAX, is_proven=False))
    [gone] = await home.book.reject([proposed.fact.id])
    assert gone.text == MAX
    assert await home.book.all() == ()
    assert "Max" not in home.page
    assert home.forgotten.begun == []
    [again] = await home.learn(home.said(MAX))
    assert again.is_new
    await home.check()


# What was forgotten


async def test_what_was_said_before_a_forgetting_stays_refused_and_what_is_said_after_is_learnt(
    home,
):
    [rex] = await home.add(REX)
    before = home.said(REX)
    await home.book.forget([rex])
    [refused] = await home.learn(before)
    assert (refused.reason, refused.fact) == (Refusal.FORGOTTEN, None)
    [unproven] = await home.learn(home.said("The user's dog is called REX", is_proven=False))
    assert unproven.reason is Refusal.FORGOTTEN
    [learned] = await home.learn(home.said(REX))
    assert learned.is_new
    assert learned.fact.id != rex
    assert await home.store.tombstones() == {}
    assert home.book.not_kept == {"forgotten": 2}
    await home.check()


async def test_a_word_from_before_the_second_forgetting_is_refused_too(home):
    [rex] = await home.add(REX)
    await home.book.forget([rex])
    between = home.said(REX)
    [again] = await home.add(REX)
    await home.book.forget([again])
    [refused] = await home.learn(between)
    assert refused.reason is Refusal.FORGOTTEN


async def test_out_of_an_export_nothing_forgotten_comes_back(home):
    [rex] = await home.add(REX)
    await home.book.forget([rex])
    [refused] = await home.learn(home.said(REX, is_carried=True))
    assert refused.reason is Refusal.FORGOTTEN


# One bad item


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"text": " \u202e\n"}, Refusal.EMPTY),
        ({"text": "[forgotten]"}, Refusal.EMPTY),
        ({"text": "x" * 4_097}, Refusal.TOO_LONG),
        ({"text": "x" * 1_000_000}, Refusal.TOO_LONG),
        ({"text": "The user's key is sk-ant-REDACTED"}, Refusal.CREDENTIAL),
        ({"text": "The user's password is hunter2hunter2."}, Refusal.CREDENTIAL),
        ({"op": OperationKind.END}, Refusal.UNKNOWN_ID),
        ({"op": OperationKind.SAME, "is_proven": False}, Refusal.UNPROVEN),
    ],
    ids=str,
)
async def test_a_bad_item_costs_itself_alone_and_is_counted(home, bad, reason):
    learned = await home.learn(home.said(REX), home.said(**bad), home.said(TEA))
    assert [one.reason for one in learned] == [None, reason, None]
    assert [one.is_new for one in learned] == [True, False, True]
    assert await home.texts() == [REX, TEA]
    assert home.book.not_kept == {str(reason): 1}
    await home.check()


async def test_each_operation_sees_what_those_before_it_did(home):
    learned = await home.learn(home.said(KASSEL), home.said(KASSEL), home.said(FULDA))
    assert [one.is_new for one in learned] == [True, False, True]
    assert [one.change and one.change.id for one in learned] == [1, None, 2]
    await home.check()


async def test_the_ids_of_one_answer_mean_the_facts_as_they_were_shown(home):
    [kassel] = await home.add(KASSEL)
    learned = await home.learn(
        home.said(FULDA, OperationKind.REPLACE, kassel),
        home.said("The user works in Hanau.", OperationKind.REPLACE, kassel),
        home.said("", OperationKind.END, kassel),
    )
    assert [one.is_new for one in learned] == [True, True, False]
    assert learned[2].reason is Refusal.UNKNOWN_ID
    assert await home.texts() == [FULDA, "The user works in Hanau."]
    await home.check()


async def test_of_two_values_of_one_thing_in_one_answer_the_later_holds(home):
    [kassel] = await home.add(KASSEL)
    learned = await home.learn(
        home.said(FULDA, OperationKind.REPLACE, kassel, triple=Triple("user", "home", "Fulda")),
        home.said(
            "Hanau, rather.", OperationKind.REPLACE, kassel, triple=Triple("User", "Home", "Hanau")
        ),
    )
    assert await home.texts() == ["Hanau, rather."]
    assert [fact.text for fact in learned[1].gone] == [FULDA]
    await home.check()
    await home.book.undo()
    assert await home.texts() == [FULDA]


async def test_what_one_object_of_an_answer_brings_a_later_one_can_change(home):
    kassel = replace(home.said(KASSEL), name="#1")
    learned = await home.learn(kassel, home.said(FULDA, OperationKind.REPLACE, "#1"))
    assert await home.texts() == [FULDA]
    [before] = learned[1].gone
    assert (before.text, before.status) == (KASSEL, SUPERSEDED)
    assert before.superseded_by == learned[1].fact.id
    assert await home.evidence(before.id)
    await home.check()


@pytest.mark.parametrize("name", ["#2", "#9", "#"])
async def test_a_place_of_an_answer_that_brought_nothing_is_no_fact(home, name):
    kassel = replace(home.said(KASSEL), name="#1")
    await home.learn(
        kassel,
        home.said(FULDA, OperationKind.REPLACE, name),
        home.said("", OperationKind.END, name),
    )
    assert await home.texts() == [KASSEL, FULDA]
    await home.check()


async def test_a_place_means_the_answer_that_it_stands_in_alone(home):
    await home.learn(replace(home.said(KASSEL), name="#1"))
    await home.learn(home.said(FULDA, OperationKind.REPLACE, "#1"))
    assert await home.texts() == [KASSEL, FULDA]


async def test_words_that_are_read_again_bring_no_second_fact_of_what_they_said_once(home):
    kassel = home.said(KASSEL)
    [first] = await home.learn(kassel)
    await home.learn(home.said(FULDA, OperationKind.REPLACE, first.fact.id))
    again, _ = await home.learn(
        replace(kassel, source=EXTRACTED, name="#1"), home.said(FULDA, OperationKind.REPLACE, "#1")
    )
    assert (again.fact.id, again.is_new, again.change) == (first.fact.id, False, None)
    assert [fact.text for fact in await home.book.all()] == [KASSEL, FULDA]
    assert await home.texts() == [FULDA]
    await home.check()


async def test_text_and_triple_are_made_one_line(home):
    triple = Triple(" user\n", "dog\tname", "Rex\x00")
    [learned] = await home.learn(home.said(" The user's\n dog  is called\tRex. ", triple=triple))
    assert (learned.fact.text, learned.fact.triple) == (REX, Triple("user", "dog name", "Rex"))
    [learned] = await home.learn(home.said(TEA, triple=Triple("user", "\x00", "tea")))
    assert learned.fact.triple is None


async def test_context_evidence_is_kept_but_is_no_place_where_it_was_said(home):
    at = home.clock.now()
    evidence = (Evidence(at, MAIN, 5, 0, 20, is_context=True), Evidence(at, MAIN, 6, 0, 4))
    [learned] = await home.learn(home.said(REX, evidence=evidence))
    assert learned.fact.origin.seq == 6
    assert {one.is_context for one in await home.evidence(learned.fact.id)} == {True, False}


# Several operations of one answer


async def test_a_second_replacement_of_the_same_fact_harms_nothing_that_the_first_brought(home):
    [old] = await home.add("The user lives and works in Lille.")
    await home.learn(
        home.said("The user lives in Ghent.", OperationKind.REPLACE, old),
        home.said("The user works in Bruges.", OperationKind.REPLACE, old),
    )
    assert sorted(await home.texts()) == ["The user lives in Ghent.", "The user works in Bruges."]


async def test_a_wrong_end_of_what_was_just_replaced_ends_nothing(home):
    [old] = await home.add(KASSEL)
    learned = await home.learn(
        home.said(FULDA, OperationKind.REPLACE, old), home.said("", OperationKind.END, old)
    )
    assert learned[1].reason is Refusal.UNKNOWN_ID
    assert await home.texts() == [FULDA]


async def test_what_changes_twice_in_one_answer_is_what_it_was_changed_to_last(home):
    [old] = await home.add(KASSEL, triple=Triple("user", "lives in", "Kassel"))
    bern = "The user lives in Bern."
    await home.learn(
        home.said(FULDA, OperationKind.REPLACE, old, triple=Triple("user", "lives in", "Fulda")),
        home.said(bern, OperationKind.REPLACE, old, triple=Triple("User", "lives in", "Bern")),
    )
    assert await home.texts() == [bern]


# What is known stays as it is


def the_context(numbers, at):
    tombstones = Tombstones(Digests(b"k" * 32))
    return OperationContext(tombstones, lambda: f"n{next(numbers):06d}", at)


SAID = st.tuples(
    st.sampled_from(OperationKind),
    st.sampled_from([REX, MAX, TEA]),
    st.lists(st.integers(0, 4), max_size=2),
    st.booleans(),
)


@given(st.lists(st.lists(SAID, max_size=5), max_size=4))
def test_operations_make_another_state_and_leave_the_one_they_are_made_of(batches):
    at, numbers, known = FakeClock().now(), itertools.count(), Known()
    for batch in batches:
        at += timedelta(minutes=1)
        ids = [fact.id for fact in known] or ["nobody"]
        said = [
            FactOperation(
                op,
                at,
                EXTRACTED,
                text,
                ids=tuple(ids[n % len(ids)] for n in which),
                evidence=(Evidence(at),),
                is_proven=is_proven,
            )
            for op, text, which, is_proven in batch
        ]
        before, active = dict.fromkeys(known.all), known.active
        results, change = changes.learned(known, said, the_context(numbers, at))
        after = change.after(known)
        assert dict.fromkeys(known) == before
        assert known.active == active
        assert {*after} - {*before} == {*change.write.facts} - {*before}
        texts = [fact.text for fact in after.active]
        assert len(texts) == len(set(texts)), "one sentence holds once"
        for result in results:
            assert result.fact is None or after.alive(result.fact.id) is not None
        known = after


def test_many_facts_are_learnt_in_proportion_to_their_number():
    at = FakeClock().now()

    def work(size: int) -> None:
        said = [
            FactOperation(OperationKind.ADD, at, EXTRACTED, f"The user owns book {n}.", name=f"{n}")
            for n in range(size)
        ]
        _, change = changes.learned(Known(), said, the_context(itertools.count(), at))
        assert len(change.after(Known())) == size

    assert growth(work, 500) < QUADRATIC
