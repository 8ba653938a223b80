"""What a message that was typed carries: its words, and an image if it begins with /image."""

from __future__ import annotations

from pathlib import Path

from agentd.cli.pasting import Written
from agentd.cli.slash import image_and_words, parse
from agentd.client.attachment import Attachment, read_image
from agentd.errors import InvalidRequest


def carried(message: Written) -> tuple[Written, tuple[Attachment, ...]]:
    """Words and images. Blocks. Raises InvalidRequest and what `read_image` raises."""
    command = parse(message.text)
    if command is None or command[0] != "image":
        return message, ()
    found = image_and_words(command[1])
    if found is None:
        raise InvalidRequest("/image needs a file", cure="type /image PATH and what to say of it")
    path, words = found
    end = len(message.text.rstrip())
    return message.part(end - len(words), end), (read_image(Path(path)),)
