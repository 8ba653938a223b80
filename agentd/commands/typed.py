"""What is typed in a chat: the words behind a command's name."""

from __future__ import annotations

from agentd.errors import InvalidRequest

NOTES = "your notes are not for this session"  # what is said where others are in it


def wanted(text: str, example: str) -> str:
    """What follows a command's name. Raises InvalidRequest for nothing."""
    if not text.strip():
        raise InvalidRequest("the command needs a text", cure=f"write it like: {example}")
    return text.strip()
