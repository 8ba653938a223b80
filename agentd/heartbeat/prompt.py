"""What a beat asks the model."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo


def compose(prompt: str, checklist: str, now: datetime, zone: ZoneInfo) -> str:
    """The whole user message. The time stands last: what is before it stays the same from beat to
    beat, which a provider's cache may use.
    """
    local = now.astimezone(zone)
    parts = [prompt.strip()]
    if checklist:
        parts.append(f"## HEARTBEAT.md\n\n{checklist}")
    parts.append(f"Current time: {local:%Y-%m-%d %H:%M} ({local:%A}, {zone.key})")
    return "\n\n".join(parts)
