"""A week of mail that a beat watches: what is told, how often, and how many tokens a day it reads.

A real IMAP server (dovecot) stands behind an MCP server that is not ours (mcp-email-server); the
daemon's own parts run over it with a clock that is moved, half an hour at a time. The model is a
script that does what the prompts ask of one: it cannot say how a real one words things, but it
counts what any would have to read. Twenty mails come a day, two of them from the one who is waited
for; for two hours of one day the IMAP server is away, and after each day the daemon is opened anew.
"""

from __future__ import annotations

import asyncio
import grp
import json
import os
import pwd
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from agentd.app.assembly.parts import Parts, open_parts
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.config import Config
from agentd.app.logs import OpenLog
from agentd.core.message import Message, ToolResult, ToolUse, assistant
from agentd.core.paths import daemon_places
from agentd.core.prompt import Prompt
from agentd.core.redaction import Redactor
from agentd.core.tool import Approval, Decision
from agentd.core.turn import SessionKey, Usage
from agentd.engine.budget import Budget
from agentd.interfaces.acp.peer import Clients
from agentd.testing import FakeClock, RecordingSink, ScriptedProvider
from benchmarks.row import Row

MONDAY = datetime(2026, 11, 23, 7, 45, tzinfo=UTC)
DAYS = 7
_AWAY = (3, range(13, 17))  # the day on which the server is away, and its beats from 0
_MAILS, _WAITED = 20, (5, 14)  # mails of a day, and those from Anna
_PORT = 14_300
_LIST = "mail.list_emails_metadata"
_CHECKLIST = "- tell me when mail from Anna arrives\n- [ ] say if the disk is full\n"
_GIVEN = {"account_name": "me", "page_size": 20}
_SUBJECT = re.compile(r'\+.*"subject": "(Anna [^"]*)"')
_CHARACTERS = 4  # of a token, about

_DOVECOT = """
base_dir = {folder}/run
log_path = {folder}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:{folder}/maildir
default_login_user = {login}
default_internal_user = {user}
default_internal_group = {group}
first_valid_uid = 1
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  chroot =
}}
service anvil {{
  chroot =
}}
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}
}}
"""


async def rows() -> AsyncIterator[Row]:
    """Nothing but a word on stderr where the servers are not installed."""
    server = os.environ.get("MCP_EMAIL_SERVER") or shutil.which("mcp-email-server")
    if server is None or shutil.which("dovecot") is None:
        told = "watched_mail needs dovecot (a package of the system) and mcp-email-server (pipx)"
        sys.stderr.write(f"{told}\n")
        return
    with TemporaryDirectory() as folder:
        week = _Week(Path(folder), server)
        await week.run()
        sent = sorted(week.waited)
        told = [text for text in week.told if text]
        yield Row("mail that is waited for", [len(sent)], "mails")
        yield Row("of it told", [sum(mail in told for mail in sent)], "mails", least=len(sent))
        twice = sum(told.count(mail) > 1 for mail in set(told))
        yield Row("told twice", [twice], "mails", below=1)
        others = sum(text not in sent for text in told)
        yield Row("told of other mail", [others], "mails", below=1)
        yield Row("input tokens of a day", week.tokens, "tokens")
        yield Row("input tokens of the dearest day", [max(week.tokens)], "tokens", below=50_000)
        yield Row("beats of the week", [week.beats], "beats")
        yield Row("questions to the model", [len(week.provider.prompts)], "questions")


class _Owner:
    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        return Decision.DENY


class _Week:
    """The mailbox, the daemon's parts, and what was told."""

    def __init__(self, root: Path, server: str) -> None:
        self._root = root
        self._server = server
        self.clock = FakeClock(MONDAY, "UTC")
        self.provider = ScriptedProvider(default=_careful, usage=_used)
        self.waited: list[str] = []
        self.told: list[str] = []
        self.tokens: list[float] = []
        self.beats = 0
        self._sent = 0
        for name in ("home/workspace", "maildir/new", "maildir/cur", "maildir/tmp", "run"):
            (root / name).mkdir(parents=True)
        (root / "home/workspace/HEARTBEAT.md").write_text(_CHECKLIST)

    async def run(self) -> None:
        self._dovecot = await self._imap()
        for day in range(DAYS):
            before = len(self.provider.prompts)
            async with self._opened() as parts:
                await self._day(parts, _AWAY[1] if day == _AWAY[0] else range(0))
            self.tokens.append(sum(map(_read, self.provider.prompts[before:])))
            self.clock.jump(timedelta(days=day + 1) + MONDAY - self.clock.now())
        await _ended(self._dovecot)

    async def _day(self, parts: Parts, away: range) -> None:
        heartbeat = parts.schedule.heartbeat
        for half_hour in range(32):
            if away and half_hour == away.start:
                await _ended(self._dovecot)
            if away and half_hour == away.stop:
                self._dovecot = await self._imap()
            if half_hour < _MAILS:
                self._deliver(half_hour)
            self.clock.jump(timedelta(minutes=30))
            self.beats += 1
            await heartbeat.run()
        alerts = await parts.stores.outbox.alerts(1_000)
        self.told = [text for alert in alerts for text in alert.text.split("\n")]

    def _deliver(self, number: int) -> None:
        self._sent += 1
        is_waited = number in _WAITED
        who = "anna" if is_waited else f"shop{self._sent % 7}"
        subject = f"Anna {self._sent}" if is_waited else f"Offer {self._sent % 5}"
        if is_waited:
            self.waited.append(subject)
        text = (
            f"From: {who}@example.org\nTo: me@example.org\nSubject: {subject}\n"
            f"Message-ID: <{self._sent}@example.org>\n"
            f"Date: {self.clock.now():%a, %d %b %Y %H:%M:%S +0000}\n\nHello.\n"
        )
        path = self._root / "maildir/new" / f"{1_700_000_000 + self._sent}.M{self._sent}.host"
        path.write_text(text)
        os.utime(path, (self.clock.now().timestamp(),) * 2)

    async def _imap(self) -> asyncio.subprocess.Process:
        folder, config = self._root, self._root / "dovecot.conf"
        folder.chmod(0o755)  # for the process that takes logins
        me, mine = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
        names = {"user": me, "group": mine, "login": me, "uid": os.getuid(), "gid": os.getgid()}
        if os.getuid() == 0:  # dovecot lets root neither take logins nor have mail
            nobody = pwd.getpwnam("nobody")
            names |= {"login": "nobody", "uid": nobody.pw_uid, "gid": nobody.pw_gid}
            for path in (folder / "maildir", *(folder / "maildir").iterdir()):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        config.write_text(_DOVECOT.format(folder=folder, port=_PORT, **names))
        process = await asyncio.create_subprocess_exec("dovecot", "-F", "-c", str(config))
        for _ in range(100):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", _PORT)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            writer.close()
            return process
        raise RuntimeError((folder / "dovecot.log").read_text())

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Parts]:
        env = {
            "MCP_EMAIL_SERVER_ACCOUNT_NAME": "me",
            "MCP_EMAIL_SERVER_EMAIL_ADDRESS": "me@example.org",
            "MCP_EMAIL_SERVER_USER_NAME": "me",
            "MCP_EMAIL_SERVER_PASSWORD": "secret",
            "MCP_EMAIL_SERVER_IMAP_HOST": "127.0.0.1",
            "MCP_EMAIL_SERVER_IMAP_PORT": str(_PORT),
            "MCP_EMAIL_SERVER_IMAP_SSL": "false",
            "MCP_EMAIL_SERVER_CONFIG_PATH": str(self._root / "mail.toml"),
            "HOME": str(self._root),
        }
        server = {
            "command": [self._server, "stdio"],
            "env": env,
            "silent": ["list_emails_metadata"],
            "permission": "allow",
        }
        config = Config.model_validate(
            {
                "memory_search": {"provider": "none"},
                "mcp": {"servers": {"mail": server}},
            }
        )
        environ = {**os.environ, "AGENTD_HOME": str(self._root / "home")}
        runtime = RuntimeContext(
            config, daemon_places(environ), self.clock, environ, Budget(config.budget)
        )
        opened = open_parts(
            runtime,
            Clients(),
            _Owner(),
            shown=RecordingSink(),
            output=OpenLog(Redactor(), None),
            provider=self.provider,
        )
        async with opened as parts, asyncio.TaskGroup() as group:
            await parts.engine.sessions.start()
            for server_ in parts.tools.servers.servers:
                server_.open(group)
                await server_.refresh()
            yield parts
            for server_ in parts.tools.servers.servers:
                server_.close()


async def _ended(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    await process.wait()


def _careful(prompt: Prompt) -> str | Message:
    """What a model does that follows the prompts."""
    last = prompt.messages[-1]
    if any(isinstance(block, ToolResult) for block in last.blocks):
        return "HEARTBEAT_OK"
    text = last.text
    names = {tool.name for tool in prompt.tools}
    if "look" in names:
        wants = "mail from Anna" in text
        return (
            assistant("", ToolUse("c1", "look", {"entry": "mail from Anna"}))
            if wants
            else "HEARTBEAT_OK"
        )
    if "What has changed" in text:
        return "\n".join(_SUBJECT.findall(text)) or "HEARTBEAT_OK"
    return assistant("", ToolUse("c1", _LIST, _GIVEN)) if _LIST in names else "HEARTBEAT_OK"


def _read(prompt: Prompt) -> int:
    tools = [[t.name, t.description, dict(t.input_schema)] for t in prompt.tools]
    said = [str(block) for message in prompt.messages for block in message.blocks]
    size = len(json.dumps(tools)) + sum(map(len, (*prompt.system, *said)))
    return size // _CHARACTERS


def _used(prompt: Prompt, _: Message) -> Usage:
    return Usage(_read(prompt), 20)
