"""Sends alerts to a web address."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from agentd.core.alert import Alert
from agentd.core.errors import AgentdError
from agentd.core.settings import trusted_certificates


class WebhookSink:
    """Posts each alert as JSON `{id, at, text, origin, to}`. Only a 2xx answer counts as accepted.
    Redirects are not followed, and proxies of the environment are not used. An async context
    manager: usable while entered.
    """

    def __init__(self, url: str, timeout: timedelta) -> None:
        self._url = url
        self._host = urlsplit(url).hostname  # the only part of the address that is not secret
        self._timeout = timeout.total_seconds()
        self._client: httpx.AsyncClient | None = None

    @property
    def name(self) -> str:
        """`webhook`."""
        return "webhook"

    async def __aenter__(self) -> Self:
        self._client = httpx.AsyncClient(
            verify=trusted_certificates(),
            trust_env=False,
            follow_redirects=False,
            timeout=self._timeout,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._client is not None
        await self._client.aclose()

    async def send(self, alert: Alert) -> None:
        """Post the alert. Raises AgentdError if there is no answer in time, or one other
        than 2xx.
        """
        assert self._client is not None
        body = {
            "id": alert.id,
            "at": alert.at.isoformat(),
            "text": alert.told,
            "origin": alert.origin,
            "to": alert.to,
        }
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._client.stream("POST", self._url, json=body) as response,
            ):
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            message = f"the webhook at {self._host} cannot be reached ({type(error).__name__})"
            # The chained error would carry the whole address into a log.
            raise AgentdError(message, cure="check [alerts] webhook_url") from None
        if not 200 <= status < 300:
            message = f"the webhook at {self._host} answered {status}"
            raise AgentdError(message, cure="check [alerts] webhook_url")
