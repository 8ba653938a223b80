"""Proposals over the socket and in a conversation."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agentd.core.errors import AgentdError, InvalidRequest, NotFound
from agentd.core.screening.scanner import Severity, Suspicion
from agentd.core.turn import SessionKey
from agentd.interfaces.acp.declared import methods, typed
from agentd.interfaces.commands.fact_changes import FACT_CHANGES, ChangeCommands
from agentd.interfaces.commands.proposals import PROPOSALS, ProposalCommands
from agentd.memory.facts.proposals import AnsweredProposal, Proposal, StatementCounts

MAIN, GROUP = SessionKey("main"), SessionKey("group:family")
NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
SEEN = StatementCounts(3, NOW - timedelta(days=9), NOW, (MAIN, SessionKey("chat:a")))
DIFF = "--- a/USER.md\n+++ b/USER.md\n@@ -1 +1,2 @@\n # User\n+- A dog, Rex.\n"


def a_proposal(fact_id="k3f9q2ma", **fields):
    given = {"diff": DIFF, "warnings": (), "problem": "", **fields}
    return Proposal(
        fact_id,
        "USER.md",
        "A dog, Rex.",
        digest="d" * 64,
        sayings=SEEN,
        before="",
        after="",
        **given,
    )


class Desk:
    """Says what it was told to, and keeps what it was asked."""

    def __init__(self, *open_ones, outcome="accepted"):
        self.open = open_ones
        self.outcome = outcome
        self.asked = []

    async def all(self):
        return self.open

    async def accept(self, fact_id, digest=None):
        return self.answered("accept", fact_id, digest)

    async def reject(self, fact_id):
        self.outcome = "rejected"
        return self.answered("reject", fact_id)

    def answered(self, *asked):
        self.asked.append(asked)
        for proposal in self.open:
            if proposal.id == asked[1]:
                return AnsweredProposal(proposal, self.outcome)
        raise NotFound("nothing is proposed", cure="look")


async def call(desk, **params):
    [route] = methods(PROPOSALS, ProposalCommands(desk)).values()
    return await route(params, None)


async def said(desk, text="", session=MAIN):
    [command] = typed(PROPOSALS, ProposalCommands(desk))
    assert command.name == "proposals"
    return await command.act(session, text)


async def test_a_list_has_all_that_is_open():
    told = await call(Desk(a_proposal()))
    assert told["done"] == ""
    [proposal] = told["proposals"]
    assert proposal == {
        "id": "k3f9q2ma",
        "path": "USER.md",
        "text": "A dog, Rex.",
        "diff": DIFF,
        "digest": "d" * 64,
        "evidence": {
            "times": 3,
            "first": "2026-11-13T09:00:00+00:00",
            "last": "2026-11-22T09:00:00+00:00",
            "sessions": ["main", "chat:a"],
        },
        "replaces": None,
        "warnings": [],
        "problem": "",
    }


async def test_an_answer_tells_what_was_done():
    desk = Desk(a_proposal())
    assert (await call(desk, accept="k3f9q2ma", digest="dd"))["done"] == "accepted"
    assert (await call(desk, reject="k3f9q2ma"))["done"] == "rejected"
    assert desk.asked == [("accept", "k3f9q2ma", "dd"), ("reject", "k3f9q2ma")]


@pytest.mark.parametrize(
    "params", [{"accept": "a", "reject": "b"}, {"accept": "gone"}, {"accept": 1}, {"yes": True}]
)
async def test_an_answer_that_means_nothing_is_refused_with_a_cure(params):
    desk = Desk(a_proposal())
    with pytest.raises(AgentdError) as caught:
        await call(desk, **params)
    assert caught.value.cure


async def test_in_a_conversation_the_diffs_are_shown_with_the_way_to_answer():
    shown = await said(Desk(a_proposal()))
    assert f"```diff\n{DIFF}```" in shown
    assert "said 3 times, from 2026-11-13 to 2026-11-22" in shown
    assert "/proposals accept k3f9q2ma" in shown
    assert "Nothing is proposed" in await said(Desk())


async def test_in_a_conversation_only_a_few_are_shown_at_once():
    many = [a_proposal(f"aaaaaaa{n}") for n in range(7)]
    shown = await said(Desk(*many))
    assert (shown.count("```diff"), "and 2 more" in shown) == (5, True)


async def test_a_proposal_with_a_warning_or_a_problem_says_so():
    high = Suspicion(Severity.HIGH, "an order", 2, 1)
    assert "Careful" in await said(Desk(a_proposal(warnings=(high,))))
    shown = await said(Desk(a_proposal(diff="", problem="USER.md is full")))
    assert ("USER.md is full" in shown, "accept" in shown) == (True, False)


@pytest.mark.parametrize(
    ("text", "outcome", "words"),
    [
        ("accept k3f9q2ma", "accepted", "USER.md says so now"),
        ("reject k3f9q2ma", "", "not be proposed again"),
        ("accept k3f9q2ma", "changed", "+- A dog, Rex."),
        ("accept k3f9q2ma", "too_long", "Nothing was written"),
    ],
)
async def test_a_yes_or_a_no_is_one_line(text, outcome, words):
    assert words in await said(Desk(a_proposal(), outcome=outcome), text)


@pytest.mark.parametrize(
    ("text", "session"), [("yes", MAIN), ("accept", MAIN), ("", GROUP), ("accept k3f9q2ma", GROUP)]
)
async def test_other_words_and_other_peoples_sessions_are_refused(text, session):
    desk = Desk(a_proposal())
    with pytest.raises(InvalidRequest):
        await said(desk, text, session)
    assert desk.asked == []


async def test_validation_is_asked_for_as_it_is_meant():
    asked = []

    async def validate(dry_run):
        asked.append(dry_run)
        return {"checked": 1}

    routes = methods(FACT_CHANGES, ChangeCommands(None, None, validate))
    review = routes["_agentd/facts/validate"]
    assert await review({"dry_run": True}, None) == {"checked": 1}
    await review({}, None)
    assert asked == [True, False]
