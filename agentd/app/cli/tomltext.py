"""Changing one value in the text of a TOML file, comments and all else kept."""

from __future__ import annotations

import json
import re


def with_value(text: str, table: str, key: str, value: str | bool) -> str:
    """`text` with `key` of `[table]` set; a commented key is taken into use, a missing one added.

    A JSON string is a TOML string as long as no character beyond the basic plane is escaped.
    """
    setting = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    lines = text.splitlines()
    try:
        start = lines.index(f"[{table}]") + 1
    except ValueError:
        return "\n".join([*lines, "", f"[{table}]", setting, ""])
    pattern = re.compile(rf"(#\s*)?{re.escape(key)}\s*=")
    for at in range(start, len(lines)):
        if lines[at].startswith("["):
            break
        if pattern.match(lines[at]):
            lines[at] = setting
            return "\n".join(lines) + "\n"
    lines.insert(start, setting)
    return "\n".join(lines) + "\n"
