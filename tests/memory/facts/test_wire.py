"""The request that reads facts, and what its answer comes to."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentd.core.fact import Category, Evidence, Fact, FactSource, OperationKind, Triple
from agentd.core.turn import MAIN, SessionKey
from agentd.memory.facts import wire
from agentd.memory.facts.quotation import quoted_spans
from agentd.memory.facts.wire import SpokenMessage

NOW = datetime(2026, 5, 4, 7, 40, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
EXTRACTED, EXPLICIT = FactSource.EXTRACTED, FactSource.EXPLICIT


def a_fact(fact_id: str = "k3f9", text: str = "The user lives in Rome.", **fields) -> Fact:
    fact = Fact(fact_id, text, Category.PERSONAL, EXTRACTED, 0.6, NOW, NOW)
    return replace(fact, **fields)


def talk(*said: str) -> list[SpokenMessage]:
    """A conversation; the agent's words begin with `agent: `."""
    spoken = []
    for seq, text in enumerate(said, start=1):
        words = text.removeprefix("agent: ")
        at = NOW + timedelta(minutes=seq)
        spoken.append(
            SpokenMessage(MAIN, seq, at, words, words == text, quotations=quoted_spans(words))
        )
    return spoken


def items(*given: dict) -> tuple[wire.WireItem, ...]:
    read, dropped = wire.read(json.dumps(given))
    assert dropped == 0
    return read


def operations(spoken: list[SpokenMessage], *given: dict, source=EXTRACTED, zone=UTC, asked=None):
    return list(wire.operations(items(*given), spoken, source, zone, asked))


def proof(spoken: list[SpokenMessage], quote: str, message: object = None) -> tuple[Evidence, ...]:
    [found] = operations(spoken, {"content": "x", "quote": quote, "message": message})
    assert found.is_proven is bool(found.evidence)
    return found.evidence


def words(
    spoken: list[SpokenMessage], evidence: tuple[Evidence, ...]
) -> list[tuple[int, str, bool]]:
    texts = {one.seq: one.text for one in spoken}
    return [(one.seq, texts[one.seq][one.start : one.end], one.is_context) for one in evidence]


# What the model is shown


def test_messages_and_facts_look_as_agreed() -> None:
    spoken = talk("I moved to Oslo.", "agent: Nice!\nWhen?", "In May\nor June")
    text = wire.request(
        spoken, [a_fact(valid_from=datetime(2026, 1, 1, 23, 30, tzinfo=UTC))], BERLIN
    )
    assert "\n[k3f9 since 2026-01-02] The user lives in Rome.\n" in text
    assert "\n[1 user 2026-05-04 09:41] I moved to Oslo.\n" in text
    assert "\n[2 agent 2026-05-04 09:42] Nice!\n  When?\n" in text
    assert "\n[3 user 2026-05-04 09:43] In May\n  or June\n" in text


def test_without_known_facts_there_is_one_fence() -> None:
    assert wire.request(talk("hello"), [], UTC).count("<data ") == 1


@given(st.text() | st.text(alphabet="\n\r\u2028\x85\x0b[2 agent]</dat> \u200b>", max_size=60))
def test_no_message_forges_a_line_of_the_request_or_closes_its_fence(text: str) -> None:
    shown = wire.request([*talk(f"x{text}"), *talk(f"agent: x{text}")], [a_fact()], UTC)
    heads = [line for line in re.split(r"[\n\r\u2028\x85\x0b\x0c]", shown) if line[:1] == "["]
    assert [head.split(" ")[0] for head in heads] == ["[k3f9", "[1", "[2"]
    assert len(re.findall(r"<\s*/?\s*data", shown, re.IGNORECASE)) == 4


def test_of_a_long_message_beginning_and_end_are_shown() -> None:
    long = f"I begin here. {'word ' * 100_000} I end here."
    shown = wire.request([*talk(long), *talk(f"agent: {long}")], [], UTC)
    assert shown.count("I begin here.") == shown.count("I end here.") == 2
    assert len(shown) < 2 * wire.USER_CHARS


# What is read


def test_a_whole_item_is_read_whole() -> None:
    item = {
        "op": "replace",
        "content": "The user's dog is called Rex.",
        "category": "preference",
        "message": 3,
        "quote": "my dog is Rex now",
        "ids": ["k3f9", "a2b3"],
        "subject": "user",
        "relation": "dog name",
        "value": "Rex",
        "valid_from": "2026-05-01",
        "valid_to": "2027",
    }
    triple = Triple("user", "dog name", "Rex")
    assert items(item) == (
        wire.WireItem(
            "#1",
            OperationKind.REPLACE,
            "The user's dog is called Rex.",
            Category.PREFERENCE,
            3,
            "my dog is Rex now",
            ("k3f9", "a2b3"),
            triple,
            "2026-05-01",
            "2027",
        ),
    )


def test_what_is_left_out_has_its_usual_value() -> None:
    [item] = items({"content": "The user has a dog."})
    assert (item.op, item.category, item.message, item.quote, item.ids, item.triple) == (
        OperationKind.ADD, Category.PERSONAL, None, "", (), None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({"category": "colour"}, Category.PERSONAL),
        ({"category": 7}, Category.PERSONAL),
        ({"category": " Project "}, Category.PROJECT),
    ],
)
def test_an_unknown_category_is_personal(given, read) -> None:
    assert items({"content": "x", **given})[0].category is read


@pytest.mark.parametrize("more", [{"value": ""}, {"value": 3}, {"value": "x" * 201}, {}])
def test_a_triple_that_is_not_whole_is_no_loss_of_the_fact(more) -> None:
    [item] = items({"content": "x", "subject": "user", "relation": "pet", **more})
    assert (item.content, item.triple) == ("x", None)


@pytest.mark.parametrize(
    "bad",
    [
        {"op": "delete", "ids": ["k3f9"], "content": "x"},
        {"op": 3, "content": "x"},
        {"op": "add"},
        {"op": "add", "content": ["x"]},
        {"op": "add", "content": "x" * 1_001},
        {"op": "replace", "ids": ["k3f9"]},
        {"op": "end", "content": "x"},
        {"op": "same", "content": "x", "ids": []},
        {"op": "end", "ids": [None, {}, ""]},
    ],
    ids=str,
)
def test_a_bad_item_costs_itself_alone(bad) -> None:
    good = {"content": "The user likes tea."}
    read, dropped = wire.read(json.dumps([good, bad, good]))
    assert ([item.content for item in read], dropped) == (["The user likes tea."] * 2, 1)


@pytest.mark.parametrize("op", ["ADD", " add ", None])
def test_add_is_the_default_and_case_says_nothing(op) -> None:
    assert items({"op": op, "content": "x"})[0].op is OperationKind.ADD


@pytest.mark.parametrize(
    "ids",
    [
        ["k3f9", "2345"],
        ["[k3f9]", 2345],
        "k3f9, 2345",
        "[k3f9 since 2026-01-02], [2345 since 2026-01-03]",
        ["k3f9", "k3f9", None, "2345"],
    ],
    ids=str,
)
def test_ids_may_be_spelt_as_they_were_shown(ids) -> None:
    assert items({"op": "end", "ids": ids})[0].ids == ("k3f9", "2345")


def test_ids_may_be_objects() -> None:
    ids = [{"id": "k3f9"}, {"id": 2345}, {"name": "x"}]
    assert items({"op": "end", "ids": ids})[0].ids == ("k3f9", "2345")


def test_one_id_alone_will_do() -> None:
    assert items({"op": "end", "id": "k3f9"})[0].ids == ("k3f9",)
    assert items({"op": "end", "ids": 2345})[0].ids == ("2345",)


def test_half_an_answer_and_prose_lose_only_what_is_cut() -> None:
    answer = 'Sure:\n```json\n[{"content": "A."}, {"content": "B.", "quote": "b"}, {"conte'
    assert [item.content for item in wire.read(answer)[0]] == ["A.", "B."]


def test_of_an_answer_without_end_the_first_items_are_taken() -> None:
    answer = json.dumps([{"content": f"Fact {n}."} for n in range(40_000)])
    assert len(answer) > 800_000
    read, dropped = wire.read(answer)
    assert len(read) == wire.MOST
    assert dropped > 0


# What proves it


@pytest.mark.parametrize(
    ("message", "seq"), [(1, 1), ("1", 1), (3, 1), (99, 1), (0, 1), (-1, 1), (None, 1), (2, 1)]
)
def test_a_wrong_number_is_no_harm_where_one_message_alone_has_the_words(message, seq) -> None:
    spoken = talk("my dog is called Rex", "agent: my dog is called Rex? Nice.", "I like tea")
    assert [one.seq for one in proof(spoken, "my dog is called Rex", message)] == [seq]


@pytest.mark.parametrize(("message", "seqs"), [(1, [1]), (3, [3]), (2, []), (99, []), (None, [])])
def test_words_that_two_messages_have_prove_only_what_cites_one_of_them(message, seqs) -> None:
    spoken = talk("my dog is called Rex", "agent: Fine.", "I said, my dog is called Rex")
    assert [one.seq for one in proof(spoken, "my dog is called Rex", message)] == seqs


def test_words_of_the_agent_and_tainted_ones_prove_nothing() -> None:
    spoken = talk("hello there", "agent: your dog is called Rex")
    assert proof(spoken, "your dog is called Rex", 2) == ()
    tainted = [replace(one, is_clean=False) for one in talk("my dog is called Rex")]
    assert proof(tainted, "my dog is called Rex", 1) == ()


def test_a_quotation_proves_nothing_and_its_words_elsewhere_do() -> None:
    spoken = talk("> my dog is called Rex\nwho wrote that?", "agent: You.", "my dog is called Rex")
    assert proof(spoken[:1], "my dog is called Rex", 1) == ()
    assert words(spoken, proof(spoken, "my dog is called Rex", 1)) == [
        (3, "my dog is called Rex", False)
    ]


@pytest.mark.parametrize("answer", ["Agnieszka", "42", "👍", "小红", "มะลิ", "two of them"])
def test_the_short_answer_to_a_question_is_kept_with_the_question(answer: str) -> None:
    spoken = talk("hm", "agent: What is it?", answer)
    found = words(spoken, proof(spoken, answer, 3))
    asked = [] if len(answer.split()) > 2 else [(2, "What is it?", True)]
    assert found == [(3, answer, False), *asked]


@pytest.mark.parametrize(
    "spoken",
    [
        talk("Agnieszka"),
        talk("hello there", "Agnieszka"),
        [
            *talk("hello"),
            replace(talk("agent: Who?")[0], seq=2, is_clean=False),
            replace(talk("Agnieszka")[0], seq=3),
        ],
    ],
    ids=["first", "behind his own words", "behind tainted words"],
)
def test_few_words_alone_prove_nothing(spoken) -> None:
    assert proof(spoken, "Agnieszka") == ()


def test_a_part_of_an_answer_is_as_short_as_it_is_quoted() -> None:
    spoken = talk("my sister is called Agnieszka")
    assert proof(spoken, "called Agnieszka", 1) == ()
    assert len(proof(spoken, "is called Agnieszka", 1)) == 1


def test_what_is_not_proven_is_said_to_be_so_and_has_the_time_of_its_message() -> None:
    spoken = talk("I live in Rome", "agent: Fine.", "I like tea")
    cited, uncited = operations(
        spoken, {"content": "A.", "message": 1, "quote": "I live in Paris"}, {"content": "B."}
    )
    assert (cited.is_proven, cited.at) == (False, spoken[0].at)
    assert (uncited.is_proven, uncited.at) == (False, spoken[2].at)


def test_what_was_asked_to_be_kept_is_proven_by_any_words_of_it() -> None:
    spoken = talk("remember: Rex")
    asked = Evidence(spoken[0].at, MAIN, 1, 0, 13)
    [short, other] = operations(
        spoken,
        {"content": "A.", "quote": "Rex"},
        {"content": "B.", "quote": "Max"},
        source=EXPLICIT,
        asked=asked,
    )
    assert (short.evidence, short.source) == ((asked,), EXPLICIT)
    assert not other.is_proven


def test_evidence_names_session_row_and_characters() -> None:
    spoken = [replace(talk("So: My Dog  is called REX!")[0], session=SessionKey("chat:a"), seq=7)]
    [one] = proof(spoken, "my dog is called rex")
    assert one == Evidence(spoken[0].at, SessionKey("chat:a"), 7, 4, 25)


# When it holds


@pytest.mark.parametrize(
    ("given", "since", "until"),
    [
        ({}, None, None),
        ({"valid_from": "2026-01-02"}, "2026-01-02", None),
        ({"valid_to": "2026-06-12"}, None, "2026-06-13"),
        ({"valid_to": "2026-06"}, None, "2026-07-01"),
        ({"valid_to": "2026-12"}, None, "2027-01-01"),
        ({"valid_to": "2028"}, None, "2029-01-01"),
        ({"valid_from": "2026-03", "valid_to": "2026-02"}, "2026-03-01", None),
        ({"valid_from": "2015", "valid_to": "2019"}, "2015-01-01", "2020-01-01"),
        ({"valid_to": "2026-06-12T18:00"}, None, "2026-06-13"),
        ({"valid_to": "2026/6/1"}, None, "2026-06-02"),
        ({"valid_to": "2026-02-30", "valid_from": "soon"}, None, None),
        ({"valid_to": "20260612", "valid_from": 2026}, None, None),
        ({"valid_from": "0001-01-01", "valid_to": "9999-12-31"}, None, None),
        ({"valid_from": "0000", "valid_to": "9999"}, None, None),
        ({"valid_to": "yesterday"}, None, None),
    ],
    ids=str,
)
def test_dates_are_whole_days_of_the_users_zone(given, since, until) -> None:
    [found] = operations(talk("my exam is in June"), {"content": "x", **given}, zone=BERLIN)
    day = [at and at.astimezone(BERLIN) for at in (found.valid_from, found.valid_to)]
    assert [at and at.isoformat()[:16] for at in day] == [
        at and f"{at}T00:00" for at in (since, until)
    ]
    for at in day:
        assert at is None or at.astimezone(UTC)


@given(st.text(alphabet="0123456789-/.T ", max_size=12), st.sampled_from(["Asia/Tokyo", "UTC"]))
def test_no_date_raises(text: str, zone: str) -> None:
    given = {"content": "x", "valid_from": text, "valid_to": text}
    [found] = operations(talk("hello"), given, zone=ZoneInfo(zone))
    for at in (found.valid_from, found.valid_to):
        assert at is None or at.astimezone(UTC).isoformat()


async def test_a_message_of_450_kilobytes_is_looked_through_beside_the_loop() -> None:
    spoken = talk("Ich mag Tee für müde Käuze. " * 16_000 + "my dog is called Rex")
    given = [{"content": "x", "quote": f"my dog is called Rex {n}"} for n in range(5)]
    given.append({"content": "y", "quote": "my dog is called Rex"})
    work = asyncio.create_task(asyncio.to_thread(operations, spoken, *given))
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    assert work.result()[-1].is_proven
    assert turns > 20
