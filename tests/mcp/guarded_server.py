"""A server of tools that wants a login, and the authorization server that gives it: both of the
official SDK.

Run as a program: prints its port. Whoever opens the address of the login has logged in. Arguments:
the seconds that a token is good for. `POST /control?do=…` plays the service: `forget` makes tokens
unknown but for those that renew them, `revoke` all of them, `down` lets renewals fail with 503
until `up`. `GET /control` tells what was done.
"""

from __future__ import annotations

import secrets
import socket
import sys
import time
from collections import Counter
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3600


class Service:
    """Everybody may register, and log in. What it knows it forgets when it ends."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.done: Counter[str] = Counter()

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.done["registered"] += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.done["exchanged"] += 1
        del self.codes[authorization_code.code]
        return self._given(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.done["renewed"] += 1
        del self.refresh[refresh_token.token]
        return self._given(client, scopes, ADDRESS)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        return

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise NotImplementedError

    def _given(
        self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None
    ) -> OAuthToken:
        access, refresh = (f"{kind}-{secrets.token_urlsafe(24)}" for kind in ("acc", "ref"))
        expires_at = int(time.time()) + SECONDS
        owner = {"client_id": client.client_id, "scopes": scopes}
        self.access[access] = AccessToken(
            token=access, expires_at=expires_at, resource=resource, **owner
        )
        self.refresh[refresh] = RefreshToken(token=refresh, **owner)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=SECONDS)


listening = socket.create_server(("127.0.0.1", 0))
PORT = listening.getsockname()[1]
ADDRESS = f"http://127.0.0.1:{PORT}/mcp"
service = Service()
server = MCPServer(
    "letters",
    auth_server_provider=service,
    auth=AuthSettings(
        issuer_url=f"http://127.0.0.1:{PORT}",
        resource_server_url=ADDRESS,
        validate_token_resource=True,
        required_scopes=["read"],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["read"], default_scopes=["read"]
        ),
    ),
)


@server.tool()
def count() -> str:
    """Count the letters."""
    return "there are 7 letters"


@server.custom_route("/control", methods=["GET", "POST"])
async def control(request: Request) -> Response:
    match request.query_params.get("do"):
        case "forget":
            service.access.clear()
        case "revoke":
            service.access.clear()
            service.refresh.clear()
        case "down":
            service.done["down"] = 1
        case "up":
            service.done["down"] = 0
    return JSONResponse(dict(service.done))


app = server.streamable_http_app()


async def outer(scope: Any, receive: Any, send: Any) -> None:
    """The application, or nothing of its tokens while it is down."""
    if service.done["down"] and scope.get("path") == "/token":
        await Response(status_code=503)(scope, receive, send)
    else:
        await app(scope, receive, send)


if __name__ == "__main__":
    print(PORT, flush=True)
    uvicorn.Server(uvicorn.Config(outer, log_level="critical")).run(sockets=[listening])
