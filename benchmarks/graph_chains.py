"""Questions over two to four facts: whether the graph finds them all, and how much else it tells.

Forty chains stand among a thousand facts: those about the same people and things, five to each, and
those about the user. Half of the questions say relations in the words of the facts, half in others;
some are in German. Asked is the graph as `graph_recall` asks it, with the word table that ships and
without.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter

from agentd.core.fact import Category, Fact, FactSource, Triple
from agentd.memory.graph.derive import Names, derive
from agentd.memory.graph.recall import Recollection
from agentd.memory.graph.relevance import NameSimilarity
from agentd.memory.index.embedding.lazy_static import packaged_static
from agentd.storage.graph_store import SqliteGraph
from agentd.storage.migrations import INDEX
from agentd.storage.sqlite import Database
from agentd.testing.clock import FakeClock
from agentd.zero.naming import Aliases
from benchmarks.row import Row

FACTS = 1_000
BESIDE = 5  # other facts about each thing of a chain
LIMIT = 8  # facts that an answer tells
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SEED = 20261123

# What is asked, and the facts that answer it: subject, relation, value.
CHAINS = """
In which city is my sister's employer? | user, sister, Klara | Klara, employer, Brandt Optik | Brandt Optik, city, Jena
Where is the company my brother works for based? | user, brother, Tomas | Tomas, works at, Velmora | Velmora, based in, Ghent
Who teaches my son piano? | user, son, Emil | Emil, piano teacher, Mrs Okafor
What breed is the dog of my neighbour? | user, neighbour, Hakan | Hakan, dog, Biscuit | Biscuit, breed, beagle
When does the school of my daughter close for summer? | user, daughter, Lotte | Lotte, school, Ahornschule | Ahornschule, summer break starts, July 9
Which airline does my boss's wife fly for? | user, boss, Renata | Renata, wife, Sofia | Sofia, pilot at, Nordwind
What is the phone number of my landlord's plumber? | user, landlord, Mr Petrov | Mr Petrov, plumber, Ilya Pipes | Ilya Pipes, phone number, 0151 4477
Where did my grandmother's husband grow up? | user, grandmother, Edith | Edith, husband, Walter | Walter, grew up in, Memel
Which hospital does my doctor work in? | user, doctor, Dr Yilmaz | Dr Yilmaz, works in, Marienhospital
What car does my cousin's roommate drive? | user, cousin, Pia | Pia, roommate, Greta Lind | Greta Lind, drives, an old Saab
Who founded the club I play chess in? | user, plays chess in, SK Turm | SK Turm, founded by, Otto Haas
What does the dentist of my husband charge? | user, husband, Marc | Marc, dentist, Dr Winter | Dr Winter, hourly rate, 120 euros
Which street is the bakery on where my aunt works? | user, aunt, Hilde | Hilde, works at, Backhaus Korn | Backhaus Korn, street, Lange Gasse
Who owns the flat my friend Noor rents? | Noor, rents, the loft at Kai 7 | the loft at Kai 7, owner, Mr de Vries
What language does Jana's thesis advisor teach in? | Jana, thesis advisor, Prof Lund | Prof Lund, teaches in, Danish
What is the dosage of the medicine my father takes? | user, father, Georg | Georg, takes, Ramipril | Ramipril, dosage, 5 mg
Which river runs past the cabin of my uncle? | user, uncle, Sven | Sven, cabin, Björkhus | Björkhus, river, Klarälven
Who is the mayor of the town where my mother lives? | user, mother, Ines | Ines, lives in, Weidenau | Weidenau, mayor, Carla Fuchs
What instrument does the bandmate of my colleague Ravi play? | Ravi, bandmate, Milo | Milo, instrument, bassoon
Which bank holds the mortgage of my house? | user, house, Fliederweg 3 | Fliederweg 3, mortgage, loan 88 | loan 88, bank, Sparda
In welcher Stadt sitzt die Firma von meinem Schwager? | user, Schwager, Jonas Wolf | Jonas Wolf, Firma, Textilwerk Ost | Textilwerk Ost, Stadt, Zwickau
Welchen Beruf hat der Mann meiner Tante Rosa? | Rosa, Mann, Heiner | Heiner, Beruf, Imker
Wo wohnt der Trainer von meinem Sohn Ben? | Ben, Trainer, Kuno Arp | Kuno Arp, wohnt in, Eutin
Wie heißt der Hund von meiner Chefin? | user, Chefin, Frau Brandl | Frau Brandl, Hund, Pixel
Where is my sister-in-law's workplace located? | user, sister-in-law, Amara | Amara, employer, Hafenlabor | Hafenlabor, city, Kiel
What pet does the person who cuts my hair have? | user, hairdresser, Dilan | Dilan, pet, a parrot called Kiwi
Which doctor treats my niece's asthma? | user, niece, Zoe | Zoe, pulmonologist, Dr Anand
Where was the spouse of my accountant born? | user, accountant, Felicia | Felicia, husband, Ricardo | Ricardo, birthplace, Porto
How much does the lawyer of my business partner cost? | user, business partner, Leon | Leon, attorney, Ms Tran | Ms Tran, hourly rate, 250 euros
What firm does my tenant work for? | user, tenant, Bruno | Bruno, employer, Solaris GmbH
Which town does the vet of our cat live in? | user, cat, Mimi | Mimi, veterinarian, Dr Sommer | Dr Sommer, home, Lindau
What sport does the kid of my trainer do? | user, trainer, Yusuf | Yusuf, daughter, Leyla | Leyla, sport, fencing
Who runs the restaurant where my best friend cooks? | user, best friend, Chiara | Chiara, chef at, Trattoria Sole | Trattoria Sole, manager, Paolo
When is the birthday of my stepbrother's girlfriend? | user, stepbrother, Kai | Kai, girlfriend, Nina Voss | Nina Voss, birthday, March 3
Which country does my pen pal's husband come from? | user, pen pal, Akiko | Akiko, spouse, Diego | Diego, nationality, Chilean
What allergy does my godchild's twin have? | user, godchild, Fritz | Fritz, twin brother, Hugo | Hugo, allergic to, hazelnuts
Where does the supplier of the shop I buy tea from sit? | user, buys tea at, Teehaus Mond | Teehaus Mond, supplier, Assam Direkt | Assam Direkt, headquarters, Hamburg
Which company insures the van of my band? | user, band, Static Owls | Static Owls, van, the green Transit | the green Transit, insurer, HUK
Who is the editor of the magazine my ex writes for? | user, ex, Valerie | Valerie, writes for, Kulturblatt | Kulturblatt, chief editor, Anselm Roth
What is the capital of the country my pilot friend Otis was posted to? | Otis, posted to, Senegal | Senegal, capital, Dakar
"""

_RELATIONS = (
    "likes", "hobby", "favourite colour", "visited", "eye colour", "favourite band", "shoe size",
    "collects", "afraid of", "studied", "reads", "middle name", "opened", "rating", "nickname", "age",
)  # fmt: skip
_VALUES = (
    "green",
    "jazz",
    "Rome",
    "42",
    "stamps",
    "spiders",
    "maths",
    "crime novels",
    "tea",
    "chess",
)


def chains() -> list[tuple[str, list[Triple]]]:
    """The questions, each with the facts that answer it."""
    found = []
    for line in CHAINS.strip().splitlines():
        question, *facts = (part.strip() for part in line.split(" | "))
        found.append(
            (question, [Triple(*(word.strip() for word in fact.split(", "))) for fact in facts])
        )
    return found


def world() -> list[Triple]:
    """All facts: the chains, others about what they name, and others about the user."""
    chance = Random(SEED)
    needed = list(dict.fromkeys(fact for _, facts in chains() for fact in facts))
    things = list(dict.fromkeys(end for one in needed for end in (one.subject, one.value)))
    beside = [
        Triple(thing, relation, f"{chance.choice(_VALUES)} {chance.randint(1, 400)}")
        for thing in things
        if thing != "user"
        for relation in chance.sample(_RELATIONS, BESIDE)
    ]
    own = [
        Triple(
            "user", f"{chance.choice(_RELATIONS)} {number}", f"{chance.choice(_VALUES)} {number}"
        )
        for number in range(max(0, FACTS - len(needed) - len(beside)))
    ]
    return [*needed, *beside, *own]


async def rows() -> AsyncIterator[Row]:
    """Chains found whole, and the noise with them, with the word table and without."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        db = await stack.enter_async_context(Database.open(Path(folder) / "index.db", INDEX))
        store, clock = SqliteGraph(db), FakeClock(NOW)
        known = derive([_fact(n, one) for n, one in enumerate(world())], {}, Aliases({}))
        await store.insert([one.record() for one in known.sayings.values()])
        for name, near in (
            ("with the word table", NameSimilarity(packaged_static()).near),
            ("by letters alone", None),
        ):
            asked = Recollection(store, clock, resolve=known.names.resolve, near=near)
            async for row in _asked(asked, name, known.names):
                yield row


async def _asked(recollection: Recollection, how: str, known: Names) -> AsyncIterator[Row]:
    whole, last = 0, 0
    noise: list[float] = []
    times: list[float] = []
    for question, facts in chains():
        began = perf_counter()
        answer = await recollection.about(question, LIMIT, owner="user", beside=BESIDE)
        times.append(1e3 * (perf_counter() - began))
        said = {(one.subject, one.predicate, one.object) for one in answer.triples}
        resolved = [known.triple(fact) for fact in facts]
        wanted = [(one.subject, one.relation, one.value) for one in resolved]
        is_whole = said.issuperset(wanted)
        whole += is_whole
        last += wanted[-1] in said
        noise.append(len(said - set(wanted)))
    count = len(noise)
    yield Row(
        f"graph chains, {how}: all facts of a chain",
        [100 * whole / count],
        "%",
        least=90 if "table" in how else None,
    )
    yield Row(f"graph chains, {how}: the last fact", [100 * last / count], "%")
    yield Row(f"graph chains, {how}: most noise", [max(noise)], "facts", below=5.5)
    yield Row(f"graph chains, {how}: mean noise", [sum(noise) / count], "facts")
    yield Row(f"graph chains, {how}: a question", [sorted(times)[int(count * 0.95)]], "ms")


def _fact(number: int, triple: Triple) -> Fact:
    text = f"{triple.subject} {triple.relation} {triple.value}"
    source = FactSource.EXPLICIT
    return Fact(f"f{number}", text, Category.PERSONAL, source, 0.9, NOW, NOW, triple=triple)
