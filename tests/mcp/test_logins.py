"""Logins to servers over HTTP, at the authorization server of the official SDK and at ones that
mean no good.
"""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from msgspec.structs import replace

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.redaction import Redactor
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.logins import KeptLogin, LoginStore
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.testing.clock import FakeClock
from tests.mcp.logging_in import GUARDED, TRAP, browsed, letters, played, serving


async def test_a_login_is_needed_had_and_used(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            with pytest.raises(ServerFault) as caught:
                await box.server.call("count", {})
            assert (caught.value.kind, caught.value.cure) == (
                "login_needed",
                "`agentd mcp login letters`",
            )
            assert await box.log_in() == (2, "")
            answer = await box.server.call("count", {})
            assert answer.text == "there are 7 letters"
            assert box.server.problems() == ()
            kept = box.kept()
        async with letters(tmp_path, url) as again:  # a daemon that has restarted
            assert (await again.server.call("count", {})).text == "there are 7 letters"
        assert (await played(url))["registered"] == 1
    assert stat.S_IMODE(box.file.stat().st_mode) == 0o600
    for secret in ("access", "refresh"):
        assert box.redactor.text(f"a {kept[secret]} b") == "a [secret] b"
        assert again.redactor.text(f"a {kept[secret]} b") == "a [secret] b"
        assert kept[secret] not in repr(box.store.login)


async def test_a_token_that_ends_is_renewed_before_it_is_used(tmp_path: Path) -> None:
    with serving(GUARDED, "3600") as url:
        clock = FakeClock()
        async with letters(tmp_path, url, clock) as box:
            await box.log_in()
            before = box.kept()
            await box.server.call("count", {})
            assert "renewed" not in await played(url)
            box.server.restart()
        await clock.advance(3550)
        async with letters(tmp_path, url, clock) as again:
            assert (await again.server.call("count", {})).text == "there are 7 letters"
            assert (await played(url))["renewed"] == 1
            assert again.kept()["refresh"] != before["refresh"]


async def test_a_token_that_is_forgotten_is_renewed_once(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            await box.log_in()
            await played(url, "forget")
            answers = await asyncio.gather(*(box.server.call("count", {}) for _ in range(4)))
            assert {one.text for one in answers} == {"there are 7 letters"}
            assert (await played(url))["renewed"] == 1


async def test_a_login_that_is_revoked_is_told_and_cured_by_another(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            await box.log_in()
            await played(url, "revoke")
            for _ in range(2):  # the second one asks nobody
                with pytest.raises(ServerFault) as caught:
                    await box.server.call("count", {})
                assert caught.value.kind == "login_needed"
                assert "the service does not renew it (invalid_grant)" in caught.value.message
            (problem,) = box.server.problems()
            assert (problem.code, problem.cure) == (
                "mcp_login_needed",
                "`agentd mcp login letters`",
            )
            assert box.kept()["refresh"] == ""
            assert await box.log_in() == (2, "")
            assert (await box.server.call("count", {})).text == "there are 7 letters"


async def test_a_service_that_is_down_ends_no_login(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        clock = FakeClock()
        async with letters(tmp_path, url, clock) as box:
            await box.log_in()
            await played(url, "forget")
            await played(url, "down")
            with pytest.raises(ServerFault) as caught:
                await box.server.call("count", {})
            assert caught.value.kind == "unreachable"
            assert "HTTP 503" in caught.value.message
            await played(url, "up")
            await clock.advance(10)
            assert (await box.server.call("count", {})).text == "there are 7 letters"


async def test_a_login_is_deleted_and_never_given_to_another_address(tmp_path: Path) -> None:
    with serving(GUARDED) as url, serving(GUARDED) as other:
        async with letters(tmp_path, url) as box:
            await box.log_in()
            async with letters(tmp_path, other) as moved:
                with pytest.raises(ServerFault, match="nobody has logged in"):
                    await moved.server.call("count", {})
            assert await box.logins.end("letters")
            assert not box.file.exists()
            assert not await box.logins.end("letters")
            with pytest.raises(ServerFault, match="nobody has logged in"):
                await box.server.call("count", {})


async def test_a_login_that_is_deleted_while_it_is_renewed_stays_deleted(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            await box.log_in()
            old = box.store.login
            assert old is not None
            new = replace(old, access="another-token")
            await asyncio.gather(box.store.renew(old, new), box.store.forget())
            assert (box.store.login, box.file.exists()) == (None, False)
            await box.store.renew(new, old)
            assert (box.store.login, box.file.exists()) == (None, False)
            await box.store.keep(new)
            assert box.kept()["access"] == "another-token"


async def test_a_file_that_others_may_read_is_no_login(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            await box.log_in()
        for mode, known in ((0o600, True), (0o640, False)):
            box.file.chmod(mode)
            async with letters(tmp_path, url) as again:
                assert (again.store.login is not None) is known
        for text in ("", "[]", "{}", '{"bound": 1}', "[" * 10_000):
            box.file.chmod(0o600)
            box.file.write_text(text)
            async with letters(tmp_path, url) as again:
                assert again.store.login is None


async def test_an_answer_with_another_state_finishes_nothing(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            with pytest.raises(InvalidRequest, match="no login to letters is under way"):
                await box.logins.finish("letters", "code", "state", "")
            address = await box.begin()
            brought = await browsed(address)
            for state in ("", "other", brought["state"][:-1], f"{brought['state']}x", "ä"):
                with pytest.raises(InvalidRequest, match="another login"):
                    await box.logins.finish("letters", brought["code"], state, "")
            assert await box.logins.finish("letters", **brought) == (2, "")
            assert "code_challenge_method=S256" in address


async def test_a_new_login_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        async with letters(tmp_path, url) as box:
            first = await browsed(await box.begin())
            second = await browsed(await box.begin())
            with pytest.raises(InvalidRequest, match="another login"):
                await box.logins.finish("letters", **first)
            assert await box.logins.finish("letters", **second) == (2, "")


async def test_a_login_that_nobody_finishes_ends_by_itself(tmp_path: Path) -> None:
    with serving(GUARDED) as url:
        clock = FakeClock()
        async with letters(tmp_path, url, clock) as box:
            state = parse_qs(urlsplit(await box.begin()).query)["state"][-1]
            await clock.advance(601)
            with pytest.raises(InvalidRequest, match="no login to letters is under way"):
                await box.logins.finish("letters", "code", state, "")


@pytest.mark.parametrize(
    ("how", "place", "words"),
    [
        ("token", "https://tokens.example/token", "the token would be fetched elsewhere"),
        ("token", "http://127.0.0.2/token", "no address that begins with https://"),
        ("authorize", "http://login.example/", "no address that begins with https://"),
        ("register", "https://10.0.0.1/register", "is not on the public internet"),
        ("server", "https://169.254.169.254/", "is not on the public internet"),
        ("server", "https://[::1]/", "is not on the public internet"),
        ("server", "http://login.example/", "no address that begins with https://"),
        ("resource", "https://192.168.1.1/meta", "is not on the public internet"),
        ("resource", "http://localhost/meta", "no address that begins with https://"),
        ("resource", "file:///etc/passwd", "begins with http:// or https://"),
        ("endless", "", "a message of more than 8 MiB"),
        ("hang", "", "no answer (ReadTimeout)"),
    ],
)
async def test_a_login_that_leads_astray_ends_before_anybody_logs_in(
    tmp_path: Path, how: str, place: str, words: str
) -> None:
    with serving(TRAP, how, place) as url:
        async with letters(tmp_path, url, timeout="2s") as box:
            with pytest.raises(AgentdError) as caught:
                await box.begin()
            assert words in caught.value.message
            assert len(caught.value.message) < 800
            assert not box.file.exists()


@pytest.mark.parametrize(
    ("how", "place"),
    [("authorize", "javascript:alert(1)"), ("moved", "https://10.1.2.3/meta"), ("deep", "")],
)
async def test_metadata_that_are_none_leave_the_host_of_the_server_itself(
    tmp_path: Path, how: str, place: str
) -> None:
    with serving(TRAP, how, place) as url:
        async with letters(tmp_path, url) as box:
            assert (await box.begin()).startswith(url.replace("/mcp", "/authorize?"))


async def test_a_host_that_the_owner_names_may_take_part(tmp_path: Path) -> None:
    """The negative control of the one above: by its name alone the same login goes on."""
    with serving(TRAP, "token", "https://tokens.example/token") as url:
        async with letters(tmp_path, url, login_hosts=("tokens.example",)) as box:
            assert (await box.begin()).startswith(url.replace("/mcp", "/authorize?"))


async def test_a_server_that_lets_everybody_greet_is_logged_in_to(tmp_path: Path) -> None:
    with serving(TRAP, "late") as url:
        async with letters(tmp_path, url) as box:
            assert (await box.begin()).startswith(url.replace("/mcp", "/authorize?"))


@pytest.mark.parametrize(("how", "words"), [("", "Token exchange failed"), ("broken", "no token")])
async def test_a_token_that_is_none_is_not_kept(tmp_path: Path, how: str, words: str) -> None:
    with serving(TRAP, how) as url:
        async with letters(tmp_path, url) as box:
            state = parse_qs(urlsplit(await box.begin()).query)["state"][-1]
            with pytest.raises(AgentdError) as caught:
                await box.logins.finish("letters", "c", state, "")
            assert words in caught.value.message
            assert len(caught.value.message) < 800
            assert not box.file.exists()
            async with httpx2.AsyncClient() as client:
                seen = (await client.get(url.replace("/mcp", "/seen"))).json()
            assert seen == ["register", "token"]


async def test_a_login_that_would_not_be_read_again_is_said_not_to_be_kept(tmp_path: Path) -> None:
    one = McpServer(url="https://letters.example/mcp", auth="oauth")
    store = LoginStore(tmp_path, "letters", one, Redactor(), FakeClock().now)
    given = KeptLogin("access", "renew", None, "", "client", "", "", "https://letters.example", "")
    await store.keep(given)
    with pytest.raises(AgentdError, match="cannot be kept"):
        await store.keep(replace(given, scope="read " * 100_000))
    assert store.fault() is None
    again = LoginStore(tmp_path, "letters", one, Redactor(), FakeClock().now)
    assert again.login == given
