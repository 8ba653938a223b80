"""One beat's turn: the model is asked in silence, and its reply is judged and stored."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from agentd.automation.heartbeat.gate import Run
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.automation.heartbeat.snapshot import BeatDependencies, Snapshot
from agentd.core import failpoints
from agentd.core.alert import AlertSeverity, NewAlert, Recipients, alert_digest, as_told
from agentd.core.beat import Alarm, Beat, Empty, Outcome, Quiet, Reason, Told
from agentd.core.errors import WorkspaceError
from agentd.core.event import ThoughtChunk, TurnEvent
from agentd.core.turn import MAIN, Context, Origin, SessionKey, TurnRequest
from agentd.engine.background import TOOLS, Failed, compose, run_errand

HEARTBEAT = SessionKey("heartbeat:main")  # constant: no beat can make a session of its own


class Examination:
    """Goes through the checklist with the model. `prompt` is what a beat asks, its alerts go to
    `recipients`.
    """

    def __init__(
        self,
        settings: HeartbeatSettings,
        around: BeatDependencies,
        prompt: str,
        recipients: Recipients,
    ) -> None:
        self._settings = settings
        self._around = around
        self._prompt = prompt
        self._recipients = recipients
        self.session = SessionKey(settings.session) if settings.context == "main" else HEARTBEAT

    def adapted(
        self, settings: HeartbeatSettings, prompt: str, recipients: Recipients
    ) -> Examination:
        """The same one under other settings."""
        return Examination(settings, self._around, prompt, recipients)

    async def run(self, beat_id: int, run: Run, sight: Snapshot, *, force: bool) -> Beat:
        """The finished beat, stored together with its alert. Raises StorageError."""
        silence = _Silence()
        request = self._request(beat_id, run, sight, force=force)
        if request.session != HEARTBEAT and not await self._around.exists(request.session):
            request = replace(request, session=MAIN)  # a beat is no way to make a conversation
        verdict = await run_errand(
            self._around.turns,
            request,
            silence,
            self._settings.timeout,
            self._settings.ack_max_chars,
        )
        failpoints.hit("beat.verdict")
        if isinstance(verdict, Failed):
            reason = Reason.INTERRUPTED if verdict.is_cut else Reason.PROVIDER_ERROR
            return await self._fail(beat_id, reason, sight, verdict.text)
        if isinstance(verdict, Empty):
            return await self._fail(beat_id, Reason.EMPTY_REPLY, sight)
        return await self._store(beat_id, run, sight, verdict, silence.thoughts)

    async def tell_unreadable(self, beat_id: int, error: WorkspaceError) -> Beat:
        """Alert the user, without a model, that HEARTBEAT.md cannot be read: it may hold anything."""
        text = f"HEARTBEAT.md cannot be read, so no beat looks at it: {error.message}"
        if error.cure:
            text = f"{text}; {error.cure}"
        alert = self._recipients.alert(
            text,
            "heartbeat",
            alert_digest("HEARTBEAT.md unreadable"),
            severity=AlertSeverity.WARNING,
        )
        beat, stored = await self._around.beats.end_beat(
            beat_id, Outcome.ALERT, Reason.ALERT, text=text, alert=alert
        )
        if stored is not None:
            self._around.wake()
        return beat

    def _request(self, beat_id: int, run: Run, sight: Snapshot, *, force: bool) -> TurnRequest:
        view = sight.view
        shown = view.checklist.items if force else run.due
        text = compose(
            self._prompt,
            "HEARTBEAT.md",
            view.checklist.text(shown),
            view.now,
            view.hours.zone,
        )
        return TurnRequest(
            session=self.session,
            text=text,
            message_id=f"beat:{beat_id}",
            origin=Origin.HEARTBEAT,
            context=Context(self._settings.context),
            model=self._settings.model or None,
            tools=TOOLS,
        )

    async def _fail(self, beat_id: int, reason: Reason, sight: Snapshot, text: str = "") -> Beat:
        tokens, cost = await self._spent(sight)
        beat, _ = await self._around.beats.end_beat(
            beat_id, Outcome.FAILED, reason, text=text, tokens=tokens, cost_usd=cost
        )
        return beat

    async def _store(
        self, beat_id: int, run: Run, sight: Snapshot, verdict: Quiet | Told | Alarm, thoughts: str
    ) -> Beat:
        alert: NewAlert | None = None
        match verdict:
            case Quiet():
                outcome, reason = Outcome.QUIET, Reason.ACK
            case Told():
                outcome, reason = Outcome.ALERT, Reason.NOTIFY
            case Alarm():
                outcome, reason = Outcome.ALERT, Reason.ALERT
                alert = self._alert(verdict, thoughts)
            case _:
                assert_never(verdict)
        tokens, cost = await self._spent(sight)
        beat, stored = await self._around.beats.end_beat(
            beat_id,
            outcome,
            reason,
            text=as_told(verdict.text, tainted=verdict.tainted),
            tokens=tokens,
            cost_usd=cost,
            done_items=[item.hash for item in run.due],
            alert=alert,
        )
        if stored is not None or isinstance(verdict, Told):
            self._around.wake()
        return beat

    async def _spent(self, sight: Snapshot) -> tuple[int, float]:
        """Tokens and US dollars of this beat: no other runs beside it."""
        return await self._around.ledger.spent(sight.view.now, Origin.HEARTBEAT)

    def _alert(self, alarm: Alarm, thoughts: str) -> NewAlert:
        shown = text = alarm.text
        if self._settings.include_reasoning and thoughts.strip():
            shown = f"Reasoning: {thoughts.strip()}\n\n{text}"
        digest = alert_digest(text)
        return self._recipients.alert(shown, "heartbeat", digest, tainted=alarm.tainted)


class _Silence:
    """Where the events of a beat go: nobody sees them; thoughts are kept for `include_reasoning`."""

    def __init__(self) -> None:
        self._thoughts: list[str] = []

    @property
    def thoughts(self) -> str:
        """All that was thought."""
        return "".join(self._thoughts)

    def emit(self, event: TurnEvent) -> None:
        """Keep a thought, drop the rest."""
        if isinstance(event, ThoughtChunk):
            self._thoughts.append(event.text)

    async def wait_room(self, session: SessionKey) -> None:
        """There is always room."""
