"""OAuth by the SDK: the login itself (`log_in`), and the httpx auth that adds and renews tokens
(`LoginAuth`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from urllib.parse import urljoin

import httpx2
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_scope_from_www_auth,
    union_scopes,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types import LATEST_PROTOCOL_VERSION
from msgspec import Struct
from msgspec.structs import replace
from pydantic import AnyUrl, ValidationError

from agentd import __version__
from agentd.core.errors import AgentdError
from agentd.interfaces.mcp.http_bounds import HttpBounds
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.login_places import GuardedTransport, LoginPlaces, LoginRefused
from agentd.interfaces.mcp.logins import KeptLogin, LoginStore, LoginWay
from agentd.interfaces.tools.fence import printable

_SAID = 300  # characters of a service's own words in messages
_CODE = re.compile(r"[a-z_]{1,40}", re.ASCII)
_LONGEST_TOKEN = 16_384
_OVER = frozenset({400, 401, 403})  # HTTP status of a refused renewal that a retry does not cure
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "agentd", "version": __version__},
    },
}
_LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
_HEADERS = {"Accept": "application/json, text/event-stream", "Accept-Encoding": "identity"}


class LoginOrder(Struct, frozen=True):
    """The server to log in to, and the client to log in as. Without `client_id` agentd registers
    itself; a `client_id` that is a URL is the address of a document about the client. `scope` is
    asked for in addition to what the service names.
    """

    url: str
    redirect_uri: str
    seconds: float  # for each request
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""

    @property
    def document(self) -> str | None:
        """The URL of the document about the client; None if `client_id` is no https URL."""
        return self.client_id if self.client_id.startswith("https://") else None


async def log_in(
    order: LoginOrder,
    places: LoginPlaces,
    way: LoginWay,
    expiry: Callable[[int | None], float | None],
) -> KeptLogin:
    """Log in and return the login. Sets `way.url` for the owner and waits for `way.answer`. Raises
    AgentdError.
    """
    provider = _Provider(order, places, way)
    bounds = HttpBounds()
    client = httpx2.AsyncClient(
        headers=_HEADERS,
        timeout=order.seconds,
        auth=provider,
        transport=GuardedTransport(places, order.seconds),
        event_hooks={"request": [bounds.asked], "response": [bounds.answered]},
    )
    try:
        async with client:
            await _probe(client, order.url, lambda: provider.context.current_tokens is not None)
    except LoginRefused as error:
        raise AgentdError(str(error), cure="ask who runs the server; nothing was kept") from None
    except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
        text = f"the login did not work: {printable(str(error))[:_SAID]}"
        raise AgentdError(text, cure="try it again; a client_id may be needed") from None
    except (ValidationError, ValueError) as error:
        text = (
            f"the login did not work: an answer is none of the protocol's ({type(error).__name__})"
        )
        raise AgentdError(text, cure="ask who runs the server") from None
    except httpx2.HTTPError as error:
        why = bounds.fault.message if bounds.fault else type(error).__name__
        raise AgentdError(
            f"the login did not work: no answer ({why})", cure="try it later"
        ) from None
    return provider.given(expiry)


async def _probe(client: httpx2.AsyncClient, url: str, has_login: Callable[[], bool]) -> None:
    """Send requests until the server demands a login: some accept the handshake without one. Raises
    AgentdError if the server rejects the new token.
    """
    session: dict[str, str] = {}
    for frame in (_HELLO, _LIST):
        async with client.stream("POST", url, json=frame, headers=session) as response:
            if response.status_code in (401, 403):
                code = response.status_code
                text = f"the server does not take what the login has given (HTTP {code})"
                raise AgentdError(text, cure="ask who runs the server; nothing was kept")
            if name := response.headers.get("mcp-session-id"):
                session = {"mcp-session-id": name}
        if has_login():
            break
    if session:
        await client.delete(url, headers=session)


class _InMemory:
    """The token storage of the SDK for one login."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        """Return None: a login begins without tokens."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Do nothing: `_Provider.given` takes the tokens from the provider."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the configured client, if there is one."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing: `_Provider.given` takes the client from the provider."""


class _Provider(OAuthClientProvider):
    """The SDK's provider; checks the endpoints before the owner is sent to them."""

    def __init__(self, order: LoginOrder, places: LoginPlaces, way: LoginWay) -> None:
        uri = AnyUrl(order.redirect_uri)
        known = None
        if order.client_id and not order.document:
            known = OAuthClientInformationFull(
                client_id=order.client_id,
                client_secret=order.client_secret or None,
                redirect_uris=[uri],
            )
        super().__init__(
            order.url,
            OAuthClientMetadata(redirect_uris=[uri], client_name="agentd"),
            _InMemory(known),
            self._take_url,
            self._redirected,
            client_metadata_url=order.document,
        )
        self._order = order
        self._places = places
        self._way = way
        self._is_known = known is not None

    async def _take_url(self, url: str) -> None:
        self._way.url.set_result(url)

    async def _redirected(self) -> AuthorizationCodeResult:
        answer = await self._way.answer
        issuer = answer.issuer or None
        return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=issuer)

    async def _auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Run the SDK's flow; adds the ordered scope to the server's challenge."""
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                if self._order.scope and response.status_code == 401:
                    _ask_for(response, self._order.scope)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _perform_authorization(self) -> httpx2.Request:
        context = self.context
        base = context.get_authorization_base_url(context.server_url)
        metadata = context.oauth_metadata
        authorization = metadata.authorization_endpoint if metadata else urljoin(base, "/authorize")
        self._places.check_token_endpoint(self._token_endpoint(), str(authorization))
        if self._is_known and context.client_info and self._order.client_secret:
            methods = metadata and metadata.token_endpoint_auth_methods_supported
            is_basic = not methods or "client_secret_basic" in methods
            method = "client_secret_basic" if is_basic else "client_secret_post"
            context.client_info.token_endpoint_auth_method = method
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        if self.context.current_tokens:
            _check_token(self.context.current_tokens)

    def given(self, expiry: Callable[[int | None], float | None]) -> KeptLogin:
        """Return the finished login. Raises AgentdError if the server demanded none."""
        context = self.context
        tokens, client = context.current_tokens, context.client_info
        if tokens is None or client is None:
            cure = 'leave auth = "oauth" out, then `agentd restart`'
            raise AgentdError("the server asks for no login", cure=cure)
        says = context.should_include_resource_param(context.protocol_version)
        return KeptLogin(
            access=tokens.access_token,
            refresh=tokens.refresh_token or "",
            expires_at=expiry(tokens.expires_in),
            scope=tokens.scope or "",
            client_id=client.client_id,
            client_secret="" if self._is_known else client.client_secret or "",
            client_method=client.token_endpoint_auth_method or "",
            token_endpoint=self._token_endpoint(),
            resource=context.get_resource_url() if says else "",
        )

    def _token_endpoint(self) -> str:
        context = self.context
        if context.oauth_metadata:
            return str(context.oauth_metadata.token_endpoint)
        return urljoin(context.get_authorization_base_url(context.server_url), "/token")


class LoginAuth(httpx2.Auth):
    """Adds the access token to requests and renews it. A fault that only the owner can cure ends
    the session; a request never begins a login.
    """

    def __init__(self, store: LoginStore, secret: str, bounds: HttpBounds) -> None:
        """`secret` is that of the configured client, "" if there is none."""
        self._store = store
        self._bounds = bounds
        self._secret = secret
        self._renewing = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Yield the request, and before or after it the request that renews the token. Raises
        TransportError if the login cannot be used any more.
        """
        login = self._usable()
        if self._store.is_stale(login):
            async with self._renewing:
                if self._store.login is login:
                    await self._renewed(login, (yield self._renewal(login)))
            login = self._usable()
        request.headers["Authorization"] = f"Bearer {login.access}"
        response = yield request
        if response.status_code == 401:
            async with self._renewing:
                if self._store.login is login:
                    if not login.refresh:
                        await self._store.end("the server takes it no more")
                        self._usable()
                    await self._renewed(login, (yield self._renewal(login)))
            request.headers["Authorization"] = f"Bearer {self._usable().access}"
            response = yield request
            if response.status_code == 401:
                await self._store.end("the server takes it no more")
                self._usable()
        await self._check_rights(response)

    def _usable(self) -> KeptLogin:
        if fault := self._store.fault():
            raise self._end_with(fault)
        assert self._store.login is not None
        return self._store.login

    async def _check_rights(self, response: httpx2.Response) -> None:
        if response.status_code != 403:
            return
        if extract_field_from_www_auth(response, "error") != "insufficient_scope":
            return
        login = self._usable()
        asked = printable(extract_scope_from_www_auth(response) or "")[:_SAID]
        await self._store.want(union_scopes(login.scope, asked) or "")
        raise self._end_with(
            self._store.needed(f"it asks for more rights: {asked or 'unnamed ones'}")
        )

    def _renewal(self, login: KeptLogin) -> httpx2.Request:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": login.refresh,
            "client_id": login.client_id,
        }
        if login.resource:
            form["resource"] = login.resource
        context = OAuthContext(
            server_url=login.resource,
            client_metadata=OAuthClientMetadata(redirect_uris=[AnyUrl("http://127.0.0.1/")]),
            storage=_InMemory(None),
            redirect_handler=None,
            callback_handler=None,
            client_info=OAuthClientInformationFull(
                client_id=login.client_id,
                client_secret=login.client_secret or self._secret or None,
                token_endpoint_auth_method=login.client_method or None,
            ),
        )
        form, headers = context.prepare_token_auth(form, {"Accept-Encoding": "identity"})
        return httpx2.Request("POST", login.token_endpoint, data=form, headers=headers)

    async def _renewed(self, login: KeptLogin, response: httpx2.Response) -> None:
        """Store the answer to a renewal: new tokens, or the end of the login."""
        data = await response.aread()
        if response.status_code in _OVER:
            await self._store.end(f"the service does not renew it{_reason(data)}")
            return
        if response.status_code != 200:
            why = f"its login could not be renewed (HTTP {response.status_code})"
            raise self._end_with(ServerFault("unreachable", why))
        try:
            tokens = OAuthToken.model_validate_json(data)
            _check_token(tokens)
        except (ValidationError, AgentdError):
            fault = ServerFault("protocol", "what should renew its login is no token")
            raise self._end_with(fault) from None
        renewed = replace(
            login,
            access=tokens.access_token,
            refresh=tokens.refresh_token or login.refresh,
            expires_at=self._store.expiry(tokens.expires_in),
            scope=tokens.scope or login.scope,
        )
        await self._store.renew(login, renewed)

    def _end_with(self, fault: ServerFault) -> httpx2.TransportError:
        self._bounds.end(fault)
        return httpx2.TransportError(fault.message)


def _reason(data: bytes) -> str:
    """Return the OAuth error code of an answer in brackets, "" if it has none."""
    try:
        code = json.loads(data)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" ({code})" if isinstance(code, str) and _CODE.fullmatch(code) else ""


def _check_token(tokens: OAuthToken) -> None:
    for text in (tokens.access_token, tokens.refresh_token or "x"):
        if not 0 < len(text) <= _LONGEST_TOKEN or not text.isascii() or not text.isprintable():
            raise AgentdError(
                "what the login has given is no token", cure="ask who runs the server"
            )


def _ask_for(response: httpx2.Response, scope: str) -> None:
    """Add the scopes to the challenge of a 401, in front: the SDK takes the first scope in the
    header.
    """
    wanted = union_scopes(extract_scope_from_www_auth(response), scope) or ""
    said = response.headers.get("WWW-Authenticate", "Bearer")
    wanted = re.sub(r"[^\x21\x23-\x5b\x5d-\x7e ]", "", wanted)
    response.headers["WWW-Authenticate"] = f'Bearer scope="{wanted}", {said}'
