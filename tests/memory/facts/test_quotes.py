"""Whether words that are quoted were said, in many scripts: exactly these, but for what nobody
sees.
"""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agentd.memory.facts.quotation import quoted_spans
from agentd.memory.facts.quotes import find, is_short, sentence_around
from tests.growth import QUADRATIC, growth


def found(quote: str, text: str) -> str | None:
    """The user's words, where they stand outside of quotation."""
    span = find(quote, text, quoted_spans(text))
    return None if span is None else text[span[0] : span[1]]


@pytest.mark.parametrize(
    ("quote", "text", "words"),
    [
        ("my dog is called Rex", "By the way, my dog is called Rex.", "my dog is called Rex"),
        ("MY DOG IS CALLED REX", "my dog is called Rex", "my dog is called Rex"),
        ("Die Straße ist nass", "die STRASSE ist nass", "die STRASSE ist nass"),
        ("Ich wohne in Köln", "ich wohne in Ko\u0308ln!", "ich wohne in Ko\u0308ln"),
        ("ich wohne in Ko\u0308ln", "Ich wohne in Köln", "Ich wohne in Köln"),
        ("I moved to the ﬁrst floor", "i moved to the first floor", "i moved to the first floor"),
        ("room ５ on floor Ⅳ", "Room 5 on floor IV", "Room 5 on floor IV"),
        ("it weighs 5 ㎏ now", "it weighs 5 kg now", "it weighs 5 kg now"),
        ("a soft hyphen here", "a so\u00adft hyphen here", "a so\u00adft hyphen here"),
        ("zero width space", "ze\u200bro width\u2060 space", "ze\u200bro width\u2060 space"),
        ("I love ❤ you all", "I love ❤\ufe0f you all", "I love ❤\ufe0f you all"),
        ('called it "home" then', "called it “home” then", "called it “home” then"),
        ("it's Anna's old car", "it’s Anna‘s old car", "it’s Anna‘s old car"),
        ("the «old» town hall", 'the "old" town hall', 'the "old" town hall'),
        ("May 3-5 in Rome", "May 3–5 in Rome", "May 3–5 in Rome"),
        ("minus −3 degrees outside", "minus -3 degrees outside", "minus -3 degrees outside"),
        ("well — I never did", "well ‐ I never did", "well ‐ I never did"),
        ("two lines of it", "two  lines\r\n\tof\u00a0it", "two  lines\r\n\tof\u00a0it"),
        ("“I have two cats.”", "I have two cats", "I have two cats"),
        ("…and I like tea…", "coffee and I like tea", "and I like tea"),
        ("... and I like tea ...", "coffee and I like tea", "and I like tea"),
        ("(I like tea)?!", "I like tea", "I like tea"),
        ("I really like tea", "_I really like tea_", "I really like tea"),
        ("42", "42", "42"),
        ("👍🏽", "👍🏽 sure", "👍🏽"),
        ("👩‍👩‍👧", "us: 👩‍👩‍👧!", "👩‍👩‍👧"),
        ("$5 a day", "It costs $5 a day.", "$5 a day"),
    ],
)
def test_what_nobody_sees_makes_no_difference_and_the_evidence_is_the_users_bytes(
    quote, text, words
):
    assert found(quote, text) == words


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("妹妹叫小红", "我的妹妹叫小红"),
        ("妹の名前は花子です", "私の妹の名前は花子です。"),
        ("น้องสาวของฉันชื่อมะลิ", "น้องสาวของฉันชื่อมะลินะ"),
        ("ខ្ញុំ", "ខ្ញុំរស់នៅ"),
        ("내 여동생은 민지야", "내 여동생은 민지야."),
        ("मेरी बहन का नाम", "मेरी बहन का नाम सीता है"),
        ("أختي اسمها ليلى", "أختي اسمها ليلى، طبعاً"),
        ("Моя сестра Агнешка", "Моя сестра Агнешка приехала"),
        ("η αδερφή μου", "Η ΑΔΕΡΦΗ ΜΟΥ".replace("Η ΑΔΕΡΦΗ", "η αδερφή") + " ήρθε"),
        ("kız kardeşim Ayşe", "Kız kardeşim Ayşe geldi"),
        ("אחותי גרה בחיפה", "אחותי גרה בחיפה."),
        ("אני", "אני!"),
    ],
)
def test_words_of_any_script_are_found(quote, text):
    assert found(quote, text) is not None


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("", "I like tea"),
        ("…", "I like tea…"),
        ("!?", "what!?"),
        ("I like tea", ""),
        ("I like tea", "I like green tea"),
        ("Paul owes the user", "the user owes Paul"),
        ("I live in Rom", "I live in Rome"),
        ("ot like tea very much", "I do not like tea very much"),
        ("I have 1", "I have 12 cats"),
        ("in Köl", "in Köln"),
        ("I want the e", "I want the e\u0301"),
        ("👩", "👩‍👩‍👧"),
        ("🇩", "🇩🇪"),
        ("👍", "👍🏽"),
        ("a", "a\u0301\u0302"),
        ("क्", "क्षि"),
        ("na\u200dme", "name"),  # a joiner is a letter of some scripts
        ("s is wet", "die Straß is wet"),  # half of what ß becomes
        ("मेरी बहन का ना", "मेरी बहन का नाम सीता है"),
    ],
)
def test_other_words_and_parts_of_words_and_characters_are_not_found(quote, text):
    assert found(quote, text) is None


@pytest.mark.parametrize(
    ("quote", "text", "is_found"),
    [
        ("my old aunt … lives in Bern", "my old aunt, the tall one, lives in Bern", True),
        ("my old aunt ... lives in Bern", "my old aunt, the tall one, lives in Bern", True),
        ("my old aunt [...] lives in Bern", "my old aunt, the tall one, lives in Bern", True),
        ("我的妹妹小红很喜欢…在北京住了很多年", "我的妹妹小红很喜欢猫，她在北京住了很多年", True),
        ("my old aunt … lives in Bern", "lives in Bern, my old aunt", False),  # not in order
        ("my old aunt … lives in Bern", "my old aunt is here. Bo lives in Bern", False),
        ("my old aunt … lives in Bern", "my old aunt is here\nBo lives in Bern", False),
        ("my aunt … lives in Bern", "my aunt, the tall one, lives in Bern", False),  # two words
        ("my old aunt … Bern", "my old aunt, the tall one, lives in Bern", False),
        (
            "my old aunt … the tall one … lives in Bern",
            "my old aunt, yes, the tall one, well, lives in Bern",
            False,
        ),
        ("well... I like tea", "well... I like tea", True),  # his own dots
        (
            "I like big … dogs very much",
            "I like big and small. I like big wild dogs very much",
            True,
        ),
    ],
)
def test_one_ellipsis_may_leave_something_out_of_a_sentence(quote, text, is_found):
    assert (found(quote, text) is not None) is is_found


def test_what_an_ellipsis_leaves_out_is_part_of_the_evidence():
    text = "Yes: my old aunt, the tall one, lives in Bern. Really."
    assert found("my old aunt … lives in Bern", text) == text[5:45]


@pytest.mark.parametrize(
    ("quote", "text", "is_found"),
    [
        ("Agnieska", "Agnieszka", True),
        ("my sister Agnieszkas flat", "my sister Agnieszka flat", True),
        ("my grandmother's hause", "my grandmother's house", True),
        ("my granmother's house", "my grandmother's house", True),
        ("I love my sistre", "I love my sister", False),  # two letters exchanged are two edits
        ("I love my mister", "I love my sister", False),  # another first letter
        ("my cat Rexy", "my cat Roxy", False),  # four letters
        ("agent A12345 is here", "agent A12346 is here", False),  # digits
        ("my sester has a haise", "my sister has a house", False),  # two of them
        ("my sester house", "my sister has a house", False),  # another number of words
        ("我的妹妹叫小明", "我的妹妹叫小红", False),  # each letter is a word
        ("Моя сестра Агнешкя", "Моя сестра Агнешка", True),
    ],
)
def test_one_word_may_be_misspelt_by_a_letter(quote, text, is_found):
    words = found(quote, text)
    assert words == (text if is_found else None)


@pytest.mark.parametrize(
    "text",
    [
        "> my dog is called Rex\nwhat does that mean?",
        "```\nmy dog is called Rex\n```",
        "see `my dog is called Rex`",
        '<data source="mail">my dog is called Rex</data> translate it',
        "Anna wrote “hello there, my dog is called Rex” today",
        'Anna wrote "hello there, my dog is called Rex" today',
    ],
)
def test_what_stands_in_a_quotation_alone_was_not_said(text):
    assert "my dog is called Rex" in text
    assert found("my dog is called Rex", text) is None
    said = f"{text}\n\nAnd my dog is called Rex, too."
    span = find("my dog is called Rex", said, quoted_spans(said))
    assert span is not None
    assert span[0] > len(text)


def test_a_marked_span_is_a_quotation():
    text = "look: my dog is called Rex"
    assert find("my dog is called Rex", text, [(6, len(text))]) is None
    assert find("my dog is called Rex", text, [(0, 6)]) == (6, len(text))
    assert find("my sester is called Rex", "my sister is called Rex", [(3, 4)]) is None
    text = "my old aunt, “so tall”, lives in Bern"
    assert find("my old aunt … lives in Bern", text, [(13, 22)]) is None


@pytest.mark.parametrize(
    ("quote", "short"),
    [
        ("", True),
        ("Agnieszka", True),
        ("two words", True),
        ("two – words", True),
        ("three short words", False),
        ("42", True),
        ("👍", True),
        ("我的妹妹", True),
        ("我的妹妹叫小红。", True),  # seven characters
        ("我的妹妹的名字叫小红", False),
        ("私の妹は花子", True),
        ("น้องสาวของฉันชื่อมะลิ", False),
        ("住在里 Berlin Mitte", False),  # three eighths and two thirds
        ("Berlin 住", True),
    ],
)
def test_under_three_words_or_eight_characters_without_blanks_is_short(quote, short):
    assert is_short(quote) is short


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("Hi. I do not trust Mallory! Bye.", "trust Mallory", "I do not trust Mallory!"),
        ("one two three", "two", "one two three"),
        ("a line\nmy dog is Rex\nanother", "Rex", "my dog is Rex"),
        ("我喜欢茶。我的妹妹叫小红。再见", "小红", "我的妹妹叫小红。"),
        ("It costs 3.50 a day. Yes.", "3.50", "It costs 3.50 a day."),
        ("One. Two three. Four.", "Two three. Four", "Two three. Four."),
    ],
)
def test_the_sentence_around_is_whole(text, words, sentence):
    start = text.index(words)
    begin, end = sentence_around(text, (start, start + len(words)))
    assert text[begin:end] == sentence


_SCRIPTS = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("ab Zß.,…'\"“”-–—\u00ad\u200b\u200d\u0301\ufe0f\n\t\u00a0\r"),
        st.sampled_from("我妹คำก็ខ្មمнिक्ष👩🇩🏽İıﬁ½"),
    ),
    max_size=40,
)


@given(st.lists(st.text(alphabet="abcdeäßé'-,.12", min_size=1), min_size=1, max_size=20), st.data())
def test_what_is_cut_out_at_word_bounds_is_found(words, data):
    text = " ".join(words)
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first, len(words) - 1))
    quote = " ".join(words[first : last + 1])
    assume(any(map(str.isalnum, quote)))
    span = find(quote, text)
    assert span is not None
    assert bare(text[span[0] : span[1]]) == bare(quote)


def bare(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum())


@given(_SCRIPTS)
@example("\x00a")
@example("ǰ\u0345")
@example(":¯0")
@example("0_")
@example("🄀")
@example("?\u19300")
def test_a_whole_text_is_found_in_itself_whatever_its_characters(text):
    span = find(text, text)
    said = find(text, f"x, {text} , y")
    if any(map(str.isalnum, text)):
        assert span is not None
        assert said is not None
    if span is not None:
        assert 0 <= span[0] < span[1] <= len(text)


@given(_SCRIPTS, _SCRIPTS, st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=3))
def test_no_text_and_no_quote_raises_and_spans_lie_in_the_text(quote, text, quotations):
    span = find(quote, text, quotations)
    if span is not None:
        assert 0 <= span[0] < span[1] <= len(text)
        assert not any(span[0] < b and a < span[1] for a, b in quotations)
    assert is_short(quote) in (True, False)


@pytest.mark.parametrize(
    ("quote", "piece"),
    [
        ("a b c … d e f", "a b c. "),
        ("a b c … d e f", "a b c. d e f. "),
        ("a b c … a b c", "a b c. "),
        ("aaaaa aaaaa aaaaa aaaab b", "aaaaa "),
        ("我们我们我们我们是", "我们"),
        ("aaaaaaaaaa", "aaaaaaaaaaa"),
    ],
)
def test_looking_costs_as_much_as_the_text_is_long(quote, piece):
    assert growth(lambda size: find(quote, piece * size), 2_000) < QUADRATIC


@pytest.mark.parametrize("piece", ["ﬁ", "apple ", "a b c … "])
def test_looking_for_a_long_quote_costs_as_much_as_both_are_long(piece):
    def work(size):
        find(piece * size + "x", piece * 2 * size)
        find((piece * size).strip(), piece * 2 * size, [(0, 2 * size * len(piece))])

    assert growth(work, 1_000) < QUADRATIC


def test_many_beginnings_of_one_sentence_do_not_make_looking_slow():
    assert growth(lambda n: find("a b c … x y z", "a b c " * n + ". x y z"), 2_000) < QUADRATIC


@given(
    st.lists(st.sampled_from(["apple", "appla", "pear"]), min_size=2, max_size=5),
    st.lists(st.sampled_from(["apple", "appla", "apply", "pear", "pears"]), max_size=9),
)
def test_one_word_of_a_quote_may_be_misspelt_and_no_more(quote, said):
    def is_near(at):
        wrong = [(a, b) for a, b in zip(quote, said[at:], strict=False) if a != b]
        return not wrong or (len(wrong) == 1 and "pear" not in wrong[0] and "pears" not in wrong[0])

    near = any(is_near(at) for at in range(len(said) - len(quote) + 1))
    assert (find(" ".join(quote), " ".join(said)) is not None) == near
