"""The weights of the packed multilingual-e5-small that agentd comes with, as scripts/pack_e5.py writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agentd.embedders.e5_weights import WIDTH, Floats, Tensor
from agentd.embedders.unigram import Vocabulary

KINDS = ("common", "less", "rare")  # of pieces, in the order of their ids
_OWN = {f"{kind}.{name}" for kind in KINDS for name in ("codes", "parts")} | {
    "positions",
    "pieces",
    "scores",
    "written",
    "special",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Vectors as numbers of parts that many of them share."""

    codes: npt.NDArray[np.uint8]
    parts: Floats  # of each place 256

    def rows(self, numbers: npt.NDArray[np.intp]) -> Floats:
        """The vectors with these numbers."""
        codes = self.codes[numbers]
        found: Floats = self.parts[np.arange(len(self.parts)), codes].reshape(len(codes), WIDTH)
        return found


class PackedWeights:
    """A piece's vector is put together from parts."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, ValueError, KeyError, zipfile.BadZipFile for what is no such file."""
        self._path = path
        with np.load(path) as found:
            self._tables = [
                Table(found[f"{kind}.codes"], found[f"{kind}.parts"].astype(np.float32))
                for kind in KINDS
            ]
            self.positions: Floats = found["positions"].astype(np.float32)
            self._tensors = {
                name: array if array.dtype == np.uint8 else array.astype(np.float32)
                for name, array in found.items()
                if name not in _OWN
            }

    def vocabulary(self) -> Vocabulary:
        """The pieces, read anew: they take a lot of memory, and are needed to make a tokenizer alone."""
        with np.load(self._path) as found:
            return unpack(found)

    def rows(self, ids: Sequence[int]) -> Floats:
        """The vectors of pieces."""
        numbers = np.asarray(ids)
        found = np.zeros((len(numbers), WIDTH), np.float32)
        first = 0
        for table in self._tables:
            here = (numbers >= first) & (numbers < first + len(table.codes))
            found[here] = table.rows(numbers[here] - first)
            first += len(table.codes)
        return found

    def tensors(self) -> Mapping[str, Tensor]:
        """All that the graph's weights are called. Once: they are not kept here."""
        found, self._tensors = self._tensors, {}
        return found


def pack(vocabulary: Vocabulary) -> dict[str, npt.NDArray[np.generic]]:
    """A vocabulary as arrays."""
    special = (vocabulary.start, vocabulary.end, vocabulary.padding, vocabulary.unknown)
    return {
        "pieces": _bytes("\n".join(vocabulary.pieces)),
        "scores": np.array(vocabulary.scores, "<f2"),
        "written": _bytes(json.dumps({str(it): to for it, to in vocabulary.written.items()})),
        "special": np.array(special, "<i4"),
    }


def unpack(found: Mapping[str, npt.NDArray[np.generic]]) -> Vocabulary:
    """And back."""
    written = json.loads(found["written"].tobytes())
    return Vocabulary(
        found["pieces"].tobytes().decode().split("\n"),
        found["scores"].tolist(),
        {int(it): to for it, to in written.items()},
        *found["special"].tolist(),
    )


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)
