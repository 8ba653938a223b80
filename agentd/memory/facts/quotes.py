"""Whether the user said the words that a model quotes, and where. Pure.

The rules are those of DESIGN section 9: a quote is compared after NFKC, without code points that are
ignored by default (but the joiners), with quotation marks and dashes folded, blanks as one, without
case, and without outer punctuation. It begins and ends with whole characters as people see them and, in
scripts that put blanks between words, with whole words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from agentd.domain.quotation import Span

_CLUSTER = regex.compile(r"\X")
_IGNORED = regex.compile(r"(?V1)[\p{Default_Ignorable_Code_Point}--[\u200c\u200d]]")
_QUOTATION_MARK = regex.compile(r"[\p{Quotation_Mark}`´′″]")
_DASH = regex.compile(r"[\p{Dash_Punctuation}\u2212]")
_UNSPACED = regex.compile(
    r"[\p{Script_Extensions=Han}\p{Script_Extensions=Hiragana}\p{Script_Extensions=Katakana}"
    r"\p{Script_Extensions=Thai}\p{Script_Extensions=Lao}\p{Script_Extensions=Khmer}"
    r"\p{Script_Extensions=Myanmar}\p{Script_Extensions=Tibetan}]"
)
_WORD_LETTER = regex.compile(r"[\w\p{M}]")
_WORD = regex.compile(r"\S+")
_GAP = regex.compile(r"\s*\[?\.{3,}\]?\s*")  # an ellipsis, as NFKC spells it
_SENTENCE_END = regex.compile(r"[.!?](?=\s|$)|[。！？\n]")
_LEAST_WORDS = 3
_LEAST_UNSPACED = 8  # characters, where no blanks tell words apart
_TYPO_LETTERS = 5  # letters of a word in which one may be wrong


@dataclass(frozen=True, slots=True)
class _Folded:
    """A text in the form in which it is compared; `spans` says for each of its characters which
    characters of the original it stands for.
    """

    text: str
    spans: tuple[Span, ...]

    def original(self, start: int, end: int) -> Span:
        """The characters of the original for characters of the folded text."""
        return self.spans[start][0], self.spans[end - 1][1]

    def is_whole(self, start: int, end: int) -> bool:
        """Whether a part begins and ends between characters as people see them, and between words."""
        if start > 0 and self.spans[start - 1] == self.spans[start]:
            return False
        if end < len(self.text) and self.spans[end - 1] == self.spans[end]:
            return False
        return not (self._within_word(start) or self._within_word(end))

    def _within_word(self, at: int) -> bool:
        if not 0 < at < len(self.text):
            return False
        sides = self.text[at - 1], self.text[at]
        return all(_WORD_LETTER.match(c) and not _UNSPACED.match(c) for c in sides)


def find(quote: str, text: str, quotations: Sequence[Span] = ()) -> Span | None:
    """Where the quote stands in the text outside of quotations; None if it does not.

    One inner ellipsis may leave something out, if both parts have three words or more and stand in
    one sentence. One word of five letters or more may be misspelt by one letter other than the first.
    """
    wanted = _trimmed(_folded(quote).text)
    if not wanted:
        return None
    folded = _folded(text)
    for found in (
        *_exactly(wanted, folded),
        *_with_gap(wanted, folded, text),
        *_with_typo(wanted, folded),
    ):
        if not any(found[0] < end and start < found[1] for start, end in quotations):
            return found
    return None


def is_short(quote: str) -> bool:
    """Whether a quote has less than three words, or eight characters of a script without blanks; such
    words say something only as the answer to a question.
    """
    words = _trimmed(_folded(quote).text)
    unspaced = len(_UNSPACED.findall(words))
    spaced = len([word for word in words.split() if not _UNSPACED.search(word)])
    return spaced / _LEAST_WORDS + unspaced / _LEAST_UNSPACED < 1


def sentence_around(text: str, span: Span) -> Span:
    """The whole sentence, or sentences, that a span lies in, without blanks around."""
    start, end = 0, len(text)
    for found in _SENTENCE_END.finditer(text):
        if found.end() <= span[0]:
            start = found.end()
        elif found.end() >= span[1]:
            end = found.end()
            break
    while start < span[0] and text[start].isspace():
        start += 1
    while end > span[1] and text[end - 1].isspace():
        end -= 1
    return start, end


def _folded(text: str) -> _Folded:
    if text.isascii():
        return _folded_ascii(text)
    letters: list[str] = []
    spans: list[Span] = []
    for cluster in _CLUSTER.finditer(text):
        for letter in _comparable(cluster[0]):
            if letter == " " and (not letters or letters[-1] == " "):
                continue
            letters.append(letter)
            spans.append(cluster.span())
    return _Folded("".join(letters), tuple(spans))


def _folded_ascii(text: str) -> _Folded:
    """The same, quicker: each character stands for itself."""
    letters: list[str] = []
    spans: list[Span] = []
    for at, letter in enumerate(text.casefold()):
        shown = " " if letter.isspace() else "'" if letter in '"`' else letter
        if shown == " " and (not letters or letters[-1] == " "):
            continue
        if shown >= " " and shown != "\x7f":
            letters.append(shown)
            spans.append((at, at + 1))
    return _Folded("".join(letters), tuple(spans))


def _comparable(cluster: str) -> str:
    """One character as people see it, as it is compared; blanks are one, what is ignored is nothing."""
    shown = _DASH.sub("-", _QUOTATION_MARK.sub("'", _IGNORED.sub("", cluster)))
    if shown.isspace():
        return " "
    shown = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    return "".join(" " if c.isspace() else c for c in shown)


def _trimmed(words: str) -> str:
    """Without punctuation and blanks around."""
    start, end = 0, len(words)
    while start < end and _is_outer(words[start]):
        start += 1
    while end > start and _is_outer(words[end - 1]):
        end -= 1
    return words[start:end]


def _is_outer(letter: str) -> bool:
    return letter.isspace() or unicodedata.category(letter).startswith("P")


def _exactly(wanted: str, folded: _Folded) -> Iterator[Span]:
    for start, end in _places(wanted, folded):
        yield folded.original(start, end)


def _places(wanted: str, folded: _Folded, after: int = 0) -> Iterator[Span]:
    at = folded.text.find(wanted, after)
    while at >= 0:
        if folded.is_whole(at, at + len(wanted)):
            yield at, at + len(wanted)
        at = folded.text.find(wanted, at + 1)


def _with_gap(wanted: str, folded: _Folded, text: str) -> Iterator[Span]:
    gaps = list(_GAP.finditer(wanted))
    if len(gaps) != 1:
        return
    first, second = (_trimmed(w) for w in (wanted[: gaps[0].start()], wanted[gaps[0].end() :]))
    if is_short(first) or is_short(second):
        return
    for start, end in _places(first, folded):
        for begun, ended in _places(second, folded, end):
            left_out = text[folded.original(start, end)[1] : folded.original(begun, ended)[0]]
            if not _SENTENCE_END.search(left_out):
                yield folded.original(start, ended)


def _with_typo(wanted: str, folded: _Folded) -> Iterator[Span]:
    words = [_trimmed(word) for word in wanted.split(" ")]
    found = list(_WORD.finditer(folded.text))
    said = [_trimmed(one[0]) for one in found]
    for at in range(len(said) - len(words) + 1):
        wrong = 0
        for mine, theirs in zip(words, said[at : at + len(words)], strict=True):
            if mine != theirs:
                wrong += 1 if _is_misspelt(mine, theirs) else 2
            if wrong > 1:
                break
        if wrong == 1:
            start = found[at].start() + found[at][0].index(said[at])
            last = found[at + len(words) - 1]
            end = last.start() + last[0].index(said[at + len(words) - 1])
            yield folded.original(start, end + len(said[at + len(words) - 1]))


def _is_misspelt(mine: str, theirs: str) -> bool:
    """Whether two words differ by one letter that is added, left out or exchanged."""
    if min(len(mine), len(theirs)) < _TYPO_LETTERS or mine[0] != theirs[0]:
        return False
    if not (mine.isalpha() and theirs.isalpha()) or abs(len(mine) - len(theirs)) > 1:
        return False
    short, long = sorted((mine, theirs), key=len)
    same = next(
        (n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    rest = short[same:] if len(short) < len(long) else short[same + 1 :]
    return rest == long[same + 1 :]
