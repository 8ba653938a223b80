"""Spellings of paths."""

import itertools
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.errors import PathRefused
from agentd.workspace.names import Name, below, fold, is_injected, is_protected, parse, parse_file

_CLIMBS = ["..", "\uff0e\uff0e", "\u2025", "\u2024\u2024", ".. ", " ..", "..\u200b/.."]
_BEFORE = ["", "memory/", "./", "memory//", "memory/./", "a/b/c/"]
_AFTER = ["", "/", "/etc/passwd", "/../etc/passwd", "/x.md", "//USER.md"]
_ABSOLUTE = ["/etc/passwd", "//etc/passwd", "/", "/proc/self/root/etc/passwd", "~/x.md", "~root/x"]
_DRIVES = ["C:\\x", "C:/x", "c:", "\\\\server\\share", "memory\\..\\x", "..\\x", "a/b\\c"]
_BYTES = [
    "a\0b",
    "x.md\0.txt",
    "a\nb",
    "a\tb",
    "a\x7fb",
    "a\x85b",
    "\u2028x",
    "\ud800x",
    "a\u202eb",
]
_HIDDEN = [
    ".git/config",
    "a/.env",
    ".agentd-x.tmp",
    "...",
    "a/.../b",
    "\uff0egit/config",
    "\u2024env",
]
_SLASHES = ["a\uff0fb", "a\uff3cb", "\u2100", "..\uff0fetc"]
_LONG = ["x" * 256, "é" * 128, "a/" * 1200 + "x", "x" * 5000]
_ATTACKS = [
    *("".join(parts) for parts in itertools.product(_BEFORE, _CLIMBS, _AFTER)),
    *(
        a
        for a in [
            *_ABSOLUTE,
            *_DRIVES,
            *_BYTES,
            *_HIDDEN,
            *_SLASHES,
            *_LONG,
            "",
            "@",
            "@/x",
            ".",
            "@w",
        ]
    ),
    *(f"@work/{a}" for a in [*_CLIMBS, *_BYTES, *_HIDDEN, *_SLASHES]),
]


@pytest.mark.parametrize("path", _ATTACKS)
def test_every_trick_is_refused(path: str) -> None:
    with pytest.raises(PathRefused) as refused:
        parse_file(path)
    assert refused.value.cure
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 800


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ("  memory//2026-11-21.md ", "memory/2026-11-21.md"),
        ("./projects/./boat.md/", "projects/boat.md"),
        ("cafe\u0301.md", "caf\u00e9.md"),
        ("notes..md", "notes..md"),
        ("a..b/c...d", "a..b/c...d"),
        ("x~y/~", "x~y/~"),
        ("日本語/メモ.md", "日本語/メモ.md"),
        ("%2e%2e/x", "%2e%2e/x"),
        ("@work/MEMORY.md", "@work/MEMORY.md"),
        ("x" * 255, "x" * 255),
    ],
)
def test_honest_names_have_one_spelling(path: str, spelled: str) -> None:
    assert str(parse_file(path)) == spelled
    assert str(parse_file(spelled)) == spelled


@given(st.text(max_size=40))
def test_a_spelling_is_a_fixed_point_and_stays_inside(path: str) -> None:
    try:
        name = parse_file(path)
    except PathRefused:
        return
    assert parse_file(str(name)) == name
    assert all(part not in {"", ".", ".."} and "/" not in part for part in name.parts)


@pytest.mark.parametrize(
    "stem",
    ["SOUL", "AGENTS", "USER", "IDENTITY", "TOOLS", "HEARTBEAT", "BOOTSTRAP", "MEMORY", "README"],
)
def test_the_nine_files_are_protected_in_every_disguise(stem: str) -> None:
    wide = "".join(chr(ord(c) + 0xFEE0) for c in stem)
    for spelled in (stem, stem.lower(), stem.title(), wide, stem[0] + "\u200d" + stem[1:]):
        for suffix in (".md", ".MD", ".Md", ".md.", ".md ", "\uff0emd"):
            assert is_protected(parse(f"x/../{spelled}{suffix}"[5:]))
    assert not is_protected(parse(f"projects/{stem}.md"))
    assert not is_protected(parse(f"my-{stem}.md"))
    assert not is_protected(Name("", ()))


def test_folding_is_stable_under_itself() -> None:
    for text in ("ＳＯＵＬ．ＭＤ", "Straße", "ﬁle", "x. . ."):
        assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("SOUL.md", True),
        ("memory.MD", True),
        ("\uff33OUL.md", True),
        ("memory/2026-11-21.md", True),
        ("Memory/2026-11-21.MD", True),
        ("daily/2026-11-21.md", True),
        ("memory/facts.md", True),
        ("Memory/FACTS.md", True),
        ("projects/facts.md", False),
        ("memory/boat.md", False),
        ("memory/old/2026-11-21.md", False),
        ("projects/2026-11-21.md", False),
        ("projects/SOUL.md", False),
    ],
)
def test_which_files_prompts_carry(path: str, expected: bool) -> None:
    assert is_injected(parse_file(path), ("memory", "daily")) is expected


def test_no_character_that_a_name_cannot_have_is_overlooked():
    turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    refused = set()
    for c in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} or c in turning:
            refused.add(c)
            with pytest.raises(PathRefused, match="has a control character"):
                parse(f"a{c}b")
    assert len(refused) == 65 + 2048 + 2 + 12


@given(
    st.lists(st.sampled_from(["a", "Ü", "x y", "a" * 255]), max_size=9),
    st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=12)
    | st.text(" .~@:\\-az_Ü9", min_size=1, max_size=5),
)
def test_a_name_on_the_disk_is_found_under_the_one_path_that_spells_it(folders, part):
    found = below(Name("", tuple(folders)), part)
    path = "/".join((*folders, part))
    try:
        spelled = parse(path)
    except PathRefused:
        spelled = None
    if isinstance(found, Name):
        assert found == spelled
    else:
        assert spelled != Name("", (*folders, part))


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("caf\udce9.md", "bytes that are not UTF-8"),
        ("a\nb.md", "a control character"),
        ("cafe\u0301.md", "not composed"),
        (" a.md", "a space before"),
        ("@a.md", "an @"),
        ("~a.md", "a home directory"),
    ],
)
def test_it_is_said_why_a_name_cannot_be_spelled(part, why):
    assert why in str(below(Name("", ()), part))
