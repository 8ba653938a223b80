"""Lines that facts have earned in MEMORY.md and USER.md, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentd.commands.plain import visible


def shown(result: Mapping[str, Any]) -> str:
    """The answer to `agentd memory proposals`."""
    found = [_proposal(proposal) for proposal in result["proposals"]]
    if not found:
        return "nothing is proposed: a fact has to be said a few times before"
    path = visible(result["proposals"][0]["path"])
    told = {
        "accepted": f"written to {path}",
        "rejected": "it will not be proposed again",
        "changed": f"nothing was written: {path} has changed, and this is what it would be now",
        "too_long": "nothing was written",
    }
    if result["done"] in {"accepted", "rejected"}:
        return told[result["done"]]
    head = [told[result["done"]]] if result["done"] else []
    return "\n\n".join([*head, *found])


def _proposal(proposal: Mapping[str, Any]) -> str:
    seen = proposal["evidence"]
    times = f"said once, {seen['first'][:10]}"
    if seen["times"] > 1:
        times = f"said {seen['times']} times, {seen['first'][:10]} to {seen['last'][:10]}"
    lines = [f"{proposal['id']}  {visible(proposal['text'])}  ({times})"]
    lines += [f"    {visible(line)}" for line in proposal["diff"].splitlines()]
    if proposal["problem"]:
        lines.append(f"    {visible(proposal['problem'])}")
    for warning in proposal["warnings"]:
        told = f"{warning['reason']} ({warning['severity']})"
        lines.append(f"    warning: {told}; prompts would carry it")
    return "\n".join(lines)
