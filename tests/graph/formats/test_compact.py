from datetime import datetime

import pytest
from hypothesis import given
from msgspec.structs import replace

from agentd.core.errors import GraphError
from agentd.core.graph import Record
from agentd.zero.formats.cursor import Cursor, escape, names
from agentd.zero.formats.reading import read
from agentd.zero.formats.seal import decode_text, plain, seal_lines
from agentd.zero.formats.writing import body, write
from agentd.zero.hashes import concept_hash
from tests.graph.formats.records import NOON, concept, context, grown, records, relation, texts

AGENT, MEMORY = concept("agent", 0.98), concept("long-term-memory", 0.98)
SAID = context(source="user_prompt", scope="design")
NEEDS = relation(AGENT, "needs", MEMORY, SAID, 0.98)
RECORD = Record((MEMORY, AGENT), (SAID,), (NEEDS,))
BODY = """\
X:d8ebaef6:t=2026-02-18T12:00:00Z,src=user_prompt,scope=design
C:1a53ed01:long-term-memory
C:d4f0bc5a:agent
R:d4f0bc5a>needs>1a53ed01:0.98
"""
TWINS = "label-12423", "label-35601"  # whose hashes begin with the same eight digits


@given(records())
def test_what_was_written_is_read_back_whatever_its_words_hold(record):
    assert read(write(record)) == record


@given(texts)
def test_an_escaped_word_has_no_mark_and_no_line_end_and_means_the_same(word):
    cursor = Cursor(1, escape(word))
    assert cursor.word() == word
    assert cursor.is_done
    assert len(escape(word).splitlines()) <= 1


def test_a_record_is_a_line_for_each_thing_and_says_nothing_twice():
    text = write(RECORD)
    assert text.startswith(f"0M:1.0\n{BODY}H:")
    assert text.count("\n") == 6


def test_what_differs_from_the_usual_is_said():
    far = concept("far", 0.25, datetime(2020, 1, 1, tzinfo=NOON.tzinfo), NOON, ("a:b", "c,d"))
    no = relation(AGENT, "is", far, SAID, 0.5, far.created, denied=True, refs=("f1", "f=2"))
    text = write(Record((AGENT, far), (SAID,), (no,)))
    assert r":far:c=0.25,t=2020-01-01T00:00:00Z,u=2026-02-18T12:00:00Z,a=a\:b,a=c\,d" in text
    assert r":0.5:t=2020-01-01T00:00:00Z,d=1,r=f1,r=f\=2" in text


def test_lines_may_come_in_another_order_with_comments_and_carriage_returns():
    first, *others = BODY.splitlines()
    lines = ["0M:1.0", "# by hand", *others[::-1], "", first]
    assert read("\r\n".join(lines), is_sealed=False) == RECORD
    assert read(write(RECORD).replace("\n", "\r\n")) == RECORD


def test_ids_grow_until_they_are_unique():
    one, other = map(concept, TWINS)
    assert one.hash.hex[:8] == other.hash.hex[:8]
    ids = names([one.hash, other.hash, AGENT.hash])
    assert ids[AGENT.hash] == "d4f0bc5a"
    assert len(ids[one.hash]) == len(ids[other.hash]) > 8
    assert ids[one.hash] != ids[other.hash]
    both = Record(tuple(sorted((one, other), key=lambda c: c.hash)))
    assert read(write(both)) == both


def test_a_record_that_is_not_what_its_hashes_say_is_not_written():
    wrong = replace(AGENT, hash=concept_hash("another"))
    with pytest.raises(GraphError, match="'agent' has the hash"):
        write(Record((wrong,)))
    with pytest.raises(GraphError, match="the fact 'agent' 'hates'"):
        write(replace(RECORD, relations=(replace(NEEDS, predicate="hates"),)))
    with pytest.raises(GraphError, match="which is not there"):
        write(replace(RECORD, concepts=(AGENT,)))
    with pytest.raises(GraphError, match="which is not there"):
        write(replace(RECORD, contexts=()))
    with pytest.raises(GraphError, match="differ"):
        write(Record((AGENT, replace(AGENT, confidence=0.1))))
    with pytest.raises(GraphError, match="between 0 and 1"):
        write(Record((replace(AGENT, confidence=float("nan")),)))
    with pytest.raises(GraphError, match="half of one"):
        write(Record((replace(AGENT, aliases=("\ud800",)),)))


def refused(line, number=2):
    """The message, without its place, and the column of the line that is put into the text."""
    lines = ["0M:1.0", *BODY.splitlines()]
    lines.insert(number - 1, line)
    with pytest.raises(GraphError) as caught:
        read(plain(lines), is_sealed=False)
    assert caught.value.line == number
    assert caught.value.message.startswith(f"line {number}, column {caught.value.column}: ")
    return caught.value.column, caught.value.message.partition(": ")[2]


@pytest.mark.parametrize(
    ("line", "column", "why"),
    [
        ("Z:1", 1, "a line begins with"),
        ("C:d4f0bc5b:agents", 3, "d4f0bc5b is not the hash of 'agents'"),
        ("C:abc:x", 3, "'abc' is no id"),
        ("C:00000000", 11, "level L0"),
        ("C:7:x:", 7, "'' is no field"),
        ("C:7:x:c", 8, "behind the field c stands no '='"),
        ("C:7:x:c=2", 9, "'2' is no confidence"),
        ("C:7:x:c=nan", 9, "'nan' is no confidence"),
        ("C:7:x:c=1,c=1", 11, "the field c stands here twice"),
        ("C:7:x:t=2026-02-18", 9, "is no time"),
        ("C:7:x:t=2026-02-31T00:00:00Z", 9, "is no time"),
        (r"C:7:x\q", 6, "the backslash escapes nothing"),
        (r"C:7:x\u{d800}", 6, "is no character"),
        (r"C:7:x\u{110000}", 6, "is no character"),
        ("C:7:x>y", 6, "before the fields stands no ':'"),
        ("X:7:t=2026-02-18T12:00:00Z,src=a", 3, "the context has no scope="),
        ("R:d4f0bc5a>needs>1a53ed01", 26, "level L1"),
        ("R:d4f0bc5a>needs>1a53ed02:1", 18, "no line C: has the id 1a53ed02"),
        ("R:d4f0bc5a>needs>1a53ed01:1:d=0", 31, "d= is 1"),
        ("H:00", 1, "a line begins with"),
    ],
)
def test_an_error_says_where_and_why(line, column, why):
    found, message = refused(line)
    assert why in message
    assert found == column


def test_a_thing_that_stands_twice_is_refused():
    with pytest.raises(GraphError, match="line 5, column 1: the concept stands here twice"):
        read(f"0M:1.0\n{BODY.replace('R:', 'C:9:agent' + chr(10) + 'R:')}", is_sealed=False)
    x, *_ = BODY.splitlines()
    with pytest.raises(GraphError, match="line 3, column 1: the context stands here twice"):
        read(f"0M:1.0\n{x.replace('d8ebaef6', '7')}\n{BODY}", is_sealed=False)
    again = BODY + BODY.splitlines()[-1]
    with pytest.raises(GraphError, match="line 6, column 1: the fact, in this context,"):
        read(f"0M:1.0\n{again}", is_sealed=False)
    with pytest.raises(GraphError, match="line 3, column 3: the id 1 stands for two things"):
        read("0M:1.0\nC:1:a:t=2026-02-18T12:00:00Z\nC:1:b:t=2026-02-18T12:00:00Z", is_sealed=False)


def test_what_has_no_context_is_refused_with_its_place():
    with pytest.raises(GraphError, match="line 2, column 6: there is no t="):
        read("0M:1.0\nC:1:a", is_sealed=False)
    stated = "0M:1.0\nC:1:a:t=2026-02-18T12:00:00Z\nR:1>is>1:1"
    with pytest.raises(GraphError, match="line 3, column 1: the fact stands in no context"):
        read(stated, is_sealed=False)


def test_the_frame_is_checked():
    for text, why in [
        ("", "line 1, column 1: a graph's text begins with 0M:1.0"),
        ("0M:2.0\n", "version 2.0 is not known"),
        (f"0M:1.0\n{BODY}", "line 5, column 1: the text has no last line H:"),
        (f"0M:1.0\n{BODY}H:12\n", "line 6, column 3: H: needs 64"),
        (write(RECORD).replace("0.98", "0.97"), "line 6, column 3: the hash is not that"),
        ("0M:1.0\nC\ud800", "line 2, column 2: half a character"),
    ]:
        with pytest.raises(GraphError, match=why):
            read(text)


def test_a_text_cut_off_anywhere_is_refused():
    text = write(RECORD)
    for end in range(len(text) - 1):
        with pytest.raises(GraphError):
            read(text[:end])


def test_no_changed_byte_goes_unnoticed():
    data = write(RECORD).encode()
    for at in range(len(data)):
        for bit in (0, 3, 5, 7):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises(GraphError) as caught:
                read(decode_text(bytes(changed)))
            assert caught.value.line >= 1
            assert caught.value.column >= 1


def test_bytes_that_are_no_text_are_refused_with_their_place():
    with pytest.raises(GraphError, match="line 2, column 3: the bytes here are no UTF-8"):
        decode_text("0M:1.0\nä".encode() + b"x\xff")


def test_a_label_of_ten_thousand_marks_is_carried():
    long = concept(":>,=\\\n" * 1700)
    assert read(write(Record((long,)))) == Record((long,))


def test_the_body_is_what_stands_between_header_and_seal():
    record = grown(5)
    assert seal_lines(["0M:1.0", *body(record)]) == write(record)


def test_bytes_from_outside_may_begin_with_a_byte_order_mark():
    assert decode_text(b"\xef\xbb\xbf0M:1.0\n") == "0M:1.0\n"
