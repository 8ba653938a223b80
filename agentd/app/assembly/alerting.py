"""The sinks that are on, and what carries alerts to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import structlog

from agentd.app.assembly.ground import Ground, Work
from agentd.app.assembly.storage import Stores
from agentd.automation.alerts.alert_settings import Targets
from agentd.automation.alerts.dispatch import Dispatcher
from agentd.automation.alerts.sinks import CommandSink, JournalSink, MainSessionSink, WebhookSink
from agentd.core.alert import Recipients, alert_digest
from agentd.core.errors import StorageError
from agentd.core.ports import AlertSink, EventSink
from agentd.core.turn import Origin
from agentd.interfaces.acp.alerts import SocketAlerts
from agentd.interfaces.acp.peer import Clients

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Alerting:
    """What carries alerts; `targets` says where those of an origin go."""

    dispatcher: Dispatcher
    targets: Targets
    work: tuple[Work, ...]


@asynccontextmanager
async def open_alerting(
    ground: Ground, stores: Stores, clients: Clients, events: EventSink
) -> AsyncIterator[Alerting]:
    """The sinks that are on, and their dispatcher. Raises ConfigError."""
    settings, beats = ground.config.alerts, ground.config.heartbeat
    sinks: list[AlertSink] = []
    if settings.journal:
        sinks.append(JournalSink())
    socket_alerts = SocketAlerts(clients, stores.outbox)
    if settings.socket:
        sinks.append(socket_alerts)
    if settings.main:
        sinks.append(MainSessionSink(stores.sessions, events))
    if settings.command:
        sinks.append(CommandSink(settings.command, settings.timeout, ground.environ))
    async with AsyncExitStack() as stack:
        if url := settings.webhook(ground.environ):
            if settings.webhook_url_env:  # then the address is a secret
                ground.redactor.add(url)
            sinks.append(await stack.enter_async_context(WebhookSink(url, settings.timeout)))
        dispatcher = Dispatcher(
            stores.outbox,
            sinks,
            ground.clock,
            max_tries=settings.max_tries,
            retry_delay=settings.retry_delay,
        )
        targets = Targets(tuple(sink.name for sink in sinks), beats.target, beats.to)
        announce = partial(_announce, stores, dispatcher, targets(Origin.USER))
        yield Alerting(dispatcher, targets, work=(dispatcher.run, socket_alerts.run, announce))


async def _announce(stores: Stores, dispatcher: Dispatcher, recipients: Recipients) -> None:
    """Alert the user to what happened to the state database, once each time."""
    for damage in await asyncio.to_thread(stores.damages.all):
        if damage.is_told:
            continue
        text = f"{damage.problem.text}; {damage.problem.cure}"
        try:
            await stores.outbox.put(recipients.alert(text, "agentd", alert_digest(text)))
            await asyncio.to_thread(damage.mark_told)
        except (StorageError, OSError) as error:  # the next start tells it
            log.warning("damage_not_alerted", folder=str(damage.folder), error=str(error))
        dispatcher.wake()
