"""What the model is told when it is to save memories."""

from __future__ import annotations

from datetime import datetime

from agentd.memory.settings import MemoryFlushSettings
from agentd.paths import prompt

_FOLDER = "memory"  # where the prompts say that daily notes are
_SYSTEM, _USER = prompt("flush_system"), prompt("flush_user")
_APPEND_HINT = (
    "Write only by appending to today's note, memory/YYYY-MM-DD.md; all other files are read-only."
)
_SILENCE_HINT = "If there is nothing to store, reply with NO_REPLY alone."


def flush_prompt(
    settings: MemoryFlushSettings, now: datetime, zone: str, folder: str = _FOLDER
) -> tuple[str, str]:
    """System and user text for `now`, a time in the owner's zone, with daily notes in `folder`.
    Prompts of the user's own get the rules that they lack.
    """
    system = settings.system_prompt.strip() or _SYSTEM
    user = settings.user_prompt.strip() or _USER
    both = f"{system}\n{user}".casefold()
    if "append" not in both or "yyyy-mm-dd" not in both:
        user = f"{user}\n{_APPEND_HINT}"
    if "no_reply" not in both:
        user = f"{user}\n{_SILENCE_HINT}"
    user = f"{user}\nCurrent time: {now:%H:%M} {zone}"
    note, day = f"{folder}/YYYY-MM-DD", f"{now:%Y-%m-%d}"
    system, user = (
        text.replace(f"{_FOLDER}/YYYY-MM-DD", note).replace("YYYY-MM-DD", day)
        for text in (system, user)
    )
    return system, user
