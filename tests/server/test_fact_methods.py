"""Facts over the socket: what each method asks and answers."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from msgspec.structs import replace

from agentd.core.errors import AgentdError, InvalidRequest, NotFound
from agentd.core.fact import Category, ChangeKind, FactStatus, Matches, OperationResult, Refusal
from agentd.interfaces.acp.declared import methods
from agentd.interfaces.commands.fact_changes import FACT_CHANGES, ChangeCommands
from agentd.interfaces.commands.facts import FACTS, FactCommands
from agentd.memory.facts.exchange import take_in
from tests.server.owned_facts import (
    AT,
    FULDA,
    KASSEL,
    PAUL,
    REPORT,
    TEA,
    OwnedFacts,
    a_change,
    a_fact,
    moved,
)

REX = a_fact("eeeeeeee", "The user's dog is called Rex.")


async def call(facts, method, /, **params):
    routes = {
        **methods(FACTS, FactCommands(facts, facts, partial(take_in, facts), None)),
        **methods(FACT_CHANGES, ChangeCommands(facts, facts, None)),
    }
    return await routes[f"_agentd/facts/{method}"](params, None)


def ids(answer, name="facts"):
    return [fact["id"] for fact in answer[name]]


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({}, ["bbbbbbbb", "cccccccc"]),
        ({"all": True}, ["aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"]),
        ({"all": True, "limit": 1, "offset": 2}, ["cccccccc"]),
        ({"category": "project"}, []),
        ({"query": "Fulda"}, ["bbbbbbbb"]),
        ({"query": "Kassel"}, []),
        ({"query": "Kassel", "all": True}, ["aaaaaaaa"]),
        ({"ids": ["dddddddd", "aaaaaaaa", "zzzzzzzz"]}, ["aaaaaaaa", "dddddddd"]),
    ],
)
async def test_facts_are_listed_as_they_are_asked_for(params, found):
    facts = moved()
    facts.facts[PAUL.id] = PAUL
    assert ids(await call(facts, "list", **params)) == found


async def test_a_page_of_a_list_says_how_many_there_are():
    told = await call(moved(), "list", limit=1)
    assert (len(told["facts"]), told["total"]) == (1, 2)
    assert told["facts"][0]["status"] == "active"


async def test_what_is_added_is_told_with_what_it_replaced():
    facts = moved()
    told = await call(facts, "add", text="I live in Fulda", category="personal")
    assert told["fact"]["text"] == "The user lives in Fulda."
    assert (told["new"], told["before"], told["refused"]) == (True, [], [])
    [gone] = told["superseded"]
    assert (gone["id"], gone["superseded_by"]) == (KASSEL.id, FULDA.id)
    assert facts.asked == [("keep", "I live in Fulda", "", Category.PERSONAL)]


async def test_of_a_text_that_says_several_things_each_is_told():
    facts = OwnedFacts(
        keeps=(
            OperationResult(TEA, is_new=True),
            OperationResult(reason=Refusal.CREDENTIAL),
            OperationResult(REX, is_new=True),
        )
    )
    told = await call(facts, "add", text="I like tea, and my dog is called Rex")
    assert (told["fact"]["id"], ids(told, "before")) == (REX.id, [TEA.id])
    [refused] = told["refused"]
    assert refused["reason"] == "secret"
    assert "password store" in refused["text"]


async def test_a_fact_that_only_ends_is_told_without_a_new_one():
    over = replace(KASSEL, status=FactStatus.ENDED, valid_to=AT)
    told = await call(
        OwnedFacts(keeps=(OperationResult(gone=(over,)),)), "add", text="I left Kassel"
    )
    assert (told["fact"], told["new"], ids(told, "superseded")) == (None, False, [KASSEL.id])


@pytest.mark.parametrize("reason", list(Refusal))
async def test_what_is_not_kept_is_refused_in_words_with_a_cure(reason):
    with pytest.raises(InvalidRequest, match="not remembered, ") as caught:
        await call(OwnedFacts(keeps=(OperationResult(reason=reason),)), "add", text="x")
    assert caught.value.cure


async def test_the_one_fact_that_is_meant_is_forgotten_and_what_is_left_is_told():
    facts = OwnedFacts(KASSEL, means=Matches((KASSEL,)))
    told = await call(facts, "forget", query="Kassel", also=[1])
    assert (told["forgotten"], told["candidates"]) == ([KASSEL.id], [])
    assert told["also"] == [
        {
            "n": 1,
            "where": "memory/2026-05-04.md:3",
            "text": "The Kassel client wants the offer.",
            "others": [],
        }
    ]
    assert (told["pending"], told["backups"]) == (["log"], ["/backups/a.tar.gz"])
    assert told["places"] == REPORT.places
    assert facts.asked == [("forget", [KASSEL.id], [1])]


async def test_a_dry_run_tells_the_same_and_does_nothing():
    facts = OwnedFacts(KASSEL, means=Matches((KASSEL,)))
    told = await call(facts, "forget", query="Kassel", dry_run=True)
    assert (told["forgotten"], told["also"][0]["n"]) == ([KASSEL.id], 1)
    assert facts.asked == []


@pytest.mark.parametrize(
    "means", [Matches((KASSEL, FULDA)), Matches(maybe=(KASSEL, FULDA)), Matches(maybe=(KASSEL,))]
)
async def test_where_it_is_not_sure_which_is_meant_nothing_is_done(means):
    facts = OwnedFacts(KASSEL, FULDA, means=means)
    told = await call(facts, "forget", query="live")
    assert told["forgotten"] == []
    assert ids(told, "candidates") == [fact.id for fact in means.sure or means.maybe]
    assert facts.asked == []


async def test_facts_that_are_named_by_their_ids_are_all_meant():
    facts = OwnedFacts(KASSEL, TEA, means=Matches((KASSEL, TEA)))
    told = await call(facts, "forget", query=f"{TEA.id} {KASSEL.id}")
    assert told["forgotten"] == [KASSEL.id, TEA.id]
    assert facts.asked == [("forget", [KASSEL.id, TEA.id], [])]


async def test_all_that_surely_say_it_are_forgotten_at_once_and_none_that_only_may():
    facts = OwnedFacts(KASSEL, FULDA, means=Matches((KASSEL, FULDA)))
    told = await call(facts, "forget", query="lives", all=True)
    assert told["forgotten"] == [KASSEL.id, FULDA.id]
    facts = OwnedFacts(KASSEL, means=Matches(maybe=(KASSEL,)))
    assert (await call(facts, "forget", query="lives", all=True))["forgotten"] == []
    assert facts.asked == []


async def test_a_history_is_found_by_id_and_by_words_that_one_fact_says():
    facts = OwnedFacts(KASSEL, FULDA, means=Matches((FULDA,)))
    assert ids(await call(facts, "history", fact=KASSEL.id)) == [KASSEL.id]
    assert ids(await call(facts, "history", fact="Fulda")) == [FULDA.id]
    for means in (Matches(), Matches((KASSEL, FULDA))):
        facts.means = means
        with pytest.raises(InvalidRequest, match=r"(none says|facts say) that") as caught:
            await call(facts, "history", fact="lives")
        assert "agentd facts list" in caught.value.cure


async def test_facts_of_an_export_are_taken_in():
    facts = OwnedFacts()
    row = {"text": "The user likes tea.", "valid_from": "2026-05-04T09:40:00+00:00"}
    assert await call(facts, "import", facts=[row]) == {"added": 1, "known": 0, "refused": {}}
    assert facts.asked == [("learn", ["The user likes tea."])]


@pytest.mark.parametrize(
    ("params", "done", "asked"),
    [
        ({}, "", []),
        ({"accept": True}, "forgotten", [("accept_parked",)]),
        ({"restore": True}, "restored", [("restore_parked",)]),
    ],
)
async def test_facts_whose_lines_are_gone_are_listed_forgotten_or_restored(params, done, asked):
    facts = OwnedFacts()
    facts.lost = (TEA,)
    told = await call(facts, "parked", **params)
    assert (ids(told), told["done"], facts.asked) == ([TEA.id], done, asked)


async def test_changes_are_told_by_ids_without_a_word_of_the_facts():
    facts = moved()
    facts.made.append(a_change(11, ChangeKind.END, "", TEA.id, session=""))
    told = await call(facts, "changes")
    assert told == {
        "changes": [
            {
                "id": 12,
                "at": AT.isoformat(),
                "session": "main",
                "op": "replace",
                "new": FULDA.id,
                "old": [KASSEL.id],
                "undone": False,
            },
            {
                "id": 11,
                "at": AT.isoformat(),
                "session": None,
                "op": "end",
                "new": None,
                "old": [TEA.id],
                "undone": False,
            },
        ]
    }
    assert len((await call(facts, "changes", limit=1))["changes"]) == 1


async def test_a_change_that_is_taken_back_is_told_with_what_is_gone_and_what_holds_again():
    facts = moved()
    told = await call(facts, "undo")
    assert (told["change"]["id"], told["change"]["undone"]) == (12, True)
    assert [fact["text"] for fact in told["removed"]] == [FULDA.text]
    assert [(f["text"], f["status"]) for f in told["restored"]] == [(KASSEL.text, "active")]
    with pytest.raises(NotFound, match="nothing is left") as caught:
        await call(facts, "undo")
    assert caught.value.cure


async def test_the_change_of_a_number_is_taken_back():
    facts = moved()
    facts.made.insert(0, a_change(13, ChangeKind.FORGET, "", TEA.id))
    with pytest.raises(InvalidRequest, match="cannot come back"):
        await call(facts, "undo", id=13)
    assert (await call(facts, "undo", id=12))["change"]["id"] == 12


async def test_a_yes_that_is_taken_back_leaves_the_fact_to_be_decided_again():
    facts = OwnedFacts(replace(PAUL, status=FactStatus.ACTIVE))
    facts.made = [a_change(3, ChangeKind.ACCEPT, PAUL.id, PAUL.id, status=FactStatus.PROPOSED)]
    told = await call(facts, "undo")
    assert told["removed"] == []
    assert [(f["id"], f["status"]) for f in told["restored"]] == [(PAUL.id, "proposed")]


async def test_facts_that_are_merged_stand_for_one():
    facts = OwnedFacts(KASSEL, FULDA, TEA)
    told = await call(facts, "merge", keep=FULDA.id, others=[KASSEL.id])
    assert (told["change"]["op"], told["fact"]["id"]) == ("merge", FULDA.id)
    assert [(f["id"], f["superseded_by"]) for f in told["superseded"]] == [(KASSEL.id, FULDA.id)]


async def test_what_waits_for_a_yes_is_told_with_what_that_would_replace():
    told = await call(OwnedFacts(TEA, PAUL), "pending")
    assert [(fact["id"], ids(fact, "replaces")) for fact in told["facts"]] == [(PAUL.id, [TEA.id])]


async def test_what_waits_is_decided():
    yes = replace(PAUL, status=FactStatus.ACTIVE)
    gone = replace(TEA, status=FactStatus.SUPERSEDED, superseded_by=PAUL.id)
    facts = OwnedFacts(TEA, PAUL, keeps=(OperationResult(yes, is_new=True, gone=(gone,)),))
    told = await call(facts, "accept", ids=[PAUL.id])
    assert (ids(told), ids(told, "superseded"), told["refused"]) == ([PAUL.id], [TEA.id], [])
    assert ids(await call(facts, "reject", ids=[PAUL.id])) == [PAUL.id]
    assert facts.asked == [("accept", [PAUL.id]), ("reject", [PAUL.id])]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("list", {"limit": 0}),
        ("list", {"category": "moods"}),
        ("list", {"ids": "aaaaaaaa"}),
        ("add", {}),
        ("add", {"text": 5}),
        ("forget", {"query": "x", "also": [0]}),
        ("forget", {"query": "x", "also": "1"}),
        ("forget", {"query": "x", "dry_run": "yes"}),
        ("parked", {"accept": True, "restore": True}),
        ("import", {"facts": ["x"]}),
        ("changes", {"limit": 0}),
        ("changes", {"limit": 501}),
        ("undo", {"id": 0}),
        ("undo", {"id": "12"}),
        ("undo", {"id": 2**63}),
        ("merge", {"keep": "aaaaaaaa", "others": []}),
        ("merge", {"keep": "aaaaaaaa"}),
        ("pending", {"all": True}),
        ("accept", {"ids": []}),
        ("reject", {"ids": [1]}),
    ],
)
async def test_params_that_mean_nothing_are_refused_in_words_with_a_cure(method, params):
    facts = OwnedFacts(KASSEL)
    with pytest.raises(AgentdError) as caught:
        await call(facts, method, **params)
    assert isinstance(caught.value, InvalidRequest)
    assert caught.value.cure
    assert facts.asked == []


async def test_a_planned_end_is_told_with_its_day():
    until = replace(KASSEL, valid_to=AT + timedelta(days=30))
    told = await call(OwnedFacts(keeps=(OperationResult(gone=(until,)),)), "add", text="until June")
    [ends] = told["superseded"]
    assert (ends["status"], ends["valid_to"]) == ("active", "2026-06-03T09:40:00+00:00")
