"""Names that stand in no dictionary, so that a search of bytes finds them and nothing else."""

from __future__ import annotations

from random import Random

from benchmarks.learning_talk.form import Shape

_FIRST = [
    "Bal",
    "Cor",
    "Dus",
    "Fen",
    "Gor",
    "Hax",
    "Jul",
    "Kem",
    "Lor",
    "Mab",
    "Nev",
    "Ost",
    "Pax",
    "Quo",
    "Rud",
    "Sib",
    "Tul",
    "Ven",
    "Wox",
    "Yar",
    "Zed",
]
_SECOND = [
    "abri",
    "eqti",
    "inva",
    "oxta",
    "ulmi",
    "afro",
    "egni",
    "ipso",
    "ordu",
    "uzka",
    "ambo",
    "elzi",
    "icta",
    "ondu",
    "umbe",
]
_THIRD = [
    "dex",
    "fal",
    "gon",
    "hurst",
    "kin",
    "lund",
    "mor",
    "nax",
    "pell",
    "quist",
    "ras",
    "stav",
    "tov",
    "vik",
    "wick",
    "zen",
]


class Inventor:
    """Values, each different from all before it, the same for the same seed."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._made: set[str] = set()

    def value(self, shape: Shape) -> str:
        """Another value."""
        while True:
            made = self._one(shape)
            stem = made.lower().partition(".")[0]
            if stem not in self._made:
                self._made.add(stem)
                return made

    def _one(self, shape: Shape) -> str:
        if shape == "port":
            return str(self._random.randrange(10_007, 65_000))
        name = "".join(self._random.choice(part) for part in (_FIRST, _SECOND, _THIRD))
        if shape == "host":
            return f"{name.lower()}.example.org"
        return name.lower() if shape == "word" else name
