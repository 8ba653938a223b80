"""The sinks that are on, and what carries alerts to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from agentd.alerts.command import CommandSink
from agentd.alerts.dispatch import Dispatcher
from agentd.alerts.journal import JournalSink
from agentd.alerts.main_session import MainSessionSink
from agentd.alerts.targets import Targets
from agentd.alerts.webhook import WebhookSink
from agentd.assembly.ground import Ground, Work
from agentd.assembly.storage import Stores
from agentd.ports import AlertSink, EventSink
from agentd.server.alerts import SocketAlerts
from agentd.server.clients import Clients


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
        yield Alerting(dispatcher, targets, work=(dispatcher.run, socket_alerts.run))
