"""Validates requests of the Agent Client Protocol and turns them into agentd's own values.

The protocol's Python package defines hundreds of types, which cost 9 MB of memory and a third of a
second at start. This module defines only the types of requests that clients send. Tests compare
them with the official ones, field by field. Every function raises InvalidRequest, naming what is
wrong.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.core.errors import InvalidRequest
from agentd.core.message import IMAGE_TYPES, decode_spans, image_type
from agentd.core.outside import replace_spans
from agentd.core.spans import Span, Spans, shift_spans, unite_spans
from agentd.interfaces.acp.faults import wrong_params


class SessionCall(Struct, frozen=True):
    """A call of `session/new|load|resume|fork`. `session_id` is "" for `new`; `mcp_servers` are the
    objects in which the client describes the servers that it offers, their fields unchecked.
    """

    session_id: str
    cwd: str
    mcp_servers: tuple[Any, ...]
    meta: dict[str, Any] = field(default_factory=dict)


class OptionCall(Struct, frozen=True):
    """A call of `session/set_mode|set_config_option`; a mode is a value of the option `mode`."""

    session_id: str
    option: str
    value: str


class CloseCall(Struct, frozen=True):
    """A call of `session/close`; `cancels`: the running turn ends, too, if no other client has the
    session open.
    """

    session_id: str
    cancels: bool


class ListCall(Struct, frozen=True):
    """A call of `session/list`; "" where the client gave no value."""

    cwd: str
    cursor: str


class PromptCall(Struct, frozen=True):
    """A call of `session/prompt`: the text of all its blocks joined, and the bytes of its images.
    `quoted` are the spans of `text` that the user did not write: resources, links and pastes.
    """

    session_id: str
    text: str
    meta: dict[str, Any] = field(default_factory=dict)
    images: tuple[bytes, ...] = ()
    quoted: Spans = ()

    @property
    def typed(self) -> str:
        """The text that the user wrote himself: `text` without the `quoted` spans."""
        return replace_spans(self.text, self.quoted, filling="")


_BACKTICKS = re.compile("`{3,}")
_PASTE = "agentd/paste"
_COUNT = "name the first character of each paste and the one behind it, counted from 0"


class _Checked(BaseModel):
    model_config = ConfigDict(defer_build=True)  # build each validator at its first use


class _Params(_Checked):
    """Params by their names on the wire; unknown ones are ignored. `_meta` is an object or null."""

    meta: Annotated[dict[str, Any] | None, Field(alias="_meta")] = None


class _OfSession(_Params):
    session_id: Annotated[str, Field(alias="sessionId")]


class _Opened(_Params):
    cwd: str
    additional_directories: Annotated[list[Any] | None, Field(alias="additionalDirectories")] = None


class _New(_Opened):
    mcp_servers: Annotated[list[Any], Field(alias="mcpServers")]


class _Load(_OfSession, _New):
    pass


class _Again(_OfSession, _Opened):  # session/resume and session/fork
    mcp_servers: Annotated[list[Any] | None, Field(alias="mcpServers")] = None


class _Mode(_OfSession):
    mode_id: Annotated[str, Field(alias="modeId")]


class _Option(_OfSession):
    config_id: Annotated[str, Field(alias="configId")]
    value: str


class _List(_Params):
    cwd: str | None = None
    cursor: str | None = None


class _Text(_Checked):
    type: Literal["text"]
    text: str


class _Image(_Checked):
    type: Literal["image"]
    data: str
    mime_type: Annotated[str, Field(alias="mimeType")]


class _Audio(_Checked):
    type: Literal["audio"]
    data: str
    mime_type: Annotated[str, Field(alias="mimeType")]


class _Link(_Checked):
    type: Literal["resource_link"]
    name: str
    uri: str
    title: Any = None  # ignored unless it is a string

    @property
    def words(self) -> str:
        """The link as text of the prompt, in Markdown."""
        title = self.title if isinstance(self.title, str) else ""
        return f"\n[{title or self.name}]({self.uri})\n"


class _TextContents(_Checked):
    uri: str
    text: str


class _BlobContents(_Checked):
    uri: str
    blob: str


class _Resource(_Checked):
    type: Literal["resource"]
    resource: _TextContents | _BlobContents


_Block = Annotated[_Text | _Image | _Audio | _Link | _Resource, Field(discriminator="type")]


class _Prompt(_OfSession):
    prompt: list[_Block]


M = TypeVar("M", bound=_Params)


def parse_new(params: dict[str, Any]) -> SessionCall:
    """Return the call of `session/new`."""
    call = _check(_New, params)
    return SessionCall("", call.cwd, _offered(call.mcp_servers), call.meta or {})


def parse_load(params: dict[str, Any]) -> SessionCall:
    """Return the call of `session/load`."""
    call = _check(_Load, params)
    return SessionCall(call.session_id, call.cwd, _offered(call.mcp_servers), call.meta or {})


def parse_again(params: dict[str, Any]) -> SessionCall:
    """Return the call of `session/resume|fork`."""
    call = _check(_Again, params)
    return SessionCall(call.session_id, call.cwd, _offered(call.mcp_servers), call.meta or {})


def parse_close(params: dict[str, Any]) -> CloseCall:
    """Return the call of `session/close`."""
    call = _check(_OfSession, params)
    return CloseCall(call.session_id, cancels=(call.meta or {}).get("agentd/cancel") is not False)


def parse_delete(params: dict[str, Any]) -> str:
    """Return the session id of a call of `session/delete`."""
    return _check(_OfSession, params).session_id


def parse_mode(params: dict[str, Any]) -> OptionCall:
    """Return the call of `session/set_mode`."""
    call = _check(_Mode, params)
    return OptionCall(call.session_id, "mode", call.mode_id)


def parse_option(params: dict[str, Any]) -> OptionCall:
    """Return the call of `session/set_config_option`; every option is a choice between strings."""
    call = _check(_Option, params)
    return OptionCall(call.session_id, call.config_id, call.value)


def parse_list(params: dict[str, Any]) -> ListCall:
    """Return the call of `session/list`."""
    call = _check(_List, params)
    return ListCall(call.cwd or "", call.cursor or "")


def parse_prompt(params: dict[str, Any]) -> PromptCall:
    """Return the call of `session/prompt`.

    Raises InvalidRequest if the prompt has neither text nor image, or has a block of a kind
    that is not accepted.
    """
    call = _check(_Prompt, params)
    blocks = tuple(enumerate(call.prompt))
    images = tuple(_image(block, place) for place, block in blocks if isinstance(block, _Image))
    words = [_words(block, place, params["prompt"][place]) for place, block in blocks]
    text, foreign = _joined(words)
    if not text.strip() and not images:  # model services refuse blank messages
        raise InvalidRequest("prompt: is empty", cure="write something, or send a picture")
    meta = call.meta or {}
    pasted = _spans(meta[_PASTE], text, f"_meta.{_PASTE}") if _PASTE in meta else ()
    quoted = unite_spans((*foreign, *pasted), len(text))
    return PromptCall(call.session_id, text, meta, images, quoted)


def _check(model: type[M], params: dict[str, Any]) -> M:
    if not isinstance(params.get("_meta", {}), dict | None):
        raise InvalidRequest("_meta: is no object")
    try:
        # By alias only: otherwise a param spelled like a Python field name would be accepted.
        return model.model_validate(params, by_alias=True, by_name=False)
    except ValidationError as error:
        raise wrong_params(error) from None


def _offered(servers: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the offered MCP servers that are objects; their user checks the fields."""
    return tuple(server for server in servers or () if isinstance(server, dict))


def _joined(words: Sequence[tuple[str, Spans]]) -> tuple[str, list[Span]]:
    """Join the texts of the blocks; return the text and its quoted spans."""
    quoted: list[Span] = []
    length = 0
    for text, spans in words:
        quoted += shift_spans(spans, length)
        length += len(text)
    return "".join(text for text, _ in words), quoted


def _words(block: BaseModel, place: int, sent: dict[str, Any]) -> tuple[str, Spans]:
    """Return the text of a block, and the spans of that text that the user did not write."""
    if isinstance(block, _Text):
        return block.text, _pasted(block.text, place, sent)
    text = _foreign_text(block, place)
    return text, ((0, len(text)),)


def _pasted(text: str, place: int, sent: dict[str, Any]) -> Spans:
    meta = sent.get("_meta")
    if not isinstance(meta, dict | None):
        raise InvalidRequest(f"prompt.{place}._meta: is no object")
    paste = (meta or {}).get(_PASTE, [])
    if isinstance(paste, bool):
        return ((0, len(text)),) if paste else ()
    return _spans(paste, text, f"prompt.{place}._meta.{_PASTE}")


def _spans(data: Any, text: str, name: str) -> Spans:
    try:
        spans = decode_spans(data)
    except ValueError as error:
        raise InvalidRequest(f"{name}: is {error}", cure=_COUNT) from None
    if any(end > len(text) for _, end in spans):
        raise InvalidRequest(f"{name}: goes beyond the {len(text)} characters", cure=_COUNT)
    return spans


def _foreign_text(block: BaseModel, place: int) -> str:
    match block:
        case _Image():
            return ""
        case _Link():
            return block.words
        case _Resource(resource=_TextContents(uri=uri, text=text)):
            fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(text))])
            return f"\n{uri}\n{fence}\n{text}\n{fence}\n"
    raise InvalidRequest(
        f"prompt.{place}: audio and binary resources are not taken",
        cure="send text, an image, or a resource with text",
    )


def _image(block: _Image, place: int) -> bytes:
    """Return the bytes of an image. Raises InvalidRequest unless they have the stated MIME type."""
    try:
        data = base64.b64decode(block.data, validate=True)
    except ValueError:
        raise InvalidRequest(f"prompt.{place}.data: is no base64") from None
    kind = image_type(data)
    if kind is None:
        raise InvalidRequest(
            f"prompt.{place}.data: is no image that is taken",
            cure=f"send one of {', '.join(IMAGE_TYPES)}",
        )
    said = block.mime_type.lower().replace("image/jpg", "image/jpeg")
    if said != kind:
        raise InvalidRequest(
            f"prompt.{place}.mimeType: says {block.mime_type[:50]!r}, and the bytes are {kind}",
            cure=f"send it as {kind}",
        )
    return data
