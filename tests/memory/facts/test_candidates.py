"""What may say a forgotten fact is found by counting, never by a list of words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.erasure import Erasure, PlacedWords, StoredText, UntracedFact
from agentd.memory.facts.candidates import SoughtWords, Survey, words_of

AT = datetime(2026, 5, 4, 9, 40, tzinfo=UTC)
LONDON = UntracedFact("k3f9", "The user lives in London.", "London", ("I live in London",), (), AT)
CHATTER = [
    StoredText(f"sessions/main.jsonl:{n}", f"The user lives and I live in a flat, number {n}.", AT)
    for n in range(100, 300)
]


def survey(*texts: StoredText, sought=(LONDON,), **more) -> Survey:
    found = Survey(sought, **more)
    found.add([*CHATTER, *texts])
    return found


def own(text: str, where: str = "memory/a.md:1", at: datetime | None = AT) -> StoredText:
    return StoredText(where, text, at)


def mine(text: str, where: str = "sessions/main.jsonl:7", at: datetime | None = AT) -> StoredText:
    return StoredText(where, text, at, by_user=True)


def test_a_text_that_shares_a_rare_word_is_a_candidate_and_one_that_shares_a_common_is_not():
    found = survey(own("Flat in LONDON’s east")).candidates(Erasure())
    assert [(one.text, one.where, one.facts) for one in found] == [
        ("Flat in LONDON’s east", ("memory/a.md:1",), {"k3f9"})
    ]


def test_a_name_is_a_mention_however_often_agentd_has_written_it():
    raw = UntracedFact("k3f9", "my landlord is Otto Finster", "", (), (), AT)
    notes = [own("Otto Finster called", f"memory/a.md:{n}") for n in range(1, 20)]
    by_hand = mine("Otto Finster called about the rent", "memory/2026-05-04.md:1")
    found = survey(*notes, by_hand, sought=[raw]).mentions(Erasure())
    assert [one.mention.where for one in found] == ["memory/2026-05-04.md:1"]


def test_what_was_written_before_the_fact_was_said_is_none():
    before = own("London calling", at=AT - timedelta(hours=1))
    undated = own("London again", "memory/b.md:1", None)
    assert [one.text for one in survey(before, undated).candidates(Erasure())] == ["London again"]


def test_the_users_own_words_are_some_where_he_names_the_fact_in_a_conversation():
    said = "I work at the harbour and I live in London"
    found = survey(mine(said), mine("The flat is wet", "sessions/main.jsonl:9"))
    assert [one.text for one in found.candidates(Erasure())] == [said]
    known = Erasure(marks=(PlacedWords("sessions/main.jsonl:7", "live in London"),))
    assert found.candidates(known) == ()
    assert survey(mine(said, "mine.md:3")).candidates(Erasure()) == ()


def test_marks_in_the_users_words_have_to_name_the_fact_and_to_leave_something():
    where = "sessions/main.jsonl:7"
    found = survey(
        mine("My flight to London is at nine"),
        mine("I row and live in London", "sessions/main.jsonl:9"),
    )
    right = PlacedWords("sessions/main.jsonl:9", "live in London")
    wrong = (
        PlacedWords("sessions/main.jsonl:9", "row"),
        PlacedWords(where, "My flight to London is at nine"),
    )
    agents = PlacedWords("memory/a.md:3", "All of it")
    assert found.believed((right, *wrong, agents)) == (right, agents)


def test_a_row_that_is_all_that_is_known_is_one():
    row = UntracedFact(
        "k3f9", "The user lives in London.", "London", (), ("sessions/main.jsonl:7",)
    )
    assert [
        one.text for one in survey(mine("London is wet"), sought=[row]).candidates(Erasure())
    ] == ["London is wet"]


def test_what_is_near_in_meaning_is_one_without_a_common_word():
    texts = own("Moved to the capital", "memory/a.md:3"), own("Another", "memory/a.md:40")
    found = survey(*texts, near={"k3f9": [("memory/a.md", 3, 4)]}).candidates(Erasure())
    assert [one.text for one in found] == ["Moved to the capital"]


def test_the_same_text_at_several_places_is_one_candidate():
    found = survey(own("London flat"), own("London flat", "memory/a.md@3:1")).candidates(Erasure())
    assert [one.where for one in found] == [("memory/a.md:1", "memory/a.md@3:1")]


def test_a_version_of_what_the_users_file_says_now_is_none():
    now = mine("London flat", "mine.md:1", None)
    assert survey(now, own("London flat", "mine.md@2:1")).candidates(Erasure()) == ()


def test_the_likeliest_come_first_and_their_number_is_bounded():
    texts = [own(f"London, text {n}", f"memory/a.md:{n}") for n in range(500)]
    best = own("Kensington in London", "memory/b.md:1")
    sought = UntracedFact("a", "The user lives in Kensington.", "London")
    found = survey(*texts, best, sought=[sought]).candidates(Erasure())
    assert found[0].text == best.text
    assert len(found) == 200


@pytest.mark.parametrize("text", ["他的妹妹叫小红，住在上海", "小红 is her name"])
def test_scripts_without_blanks_are_compared_by_pairs_of_letters(text):
    sought = UntracedFact("a", "我的妹妹叫小红。", "小红", ("我的妹妹叫小红",))
    others = [own("今天天气很好", "memory/b.md:1")]
    found = survey(own(text), *others, sought=[sought]).candidates(Erasure())
    assert [one.text for one in found] == [text]


def test_words_are_compared_by_how_they_begin():
    assert words_of("Hamburgs Häfen") & words_of("hamburger")
    assert not words_of("Hamburg") & words_of("Homburg")


def mentions(found: Survey, erasure: Erasure | None = None):
    erasure = erasure or Erasure(spans=("I live in London",))
    return [(one.mention.n, one.mention.where, one.mention.text) for one in found.mentions(erasure)]


def test_mentions_are_sentences_of_the_user_with_a_rare_word_files_first():
    found = survey(
        mine("Hi. The London client wants 88k. Tea?", "sessions/chat:a.jsonl:3"),
        mine(
            "I live in London and fly to London.", "sessions/main.jsonl:2", AT - timedelta(days=9)
        ),
        mine("- London, by hand\n- other", "mine.md:4", None),
        own("agentd says London"),
    )
    assert mentions(found) == [
        (1, "mine.md:4", "London, by hand"),
        (2, "sessions/main.jsonl:2", "[forgotten] and fly to London."),
        (3, "sessions/chat:a.jsonl:3", "The London client wants 88k."),
    ]


def test_who_shares_only_common_words_mentions_nothing():
    work = UntracedFact("k3f9", "Klara works at Siemens")
    notes = [mine(f"Look at file {n}.", f"memory/{n}.md:1") for n in range(5)]
    assert survey(*notes, sought=[work]).mentions(Erasure()) == ()


def test_rare_words_that_name_nothing_are_no_mention():
    pin = UntracedFact(
        "k3f9", "The user's pin is 4471.", "4471", ("My pin is 4471, in case Ada asks.",)
    )
    told = mine("Ada knows 4471."), mine("Ask Ada.", "a.md:1"), mine("In any case!", "b.md:1")
    assert [text for _, _, text in mentions(survey(*told, sought=[pin]))] == [
        "Ask Ada.",
        "Ada knows 4471.",
    ]


def test_what_is_named_goes_by_its_own_words_in_versions_and_what_was_typed_too():
    text = "I live in London and fly to London."
    found = survey(
        mine(text, "mine.md:1", None), own(text, "mine.md@4:1"), mine(text, "chat_history:x")
    )
    [also] = found.mentions(Erasure(spans=("I live in London",)))
    assert also.marks == (
        PlacedWords("mine.md:1", text), PlacedWords("mine.md@4:1", text), PlacedWords("chat_history:x", text)
    )  # fmt: skip


def test_the_numbers_of_mentions_hold_when_more_is_said():
    texts = [mine(f"London {n}.", f"sessions/main.jsonl:{n}", AT) for n in range(1, 9)]
    before = mentions(survey(*texts))
    later = mine("Forget London!", "sessions/main.jsonl:90", AT + timedelta(hours=1))
    assert mentions(survey(*texts, later))[: len(before)] == before


def test_mentions_are_bounded_and_those_left_out_are_counted():
    texts = [mine(f"London {n}.", f"sessions/main.jsonl:{n}", AT) for n in range(1, 90)]
    found = survey(*texts)
    assert len(mentions(found)) == 50
    assert found.more == 39
    assert mentions(found, Erasure(spans=("London",))) == []
    assert found.more == 0


GERRIT = UntracedFact("k3f9", "the painter Gerrit starts on 2 May", "", (), (), AT)


@pytest.mark.parametrize("count", [1, 6, 40])
def test_a_name_is_told_however_often_it_is_mentioned(count):
    notes = [mine(f"- Gerrit note {n}", f"memory/g.md:{n}") for n in range(1, count + 1)]
    for fact in (GERRIT, replace(GERRIT, text="", value="Gerrit")):
        assert len(survey(*notes, sought=[fact]).mentions(Erasure())) == count


def test_a_short_number_in_many_texts_is_no_mention():
    notes = [mine(f"- buy 2 of number {n}", f"memory/g.md:{n}") for n in range(10, 60)]
    assert survey(*notes, sought=[GERRIT]).mentions(Erasure()) == ()


def test_a_name_in_so_many_texts_that_it_is_looked_for_no_longer_is_told_all_the_same():
    found = Survey((LONDON,))
    everywhere(found, 8_000, "London")
    assert len(found.mentions(Erasure())) == 50
    assert found.more >= 900


def test_a_copy_of_a_row_that_is_marked_in_part_is_marked_too():
    mark = PlacedWords("sessions/main.jsonl:7", "Anna", 0)
    found = survey(
        mine("Anna"),
        mine("Anna", "sessions/chat:fork.jsonl:7"),
        mine("Anna", "sessions/chat:other.jsonl:2", AT + timedelta(days=1)),
        mine("Anna", "chat_history:early", AT - timedelta(seconds=5)),
        mine("Anna", "chat_history:long ago", AT - timedelta(days=5)),
        quoted={"Anna": [(mark, AT)]},
    )
    assert [one.where for one in found.twins] == [
        "sessions/chat:fork.jsonl:7",
        "chat_history:early",
    ]
    assert {one.start for one in found.twins} == {0}


ODD = 'aé北京_ \n"\\\u00e9.-–X9İß'


@given(st.lists(st.text(st.sampled_from(f"{ODD}abcdefghi"), max_size=14), max_size=6), st.data())
def test_words_are_found_in_a_text_and_in_its_json_as_they_are_counted(texts, data):
    told = frozenset(word for text in texts for word in words_of(text))
    wanted = frozenset(
        data.draw(st.sets(st.sampled_from(sorted(told)), max_size=5)) if told else ()
    )
    words = SoughtWords(wanted)
    for text in (" ".join(texts), *texts):
        assert words.found(text) == wanted & words_of(text)
        if words.found(text):
            assert words.stand_in(json.dumps([{"text": text}], ensure_ascii=False))
            assert words.stand_in(text)


def test_what_need_not_be_looked_at_is_counted_all_the_same():
    found = Survey((LONDON,))
    assert found.may_be('[{"text": "so, London"}]', "sessions/main.jsonl:1")
    assert not found.may_be('[{"text": "so, Paris"}]', "sessions/main.jsonl:2")
    found.pass_over(1)
    found.add([mine("so, London")])
    assert (found.size, found.counts["london"]) == (2, 1)


def test_a_place_that_is_looked_at_in_any_case_is_wanted_whatever_stands_there():
    row = replace(LONDON, rows=("sessions/main.jsonl:4",))
    found = Survey((row,), {LONDON.id: [("memory/a.md", 30, 30)]})
    assert found.may_be("what?", "sessions/main.jsonl:4")
    assert found.may_be("what?", "memory/a.md")
    assert found.may_be("what?", "memory/a.md:12")
    assert not found.may_be("what?", "memory/a.md:2")
    assert not found.may_be("what?", "memory/b.md")


@given(
    st.lists(
        st.text(st.sampled_from('Ulm ulmen 55 a.\\n\n"茶室é'), max_size=12).map(
            lambda t: f"{t} ulm"[:13]
        )
    ),
    st.frozensets(st.sampled_from(["ulm", "ulmen", "ulmena", "ulma", "55", "5", "茶室", "é", "a"])),
)
def test_many_texts_at_once_are_told_apart_as_one_by_one(texts, wanted):
    words = SoughtWords(wanted)
    assert words.among(texts) == [n for n, text in enumerate(texts) if words.stand_in(text)]


def everywhere(survey, count, word="lives"):
    """Have so many texts looked through that have a word, as they come from a store."""
    for first in range(0, count, 1_000):
        texts = [f"She {word} on, {n}." for n in range(first, first + 1_000)]
        wanted = survey.among(texts)
        survey.add([mine(texts[n], f"sessions/main.jsonl:{first + n}") for n in wanted])
        survey.pass_over(len(texts) - len(wanted))


def test_texts_that_share_a_very_common_word_alone_need_not_be_read():
    common, thorough = Survey((LONDON,)), Survey((LONDON,), is_thorough=True)
    for one in (common, thorough):
        everywhere(one, 20_000)
        one.add([own("London calling")])
    assert common.size == thorough.size == 20_001
    assert common.counts["lives"] < thorough.counts["lives"] == 20_000
    assert common.is_sure
    assert common.candidates(Erasure()) == thorough.candidates(Erasure()) != ()
    assert common.mentions(Erasure()) == thorough.mentions(Erasure())


def test_words_that_are_all_common_and_such_as_turn_out_to_be_rare_are_not_passed_over():
    raw = UntracedFact("k3f9", "She lives on", "", ("lives",), (), AT)
    found = Survey((raw,))
    everywhere(found, 8_000)
    assert not found.is_sure, "the quote has no other word"
    found = Survey((LONDON,))
    everywhere(found, 8_000)
    found.pass_over(1_000_000)
    assert not found.is_sure, "of a million texts so few have the word that it tells"
