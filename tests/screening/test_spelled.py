"""What is spelled out cannot be overlooked, and what languages need is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.screening.spelled import spelled


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
    ],
)
def test_what_nobody_sees_or_passes_for_another_letter_is_told(text: str, shown: str) -> None:
    assert spelled(text) == shown


@pytest.mark.parametrize(
    "text",
    ["plain\n\ttext", "naïve Łódź Straße Işık", "Москва", "日本語", "می‌خواهم", "क्‍ष", "❤️ 👨‍👩‍👧 1️⃣"],
)
def test_what_scripts_and_emoji_need_stays(text: str) -> None:
    assert spelled(text) == text


@given(st.text())
def test_nothing_is_lost(text: str) -> None:
    """Each character is there itself or as its number."""
    shown = spelled(text)
    for char in text:
        assert char in shown or f"⟨U+{ord(char):04X}⟩" in shown
