"""Where multilingual-e5-small is: its weights in a package, its graph and what is taken out here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from agentd.embedders import places
from agentd.embedders.onnx_files import MANIFEST, check_digest
from agentd.errors import EmbedderFault

FOLDER = Path(__file__).with_name("e5_small")
INSTALL = "Install it: pip install 'agentd[multilingual]', or EXTRAS=multilingual make run."


@dataclass(frozen=True, slots=True)
class E5Files:
    """The files of the model, and the digests that they must have."""

    weights: Path
    net: Path
    turn: Path  # the mean of all vectors, and the axes along which languages differ
    name: str
    dimension: int
    digests: Mapping[str, str] = field(default_factory=dict)
    cure: str = INSTALL

    @classmethod
    def find(cls, folder: Path = FOLDER) -> Self:
        """As the manifest in the folder says. Raises EmbedderFault where the package is missing."""
        try:
            card = json.loads((folder / MANIFEST).read_bytes())
            return cls(
                places.package(str(card["package"])) / str(card["weights"]),
                folder / "net.onnx",
                folder / "turn.npy",
                str(card["model"]),
                int(card["dimension"]),
                dict(card["sha256"]),
            )
        except FileNotFoundError as error:
            raise EmbedderFault(f"multilingual-e5-small: {error}.", cure=INSTALL) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise EmbedderFault(
                f"The model in {folder} cannot be read: {error}.", cure=INSTALL
            ) from error

    @property
    def fingerprint(self) -> str:
        """What the vectors depend on."""
        return hashlib.sha256("".join(sorted(self.digests.values())).encode()).hexdigest()[:12]

    def check(self) -> None:
        """Raise EmbedderFault if a file is not the one that the manifest means."""
        for path in (self.weights, self.net, self.turn):
            check_digest(path, self.digests.get(path.name, ""), self.cure)
