"""The files of a model in ONNX format: the network, its tokenizer, and a manifest with digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from msgspec import Struct, field

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding import places

NET, TOKENIZER, MANIFEST = "model.onnx", "tokenizer.json", "manifest.json"
VOCABULARY = "vocabulary.txt"  # replaces TOKENIZER: then `bert.py` tokenizes
CURE = "`agentd memory index --export-onnx` makes it again."
PACKAGED = Path(__file__).with_name("minilm_int8")
REINSTALL = (
    "Reinstall agentd (pip install --force-reinstall agentd, or rm -r .venv; make run), then "
    'restart it; provider = "static" in [memory_search] does without.'
)


class OnnxFiles(Struct, frozen=True):
    """The paths of a model's files. Without a manifest, only `model`, `tokenizer` and perhaps
    `dimension` are known.
    """

    model: Path
    tokenizer: Path
    dimension: int = 0
    limit: int = 0  # most tokens of a text that the model reads; 0 if unknown
    name: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    cure: str = CURE

    @classmethod
    def at(cls, source: Path) -> Self:
        """Locate a model: a folder with a manifest, a folder with the network, or an .onnx file,
        these two with `tokenizer.json` beside the network or one folder up.

        Raises EmbedderFault if it is none of these.
        """
        if source.is_dir() and (source / MANIFEST).is_file():
            return cls._listed(source)
        net = source / NET if source.is_dir() else source
        places = (net.with_name(TOKENIZER), net.parent.parent / TOKENIZER)
        tokenizer = next((place for place in places if place.is_file()), None)
        if not net.is_file() or tokenizer is None:
            missing = net if not net.is_file() else places[0]
            raise EmbedderFault(
                f"{missing} is missing.",
                cure="Let model in [memory_search.embedder] name an .onnx file with its "
                "tokenizer.json beside it.",
            )
        return cls(net, tokenizer, _dimension(tokenizer.with_name("config.json")))

    @classmethod
    def _listed(cls, folder: Path) -> Self:
        """Read the manifest of an export, or of the shipped model, whose network is in a
        package.
        """
        cure = REINSTALL if folder == PACKAGED else CURE
        try:
            card: dict[str, Any] = json.loads((folder / MANIFEST).read_bytes())
            package = str(card.get("package", ""))
            return cls(
                (places.package(package) if package else folder) / NET,
                folder / str(card.get("tokenizer", TOKENIZER)),
                int(card["dimension"]),
                int(card["limit"]),
                str(card["model"]),
                dict(card["sha256"]),
                cure,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderFault(
                f"The model in {folder} cannot be read: {error}.", cure=cure
            ) from error

    @property
    def fingerprint(self) -> str:
        """A digest of the network; "" without a manifest."""
        return self.digests.get(NET, "")[:12]

    def check(self) -> None:
        """Raise EmbedderFault if a file does not have the digest of the manifest."""
        for name, digest in self.digests.items():
            path = self.model if name == NET else self.tokenizer.with_name(name)
            check_digest(path, digest, self.cure)


def check_digest(path: Path, digest: str, cure: str) -> None:
    """Raise EmbedderFault unless the file has this SHA-256."""
    try:
        found = sha256(path)
    except OSError as error:
        raise EmbedderFault(f"{path} cannot be read: {error.strerror}.", cure=cure) from error
    if found != digest:
        raise EmbedderFault(f"{path} is not the file that its manifest names.", cure=cure)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _dimension(settings: Path) -> int:
    try:
        return int(json.loads(settings.read_bytes())["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
