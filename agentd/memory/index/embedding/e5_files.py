"""The files of multilingual-e5-small: weights from a package; graph and vector correction from
here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from msgspec import Struct, field

from agentd.core.errors import EmbedderFault
from agentd.memory.index.embedding import places
from agentd.memory.index.embedding.onnx_files import REINSTALL, check_digest

# The whole model, and the packed one that is shipped with agentd.
FULL, PACKED = "manifest.json", "packed.json"
FOLDER = Path(__file__).with_name("e5_small")
INSTALL = "Install it: pip install 'agentd-daemon[multilingual]', or EXTRAS=multilingual make run."


class E5Files(Struct, frozen=True):
    """The files of the model, and their expected digests."""

    weights: Path
    net: Path
    turn: Path  # the mean of all vectors, and the axes along which languages differ
    name: str
    dimension: int
    weight: float  # of its cosine, where that of all-MiniLM-L6-v2 has the weight 1
    digests: Mapping[str, str] = field(default_factory=dict)
    cure: str = INSTALL

    @classmethod
    def find(cls, manifest: Path) -> Self:
        """Locate the files that the manifest names. Raises EmbedderFault if the package with the
        weights is missing or the manifest is unreadable.
        """
        folder = manifest.parent
        cure = REINSTALL if manifest.name == PACKED else INSTALL
        try:
            card = json.loads(manifest.read_bytes())
            package = str(card["package"])
            return cls(
                (places.package(package) if package else folder) / str(card["weights"]),
                folder / "net.onnx",
                folder / "turn.npy",
                str(card["model"]),
                int(card["dimension"]),
                float(card["weight"]),
                dict(card["sha256"]),
                cure,
            )
        except FileNotFoundError as error:
            raise EmbedderFault(f"multilingual-e5-small: {error}.", cure=cure) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderFault(
                f"The model of {manifest} cannot be read: {error}.", cure=cure
            ) from error

    @property
    def fingerprint(self) -> str:
        """A digest that changes when the vectors may change."""
        return hashlib.sha256("".join(sorted(self.digests.values())).encode()).hexdigest()[:12]

    def check(self) -> None:
        """Raise EmbedderFault if a file does not have the digest of the manifest."""
        for path in (self.weights, self.net, self.turn):
            check_digest(path, self.digests.get(path.name, ""), self.cure)
