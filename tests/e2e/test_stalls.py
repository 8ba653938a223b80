"""The daemon measures how long its event loop keeps work waiting, whatever comes in."""

from __future__ import annotations

import json

from tests.e2e.harness import Home


async def test_a_block_of_200_ms_is_reported_in_status_and_log_with_its_function(
    home: Home,
) -> None:
    daemon = await home.start("turn.begun:1:stall")
    client = await daemon.connect()
    assert await client.say("say hello", "m1") == "hello"
    loop = (await client.call("_agentd/status"))["loop"]
    worst = loop["worst_cpu"]
    assert loop["over_limit"] >= 1
    assert 100 < worst["cpu_ms"] <= worst["ms"]
    assert worst["reason"] == "computing"
    assert any(line.endswith(" in _stall") for line in worst["stack"]), worst
    await daemon.stop()
    log = home.complaints().splitlines()
    told = [json.loads(line) for line in log if '"loop_stalled"' in line]
    assert any("_stall" in line for entry in told for line in entry["frames"]), log
