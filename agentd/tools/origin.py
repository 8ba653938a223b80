"""Whether text at a path is the owner's own, or from others."""

from __future__ import annotations

from agentd.domain.turn import Kind, kind_of
from agentd.tools.fence import is_untrusted

# In a transcript's JSON no string can hold this, since the quotes in it are escaped.
_TAINTED = '"tainted": true'


def is_foreign(path: str, text: str) -> bool:
    """Whether showing `text` of `path` taints a turn: it is marked as untrusted, belongs to another
    scope, was said in a session that others read along, or is a transcript's row that was tainted.
    """
    if path.startswith("@") or is_untrusted(text):
        return True
    if not path.startswith("sessions/"):
        return False
    key = path.removeprefix("sessions/").removesuffix(".jsonl")
    return kind_of(key) is not Kind.MAIN or _TAINTED in text
