from __future__ import annotations

from agentd.app.chat.toolcalls import ShownCalls
from agentd.testing.clock import FakeClock


def update(status: str, text: str) -> dict[str, object]:
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    return {"toolCallId": "1", "status": status, "content": content}


def test_a_call_that_runs_says_how_far_it_is_until_it_is_over() -> None:
    calls = ShownCalls(FakeClock())
    running = calls.start({"toolCallId": "1", "title": "tool_call files.copy"})
    assert running.line(1002.0) == "⋯ tool_call files.copy … 2 s"
    assert calls.end(update("in_progress", "3 of 9 files")) is None
    assert running.line(1002.0) == "⋯ tool_call files.copy … 2 s, 3 of 9 files"
    ended = calls.end(update("completed", "copied"))
    assert ended is running
    assert (ended.text, calls.running) == ("copied", {})
