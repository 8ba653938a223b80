"""The tool `notify`: alerts the owner now; the alert is marked if text from outside may have caused
it.
"""

from __future__ import annotations

from collections.abc import Callable

from agentd.core.alert import AlertSeverity, Recipients, alert_digest
from agentd.core.errors import ToolFailed
from agentd.core.ports import Outbox, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import ToolCall, ToolOutput
from agentd.core.turn import Origin, SessionKind
from agentd.interfaces.tools.fence import printable

_CHARS = 4_000
_SPEC = ToolSpec(
    "notify",
    "Alert the user now. Only for what cannot wait.",
    {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    Effect.IDEMPOTENT,
    is_guarded=True,
    is_owners=True,
)


class Notify:
    """Puts an alert into the outbox."""

    spec = _SPEC

    def __init__(
        self, outbox: Outbox, targets: Callable[[Origin], Recipients], wake: Callable[[], None]
    ) -> None:
        """`targets` returns the recipients for a turn's origin; `wake` starts the delivery."""
        self._outbox = outbox
        self._targets = targets
        self._wake = wake

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return that the alert was stored, or that it repeats one of the last 24 hours. Raises
        ToolFailed if the session may not alert, or the text is missing or too long.
        """
        if call.kind is not SessionKind.OWNER:
            raise ToolFailed("this session cannot alert the owner")
        text = printable(str(call.input["text"])).strip()
        if not text:
            raise ToolFailed("the alert has no text")
        if len(text) > _CHARS:
            msg = f"the alert has {len(text)} characters; at most {_CHARS} are allowed"
            raise ToolFailed(msg, cure="Say it shorter.")
        # URGENT may wake the owner; text from outside must not.
        severity = AlertSeverity.WARNING if call.tainted else AlertSeverity.URGENT
        alert = self._targets(call.origin).alert(
            text,
            str(call.origin),
            alert_digest(text),
            severity=severity,
            tainted=call.tainted,
        )
        if await self._outbox.put(alert) is None:
            text = "The user was told exactly this within 24 hours; not sent again."
            return ToolOutput(text, is_repetition=True)
        self._wake()
        return ToolOutput("It is stored and on its way.")
