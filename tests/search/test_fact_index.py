"""The index of facts: by words always, by meaning while an embedder answers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from agentd.core.errors import EmbedderFault, StorageError
from agentd.core.fact import Category, Fact, FactSource, FactStatus, FactWrite
from agentd.core.ports import FactIndex
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.memory.index.search import chain
from agentd.memory.index.search import facts_in_memory as facts_mirror
from agentd.memory.index.search.fact_search import LiveFacts, pieces_of
from agentd.memory.index.search.patient_embedder import patient
from agentd.storage.fact_store import SqliteFacts
from agentd.storage.migrations import STATE
from agentd.storage.sqlite import Database
from agentd.testing import HashEmbedder

NOW = datetime(2026, 11, 21, tzinfo=UTC)
REX = "The user's dog is called Rex."
OSLO = "The user's flight to Oslo leaves on May 3."
THINGS = """
    bird book bread cake car cheese city colour composer country dish drink film flower fruit hotel
    island jacket language month museum opera painter park planet poem poet pub river season shoe
    singer song spice sport tea tree wine writer
"""


class Held(HashEmbedder):
    """Gives vectors of facts when it may, those of queries at once; `asked` says that it has
    them.
    """

    def __init__(self, dimension: int = 64, *, queries: bool = True) -> None:
        super().__init__(dimension)
        self.asked, self.may = asyncio.Event(), asyncio.Event()
        self._queries = queries

    async def embed(self, texts, *, query=False):
        if not (query and self._queries):
            self.asked.set()
            await self.may.wait()
        return await super().embed(texts, query=query)


def fact(number, text, **more) -> Fact:
    source = more.pop("source", FactSource.EXPLICIT)
    return Fact(f"fact{number:04}", text, Category.PERSONAL, source, 0.9, NOW, NOW, **more)


@pytest.fixture
async def state_db(tmp_path):
    async with Database.open(tmp_path / "state" / "state.db", STATE) as db:
        yield db


@pytest.fixture
def facts(state_db):
    return SqliteFacts(state_db)


@pytest.fixture
def open_index(facts, clock):
    """Opens an index; `run` keeps its work going."""

    @asynccontextmanager
    async def opened(*embedders, run=False, patience=0.5):
        async with LiveFacts.open(
            facts, patient(embedders, clock), clock, patience=patience
        ) as index:
            if not run:
                yield index
                return
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(index.run())
                yield index
                work.cancel()

    return opened


async def learn(facts, index: FactIndex, *new) -> None:
    await facts.write(FactWrite(new))
    await index.put(new)


async def found(index: FactIndex, query, limit=10):
    return [hit.fact.text for hit in await index.find(query, limit)]


async def compared(index: FactIndex):
    """The facts that have a vector, in order: `nearest` finds no other by a word that none has."""
    return sorted(fact.text for fact in await index.nearest("volcano", 9))


async def until(condition) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("run", [False, True])
async def test_words_find_a_fact_without_an_embedder(facts, open_index, run) -> None:
    async with open_index(run=run) as index:
        await learn(facts, index, fact(1, REX), fact(2, OSLO))
        assert await found(index, "what is my DOG's name?") == [REX]
        assert await found(index, "Rex") == [REX]
        assert not await found(index, "volcano")
        assert await compared(index) == []


async def test_facts_that_the_store_holds_are_read_when_first_asked_for(facts, open_index) -> None:
    await facts.write(FactWrite((fact(1, REX), fact(2, OSLO, status=FactStatus.SUPERSEDED))))
    async with open_index(run=True) as index:
        assert await found(index, "dog") == [REX]
        assert await found(index, "flight") == []


@pytest.mark.parametrize("run", [False, True])
async def test_meaning_finds_what_holds_no_word_of_the_question(facts, open_index, run) -> None:
    async with open_index(packaged_static(), run=run, patience=5) as index:
        await learn(facts, index, fact(1, "The user's dentist is Dr. Almeida."), fact(2, OSLO))
        await index.settle()
        assert await found(index, "I have a toothache") == ["The user's dentist is Dr. Almeida."]


async def test_hits_carry_every_partial_score(facts, open_index) -> None:
    async with open_index(packaged_static(), patience=5) as index:
        await learn(facts, index, fact(1, REX))
        [hit] = await index.find("my dog Rex", 5)
        assert hit.scores.keys() == {"keyword", "vector", "worth", "relation"}
        assert hit.scores["relation"] > 0
        assert hit.score == pytest.approx(2 / 61 * (1 + 0.1 * hit.scores["worth"]))


@pytest.mark.parametrize(
    "query", ["", " ", "?!", "the of and", "\ud800", 'a"b AND (', "x" * 50_000]
)
async def test_any_text_is_a_question(facts, open_index, query) -> None:
    async with open_index(packaged_static(), patience=5) as index:
        await learn(facts, index, fact(1, REX))
        assert isinstance(await found(index, query), list)


async def test_facts_are_compared_with_a_question_whether_it_finds_them_or_not(
    facts, open_index
) -> None:
    async with open_index(packaged_static(), patience=5) as index:
        await learn(facts, index, fact(1, REX), fact(2, OSLO), fact(3, "The user drinks tea."))
        await index.settle()
        cosines = await index.cosines("Where am I flying to?", ["fact0001", "fact0002", "gone"])
        assert cosines.keys() == {"fact0001", "fact0002"}
        assert cosines["fact0001"] < cosines["fact0002"] <= 1.0
        assert await index.cosines("Where am I flying to?", []) == {}


async def test_without_an_embedder_no_fact_is_compared_with_a_question(facts, open_index) -> None:
    async with open_index() as index:
        await learn(facts, index, fact(1, REX))
        assert await index.cosines("Rex", ["fact0001"]) == {}


async def test_a_sentence_among_others_is_looked_for_by_itself(facts, open_index) -> None:
    talk = "The weather here has been dreadful all week long. " * 2
    async with open_index() as index:
        await learn(facts, index, fact(1, REX), fact(2, OSLO))
        [hit] = await index.find(f"{talk} Is Rex hungry? {talk}", 5)
        assert hit.fact.text == REX
        assert hit.scores["relation"] >= 0


def test_of_a_long_text_the_ends_are_looked_at() -> None:
    pieces = pieces_of(" ".join(f"Sentence number {n}." for n in range(100)))
    assert pieces[1] == "Sentence number 0."
    assert pieces[-1] == "Sentence number 99."
    assert len(pieces) == 7
    assert pieces_of("One only") == ["One only"]


async def test_the_number_of_hits_is_limited(facts, open_index) -> None:
    async with open_index() as index:
        await learn(facts, index, *(fact(n, f"The dog likes toy {n}.") for n in range(9)))
        assert len(await index.find("dog", 4)) == 4


@pytest.mark.parametrize("embedders", [(), (packaged_static(),)])
async def test_the_rare_word_of_a_question_outweighs_the_one_that_many_facts_have(
    facts, open_index, embedders
) -> None:
    many = [
        fact(n, f"The user's favourite {thing} is N{n}.") for n, thing in enumerate(THINGS.split())
    ]
    doubtful = replace(
        fact(99, "The user's favourite author is Lem.", source=FactSource.EXTRACTED),
        confidence=0.6,
    )
    async with open_index(*embedders, patience=5) as index:
        await learn(facts, index, *many, doubtful)
        await index.settle()
        assert (await found(index, "What is my favourite author?"))[0] == doubtful.text
        assert len(await found(index, "What is my favourite author?", 100)) > 30


@pytest.mark.parametrize("embedders", [(), (packaged_static(),)])
async def test_who_asks_by_a_name_is_not_told_first_of_others(facts, open_index, embedders) -> None:
    names = ("Tulabri", "Tulumbe", "Tuloxta", "Corictu", "Benulmi")
    others = [
        fact(n, f"The domain of project {name} changed to host{n}.example.org.")
        for n, name in enumerate(names)
    ]
    doubtful = replace(
        fact(99, "The domain of Lorumbe is sibict.example.org.", source=FactSource.EXTRACTED),
        confidence=0.6,
    )
    filling = [fact(200 + n, f"The user likes toy {n}.") for n in range(200)]
    async with open_index(*embedders, patience=5) as index:
        await learn(facts, index, *others, *filling, doubtful)
        await index.settle()
        asked = "What is the domain of project Lorumbe?"
        assert (await found(index, asked))[0] == doubtful.text
        assert len(await found(index, "What is the domain of project Nobody?", 100)) > 3


async def test_superseded_and_removed_facts_are_no_longer_found(facts, open_index) -> None:
    old, new = fact(1, "The user's dog is called Max."), fact(2, REX)
    async with open_index(HashEmbedder()) as index:
        await learn(facts, index, old, new, fact(3, "The dog barks."))
        await learn(facts, index, replace(old, status=FactStatus.SUPERSEDED))
        await index.remove(["fact0003", "unknown"])
        assert await found(index, "dog Max barks called") == [REX]
        assert await compared(index) == [REX]


async def test_a_fact_in_new_words_is_found_by_these_alone(facts, open_index) -> None:
    embedder = HashEmbedder()
    async with open_index(embedder) as index:
        await learn(facts, index, fact(1, REX))
        await index.settle()
        await learn(facts, index, fact(1, OSLO))
        assert await found(index, "dog Rex") == []
        await index.settle()
        assert await index.cosines(OSLO, ["fact0001"]) == {"fact0001": pytest.approx(1.0)}


async def test_a_fact_that_changes_its_confidence_keeps_its_vector(facts, open_index) -> None:
    embedder = HashEmbedder()
    async with open_index(embedder) as index:
        await learn(facts, index, fact(1, REX))
        await index.settle()
        await learn(facts, index, replace(fact(1, REX), confidence=0.3))
        await index.settle()
        assert embedder.texts == [REX]
        [hit] = await index.find("Rex", 5)
        assert hit.fact.confidence == 0.3


async def test_the_nearest_facts_come_first_and_far_ones_after_them(facts, open_index) -> None:
    async with open_index(HashEmbedder(256)) as index:
        await learn(facts, index, fact(1, "one two three four"), fact(2, "one two three six"))
        await learn(facts, index, fact(3, "something else"))
        nearest = await index.nearest("one two three four", 9)
        assert [one.id for one in nearest] == ["fact0001", "fact0002", "fact0003"]
        assert [one.id for one in await index.nearest("one two three four", 1)] == ["fact0001"]


async def test_a_text_is_compared_by_the_best_embedder_though_many_facts_are_new(
    facts, open_index
) -> None:
    class Loose(HashEmbedder):
        """Knows that a club is a team."""

        async def embed(self, texts, *, query=False):
            return await super().embed([text.replace("club", "team") for text in texts])

    new = [fact(n, f"The club number {n} is lucky.") for n in range(1, chain.FEW + 50)]
    best, quick = Loose(4096), HashEmbedder(64)
    async with open_index(best, quick) as index:
        await learn(facts, index, *new, fact(999, "The team is Fortuna."))
        nearest = await index.nearest("The club is Union.", 2)
        assert "The team is Fortuna." in [one.text for one in nearest]


async def test_what_was_just_learned_is_near_at_once(facts, open_index) -> None:
    async with open_index(HashEmbedder(), run=True) as index:
        for number, text in enumerate((REX, OSLO)):
            assert text not in await compared(index)
            await learn(facts, index, fact(number, text))
            assert text in await compared(index)


async def test_words_answer_while_the_embedder_is_down(facts, open_index, clock) -> None:
    embedder = HashEmbedder(broken=True)
    async with open_index(embedder) as index:
        await learn(facts, index, fact(1, REX))
        assert await found(index, "Rex") == [REX]
        assert await compared(index) == []
        [problem] = index.problems()
        assert problem.code == "embedder_down"
        embedder.broken = False
        await clock.advance(10)
        assert await compared(index) == [REX]
        assert index.problems() == ()


class Picky(HashEmbedder):
    """Fails at any batch that holds poison."""

    failures = 0

    async def embed(self, texts, *, query=False):
        if self.broken or any("poison" in text for text in texts):
            self.failures += 1
            raise EmbedderFault("The process of picky failed: it was killed by SIGSEGV.")
        return await super().embed(texts, query=query)


async def settled(index, clock, seconds=60) -> None:
    for _ in range(seconds):
        await index.settle()
        await clock.advance(1)


async def test_a_fact_that_no_embedder_survives_is_named_and_all_others_get_vectors(
    facts, open_index, clock
) -> None:
    embedder = Picky()
    texts = [f"The user likes tea number {number}." for number in range(300)]
    texts[200] = "The user likes deadly poison."
    async with open_index(embedder) as index:
        await learn(facts, index, *(fact(number, text) for number, text in enumerate(texts)))
        await settled(index, clock)
        (problem,) = index.problems()
        assert (problem.code, index.pending) == ("text_not_embedded", 0)
        assert "fact0200" in problem.text
        assert len(await facts.vectors(embedder.model)) == 299
        assert embedder.failures < 12
        assert await found(index, "deadly", 1) == [texts[200]]
        await learn(facts, index, fact(200, "The user likes milk."))
        await settled(index, clock, 1)
        assert index.problems() == ()
        assert len(await facts.vectors(embedder.model)) == 300


async def test_no_fact_is_blamed_for_an_embedder_that_is_down(facts, open_index, clock) -> None:
    embedder = Picky(broken=True)
    async with open_index(embedder) as index:
        await learn(facts, index, *(fact(number, f"Tea number {number}.") for number in range(30)))
        await settled(index, clock, 200)
        assert [problem.code for problem in index.problems()] == ["embedder_down"]
        embedder.broken = False
        await settled(index, clock, 200)
        assert index.problems() == ()
        assert len(await facts.vectors(embedder.model)) == 30


async def test_words_answer_while_the_embedder_is_slow(facts, open_index) -> None:
    async with open_index(Held(queries=False), patience=0.002) as index:
        await learn(facts, index, fact(1, REX))
        assert await found(index, "Rex") == [REX]
        assert await found(index, "Rex") == [REX]


async def test_the_next_embedder_answers_while_the_best_has_facts_to_see(facts, open_index) -> None:
    best, quick = Held(32), HashEmbedder(64)
    await facts.write(FactWrite(tuple(fact(n, f"Fact number {n}.") for n in range(chain.FEW + 5))))
    async with open_index(best, quick, run=True) as index:
        await index.find("number 7", 5)
        await until(lambda: len(quick.texts) > chain.FEW)
        asked = "number 7 of all"
        await index.find(asked, 5)
        assert asked in quick.texts
        best.may.set()
        await until(lambda: index.pending == 0)
        quick.texts.clear()
        assert (await index.find(asked, 5))[0].scores.keys() >= {"vector"}
        assert asked in best.texts
        assert quick.texts == []


async def test_a_removed_fact_never_comes_back_from_an_embedder(facts, open_index) -> None:
    embedder = Held()
    async with open_index(embedder, run=True) as index:
        await facts.write(FactWrite((fact(1, REX), fact(2, OSLO))))
        assert await found(index, "Rex") == [REX]
        await embedder.asked.wait()
        async with asyncio.timeout(1):
            await index.remove(["fact0001"])  # does not wait for the embedder
        embedder.may.set()
        await until(lambda: index.pending == 0)
        assert (await facts.vectors(embedder.model)).keys() == {"fact0002"}
        assert await compared(index) == [OSLO]
        assert await found(index, "Rex") == []


async def test_a_fact_that_changed_meanwhile_does_not_get_the_old_vector(facts, open_index) -> None:
    embedder = Held()
    async with open_index(embedder, run=True) as index:
        await facts.write(FactWrite((fact(1, REX),)))
        await index.find("Rex", 1)
        await embedder.asked.wait()
        await learn(facts, index, fact(1, OSLO))
        embedder.may.set()
        await until(lambda: index.pending == 0)
        assert await index.cosines(OSLO, ["fact0001"]) == {"fact0001": pytest.approx(1.0)}


async def test_a_fact_removed_while_all_are_loaded_stays_away(clock, state_db) -> None:
    class Slow(SqliteFacts):
        asked, may = asyncio.Event(), asyncio.Event()

        async def facts(self):
            found = await super().facts()
            self.asked.set()
            await self.may.wait()
            return found

    slow = Slow(state_db)
    await slow.write(FactWrite((fact(1, REX), fact(2, "The dog barks."))))
    async with LiveFacts.open(slow, [], clock) as index, asyncio.TaskGroup() as tasks:
        loading = tasks.create_task(index.nearest("dog", 1))
        await slow.asked.wait()
        removing = tasks.create_task(index.remove(["fact0001"]))
        await asyncio.sleep(0)
        slow.may.set()
        await loading
        await removing
        assert await found(index, "dog called Rex") == ["The dog barks."]


async def test_stored_vectors_are_used_again(facts, open_index) -> None:
    first, second = HashEmbedder(), HashEmbedder()
    async with open_index(first) as index:
        await learn(facts, index, fact(1, REX))
        await index.settle()
    async with open_index(second) as index:
        assert await index.cosines("dog", ["fact0001"])
        assert second.texts == ["dog"]  # what was asked; the fact's own is known


async def test_stored_vectors_of_another_length_are_made_anew(facts, open_index) -> None:
    await facts.write(FactWrite((fact(1, REX),)))
    await facts.put_vectors("hash-64", {"fact0001": b"\0" * 12})
    async with open_index(HashEmbedder()) as index:
        assert await compared(index) == [REX]


async def test_another_model_sees_all_facts_while_words_answer(facts, open_index) -> None:
    async with open_index(HashEmbedder(64)) as index:
        await learn(facts, index, fact(1, REX), fact(2, OSLO))
        await index.settle()
    other = Held(32)
    async with open_index(other, run=True, patience=0.002) as index:
        assert await found(index, "Rex") == [REX]
        await other.asked.wait()
        assert index.pending == 2
        assert await found(index, "Rex") == [REX]
        other.may.set()
        await until(lambda: index.pending == 0)
        assert len(await facts.vectors("hash-32")) == 2


async def test_an_embedder_of_wrong_vectors_is_a_problem_and_no_failure(facts, open_index) -> None:
    class Wrong(HashEmbedder):
        async def embed(self, texts, *, query=False):
            return [b"\0" * 8 for _ in texts]

    async with open_index(Wrong()) as index:
        await learn(facts, index, fact(1, REX))
        assert await found(index, "Rex") == [REX]
        assert "64" in index.problems()[0].text


async def test_a_failing_store_fails_a_search_and_the_next_one_loads(clock, state_db) -> None:
    class Failing(SqliteFacts):
        fails = True

        async def facts(self):
            if self.fails:
                raise StorageError("the disk is gone")
            return await super().facts()

    store = Failing(state_db)
    await store.write(FactWrite((fact(1, REX),)))
    async with LiveFacts.open(store, [], clock) as index:
        with pytest.raises(StorageError):
            await index.find("Rex", 1)
        store.fails = False
        assert await found(index, "Rex") == [REX]


async def test_with_its_work_running_a_failing_store_finds_nothing(clock, state_db) -> None:
    class Failing(SqliteFacts):
        async def facts(self):
            raise StorageError("the disk is gone")

    async with LiveFacts.open(Failing(state_db), [], clock) as index, asyncio.TaskGroup() as tasks:
        work = tasks.create_task(index.run())
        await asyncio.sleep(0)
        assert await found(index, "Rex") == []
        work.cancel()


async def test_a_worn_index_begins_anew(facts, open_index) -> None:
    async with open_index(HashEmbedder()) as index:
        many = [fact(n, f"The dog likes toy {n}.") for n in range(facts_mirror.SPARE + 10)]
        await learn(facts, index, fact(9999, REX), *many)
        await index.settle()
        ids = [one.id for one in many]
        await facts.bury(ids, [], NOW)
        await index.remove(ids)
        assert await found(index, "Rex the dog") == [REX]
        assert await compared(index) == [REX]


def test_as_long_as_there_is_no_fact_nothing_heavy_is_loaded() -> None:
    code = (
        "import asyncio, sys\n"
        "from agentd.core.clock import SystemClock\n"
        "from agentd.memory.index.embedding.lazy_static import packaged_static\n"
        "from agentd.core.turn import MAIN, TurnRequest\n"
        "from agentd.memory.facts.fact_settings import FactsSettings\n"
        "from agentd.memory.facts.facts_in_prompt import FactsInPrompt\n"
        "from agentd.memory.index.search.fact_search import LiveFacts\n"
        "from agentd.memory.index.search.patient_embedder import patient\n"
        "class Nothing:\n"
        "    async def all(self):\n"
        "        return ()\n"
        "    facts = all\n"
        "async def main():\n"
        "    embedders = patient([packaged_static()], SystemClock())\n"
        "    async with LiveFacts.open(Nothing(), embedders, SystemClock()) as index:\n"
        "        settings = FactsSettings(prompt_tokens=0)\n"
        "        told = FactsInPrompt(Nothing(), index, SystemClock(), 'framing', settings)\n"
        "        assert not await told.blocks(TurnRequest(MAIN, 'what is my name', '1'))\n"
        "        assert not await index.nearest('x', 1)\n"
        "        await index.remove(['a'])\n"
        "asyncio.run(main())\n"
        "sys.exit('numpy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
