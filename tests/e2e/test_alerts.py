"""Alerts from the daemon to a mail server of others and a web server, over kills and without the
daemon.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.alerts.counterparts import PASSWORD, Mailbox, Site, a_mailbox, a_site
from tests.e2e.harness import Client, Home
from tests.e2e.shell import a_shell
from tests.waiting import until, wait_until

pytest.importorskip("apprise", reason="the extra alerts is not installed (EXTRAS=alerts)")

TOPIC = "nobody-guesses-this-8271"


def tables(folder: Path, box: Mailbox, site: Site, more: str = "") -> str:
    """A phone and a mailbox, whose secrets stand in files."""
    for name, secret in (("password", PASSWORD), ("topic", TOPIC)):
        file = folder / name
        file.touch(0o600)
        file.write_text(secret)
    return f"""
[alerts]
retry_delay = "1s"

[alerts.apprise.mail]
url = "mailto://me:{{password}}@127.0.0.1:{box.port}?from=agentd@example.org&to=me@example.org"
secrets = {{ password = "file:{folder / "password"}" }}
{more}

[alerts.apprise.phone]
url = "ntfy://127.0.0.1:{site.port}/{{topic}}"
secrets = {{ topic = "file:{folder / "topic"}" }}
"""


async def standing(client: Client, name: str) -> dict[str, Any]:
    sinks = (await client.call("_agentd/alerts/sinks"))["sinks"]
    return next(sink for sink in sinks if sink["sink"] == name)


async def test_a_test_alert_arrives_at_both_and_no_secret_stays_behind(home: Home) -> None:
    async with a_mailbox() as box, a_site() as site:
        home.configure(tables(home.root, box, site))
        daemon = await home.start()
        client = await daemon.connect()
        sent = await client.call("_agentd/alerts/test")
        assert (sent["delivered"]["mail"], sent["delivered"]["phone"]) == ("sent", "sent")
        assert [text.strip() for text in box.texts] == site.texts == [sent["text"]]
        status = await client.call("_agentd/status")
        assert [sink["sink"] for sink in status["alerts"]][-2:] == ["mail", "phone"]
        await daemon.stop()
    files = [path for path in home.root.rglob("*") if path.is_file()]
    places = {path.name for path in files if path.name not in {"password", "topic"}}
    assert "state.db" in places
    holding = {
        path.name
        for path in files
        for secret in (PASSWORD, TOPIC)
        if secret.encode() in path.read_bytes()
    }
    assert holding == {"password", "topic"}
    assert PASSWORD not in json.dumps(status)
    assert TOPIC not in json.dumps(status)


async def test_a_kill_in_the_middle_of_the_tries_loses_and_repeats_nothing(home: Home) -> None:
    async with a_mailbox() as box, a_site() as site:
        box.closed = True
        home.configure(tables(home.root, box, site))
        daemon = await home.start()
        client = await daemon.connect()
        job = await client.call("_agentd/jobs/add", {"text": "the boiler is cold", "in": "1d"})
        await client.call("_agentd/jobs/run", {"id": job["id"]})
        await until(lambda: len(site.requests) == 1 and len(box.logins) > 1, "the mail is tried")
        while (await standing(client, "phone"))["waiting"]:  # until it is noted that it arrived
            await asyncio.sleep(0.05)
        mail = await standing(client, "mail")
        assert (mail["waiting"], mail["failed"]) == (1, 0)
        assert mail["error"] == "[alerts.apprise.mail]: E-Mail answered 451"
        await daemon.kill()
        box.closed = False
        daemon = await home.start()
        client = await daemon.connect()
        await until(lambda: len(box.taken) == 1, "the mail arrives")
        while (await standing(client, "mail"))["waiting"]:
            await asyncio.sleep(0.05)
        assert (await standing(client, "mail"))["error"] == ""
        await daemon.stop()
        assert [text.strip() for text in box.texts] == site.texts == ["the boiler is cold"]


async def test_a_daemon_that_is_gone_is_told_without_it_and_once() -> None:
    with a_shell() as shell:
        async with a_mailbox() as box, a_site() as site:
            (shell.root / "config.toml").touch(0o600)
            (shell.root / "config.toml").write_text(tables(shell.root, box, site))

            async def run(*argv: str) -> Any:
                return await asyncio.to_thread(shell, *argv)

            checked = await run("config", "check")
            assert checked.code == 0, checked
            assert (await run("alerts", "watch", "--json")).json["state"] == "unknown"
            await asyncio.to_thread(shell.wake)
            sign = shell.root / "state" / "heartbeat.json"
            await until(sign.exists, "the sign of life is left")
            assert (await run("alerts", "watch", "--json")).json["state"] == "fine"
            await asyncio.to_thread(shell.daemons[-1].kill)
            assert (await run("alerts", "watch", "--json")).json["state"] == "fine"
            assert site.requests == []

            told = json.loads(sign.read_text())
            sign.write_text(
                json.dumps({**told, "awake_s": 0.0, "grace_s": 0.5, "due": told["written"]})
            )
            missed = await run("alerts", "watch", "--json")
            assert missed.json["state"] == "missed"
            assert sorted(missed.json["sent"]) == ["mail", "phone"]
            assert (await run("alerts", "watch", "--json")).json["sent"] == []
            assert [text.strip() for text in box.texts] == site.texts == [missed.json["text"]]

            shell.variables["MONITOR_UNIT"] = "agentd.service"
            failed = await run("alerts", "watch", "--json")
            assert (failed.json["state"], failed.json["sent"]) == ("failed", [])
            del shell.variables["MONITOR_UNIT"]

            await asyncio.to_thread(shell.wake)
            await asyncio.to_thread(wait_for_a_new_sign, sign, told["written"])
            back = await run("alerts", "watch", "--json")
            assert (back.json["state"], sorted(back.json["sent"])) == ("fine", ["mail", "phone"])
            await run("stop")
            assert (await run("alerts", "watch", "--json")).json["state"] == "stopped"
            assert len(site.texts) == 2


def wait_for_a_new_sign(sign: Path, old: str) -> None:
    wait_until(lambda: json.loads(sign.read_text())["written"] != old, "a new sign is left")
