"""Notes without meaning but with the shape of real ones: topics, a few words that are everywhere
and many that are rare, names made for machines, files of fifty paragraphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np

from agentd.core.search import Chunk, Source
from agentd.memory.index.embedding.static import PACKAGED

TOPICS = 3000
TOPIC_WORDS = 60
PARAGRAPHS = 50  # of one file
FIRST_DAY = date(2019, 1, 1)

_MORE_COMMON = 1.05  # how much the first words are preferred, as in any language
_OF_TOPIC = 0.6  # of the words of a paragraph


class Inventor:
    """Paragraphs and questions, the same for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        lines = (PACKAGED / "vocabulary.txt").read_text("utf-8").split("\n")
        self._words = [word for word in lines if len(word) > 2 and word.isalpha()]
        shares = 1.0 / np.arange(30, 30 + len(self._words)) ** _MORE_COMMON
        self._shares = np.cumsum(shares / shares.sum())
        self._topics = self._common(TOPICS * TOPIC_WORDS).reshape(TOPICS, TOPIC_WORDS)

    def texts(self, count: int) -> list[str]:
        """Paragraphs of 8 to 48 words."""
        return [" ".join(words) for words in self._paragraphs(count)]

    def chunks(self, count: int, batch: int = 10_000) -> Iterator[list[Chunk]]:
        """So many paragraphs as pieces of notes, in batches."""
        for start in range(0, count, batch):
            texts = self.texts(min(batch, count - start))
            yield [_chunk(number, text) for number, text in enumerate(texts, start)]

    def questions(self, count: int) -> list[str]:
        """Questions of 3 to 9 words, each about a topic."""
        return [
            " ".join(words[: 3 + number % 7])
            for number, words in enumerate(self._paragraphs(count))
        ]

    def _paragraphs(self, count: int) -> Iterator[list[str]]:
        random = self._random
        lengths = random.integers(8, 49, count)
        topics = np.repeat(random.integers(0, TOPICS, count), lengths)
        common = self._common(len(topics))
        places = np.minimum(random.exponential(TOPIC_WORDS / 4, len(topics)), TOPIC_WORDS - 1)
        of_topic = random.random(len(topics)) < _OF_TOPIC
        chosen = np.where(of_topic, self._topics[topics, places.astype(np.int64)], common)
        machines = random.random(count) < 0.1
        names = random.integers(0, 1_000_000, count)
        ends = np.cumsum(lengths)
        for end, length, name, has in zip(
            ends.tolist(), lengths.tolist(), names.tolist(), machines.tolist(), strict=True
        ):
            words = [self._words[number] for number in chosen[end - length : end].tolist()]
            if has:
                words[length // 2] = f"srv-{name}"
            yield words

    def _common(self, count: int) -> np.ndarray:
        found = np.searchsorted(self._shares, self._random.random(count))
        return np.minimum(found, len(self._words) - 1)


def _chunk(number: int, text: str) -> Chunk:
    file, line = divmod(number, PARAGRAPHS)
    day = FIRST_DAY + timedelta(days=file % 2500)
    path = f"memory/{day.isoformat()}-{file}.md"
    return Chunk(path, 2 * line + 1, 2 * line + 1, text, Source.NOTES, "main", day)
