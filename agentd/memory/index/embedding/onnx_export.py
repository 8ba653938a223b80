"""Exports a sentence-transformers model to ONNX with int8 weights. Used only by the embedder
process.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from sentence_transformers import SentenceTransformer
from torch import nn

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding.onnx_files import MANIFEST, NET, TOKENIZER, sha256
from agentd.memory.index.embedding.onnx_model import OnnxModel
from agentd.memory.index.embedding.torch_model import TorchModel, whole_tokenizer

LEAST_AGREEMENT = 0.98  # lowest mean cosine between the original's vectors and the export's
OPSET = 17
INPUTS = ("input_ids", "attention_mask", "token_type_ids")

_WHO = ("Marta", "The new colleague", "Our landlord", "Dr. Okafor", "The build server")
_WHAT = (
    "moved the meeting to Thursday because the train was late.",
    "asked for the printer's password, which nobody knew, and wrote a long letter about it to all.",
    "prefers tea.",
    "found that version 3.11.7 fails with error E1042 whenever the disk is full.",
    "said: could you please bring the blue folder and two tickets?",
    "will pay 1,250 euros before the end of March.",
    "has planted tomatoes, beans and a small apple tree behind the garage.",
    "would like to know how the holiday in Norway was.",
    "restored the backup from /srv/archive/2024 and checked every file twice.",
    "sings.",
)
SAMPLES = tuple(f"{who} {what}" for who in _WHO for what in _WHAT)


class _Pooled(nn.Module):
    """The network with mean pooling over the tokens and scaling to length 1: token ids to a
    vector.
    """

    def __init__(self, net: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.net = net
        self._names = names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        known = dict(zip(self._names, inputs, strict=True))
        states = self.net(**known).last_hidden_state
        weights = known["attention_mask"].unsqueeze(-1).to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=1)


def export(source: Path, target: Path, name: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Export the model to the folder `target`, replacing an older export, and return its manifest.

    Raises EmbedderFault for a model without mean pooling, and for an export whose vectors differ
    too much from the original's; `target` is then unchanged.
    """
    tell("loading the model")
    original = TorchModel(str(source), 1)
    _check_pooling(original.net)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".export-") as scratch:
        folder = Path(scratch, "new")
        folder.mkdir(mode=0o700)
        tell("exporting")
        _write_net(original.net, Path(scratch, "float.onnx"))
        tell("making the weights smaller")
        quantize_dynamic(
            Path(scratch, "float.onnx"), folder / NET, weight_type=QuantType.QInt8, per_channel=True
        )
        whole_tokenizer(original.net).save(str(folder / TOKENIZER))
        card = {
            "model": name,
            "dimension": original.dimension,
            "limit": int(original.net.max_seq_length or 256),
            "sha256": {file: sha256(folder / file) for file in (NET, TOKENIZER)},
        }
        (folder / MANIFEST).write_text(json.dumps(card, indent=1), encoding="utf-8")
        tell("comparing with the original")
        card["agreement"] = _agreement(original, OnnxModel(folder, 1))
        (folder / MANIFEST).write_text(json.dumps(card, indent=1), encoding="utf-8")
        for file in folder.iterdir():
            file.chmod(0o600)
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    return card


def _check_pooling(net: SentenceTransformer) -> None:
    kinds = [type(module).__name__ for module in net]
    mean = len(kinds) > 1 and getattr(net[1], "pooling_mode", "") in ("mean", ("mean",), ["mean"])
    mean = mean or (len(kinds) > 1 and getattr(net[1], "pooling_mode_mean_tokens", False))
    if (
        kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
        or not mean
    ):
        raise EmbedderFault(
            f"Only models that take the mean over their tokens can be exported, not {kinds}.",
            cure='Use it with provider = "sentence-transformers".',
        )


def _write_net(net: SentenceTransformer, path: Path) -> None:
    sample = net.tokenizer(["two texts of", "different length"], padding=True, return_tensors="pt")
    names = tuple(name for name in INPUTS if name in sample)
    axes = {name: {0: "texts", 1: "tokens"} for name in names}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # warnings of tracing; `_agreement` checks the result
        torch.onnx.export(
            _Pooled(net[0].auto_model.eval(), names).eval(),
            tuple(sample[name] for name in names),
            str(path),
            opset_version=OPSET,
            dynamo=False,
            input_names=list(names),
            output_names=["embedding"],
            dynamic_axes={**axes, "embedding": {0: "texts"}},
        )


def _agreement(original: TorchModel, exported: OnnxModel) -> float:
    texts = list(SAMPLES)
    pairs = original.embed(texts, query=False), exported.embed(texts, query=False)
    mean = float(np.mean(np.sum(pairs[0] * pairs[1], axis=1)))
    if not mean >= LEAST_AGREEMENT:
        raise EmbedderFault(
            f"The export's vectors agree with the original's to {mean:.3f}, which is less than "
            f"{LEAST_AGREEMENT}; it is not used.",
            cure='Use the model with provider = "sentence-transformers".',
        )
    return round(mean, 4)
