"""Writes agentd/core/screening/lookalikes.txt from the data of the package `confusable-homoglyphs`.

pip install confusable-homoglyphs && python scripts/lookalikes.py
"""

from __future__ import annotations

import importlib.metadata
import json
import unicodedata
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

PACKAGE = "confusable_homoglyphs"
TARGET = Path(__file__).parent.parent / "agentd" / "core" / "screening" / "lookalikes.txt"
DOTLESS_I = "\u0131"  # the one of them that people write: in Turkish, beside ASCII letters
NOTICE = """\
# A Latin letter, and the letters beyond ASCII that pass for it; written by scripts/lookalikes.py.
# From confusables.json of confusable-homoglyphs {version}, which has it from Unicode's confusables.txt
# (Copyright Unicode, Inc., https://www.unicode.org/license.txt).
"""


def table() -> dict[str, list[str]]:
    """Latin letters with their look-alikes: single letters of other scripts, and those of phonetic
    and former spellings. Those that NFKC makes a Latin letter are left out, since readers normalise
    first.
    """
    data = json.loads((files(PACKAGE) / "confusables.json").read_text(encoding="utf-8"))
    found = defaultdict(set)
    for char, others in data.items():
        for other in (entry["c"] for entry in others):
            if _is_plain(other) and _is_foreign(char):
                found[other].add(char)
    return {latin: sorted(found[latin]) for latin in sorted(found)}


def _is_plain(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text.isalpha()


def _is_foreign(char: str) -> bool:
    return (
        len(char) == 1
        and char.isalpha()
        and not unicodedata.normalize("NFKC", char).isascii()
        and char != DOTLESS_I
    )


def main() -> None:
    """Write the table with the notice that its licence asks for."""
    version = importlib.metadata.version(PACKAGE)
    licence = importlib.metadata.distribution(PACKAGE).read_text("LICENSE") or ""
    lines = [f"# {line}".rstrip() for line in licence.strip().splitlines()]
    rows = [f"{latin} {''.join(chars)}" for latin, chars in table().items()]
    text = NOTICE.format(version=version) + "\n".join(["#", *lines, *rows]) + "\n"
    TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
