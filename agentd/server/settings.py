"""The `[server]` table."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from agentd.domain.settings import Duration, Settings


class ServerSettings(Settings):
    """What one client may ask of the daemon."""

    max_frame_bytes: int = Field(
        1024 * 1024, ge=4096, description="Longest line a client may send, in bytes."
    )
    max_connections: int = Field(128, ge=1, description="Clients connected at the same time.")
    max_calls_per_client: int = Field(
        32, ge=1, description="Calls of one client that may be in flight."
    )
    client_buffer_bytes: int = Field(
        1024 * 1024, ge=65536, description="Bytes that may wait for a client that reads slowly."
    )
    drop_after: Duration = Field(
        timedelta(seconds=30), description="A client that reads nothing for so long is dropped."
    )
    replay_turns: int = Field(
        200, ge=0, description="Turns shown again when a client loads a session."
    )
    permission_wait: Duration = Field(
        timedelta(minutes=5),
        description="How long a question waits for a client to connect before it counts as denied.",
    )
