"""`agentd mcp login`: the real command line and daemon, a browser, and the SDK's own authorization
server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests.e2e.harness import PATIENCE, Client, Home
from tests.e2e.test_mcp import Json
from tests.mcp.logging_in import GUARDED, played, serving


async def _run(home: Home, *words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agentd", *words),
        env=home.environ(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _address(process: asyncio.subprocess.Process) -> str:
    """What the command asks the user to open."""
    assert process.stderr
    async with asyncio.timeout(PATIENCE):
        while not (line := (await process.stderr.readline()).decode()).startswith("http"):
            assert line
    return line.strip()


async def _answer_to(port: int | None, line: bytes) -> bytes:
    """The status that a request gets which no browser makes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line + b"\r\n\r\n")
    async with asyncio.timeout(PATIENCE):
        answer = await reader.read()
    writer.close()
    return answer.partition(b" ")[2][:3]


async def _problem(client: Client) -> Json:
    problems = (await client.call("_agentd/status"))["problems"]
    return next((one for one in problems if one["code"] == "mcp_login_needed"), {})


async def test_the_owner_logs_in_uses_it_and_logs_out(home: Home) -> None:
    with serving(GUARDED) as url:
        home.configure(
            f'[mcp.servers.letters]\nurl = "{url}"\nauth = "oauth"\ntools = {{ count = "allow" }}\n'
        )
        daemon = await home.start()
        client = await daemon.connect()
        assert (await _problem(client))["cure"] == "`agentd mcp login letters`"
        process = await _run(home, "mcp", "login", "letters", "--json")
        address = await _address(process)
        async with httpx2.AsyncClient() as browser:
            redirect = (await browser.get(address)).headers["location"]
            wrong = redirect.replace("state=", "state=x")
            assert (await browser.get(wrong)).status_code == 400
            assert (await browser.get(redirect.replace("/callback", "/"))).status_code == 400
            assert await _answer_to(urlsplit(redirect).port, b"GET //[ HTTP/1.1") == b"400"
            assert (await browser.get(redirect)).status_code == 200
        out, _ = await process.communicate()
        assert json.loads(out) == {"server": "letters", "tools": 2, "problem": ""}
        assert await _problem(client) == {}
        assert await client.say("do use letters__count {}; say done", "m1") == "done"
        assert "there are 7 letters" in json.dumps(home.requests()[-1]["messages"])
        kept = json.loads((home.root / "state/logins/letters.json").read_text())
        await played(url, "revoke")
        assert await client.say("/new", "m2") is not None
        assert await client.say("do use letters__count {}; say done", "m3") == "done"
        told = json.dumps(home.requests()[-1]["messages"])
        assert "failed (login_needed)" in told
        assert "`agentd mcp login letters`" in told
        found = (await client.call("_agentd/doctor"))["checks"]
        (check,) = [one for one in found if one["code"] == "mcp"]
        assert check["cure"] == "`agentd mcp login letters`"
        out_of_it = await _run(home, "mcp", "logout", "letters")
        said, _ = await out_of_it.communicate()
        assert b"logged out of letters" in said
        assert not (home.root / "state/logins/letters.json").exists()
        everything = home.complaints() + home.notes() + json.dumps(home.requests())
        code = parse_qs(urlsplit(redirect).query)["code"][-1]
        for secret in (kept["access"], kept["refresh"], code):
            assert len(secret) > 20
            assert secret not in everything
        await daemon.stop()


async def test_a_login_that_the_service_does_not_allow_is_told(home: Home) -> None:
    with serving(GUARDED) as url:
        home.configure(f'[mcp.servers.letters]\nurl = "{url}"\nauth = "oauth"\n')
        daemon = await home.start()
        process = await _run(home, "mcp", "login", "letters")
        asked = parse_qs(urlsplit(await _address(process)).query)
        back = f"{asked['redirect_uri'][0]}?error=access_denied&state={asked['state'][0]}"
        async with httpx2.AsyncClient() as browser:
            assert (await browser.get(back)).status_code == 200
        _, err = await process.communicate()
        assert process.returncode == 1
        assert b"the service did not let agentd in: access_denied" in err
        assert not (home.root / "state/logins").exists()
        await daemon.stop()
