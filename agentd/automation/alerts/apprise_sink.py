"""Sends alerts through Apprise, which knows about a hundred services: phones, mailboxes, chat
rooms.

Apprise runs in a separate process for each message. So it uses no memory while there are no alerts,
a hanging service is killed, and the daemon itself keeps nothing of a service but its address.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from urllib.parse import quote

from agentd.automation.alerts.alert_settings import AppriseTarget
from agentd.automation.alerts.sinks import sink_environment
from agentd.core.alert import Alert, AlertSeverity
from agentd.core.errors import AgentdError, ConfigError
from agentd.core.secrets import Reference, Secret, find_secret

COMMAND = (sys.executable, "-P", "-m", "agentd.automation.alerts.apprise_program")

_TITLE = "agentd"
_ANSWER_BYTES = 65536
# These may name the owner's own certificate authority; they contain no keys.
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_CURES = {
    "unusable": "correct its url: Apprise has no such service, or one that is written differently",
    "several": "give each of them a table of its own, so that one that fails repeats no other",
    "refused": "correct the token, the recipient or the rights that its url names",
    "unreachable": "correct the host in its url, or look whether the service runs",
}


def check_apprise(find: Callable[[str], object | None] = importlib.util.find_spec) -> None:
    """Raise ConfigError if Apprise is not installed; it is not imported."""
    if find("apprise") is None:
        raise ConfigError(
            "[alerts.apprise] needs the extra `alerts`, which is not installed",
            cure=(
                "`make run EXTRAS=alerts` in the checkout, or `pip install 'agentd-daemon[alerts]'`"
            ),
        )


def target_secrets(
    name: str, target: AppriseTarget, environ: Mapping[str, str]
) -> dict[str, Secret]:
    """Return the secrets of an address by their names. Raises ConfigError for a secret that is
    missing or invalid.
    """
    table = f"[alerts.apprise.{name}] secrets"
    return {
        word: find_secret(Reference(place, f"{table}.{word}"), environ)
        for word, place in target.secrets.items()
    }


def whole_url(target: AppriseTarget, secrets: Mapping[str, Secret]) -> Secret:
    """Return the address with its secrets inserted, percent-encoded unless a secret is the whole
    address.
    """
    url = target.url
    for word, secret in secrets.items():
        place = f"{{{word}}}"
        told = secret.reveal() if url == place else quote(secret.reveal(), safe="")
        url = url.replace(place, told)
    return Secret(url, "url")


class AppriseSink:
    """Sends each alert to one address, within `timeout`, by starting the program `command`."""

    def __init__(
        self,
        name: str,
        url: Secret,
        timeout: timedelta,
        environ: Mapping[str, str],
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._name = name
        self._url = url
        self._timeout = timeout.total_seconds()
        self._command = command
        others = {name: environ[name] for name in _CERTIFICATES if name in environ}
        # No ~/.netrc: the logins of other programs must not be used.
        self._environ = sink_environment(environ) | others | {"NETRC": os.devnull}

    @property
    def name(self) -> str:
        """The sink's name: the last part of `[alerts.apprise.NAME]` in the configuration."""
        return self._name

    async def send(self, alert: Alert) -> None:
        """Send the alert. Raises AgentdError if the service has not accepted it in time."""
        await self._ask(alert.told, str(alert.severity))

    async def check(self) -> str:
        """Return the name of the service; send nothing. Raises ConfigError if the address is
        invalid or names several recipients, AgentdError if the program fails.
        """
        return await self._ask("")

    async def _ask(self, body: str, severity: str = AlertSeverity.INFO) -> str:
        order = {"url": self._url.reveal(), "title": _TITLE, "body": body, "severity": severity}
        answer = await self._answer(json.dumps(order).encode())
        problem, detail, service = (answer[key] for key in ("problem", "detail", "service"))
        if not problem:
            return service
        told = {
            "unusable": "its url cannot be used",
            "several": f"its url names {detail} recipients",
            "refused": f"{service} answered {detail}",
            "unreachable": f"{service} cannot be reached",
        }.get(problem, f"{service} did not take it")
        error = ConfigError if problem in {"unusable", "several"} else AgentdError
        raise error(
            f"[alerts.apprise.{self._name}]: {told}",
            cure=_CURES.get(problem, f"check [alerts.apprise.{self._name}]"),
        )

    async def _answer(self, order: bytes) -> dict[str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=self._environ,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            msg = f"[alerts.apprise.{self._name}]: Python did not start ({error.strerror})"
            raise AgentdError(msg, cure="look whether the machine has memory left") from None
        try:
            async with asyncio.timeout(self._timeout):
                answer, _ = await process.communicate(order)
        except TimeoutError:
            msg = f"[alerts.apprise.{self._name}]: no answer within {self._timeout:g} s"
            raise AgentdError(
                msg, cure="raise its timeout, or look whether the service runs"
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return self._understood(answer)

    def _understood(self, answer: bytes) -> dict[str, str]:
        try:
            found = json.loads(answer[:_ANSWER_BYTES])
            return {key: str(found[key]) for key in ("problem", "detail", "service")}
        except (ValueError, TypeError, KeyError):
            msg = f"[alerts.apprise.{self._name}]: Apprise ended without an answer"
            raise AgentdError(msg, cure="reinstall the extra `alerts`") from None
