"""The chat on this process's terminal."""

from __future__ import annotations

import os
import shutil
import sys

from agentd.app.chat.catalog import Catalog
from agentd.app.chat.chat import Chat
from agentd.app.chat.painter import Painter
from agentd.app.chat.screen import Screen
from agentd.app.chat.statusline import StatusLine
from agentd.app.chat.terminal import Terminal, history_in
from agentd.app.cli.ask import owners_times, sockets
from agentd.app.cli.report import say
from agentd.core.paths import chat_history
from agentd.interfaces.client.connection import connect
from agentd.interfaces.commands.plain import is_plain


async def chat_here(session: str, wait: int | None) -> None:
    """Chat in a session until the user leaves. The daemon waits at most `wait` seconds a message
    for a model service that is away (None: as configured).
    """
    async with connect(sockets()) as connection:
        times = await owners_times(connection)
    say(f"Session {session}. Ctrl-C cancels a running turn, Ctrl-D leaves, /help says more.")
    catalog, status = Catalog(), StatusLine()
    plain = is_plain(os.environ) or not sys.stdout.isatty()
    screen = Screen() if plain else Painter(shutil.get_terminal_size, times.clock)
    history = history_in(chat_history(os.environ), times.clock)
    keyboard = Terminal(catalog, status.text, history, raw=not plain)
    chat = Chat(keyboard, screen, times, catalog=catalog, status=status, wait=wait)
    await chat.run(sockets(), session)
