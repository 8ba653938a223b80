"""Two agents that share facts: what is told, taken in, taken back, refused, forgotten, and cut
short.
"""

from __future__ import annotations

import hashlib
from itertools import count, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.erasure import Erasure
from agentd.core.errors import FactsOff, GraphError, InvalidRequest, NotFound, StorageError
from agentd.core.fact import Fact, FactStatus
from agentd.core.graph import EpisodeHash, Share
from agentd.core.turn import SessionKey
from agentd.memory.graph.graph_exchange import Exchange, snapshot
from agentd.memory.graph.sharing import MOST, Sharing, worth_keeping
from tests.graph.home import ALIASES, NOW, Home, fact
from tests.graph.test_graph_service import recalled
from tests.graph.test_keeper import Dying

DOG, SISTER = fact("a1", "dog name", "Max"), fact("b2", "sister name", "Klara")
BERN = fact("c3", "home", "Bern", "my sister")
TOLD = ["ada sister_name klara", "klara home bern"]


class Agent(Home):
    """A home whose owner shares facts."""

    journal = None

    def __init__(self, name, spaces=("team",)):
        self.id = hashlib.sha256(name.encode()).hexdigest()[:16]
        self.spaces = spaces
        self.salts = (hashlib.md5(f"{name}{n}".encode()).hexdigest() for n in count())
        super().__init__(store=Dying)
        self.start()

    def start(self, *, fed=True):
        super().start(fed=fed, journal=self.journal)
        self.sharing = Sharing(
            *(self.keeper, self.records, self.spaces, self._id, self.journal),
            fed=fed,
            salt=lambda: next(self.salts),
        )
        self.exchange = Exchange(self.keeper, self.store, self.sharing, self.clock, self.journal)
        return self.keeper

    async def _id(self):
        return self.id

    async def learn(self, *facts):
        await super().learn(*facts)
        await self.sharing.level()

    async def tell(self, **more):
        return (await self.sharing.send("team", **more)).text

    async def take(self, text, name="ada", trust=0.5):
        done = await self.exchange.take(text, name, trust)
        return done.new, done.known, done.withdrawn

    async def heard(self, name="ada"):
        answer = await self.service.ask(f"FIND fact FROM '{name}' DEPTH 2 LIMIT 50")
        return sorted(f"{t.subject} {t.predicate} {t.object}" for t in answer.triples)

    def contents(self):
        return dict(self.records.episodes), self.records.shared


@pytest.fixture
async def ada():
    ada = Agent("ada")
    await ada.learn(DOG, SISTER, BERN)
    return ada


@pytest.fixture
def bob():
    return Agent("bob")


async def test_nothing_is_shared_before_the_owner_says_so(ada, bob):
    assert await ada.sharing.shown() == ()
    assert (await bob.take(await ada.tell(whole=True))) == (0, 0, 0)
    assert ada.records.shared == ()


async def test_the_facts_about_a_name_are_told_and_no_others(ada, bob):
    shown = await ada.sharing.share("sister Klara", "team")
    assert [one.fact.id for one in shown] == ["b2", "c3"]
    text = await ada.tell()
    assert "max" not in text
    assert await bob.take(text) == (2, 0, 0)
    assert await bob.heard() == TOLD
    assert await bob.known() == []


async def test_a_fact_told_in_two_spaces_is_as_sure_as_in_one():
    spaces = ("team", "family")
    ada, bob = Agent("ada", spaces), Agent("bob", spaces)
    await ada.learn(DOG)
    for space in spaces:
        await ada.sharing.share("max", space)
        await bob.take((await ada.sharing.send(space)).text)
        [said] = (await bob.service.ask("FIND fact FROM ada")).triples
        assert (said.confidence, said.episodes) == (pytest.approx(DOG.confidence / 2), 1)
    assert (await bob.store.counts()).episodes == 2


async def test_what_is_taken_in_is_kept_with_its_sender(ada, bob):
    await ada.sharing.share("klara", "team")
    await bob.take(await ada.tell())
    before = await snapshot(bob.store)
    assert {one.confidence for one in before.relations} == {0.45}
    assert {one.agent for one in before.contexts} == {"ada"}
    bob.lose_tables()
    bob.start()
    assert await bob.heard() == TOLD
    assert await snapshot(bob.store) == before


async def test_the_owners_sessions_recall_it_with_its_sender_and_no_group_does(ada, bob):
    await ada.sharing.share("klara", "team")
    await bob.take(await ada.tell())
    told = await recalled(bob.service, "where does Klara live?")
    assert "- klara home bern" in told.text
    assert "Not the user's word, but that of ada: klara home bern" in told.text
    assert told.tainted
    hidden = await recalled(bob.service, "where does Klara live?", SessionKey("group:family"))
    assert "bern" not in hidden.text
    own = await recalled(ada.service, "where does Klara live?")
    assert "bern" in own.text
    assert ("Not the user" in own.text, own.tainted) == (False, False)


async def test_it_does_not_fade_however_old_the_fact_is(ada, bob):
    old = replace(DOG, valid_from=NOW.replace(year=2001))
    await ada.learn(old)
    await ada.sharing.share("max", "team")
    await bob.take(await ada.tell())
    await bob.clock.advance(90 * 86_400)
    await bob.keeper.consolidate()
    assert await bob.heard() == ["ada dog_name max"]


async def test_a_message_says_what_is_new_since_the_last_one(ada, bob):
    await ada.sharing.share("max", "team")
    first = await ada.tell()
    await ada.sharing.share("klara", "team")
    second = await ada.tell()
    assert "max" in first
    assert "max" not in second
    assert (await ada.sharing.send("team")).facts == 0
    whole = await ada.sharing.send("team", whole=True)
    assert whole.facts == 3
    for text, came in ((second, (2, 0, 0)), (first, (1, 0, 0)), (whole.text, (0, 3, 0))):
        assert await bob.take(text) == came


async def test_a_message_twice_changes_nothing_more(ada, bob):
    await ada.sharing.share("klara", "team")
    text = await ada.tell()
    await bob.take(text)
    before = bob.contents()
    assert await bob.take(text, trust=1) == (0, 2, 0)
    assert bob.contents() == before


async def test_what_comes_later_is_shared_only_when_the_owner_says_so(ada):
    await ada.sharing.share("klara", "team")
    await ada.tell()
    await ada.learn(fact("d4", "illness", "flu", "my sister"))
    assert "flu" not in await ada.tell(whole=True)
    await ada.sharing.share("klara", "team")
    assert "flu" in await ada.tell()


@pytest.mark.parametrize("how", ["forgotten", "replaced", "unshared"])
async def test_what_is_shared_no_longer_is_taken_back(ada, bob, how):
    await ada.sharing.share("klara", "team")
    await bob.take(await ada.tell())
    if how == "unshared":
        gone = await ada.sharing.unshare("bern")
        assert [(one.fact.id, one.is_sent) for one in gone] == [("c3", True)]
    elif how == "forgotten":
        await ada.learn(Fact.tombstone("c3", NOW))
    else:
        await ada.learn(
            fact("c3", "home", "Bern", status=FactStatus.SUPERSEDED), fact("d4", "home", "Ulm")
        )
    text = await ada.tell()
    assert "bern" not in text
    assert await bob.take(text) == (0, 0, 1)
    assert await bob.heard() == ["ada sister_name klara"]
    assert not [one for one in bob.records.episodes.values() if "bern" in one.said]
    assert (await ada.sharing.send("team")).withdrawn == 0
    assert (await ada.sharing.send("team", whole=True)).withdrawn == 1


async def test_a_complete_message_makes_good_for_lost_ones_in_any_order(ada):
    await ada.sharing.share("klara", "team")
    lost = await ada.tell()
    await ada.learn(Fact.tombstone("c3", NOW))
    await ada.tell()
    await ada.sharing.share("max", "team")
    whole = await ada.tell(whole=True)
    for order in permutations((lost, whole, whole)):
        bob = Agent("bob")
        for text in (*order, whole):
            await bob.take(text)
        assert await bob.heard() == ["ada dog_name max", "ada sister_name klara"]


async def test_shared_again_after_it_was_taken_back_it_is_told_anew(ada, bob):
    for _ in range(2):
        await ada.sharing.share("max", "team")
        await bob.take(await ada.tell())
        assert await bob.heard() == ["ada dog_name max"]
        await ada.sharing.unshare("max")
    await ada.sharing.share("max", "team")
    assert await bob.take(await ada.tell(whole=True)) == (1, 0, 1)
    assert await bob.heard() == ["ada dog_name max"]


async def test_facts_that_are_yet_to_be_read_are_not_taken_back(ada):
    await ada.sharing.share("max", "team")
    known = ada.known_facts
    before, page, known.all = ada.records.shared, known.all, []
    ada.start()

    async def read_the_page():
        known.all = page

    await ada.exchange.level()
    assert ada.records.shared == before, "nobody reads facts"
    ada.exchange.refresh_with(read_the_page)
    await ada.exchange.level()
    assert ada.records.shared == before
    known.all = page = []
    await ada.exchange.level()
    assert ada.records.shared == ()


async def test_what_nobody_was_told_leaves_nothing_when_it_goes(ada):
    await ada.sharing.share("max", "team")
    await ada.learn(Fact.tombstone("a1", NOW))
    assert ada.records.shared == ()


async def test_of_what_is_forgotten_the_salt_goes_too(ada):
    await ada.sharing.share("max", "team")
    await ada.tell()
    (share,) = ada.records.shared
    assert share.salt
    await ada.learn(Fact.tombstone("a1", NOW))
    assert ada.records.shared == (share.ended(),)
    assert (share.ended().salt, share.ended().fact) == ("", "")


async def test_forgetting_counts_what_is_shared_no_longer(ada):
    await ada.sharing.share("klara", "team")
    known = ada.known_facts
    known.all = [one for one in known.all if one.id != "c3"] + [Fact.tombstone("c3", NOW)]
    assert await ada.sharing.erase(Erasure(spans=("bern",))) == 1
    assert await ada.sharing.erase(Erasure(spans=("bern",))) == 0


async def test_what_others_said_is_forgotten_like_anything_else(ada, bob):
    await ada.sharing.share("klara", "team")
    await bob.take(await ada.tell())
    assert await bob.keeper.erase(Erasure(spans=("klara home bern",))) == 1
    assert await bob.heard() == ["ada sister_name klara"]
    assert not [one for one in bob.records.episodes.values() if "bern" in one.said]


async def test_what_is_called_otherwise_by_now_is_told_again(ada, bob):
    await ada.sharing.share("bern", "team")
    await bob.take(await ada.tell())
    ada.workspace.files[ALIASES] = b"Bern = Berne\n"
    await ada.keeper.level()
    await ada.sharing.level()
    assert await bob.take(await ada.tell()) == (1, 0, 1)
    assert await bob.heard("klara") == ["klara home berne"]


async def test_of_what_a_sender_takes_back_only_its_own_goes(ada, bob):
    eve = Agent("eve")
    await eve.learn(DOG)
    for agent, name in ((ada, "ada"), (eve, "eve")):
        await agent.sharing.share("max", "team")
        await bob.take(await agent.tell(), name)
    said = (await snapshot(bob.store)).relations
    (eves,) = [one for one in said if await teller(bob, one) == "eve"]
    stolen = Share("team", EpisodeHash.from_hex(eves.refs[0]))
    ada.records.shared = (*ada.records.shared, stolen)
    assert await bob.take(await ada.tell()) == (0, 0, 0)
    await eve.sharing.unshare("max")
    assert await bob.take(await eve.tell(), "eve") == (0, 0, 1)
    assert await bob.heard("max") == ["ada dog_name max"]


async def teller(agent, relation):
    return (await agent.store.contexts([relation.context]))[relation.context].agent


async def test_a_sender_keeps_its_name_and_a_name_its_sender(ada, bob):
    eve = Agent("eve")
    await eve.learn(DOG)
    texts = []
    for agent in (ada, eve):
        await agent.sharing.share("max", "team")
        texts.append(await agent.tell())
    await bob.take(texts[0])
    before = bob.contents()
    with pytest.raises(GraphError, match="the sender is called 'ada' here, not 'eve'"):
        await bob.take(texts[0], "eve")
    with pytest.raises(GraphError, match="another sender is called 'ada' here"):
        await bob.take(texts[1], "ada")
    assert bob.contents() == before
    assert await bob.take(texts[1], "eve") == (1, 0, 0)


@pytest.mark.parametrize("name", ["user", "Me", "myself"])
async def test_nobody_else_is_the_owner(ada, bob, name):
    await ada.sharing.share("max", "team")
    with pytest.raises(GraphError, match="is the owner here"):
        await bob.take(await ada.tell(), name)
    with pytest.raises(GraphError):
        await bob.take(await ada.tell(), " ")
    assert bob.contents() == ({}, ())


async def test_a_message_of_ones_own_is_refused(ada):
    await ada.sharing.share("max", "team")
    text = await ada.tell()
    before = ada.contents()
    with pytest.raises(GraphError, match="of this agent itself"):
        await ada.take(text)
    assert ada.contents() == before


async def test_what_is_not_shared_here_is_refused_whole(ada):
    await ada.sharing.share("max", "team")
    text = await ada.tell()
    for spaces, error in (((), InvalidRequest), (("home",), GraphError)):
        eve = Agent("eve", spaces)
        with pytest.raises(error):
            await eve.take(text)
        assert eve.contents() == ({}, ())


async def test_a_space_is_one_that_the_owner_named(ada):
    for ask in (ada.sharing.share("max", "home"), ada.sharing.send("home")):
        with pytest.raises(InvalidRequest, match="nothing is shared in a space 'home'"):
            await ask
    several = Agent("eve", ("home", "team"))
    with pytest.raises(InvalidRequest, match="there are several spaces"):
        await several.sharing.share("max")
    with pytest.raises(InvalidRequest, match="no space is named"):
        await Agent("eve", ()).sharing.share("max")
    assert [one.space for one in await ada.sharing.share("max")] == ["team"]


async def test_where_facts_are_off_no_more_are_shared(ada, bob):
    await ada.sharing.share("max", "team")
    ada.start(fed=False)
    with pytest.raises(FactsOff):
        await ada.sharing.share("klara", "team")
    assert len(await ada.sharing.shown()) == 1


async def test_about_whom_nothing_is_known_nothing_is_shared(ada):
    with pytest.raises(NotFound, match="no fact that holds is about 'Otto'"):
        await ada.sharing.share("Otto", "team")
    with pytest.raises(NotFound, match="no fact about 'klara' is shared"):
        await ada.sharing.unshare("klara")
    with pytest.raises(GraphError):
        await ada.sharing.share(" ", "team")


async def test_a_space_holds_so_many_facts_and_no_more():
    ada = Agent("ada")
    await ada.learn(*[fact(f"{n:x}", f"thing {n}", "gold") for n in range(MOST + 1)])
    with pytest.raises(InvalidRequest, match="more than 2000 facts"):
        await ada.sharing.share("gold", "team")
    assert ada.records.shared == ()


async def test_a_crash_between_what_is_kept_and_the_tables_is_made_good(ada, bob):
    await ada.sharing.share("klara", "team")
    text = await ada.tell()
    bob.store.is_dying = True
    with pytest.raises(StorageError):
        await bob.take(text)
    bob.store.is_dying = False
    bob.start()
    assert await bob.heard() == TOLD
    assert await bob.take(text) == (0, 2, 0)
    assert len(bob.records.episodes) == 2


def test_of_what_was_taken_back_the_newest_are_known():
    many = [
        Share("team", EpisodeHash(bytes([n % 256, n // 256, *range(30)]))) for n in range(2_001)
    ]
    assert worth_keeping(many) == tuple(many[1:])


STEPS = st.lists(
    st.tuples(
        st.sampled_from([*["share", "learn"] * 3, "send", "lose", "late", "unshare", "forget"]),
        st.integers(0, 2),
    ),
    min_size=10,
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(STEPS)
async def test_whatever_happened_a_complete_message_says_what_is_shared_now(steps):
    ada, bob = Agent("ada"), Agent("bob")
    await ada.learn(*[fact(f"{n}a", "owns", f"thing-{n}") for n in range(3)])
    late: list[str] = []
    for number, (step, which) in enumerate(steps):
        name = f"thing-{which}"
        try:
            if step == "learn":
                await ada.learn(fact(f"{number:x}", "owns", name))
            elif step == "forget":
                ids = [
                    one.id for one in ada.known_facts.all if one.triple and one.triple.value == name
                ]
                await ada.learn(*(Fact.tombstone(one, NOW) for one in ids))
            elif step in {"share", "unshare"}:
                await getattr(ada.sharing, step)(name, "team")
            elif step == "send":
                await bob.take(await ada.tell())
            else:
                late += [await ada.tell()] if step == "lose" else []
                for text in late if step == "late" else ():
                    await bob.take(text)
        except NotFound:
            continue
    await bob.take(await ada.tell(whole=True))
    shared = {f"ada owns {one.fact.triple.value}" for one in await ada.sharing.shown()}
    assert set(await bob.heard()) == shared
    for _ in range(2):
        assert await bob.take(await ada.tell(whole=True)) == (0, len(await ada.sharing.shown()), 0)
