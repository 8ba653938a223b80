"""What is spelled out cannot be overlooked, and what languages need is left as it is."""

from __future__ import annotations

import re

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from agentd.core.screening.ignorable import IGNORABLE
from agentd.core.screening.lookalikes import spell_out

OURS = re.compile(f"[{IGNORABLE}]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("\u202etxt.exe", "⟨U+202E⟩txt.exe"),
        ("\x1b[31m", "⟨U+001B⟩[31m"),
        ("one\rtwo", "one⟨U+000D⟩two"),
        ("one\u2028two", "one⟨U+2028⟩two"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("a\u3164b", "a⟨U+3164⟩b"),
        ("a\ufe0f", "a⟨U+FE0F⟩"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("pаypal", "pа⟨U+0430⟩ypal"),
        ("\ud800", "⟨U+D800⟩"),
        ("a\u034fb", "a⟨U+034F⟩b"),
        ("a\u17b4b\u17b5", "a⟨U+17B4⟩b⟨U+17B5⟩"),
        ("a\u180bb\u180fc", "a⟨U+180B⟩b⟨U+180F⟩c"),
        ("中\u200c中\u200d中", "中⟨U+200C⟩中⟨U+200D⟩中"),
        ("👍\u200d\u200d", "👍⟨U+200D⟩⟨U+200D⟩"),
        ("so.\ufe0f", "so.⟨U+FE0F⟩"),
        ("a\U0001d159b", "a⟨U+1D159⟩b"),
        ("p\u034f\u0430\u034fy", "p⟨U+034F⟩\u0430⟨U+0430⟩⟨U+034F⟩y"),
        ("p\u0430\u0301ypal", "p\u0430⟨U+0430⟩\u0301ypal"),
        ("ⅿemory.md", "ⅿ⟨U+217F⟩emory.md"),
        ("memoｒy", "memoｒ⟨U+FF52⟩y"),
        ("m𝖾mory", "m𝖾⟨U+1D5BE⟩mory"),
        ("pɑypal ɡoogle", "pɑ⟨U+0251⟩ypal ɡ⟨U+0261⟩oogle"),
    ],
)
def test_what_nobody_sees_or_passes_for_another_letter_is_told(text: str, shown: str) -> None:
    assert spell_out(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain\n\ttext",
        "naïve Łódź Straße Işık",
        "Москва",
        "日本語",
        "می‌خواهم",
        "क्‍ष",
        "❤️ 👨‍👩‍👧 1️⃣",
        "র‍্য",
        "ه‍ 👩🏽‍⚕️ ᠠ\u180b",
        "ＡＢＣ株式会社 Ⅳ Nº 5 cafe\u0301",
    ],
)
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert spell_out(text) == text


def test_no_character_that_is_ignored_by_default_passes_unseen() -> None:
    ignored = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    of_unicode = {chr(code) for code in range(0x110000) if ignored.match(chr(code))}
    assert {chr(code) for code in range(0x110000) if OURS.match(chr(code))} == of_unicode
    for between in ("ab", "中中", "  "):
        quiet = [c for c in of_unicode if spell_out(text := c.join(between)) == text]
        assert not quiet, [f"{ord(char):04X}" for char in quiet]


@given(st.text())
def test_nothing_is_lost(text: str) -> None:
    """Each character is there itself or as its number."""
    shown = spell_out(text)
    for char in text:
        assert char in shown or f"⟨U+{ord(char):04X}⟩" in shown
