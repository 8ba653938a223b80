"""Opens the enabled alert sinks and the dispatcher that sends alerts to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import structlog
from msgspec import Struct

from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.assembly.storage import Stores
from agentd.automation.alerts.alert_settings import AlertsSettings, Targets
from agentd.automation.alerts.apprise_sink import (
    AppriseSink,
    check_apprise,
    target_secrets,
    whole_url,
)
from agentd.automation.alerts.dispatch import Dispatcher
from agentd.automation.alerts.sinks import CommandSink, JournalSink, MainSessionSink
from agentd.core.alert import AlertSeverity, NewAlert, Recipients, alert_digest
from agentd.core.errors import StorageError
from agentd.core.ports import AlertSink, EventSink
from agentd.core.redaction import Redactor
from agentd.core.turn import Origin
from agentd.interfaces.acp.alerts import SocketAlerts
from agentd.interfaces.acp.peer import Clients

log = structlog.get_logger()


class Alerting(Struct, frozen=True):
    """The dispatcher of alerts, and `targets`, which chooses the recipients by the origin of an
    alert.
    """

    dispatcher: Dispatcher
    targets: Targets
    work: tuple[Work, ...]


@asynccontextmanager
async def open_alerting(
    runtime: RuntimeContext, stores: Stores, clients: Clients, events: EventSink
) -> AsyncIterator[Alerting]:
    """Open the enabled sinks and their dispatcher. Raises ConfigError."""
    settings, beats = runtime.config.alerts, runtime.config.heartbeat
    sinks: list[AlertSink] = []
    if settings.journal:
        sinks.append(JournalSink())
    socket_alerts = SocketAlerts(clients, stores.outbox)
    if settings.socket:
        sinks.append(socket_alerts)
    if settings.main:
        sinks.append(MainSessionSink(stores.sessions, events))
    async with open_outward(settings, runtime.environ, runtime.redactor) as outward:
        sinks += outward
        timings = settings.timings(runtime.clock.zone)
        dispatcher = Dispatcher(
            stores.outbox,
            sinks,
            runtime.clock,
            timings=timings,
            max_tries=settings.max_tries,
            retry_delay=settings.retry_delay,
        )
        least = {name: timing.least for name, timing in timings.items()}
        targets = Targets(tuple(sink.name for sink in sinks), beats.target, beats.to, least)
        announce = partial(_announce, stores, dispatcher, targets(Origin.USER))
        yield Alerting(dispatcher, targets, work=(dispatcher.run, socket_alerts.run, announce))


@asynccontextmanager
async def open_outward(
    settings: AlertsSettings, environ: Mapping[str, str], redactor: Redactor
) -> AsyncIterator[tuple[AlertSink, ...]]:
    """Open the sinks that need no other part of the daemon: the command, the webhook and the
    targets of Apprise. They reach a user who is not at the computer. Their secrets are added to the
    redactor. Raises ConfigError.
    """
    sinks: list[AlertSink] = []
    async with AsyncExitStack() as stack:
        if settings.command:
            sinks.append(CommandSink(settings.command, settings.timeout, environ))
        if url := settings.webhook(environ):
            # Imported here: loading its library takes a tenth of the start, and few have a webhook.
            from agentd.automation.alerts.webhook import WebhookSink

            if settings.webhook_url_env:  # an address from the environment is a secret
                redactor.add(url)
            sinks.append(await stack.enter_async_context(WebhookSink(url, settings.timeout)))
        yield (*sinks, *build_targets(settings, environ, redactor))


def build_targets(
    settings: AlertsSettings, environ: Mapping[str, str], redactor: Redactor
) -> tuple[AppriseSink, ...]:
    """Build a sink for each of the targets of Apprise. Raises ConfigError if Apprise is not
    installed or a secret is missing.
    """
    if settings.targets:
        check_apprise()
    sinks = []
    for name, target in settings.targets.items():
        secrets = target_secrets(name, target, environ)
        for secret in secrets.values():
            redactor.add(secret.reveal())
        url = whole_url(target, secrets)
        sinks.append(AppriseSink(name, url, target.timeout, environ))
    return tuple(sinks)


async def _announce(stores: Stores, dispatcher: Dispatcher, recipients: Recipients) -> None:
    """Alert the user to each damage of the state database that has not been reported yet."""
    for damage in await asyncio.to_thread(stores.damages.all):
        if damage.is_told:
            continue
        text = f"{damage.problem.text}; {damage.problem.cure}"
        try:
            await stores.outbox.put(_damage_alert(recipients, text))
            await asyncio.to_thread(damage.mark_told)
        except (StorageError, OSError) as error:  # the next start tries again
            log.warning("damage_not_alerted", folder=str(damage.folder), error=str(error))
        dispatcher.wake()


def _damage_alert(recipients: Recipients, text: str) -> NewAlert:
    return recipients.alert(text, "agentd", alert_digest(text), severity=AlertSeverity.WARNING)
