"""The whole pipeline on small corpora."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.search import Chunk, EmptyReason, Fusion, SearchOptions, Source
from agentd.memory.index.ranking import structured
from agentd.memory.index.ranking.fusion import FITTED
from agentd.memory.index.ranking.kinds import KindClassifiers
from agentd.memory.index.search import phrasings
from agentd.memory.index.search.searcher import Searcher

TODAY = date(2026, 11, 1)


def unit(text, path="memory/2026-10-01.md", line=1, day=date(2026, 10, 1), **more):
    return Chunk(path, line, line, text, Source.NOTES, "main", day, **more)


NOTES = [
    unit("The router's password is taped under the shelf.", line=3),
    unit("Bought tomatoes and basil at the market.", line=5),
    unit("Deploy host is kestrel-02.example, port 8443.", line=7),
    unit(
        "東京タワーに行った。とても高かった。", path="memory/2026-10-03.md", day=date(2026, 10, 3)
    ),
]


@pytest.mark.parametrize(
    "query",
    ["'", '"', '"a" OR (b', "AND", "NEAR(", "\x00", "😀", "東", "a" * 100_000, "🏳️‍🌈 " * 20_000, "\ud800",
     "what's my dog's name?", "C++ tips", "foo-bar*", "....", " ", "", "? " * 50_000],
)  # fmt: skip
@pytest.mark.parametrize("fusion", list(Fusion))
def test_any_text_is_a_valid_query(query, fusion):
    searcher = Searcher()
    searcher.add(NOTES, np.eye(4, dtype=np.float32))
    for vector in (None, np.ones(4, np.float32)):
        ranking = searcher.search(query, vector, SearchOptions(fusion=fusion, today=TODAY))
        assert all(0.0 <= hit.score <= 1.0 for hit in ranking)
        assert bool(ranking.hits) != (ranking.reason is not None)


def test_an_empty_answer_says_why():
    searcher = Searcher()
    assert searcher.search("x", None, SearchOptions()).reason is EmptyReason.NOTHING_INDEXED
    searcher.add(NOTES)
    assert searcher.search(" ", None, SearchOptions()).reason is EmptyReason.EMPTY_QUERY
    assert searcher.search("zeppelin", None, SearchOptions()).reason is EmptyReason.NO_MATCH
    high = SearchOptions(min_score=1.0)
    assert searcher.search("tomatoes", None, high).reason is EmptyReason.BELOW_THRESHOLD
    assert (
        searcher.search("tomatoes", None, SearchOptions(max_tokens=1)).reason is EmptyReason.BUDGET
    )


def found(searcher, query, vector=None, **options):
    """The paths and first lines of the hits of a query, best first, unjoined."""
    options = SearchOptions(**{"today": TODAY, "join": False} | options)
    return [
        searcher.corpus.place(hit.slots[0])[:2] for hit in searcher.search(query, vector, options)
    ]


def filled(*units, vectors=None):
    searcher = Searcher()
    searcher.add(units, vectors)
    return searcher


def note(day, line, text, **more):
    return unit(text, f"memory/{day}.md", line, date.fromisoformat(day), **more)


def test_a_question_finds_its_words_whatever_marks_stand_in_it():
    searcher = filled(*NOTES)
    assert found(searcher, "What's the router's password?")[0] == ("memory/2026-10-01.md", 3)
    assert found(searcher, "kestrel-02.example")[0] == ("memory/2026-10-01.md", 7)
    assert found(searcher, "東京")[0] == ("memory/2026-10-03.md", 1)


def test_a_part_of_a_hyphened_word_finds_it_and_it_finds_its_parts():
    searcher = filled(
        note("2026-10-01", 1, "switch on dark-mode"), note("2026-10-01", 2, "dark mode")
    )
    assert len(found(searcher, "dark mode")) == len(found(searcher, "dark-mode")) == 2


def test_a_misspelt_word_finds_the_word_that_was_meant():
    searcher = filled(*NOTES)
    assert found(searcher, "tomatos and bsail")[0] == ("memory/2026-10-01.md", 5)


RATES = (
    note("2026-02-01", 1, "Day rate for Brackwater: 760 net."),
    note("2026-07-01", 1, "Day rate for Brackwater is 840 net now."),
    note("2026-05-01", 1, "Day rate for Brackwater goes to 790 net."),
    note("2026-08-01", 1, "Day rate for Calloway stays at 720 net."),
)


def test_the_newest_of_several_values_comes_first_and_the_others_say_so():
    searcher = filled(*RATES)
    options = SearchOptions(today=TODAY)
    hits = searcher.search("what is the day rate for Brackwater?", None, options).hits
    days = [searcher.corpus.path(hit.slots[0])[7:17] for hit in hits]
    brackwater = [day for day in days if day != "2026-08-01"]
    assert brackwater == ["2026-07-01", "2026-05-01", "2026-02-01"]
    assert days[0] == "2026-07-01"
    newest = hits[0].slots[0]
    superseded = {day: hit.superseded_by for day, hit in zip(days, hits, strict=True)}
    assert superseded["2026-02-01"] == superseded["2026-05-01"] == newest
    assert superseded["2026-07-01"] is superseded["2026-08-01"] is None


@pytest.mark.parametrize(
    ("before", "speaker", "outdates"),
    [
        ("What is the day rate for Brackwater?", "assistant", False),
        ("What is the day rate for Brackwater?", "user", True),
        ("Brackwater pays more from now on.", "assistant", True),
    ],
)
def test_a_reply_to_a_question_outdates_no_note_that_it_tells_again(before, speaker, outdates):
    said = replace(chat(1, before), speaker="user", date=date(2026, 9, 1))
    told = replace(
        said,
        start_line=2,
        end_line=2,
        text="Day rate Brackwater: 840, earlier 760.",
        speaker=speaker,
    )
    searcher = filled(*RATES[:2], said, told)
    options = SearchOptions(today=TODAY, join=False)
    hits = searcher.search("day rate for Brackwater", None, options).hits
    newer = {searcher.corpus.path(h.slots[0])[7:17]: h.superseded_by for h in hits}
    assert (newer["2026-07-01"] is not None) is outdates
    assert newer["2026-02-01"] is not None


def test_a_question_about_what_was_is_not_answered_with_the_newest():
    vectors = np.eye(4, dtype=np.float32)[[0] * len(RATES)] + np.float32(0.4) * np.eye(
        len(RATES), 4, dtype=np.float32
    )
    options = SearchOptions(today=TODAY, join=False)
    led = []
    for sign in (1.0, -1.0):
        searcher = filled(*RATES, vectors=vectors)
        weights = np.array([10.0 * sign, 0.0, 0.0, 0.0, 0.0], np.float32)
        searcher.kinds = KindClassifiers(
            state=weights, answerable=weights, far=np.zeros(2, np.float32)
        )
        hits = searcher.search("day rate for Brackwater", vectors[0], options).hits
        led.append(searcher.corpus.column("day")[hits[0].slots[0]])
    assert led[0] == searcher.corpus.column("day").max()
    assert led[1] < led[0]


def test_vectors_of_a_model_that_nothing_is_known_of_do_not_tell_what_is_newer():
    """Those of some models all lie near each other, so that whatever is found would be put by its
    day.
    """
    cone = np.array([3.0, 0.0, 0.0, 0.0], np.float32) + np.eye(4, dtype=np.float32)
    options = SearchOptions(today=TODAY, join=False)
    apart = filled(
        note("2026-02-01", 1, "Brackwater pays 760 net."),
        note("2026-07-01", 1, "A letter came from Brackwater."),
        vectors=cone[:2],
    )
    hits = apart.search("what does Brackwater pay?", cone[0], options).hits
    assert [(hit.slots, hit.superseded_by) for hit in hits] == [((0,), None), ((1,), None)]
    alike = filled(*RATES[:2], vectors=cone[:2])
    hits = alike.search("day rate for Brackwater", cone[0], options).hits
    assert [(hit.slots, hit.superseded_by) for hit in hits] == [((1,), None), ((0,), 1)]


RUNS = (
    note("2026-10-30", 1, "Run: 7 km along the river, fog."),
    note("2026-10-31", 1, "Run: 12 km with Ruben, too fast."),
    note("2026-05-12", 1, "Conference in Hamburg: 12 to 14 May 2026."),
    note("2026-05-19", 1, "Dinner at the Georgian place."),
    note("2026-03-05", 1, "Dinner with Hedda, fish."),
)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("how far did I run yesterday?", "memory/2026-10-31.md"),
        ("how far did I run on Friday?", "memory/2026-10-30.md"),
        ("dinner in March", "memory/2026-03-05.md"),
        ("where was dinner the week after the conference?", "memory/2026-05-19.md"),
    ],
)
def test_days_that_are_named_decide(query, path):
    assert found(filled(*RUNS), query)[0] == (path, 1)


def test_the_answer_stands_beside_its_question():
    talk = "sessions/main.jsonl"
    searcher = filled(
        unit("Which toner does the printer take?", talk, 1, speaker="assistant"),
        unit("The black one with 117 in its name.", talk, 2, speaker="user"),
        unit("Thanks, noted.", talk, 3, speaker="assistant"),
        *NOTES,
    )
    hits = searcher.search(
        "which toner does the printer need?", None, SearchOptions(today=TODAY)
    ).hits
    assert {0, 1} <= set(hits[0].slots)


SHUFFLED = [
    *(note(f"2026-09-{day:02}", line, f"{word} and {word} again {day % 3}")
      for day in range(1, 9) for line, word in enumerate(("tea", "milk", "tea"), 1)),
]  # fmt: skip


@given(st.permutations(range(len(SHUFFLED))), st.sets(st.integers(0, len(SHUFFLED) - 1)))
@settings(max_examples=25)
def test_answers_do_not_depend_on_the_order_of_insertion_nor_on_what_was_forgotten(order, gone):
    vectors = np.random.default_rng(7).standard_normal((len(SHUFFLED) + 1, 8)).astype(np.float32)
    kept = [n for n in range(len(SHUFFLED)) if n not in gone]
    plain = filled(*(SHUFFLED[n] for n in kept), vectors=vectors[kept])
    mixed = filled(*(SHUFFLED[n] for n in order), vectors=vectors[list(order)])
    mixed.remove([at for at, n in enumerate(order) if n in gone])
    for fusion in Fusion:
        options = SearchOptions(limit=60, fusion=fusion, today=TODAY)
        answers = [
            [
                (*(s.corpus.place(slot) for slot in hit.slots), round(hit.score, 4))
                for hit in s.search("tea again", vectors[-1], options)
            ]
            for s in (plain, mixed)
        ]
        assert answers[0] == answers[1]


def test_equals_come_in_the_order_of_path_and_line():
    same = [
        note(day, line, "same words") for day in ("2026-09-02", "2026-09-01") for line in (9, 1)
    ]
    places = found(filled(*same), "same words", recency=False)
    assert places == sorted(places)


def test_only_the_sources_asked_for_are_proposed():
    talk = Chunk("sessions/a.jsonl", 1, 1, "tea", Source.SESSIONS, "main", TODAY)
    searcher = filled(talk, *(note("2026-09-01", n, "tea") for n in range(1, 400)))
    assert found(searcher, "tea", sources=frozenset({Source.SESSIONS})) == [("sessions/a.jsonl", 1)]
    assert found(searcher, "tea", sources=frozenset()) == []


@given(st.integers(0, 60), st.integers(1, 30))
@settings(max_examples=25)
def test_hits_stay_within_budget_and_limit(budget, limit):
    searcher = filled(*SHUFFLED)
    options = SearchOptions(limit=limit, max_tokens=budget, today=TODAY)
    hits = searcher.search("tea", None, options).hits
    assert sum(hit.tokens for hit in hits) <= budget
    assert len(hits) <= limit


def test_scores_fall_and_tell_what_they_are_made_of():
    searcher = filled(*NOTES, vectors=np.eye(4, dtype=np.float32))
    for fusion in Fusion:
        options = SearchOptions(fusion=fusion, today=TODAY, mmr=True)
        hits = searcher.search(
            "tomatoes at the market", np.eye(4, dtype=np.float32)[1], options
        ).hits
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert {"keyword", "vector", "fused", "certainty", "decay", "cover"} <= set(hits[0].scores)


def test_a_good_answer_is_surer_than_the_best_of_bad_ones():
    searcher = filled(*NOTES)
    options = SearchOptions(today=TODAY)
    good = searcher.search("where is the router's password taped?", None, options).hits[0].score
    bad = searcher.search("who bought the zeppelin in Ulaanbaatar?", None, options).hits[0].score
    assert good > 2 * bad


@pytest.mark.parametrize(
    "vector", [np.full(4, np.nan), np.zeros(4), np.ones(3), np.full(4, np.inf)]
)
def test_a_vector_of_no_use_leaves_the_keywords(vector):
    searcher = filled(*NOTES, vectors=np.eye(4, dtype=np.float32))
    assert found(searcher, "tomatoes", vector) == found(searcher, "tomatoes")


def test_vectors_of_another_dimension_are_refused():
    searcher = filled(*NOTES, vectors=np.eye(4, dtype=np.float32))
    with pytest.raises(ValueError, match="4"):
        searcher.set_vectors([0], np.ones((1, 3), np.float32))


def test_what_is_forgotten_is_not_found():
    searcher = filled(*NOTES, vectors=np.eye(4, dtype=np.float32))
    searcher.remove([1])
    searcher.remove([1])
    assert ("memory/2026-10-01.md", 5) not in found(
        searcher, "tomatoes", np.eye(4, dtype=np.float32)[1]
    )
    assert len(searcher) == 3


def chat(number, text):
    path = f"sessions/talk-{number % 50}.jsonl"
    return Chunk(path, number, number, text, Source.SESSIONS, "main", date(2026, 10, 2), "user")


def test_chatter_does_not_drown_the_note_that_answers():
    note = unit("The spare key hangs behind the blue shutter.", line=9)
    talk = [chat(n, f"We talked of the spare key again, where it hangs, {n}.") for n in range(1000)]
    vectors = np.tile(np.float32([1.0, 0.0]), (1001, 1))
    vectors[0] = [0.6, 0.8]
    for known in (None, vectors):
        searcher = filled(note, *talk, vectors=known)
        query = None if known is None else np.float32([1.0, 0.0])
        assert ("memory/2026-10-01.md", 9) in found(
            searcher, "where does the spare key hang", query
        )[:5]


def test_equal_texts_are_ranked_alike_whatever_was_indexed_first():
    rows = [chat(n, "That is fine with me.") for n in range(1, 140)]
    behind = [replace(r, start_line=r.start_line + 1, end_line=r.end_line + 1) for r in rows]
    behind = [replace(r, text="Nothing more.") for r in behind]
    units = [*rows, *behind]
    told = []
    for order in (units, units[::-1]):
        searcher = filled(*order)
        slots, columns, _ = searcher.features("what is fine", None, SearchOptions(today=TODAY))
        places = [searcher.corpus.place(slot) for slot in slots.tolist()]
        told.append((places, columns["wide_cover"].tolist()))
    assert told[0] == told[1]


def test_a_question_asked_before_stands_behind_its_answer():
    asked = [chat(n, "Where does the spare key hang?") for n in range(1, 30)]
    answer = chat(40, "The spare key hangs behind the blue shutter.")
    hits = found(filled(*asked, answer), "where does the spare key hang?")
    assert hits[0] == ("sessions/talk-40.jsonl", 40)


@pytest.mark.parametrize(
    ("asker", "replier", "place"),
    [
        ("user", "assistant", 3),  # agentd knows no more than what else is found
        ("user", "user", 3),  # it was not answered
        ("assistant", "user", 0),
        ("Ann", "Ben", 0),
    ],
)
def test_a_question_keeps_its_place_before_the_reply_of_a_person(asker, replier, place):
    note = unit("The key of the boat hangs on a nail, behind the blue shutter.", line=9)
    others = [unit(f"Filler about nothing {n}.", line=n) for n in range(20, 60)]
    asked = replace(chat(1, "Where does the spare key hang?"), speaker=asker)
    reply = replace(chat(2, "Behind the green one."), path=asked.path, speaker=replier)
    hits = found(filled(note, asked, reply, *others), "where does the spare key hang?")
    assert hits.index((asked.path, 1)) == place


def test_a_query_about_something_else_is_told_as_such():
    others = [unit(f"Filler about nothing {n}.", line=n) for n in range(20, 120)]
    vectors = np.zeros((len(NOTES) + len(others), 12), np.float32)
    vectors[np.arange(len(vectors)), np.arange(len(vectors)) % 12] = 1.0
    searcher = filled(*NOTES, *others, vectors=vectors)
    far = np.full(12, 12**-0.5, np.float32)  # a little like every unit
    foreign = searcher.search("zeppelin", far, SearchOptions()).confidence
    known = searcher.search("router password taped", vectors[0], SearchOptions()).confidence
    assert foreign < known / 2


def test_few_units_are_found_by_a_little_likeness():
    searcher = filled(*NOTES, vectors=np.eye(4, 12, dtype=np.float32))
    far = np.full(12, 12**-0.5, np.float32)
    assert searcher.search("zeppelin", far, SearchOptions()).hits


def test_the_features_of_candidates_are_those_that_a_search_goes_by():
    searcher = Searcher()
    slots = searcher.add(NOTES, np.eye(4, dtype=np.float32))
    vector = np.array([1, 0.5, 0, 0], np.float32)
    options = SearchOptions(today=TODAY, join=False)
    candidates, columns, _ = searcher.features("router password", vector, options)
    assert sorted(candidates.tolist()) == slots
    wanted = dict(
        zip(
            candidates.tolist(),
            structured.score(columns, FITTED.structured["both"]).tolist(),
            strict=True,
        )
    )
    hits = searcher.search("router password", vector, replace(options, min_score=0.0))
    told = {hit.slots[0]: hit.scores["fused"] for hit in hits}
    assert told == pytest.approx({slot: wanted[slot] for slot in told}, abs=1e-3)
    assert len(told) == 3  # the other one holds no word of it, and means something else


def test_the_best_of_few_texts_is_no_answer_where_it_is_far_from_the_question():
    texts = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0.2, 0, 1, 0]], np.float32)
    question = np.array([0.15, 0.02, 0, 1], np.float32)
    searcher = filled(*NOTES[:3], vectors=texts)
    flat = np.zeros(5, np.float32)
    sure = {}
    for name, far in (("heard", (0.5, 25.0)), ("not heard", (0.0, 0.0))):
        searcher.kinds = KindClassifiers(flat, flat, np.array(far, np.float32))
        sure[name] = searcher.search("quantum chromodynamics", question, SearchOptions()).confidence
    assert sure["heard"] < 0.02 < sure["not heard"]
    near = searcher.search("what did I buy?", texts[1], SearchOptions()).confidence
    searcher.kinds = KindClassifiers(flat, flat, np.array((0.5, 25.0), np.float32))
    assert searcher.search("what did I buy?", texts[1], SearchOptions()).confidence == near


def test_short_hits_in_place_of_the_best_say_that_it_did_not_fit():
    notes = [
        unit("The router's password is taped under the shelf.", line=3),
        unit("Basil.", line=5),
    ]
    vectors = np.array([[1, 0, 0, 0], [0.3, 1, 0, 0]], np.float32)
    searcher = filled(*notes, vectors=vectors)
    asked = ("where is the router's password?", vectors[0])
    narrow = SearchOptions(max_tokens=5, join=False)
    for found in (
        searcher.search(*asked, narrow),
        phrasings.search(searcher, [asked, asked], narrow),
    ):
        assert ([hit.slots for hit in found.hits], found.reason) == ([(1,)], EmptyReason.BUDGET)
    wide = SearchOptions(max_tokens=50, join=False)
    assert searcher.search(*asked, wide).reason is None
    assert phrasings.search(searcher, [asked, asked], wide).reason is None
