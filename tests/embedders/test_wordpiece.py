import pytest

from agentd.memory.index.embedding.wordpiece import CACHED_WORDS, LONGEST_WORD, WordPiece, words

PIECES = WordPiece(["walk", "##ing", "##s", "sleep", "24", "日", "a", "cafe", "sl"])


def test_a_known_word_is_one_row() -> None:
    assert PIECES.rows("walk sleep") == [0, 3]


def test_other_words_are_the_longest_known_pieces_from_the_left() -> None:
    assert PIECES.rows("sleeping walks") == [3, 1, 0, 2]


def test_a_word_that_is_only_half_known_has_no_row() -> None:
    assert PIECES.rows("walkabout") == []


def test_case_accents_and_punctuation_do_not_count() -> None:
    assert PIECES.rows("CAFÉ, (walk)!") == PIECES.rows("cafe walk") == [7, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café-Tür 24h", ["cafe", "tur", "24", "h"]),
        ("snake_case x9", ["snake", "case", "x", "9"]),
        ("日本 go", ["日", "本", "go"]),
        ("don't", ["don", "t"]),
        ("", []),
        ("\0 🙂 \ud800", []),
    ],
)
def test_words_are_runs_of_letters_or_digits_and_single_ideographs(
    text: str, expected: list[str]
) -> None:
    assert words(text) == expected


def test_what_is_too_long_to_be_a_word_is_left_out() -> None:
    only_a = WordPiece(["a", "##a"])
    assert len(only_a.rows("a" * LONGEST_WORD)) == LONGEST_WORD
    assert only_a.rows("a" * (LONGEST_WORD + 1)) == []


def test_more_words_than_are_remembered_are_split_all_the_same() -> None:
    letters = WordPiece([*"abcdefghij", *(f"##{letter}" for letter in "abcdefghij")])
    names = [
        f"{number:05d}".translate(str.maketrans("0123456789", "abcdefghij"))
        for number in range(CACHED_WORDS + 50)
    ]
    first = [letters.rows(name) for name in names[:10]]
    assert all(len(letters.rows(name)) == 5 for name in names)
    assert [letters.rows(name) for name in names[:10]] == first
