"""Alerts through Apprise, against a mail server of others and a web server."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agentd.automation.alerts.alert_settings import AppriseTarget
from agentd.automation.alerts.apprise_program import fit_limits
from agentd.automation.alerts.apprise_sink import (
    AppriseSink,
    check_apprise,
    target_secrets,
    whole_url,
)
from agentd.core.alert import Alert, AlertSeverity
from agentd.core.errors import AgentdError, ConfigError
from agentd.core.secrets import Secret
from tests.alerts.counterparts import PASSWORD, a_mailbox, a_site, plain

pytest.importorskip("apprise")

TEXT = "Disk “full” on <b>box</b> & more: {x} $(rm)\n\tsecond line \\n"
ALERT = Alert(7, datetime(2026, 5, 4, 10, 0, tzinfo=UTC), TEXT, "heartbeat")
MINUTE = timedelta(minutes=1)


def sink(url: str, timeout: timedelta = MINUTE, **environ: str) -> AppriseSink:
    return AppriseSink("phone", Secret(url, "url"), timeout, dict(os.environ) | environ)


def mail(port: int, password: str = PASSWORD) -> str:
    return f"mailto://me:{password}@127.0.0.1:{port}?from=agentd@example.org&to=me@example.org"


async def test_a_mail_arrives_with_its_words_at_somebody_elses_server() -> None:
    async with a_mailbox() as box:
        await sink(mail(box.port)).send(ALERT)
    (message,) = box.taken
    assert box.logins == [("me", PASSWORD)]
    assert (message["Subject"], message["To"]) == ("agentd", "me@example.org")
    assert box.texts[0].replace("\r\n", "\n").strip() == TEXT.strip()


async def test_a_mail_of_markup_shows_the_words_as_they_are() -> None:
    async with a_mailbox() as box:
        await sink(f"{mail(box.port)}&format=html").send(ALERT)
    markup = plain(box.taken[0], "html").replace("&nbsp;", " ")
    assert "&lt;b&gt;box&lt;/b&gt; &amp; more" in markup
    assert "<b>box</b>" not in markup


@pytest.mark.parametrize(
    ("severity", "kind"),
    [
        (AlertSeverity.INFO, "info"),
        (AlertSeverity.WARNING, "warning"),
        (AlertSeverity.URGENT, "failure"),
    ],
)
async def test_what_is_sent_as_json_has_the_severity(severity: AlertSeverity, kind: str) -> None:
    alert = Alert(7, ALERT.at, TEXT, "heartbeat", severity=severity)
    async with a_site() as site:
        await sink(f"json://127.0.0.1:{site.port}/hook").send(alert)
    ((path, body),) = site.requests
    assert (path, body["message"], body["title"], body["type"]) == ("/hook", TEXT, "agentd", kind)


async def test_ntfy_gets_the_topic_and_the_words() -> None:
    async with a_site() as site:
        await sink(f"ntfy://127.0.0.1:{site.port}/boiler").send(ALERT)
    ((_, body),) = site.requests
    assert (body["topic"], body["title"], body["message"]) == ("boiler", "agentd", TEXT)


async def test_what_may_come_from_outside_says_so() -> None:
    alert = Alert(7, ALERT.at, "Pay now", "heartbeat", tainted=True)
    async with a_site() as site:
        await sink(f"json://127.0.0.1:{site.port}/").send(alert)
    assert site.texts == ["[may come from outside] Pay now"]


async def test_a_text_that_does_not_fit_is_cut_with_a_word_about_it() -> None:
    async with a_site() as site:
        alert = Alert(7, ALERT.at, "x" * 50_000, "test")
        await sink(f"json://127.0.0.1:{site.port}/").send(alert)
    assert site.texts[0].endswith("… cut here; `agentd alerts list` has all of it")
    assert 30_000 < len(site.texts[0]) < 33_000
    assert fit_limits("abc", 3) == "abc"


@pytest.mark.parametrize(
    ("status", "told"), [(401, "answered 401"), (500, "answered 500"), (302, "answered 302")]
)
async def test_what_a_service_refuses_has_failed_and_is_told_without_the_address(
    status: int, told: str
) -> None:
    async with a_site(status) as site:
        with pytest.raises(AgentdError, match=told) as caught:
            await sink(f"ntfy://tk-secret@127.0.0.1:{site.port}/secret-topic").send(ALERT)
        assert len(site.requests) == 1, "no redirect is followed"
        await sink(f"ntfy://127.0.0.1:{site.port}/secret-topic").send(ALERT)
    assert "secret" not in f"{caught.value.message} {caught.value.cure}"
    assert len(site.requests) == 2


async def test_a_wrong_password_has_failed_and_is_told_to_nobody() -> None:
    async with a_mailbox() as box:
        with pytest.raises(AgentdError, match="E-Mail answered 535") as caught:
            await sink(mail(box.port, "wrong-password")).send(ALERT)
        assert box.taken == []
        box.closed = True
        with pytest.raises(AgentdError, match="E-Mail answered 451"):
            await sink(mail(box.port)).send(ALERT)
        box.closed = False
        await sink(mail(box.port)).send(ALERT)
    assert len(box.taken) == 1
    assert "wrong-password" not in repr(caught.value) + caught.value.cure
    assert caught.value.__cause__ is None


async def test_a_service_that_is_not_there_has_failed() -> None:
    async with a_site() as site:
        port = site.port
    with pytest.raises(AgentdError, match="cannot be reached"):
        await sink(f"json://127.0.0.1:{port}/").send(ALERT)


async def test_a_service_that_hangs_is_given_up_in_time_and_its_process_ended() -> None:
    async with a_site() as site:
        site.is_hanging = True
        with pytest.raises(AgentdError, match="no answer within 6 s"):
            await sink(f"json://127.0.0.1:{site.port}/?rto=600", timedelta(seconds=6)).send(ALERT)
        assert len(site.requests) == 1, "it hung before it asked"


async def test_an_address_of_several_is_refused_before_anything_is_sent() -> None:
    async with a_site() as site:
        with pytest.raises(ConfigError, match="names 2 recipients") as caught:
            await sink(f"ntfy://127.0.0.1:{site.port}/one/two").send(ALERT)
        assert "table of its own" in caught.value.cure
        assert site.requests == []


@pytest.mark.parametrize("url", ["nope://secret", "mailto://secret", "tgram://secret"])
async def test_an_address_that_is_none_is_told_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="url cannot be used") as caught:
        await sink(url).check()
    assert "secret" not in f"{caught.value.message}{caught.value.cure}"


async def test_a_check_sends_nothing_and_knows_the_service() -> None:
    async with a_site() as site:
        assert await sink(f"ntfy://127.0.0.1:{site.port}/boiler").check() == "ntfy"
        assert site.requests == []


ECHO = (
    "import json, os, sys; json.dump({'problem': 'refused', 'detail': repr((sys.stdin.read(), "
    "sys.argv, dict(os.environ))), 'service': 'x'}, sys.stdout)"
)


async def test_the_address_goes_over_the_pipe_and_no_key_of_the_daemon_with_it() -> None:
    secrets = {"ANTHROPIC_API_KEY": "sk-1", "NOTIFY_SOCKET": "sk-2", "HTTPS_PROXY": "sk-3"}
    environ = dict(os.environ) | secrets | {"SSL_CERT_FILE": "/ca.pem"}
    echo = AppriseSink(
        "phone", Secret("json://sk-url", "url"), MINUTE, environ, (sys.executable, "-c", ECHO)
    )
    with pytest.raises(AgentdError) as caught:
        await echo.send(ALERT)
    told = caught.value.message
    order, _, seen = told.partition("['-c']")
    assert "sk-url" in order
    assert "sk-" not in seen
    assert "'/ca.pem'" in seen
    assert "'NETRC': '/dev/null'" in seen


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "print('[]')", "print('nonsense')"])
async def test_a_program_that_breaks_has_failed(code: str) -> None:
    broken = AppriseSink(
        "phone", Secret("json://x", "url"), MINUTE, os.environ, (sys.executable, "-c", code)
    )
    with pytest.raises(AgentdError, match="without an answer"):
        await broken.send(ALERT)


def test_without_the_extra_it_says_what_to_install() -> None:
    with pytest.raises(ConfigError, match="extra `alerts`"):
        check_apprise(lambda name: None)
    check_apprise()


def test_secrets_are_fetched_from_where_they_stand_and_spelled_as_addresses_do(
    tmp_path: Path,
) -> None:
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("p/a:s@s\n")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "user").write_text("me")
    target = AppriseTarget(
        url="mailto://{user}:{password}@{host}",
        secrets={"user": "credential:user", "password": f"file:{key}", "host": "MAIL_HOST"},
    )
    environ = {"CREDENTIALS_DIRECTORY": str(credentials), "MAIL_HOST": "example.org"}
    secrets = target_secrets("mail", target, environ)
    url = whole_url(target, secrets)
    assert url.reveal() == "mailto://me:p%2Fa%3As%40s@example.org"
    assert "p/a" not in f"{url!r} {secrets}"
    whole = AppriseTarget(url="{all}", secrets={"all": "HOOK"})
    hook = {"HOOK": "json://h/a?b=c"}
    assert whole_url(whole, target_secrets("x", whole, hook)).reveal() == "json://h/a?b=c"


def test_a_secret_that_is_nowhere_is_named_with_its_table() -> None:
    target = AppriseTarget(url="ntfys://h/{topic}", secrets={"topic": "NTFY_TOPIC"})
    with pytest.raises(ConfigError) as caught:
        target_secrets("phone", target, {})
    assert "NTFY_TOPIC" in caught.value.message
    assert "[alerts.apprise.phone] secrets.topic" in caught.value.message


def test_no_secret_holds_the_place_of_another() -> None:
    """What a secret contains is no template."""
    target = AppriseTarget(url="json://{a}/{b}", secrets={"a": "A", "b": "B"})
    environ = {"A": "{b}", "B": "told"}
    url = whole_url(target, target_secrets("x", target, environ)).reveal()
    assert url == "json://%7Bb%7D/told"
    assert json.dumps(url)
