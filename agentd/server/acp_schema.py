"""The Parser over the protocol's official types. Importing this costs about half a second."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from acp import schema
from pydantic import BaseModel, ValidationError

from agentd.domain import picture
from agentd.domain.message import decode_spans
from agentd.domain.spans import Span, Spans, shifted, united
from agentd.errors import InvalidRequest
from agentd.server.faults import wrong_params
from agentd.server.requests import ListCall, OptionCall, PromptCall, SessionCall

M = TypeVar("M", bound=BaseModel)
_BACKTICKS = re.compile("`{3,}")
_PASTE = "agentd/paste"
_COUNT = "name the first character of each paste and the one behind it, counted from 0"


class AcpParser:
    """Params into our own values, strictly where the types would silently drop a field."""

    def new(self, params: dict[str, Any]) -> SessionCall:
        """Params of `session/new`."""
        call = _check(schema.NewSessionRequest, params)
        return SessionCall("", call.cwd, len(call.mcp_servers), call.field_meta or {})

    def load(self, params: dict[str, Any]) -> SessionCall:
        """Params of `session/load`."""
        call = _check(schema.LoadSessionRequest, params)
        return SessionCall(call.session_id, call.cwd, len(call.mcp_servers), call.field_meta or {})

    def resume(self, params: dict[str, Any]) -> SessionCall:
        """Params of `session/resume`."""
        call = _check(schema.ResumeSessionRequest, params)
        servers = len(call.mcp_servers or ())
        return SessionCall(call.session_id, call.cwd, servers, call.field_meta or {})

    def fork(self, params: dict[str, Any]) -> SessionCall:
        """Params of `session/fork`."""
        call = _check(schema.ForkSessionRequest, params)
        servers = len(call.mcp_servers or ())
        return SessionCall(call.session_id, call.cwd, servers, call.field_meta or {})

    def close(self, params: dict[str, Any]) -> str:
        """The session of `session/close`."""
        return _check(schema.CloseSessionRequest, params).session_id

    def delete(self, params: dict[str, Any]) -> str:
        """The session of `session/delete`."""
        return _check(schema.DeleteSessionRequest, params).session_id

    def mode(self, params: dict[str, Any]) -> OptionCall:
        """Params of `session/set_mode`."""
        call = _check(schema.SetSessionModeRequest, params)
        return OptionCall(call.session_id, "mode", call.mode_id)

    def option(self, params: dict[str, Any]) -> OptionCall:
        """Params of `session/set_config_option`; every option of ours is one of several values."""
        call = _check(schema.SetSessionConfigOptionSelectRequest, params)
        return OptionCall(call.session_id, call.config_id, call.value)

    def list(self, params: dict[str, Any]) -> ListCall:
        """Params of `session/list`."""
        call = _check(schema.ListSessionsRequest, params)
        return ListCall(call.cwd or "", call.cursor or "")

    def prompt(self, params: dict[str, Any]) -> PromptCall:
        """Params of `session/prompt`."""
        call = _check(schema.PromptRequest, params)
        blocks = tuple(enumerate(call.prompt))
        images = tuple(
            _image(block, place)
            for place, block in blocks
            if isinstance(block, schema.ImageContentBlock)
        )
        words = [_words(block, place, params["prompt"][place]) for place, block in blocks]
        text, foreign = _joined(words)
        if not text.strip() and not images:  # services of models refuse blank messages
            raise InvalidRequest("prompt: is empty", cure="send a text block with words in it")
        meta = call.field_meta or {}
        pasted = _spans(meta[_PASTE], text, f"_meta.{_PASTE}") if _PASTE in meta else ()
        quoted = united((*foreign, *pasted), len(text))
        return PromptCall(call.session_id, text, meta, images, quoted)


def _check(model: type[M], params: dict[str, Any]) -> M:
    # The protocol's types turn a malformed `_meta` into none at all.
    if not isinstance(params.get("_meta", {}), dict | None):
        raise InvalidRequest("_meta: is no object")
    try:
        # By alias only: what `_meta` holds, or a Python spelling, never stands for an argument.
        return model.model_validate(params, by_alias=True, by_name=False)
    except ValidationError as error:
        raise wrong_params(error) from None


def _joined(words: Sequence[tuple[str, Spans]]) -> tuple[str, list[Span]]:
    """The texts of the blocks as one, with what is quoted in it."""
    quoted: list[Span] = []
    length = 0
    for text, spans in words:
        quoted += shifted(spans, length)
        length += len(text)
    return "".join(text for text, _ in words), quoted


def _words(block: BaseModel, place: int, sent: dict[str, Any]) -> tuple[str, Spans]:
    """The text of a block, and the spans of it that the user did not write."""
    if isinstance(block, schema.TextContentBlock):
        return block.text, _pasted(block.text, place, sent)
    text = _foreign_text(block, place)
    return text, ((0, len(text)),)


def _pasted(text: str, place: int, sent: dict[str, Any]) -> Spans:
    # The protocol's types turn a malformed `_meta` into none at all, so it is read as it was sent.
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
        case schema.ImageContentBlock():
            return ""
        case schema.ResourceContentBlock():
            return f"\n[{block.title or block.name}]({block.uri})\n"
        case schema.EmbeddedResourceContentBlock(
            resource=schema.TextResourceContents(uri=uri, text=text)
        ):
            fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(text))])
            return f"\n{uri}\n{fence}\n{text}\n{fence}\n"
    raise InvalidRequest(
        f"prompt.{place}: audio and binary resources are not taken",
        cure="send text, an image, or a resource with text",
    )


def _image(block: schema.ImageContentBlock, place: int) -> bytes:
    """The bytes of an image that is what it is said to be."""
    try:
        data = base64.b64decode(block.data, validate=True)
    except ValueError:
        raise InvalidRequest(f"prompt.{place}.data: is no base64") from None
    kind = picture.media_type(data)
    if kind is None:
        raise InvalidRequest(
            f"prompt.{place}.data: is no image that is taken",
            cure=f"send one of {', '.join(picture.TYPES)}",
        )
    said = block.mime_type.lower().replace("image/jpg", "image/jpeg")
    if said != kind:
        raise InvalidRequest(
            f"prompt.{place}.mimeType: says {block.mime_type[:50]!r}, and the bytes are {kind}",
            cure=f"send it as {kind}",
        )
    return data
