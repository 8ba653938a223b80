"""The `[server]` table."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from agentd.core.settings import Duration, PositiveDuration, Settings

AROUND_IMAGE = 16 * 1024  # bytes of a frame that an image must leave free for text and JSON


class ServerSettings(Settings):
    """What one client may ask of the daemon."""

    max_frame_bytes: int = Field(
        1024 * 1024, ge=4096, description="Longest line a client may send, in bytes."
    )
    max_image_bytes: int = Field(
        700 * 1024,
        ge=0,
        description=(
            "Largest image a message may hold; a third more must fit max_frame_bytes. 0: none."
        ),
    )
    max_connections: int = Field(128, ge=1, description="Clients connected at the same time.")
    max_calls_per_client: int = Field(
        32, ge=1, description="Calls of one client that may be in flight."
    )
    max_sessions_per_client: int = Field(
        256,
        ge=1,
        description="Sessions that one client may have open, until it closes them or leaves.",
    )
    client_buffer_bytes: int = Field(
        1024 * 1024, ge=65536, description="Bytes that may wait for a client that reads slowly."
    )
    drop_after: PositiveDuration = Field(
        timedelta(seconds=30), description="A client that reads nothing for so long is dropped."
    )
    replay_turns: int = Field(
        200, ge=0, description="Turns shown again when a client loads a session."
    )
    permission_wait: Duration = Field(
        timedelta(minutes=5),
        description="How long a question waits for a client to connect before it counts as denied.",
    )

    @property
    def takes_images(self) -> bool:
        """Whether images are taken: one of `max_image_bytes`, in base64, must fit a frame."""
        return self.max_image_bytes > 0 and self._image_frame <= self.max_frame_bytes

    @property
    def _image_frame(self) -> int:
        return (self.max_image_bytes + 2) // 3 * 4 + AROUND_IMAGE

    @model_validator(mode="after")
    def _images_fit_frames(self) -> Self:
        """Raise ValueError if the configuration sets a `max_image_bytes` that does not fit a frame;
        the default may not fit: then no images are taken.
        """
        is_set = self.max_image_bytes > 0 and "max_image_bytes" in self.model_fields_set
        if is_set and not self.takes_images:
            msg = (
                f"asks too much of frames: max_image_bytes = {self.max_image_bytes} needs "
                f"max_frame_bytes = {self._image_frame} or more, since images come as base64; it "
                f"is {self.max_frame_bytes}"
            )
            raise ValueError(msg)
        return self
