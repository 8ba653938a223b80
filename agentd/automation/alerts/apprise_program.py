"""Sends one message through Apprise: a program of its own, which the daemon starts for each message.

It reads one order as JSON from its standard input, `{url, title, body, severity}`, and writes one answer,
`{"problem": "", "detail": "", "service": "ntfy"}`; an order without a body is only looked at. Of what
Apprise says nothing but the number of a status leaves this process: addresses hold secrets.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
from typing import Any

import apprise

# What services call the severities of alerts.
_TYPES = {"info": "info", "warning": "warning", "urgent": "failure"}
# Of a mail server Apprise says that the connection failed, whatever it has answered.
_STATUS = re.compile(r"\berror=(\d{3,5})\b|\bSocket Exception: .*?\((\d{3}), b")
_UNREACHABLE = re.compile(r"connection error", re.IGNORECASE)
_SLACK = 100  # characters that services put around a text
_CUT = "\n… cut here; `agentd alerts list` has all of it"


def main() -> None:
    """Carry out the order. What libraries print goes nowhere."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    order = json.load(sys.stdin)
    said = io.StringIO()
    logger = logging.getLogger("apprise")
    logger.addHandler(logging.StreamHandler(said))
    logger.setLevel(logging.DEBUG)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        answer = carry_out(order, said)
    json.dump(answer, answers)
    answers.close()


def carry_out(order: dict[str, Any], said: io.StringIO) -> dict[str, str]:
    """Look at the address and send the body, if there is one; `said` gets what Apprise logs."""
    asset = apprise.AppriseAsset(
        app_id="agentd",
        app_desc="agentd",
        app_url="",
        async_mode=False,
        http_redirects=False,
        image_url_mask="",
        image_url_logo="",
        pem_autogen=False,
        pgp_autogen=False,
        secure_logging=True,
        service_timeout=0,  # the daemon ends this process when its time is over
        storage_mode="memory",
    )
    service = apprise.Apprise.instantiate(order["url"], asset=asset)
    if service is None:
        return _answer("unusable")
    name = str(service.service_name)
    recipients = len(service) // (service.retry + 1)
    if recipients > 1:
        return _answer("several", str(recipients), name)
    if not order.get("body"):
        return _answer("", "", name)
    if service.overflow_mode == apprise.OverflowMode.UPSTREAM:
        # Markup may make it longer than what was cut; two messages could arrive by half.
        service.overflow_mode = apprise.OverflowMode.TRUNCATE
    sender = apprise.Apprise(asset=asset)
    sender.add(service)
    done = sender.notify(
        body=fit_limits(order["body"], service.body_maxlen - len(order["title"]) - _SLACK),
        title=order["title"],
        notify_type=_TYPES[order["severity"]],
        body_format=apprise.NotifyFormat.TEXT,
    )
    if done:
        return _answer("", "", name)
    if status := _STATUS.search(said.getvalue()):
        return _answer("refused", status[1] or status[2], name)
    return _answer("unreachable" if _UNREACHABLE.search(said.getvalue()) else "failed", "", name)


def fit_limits(text: str, room: int) -> str:
    """The text, cut with a word about that where it has more characters than there is room for."""
    return text if len(text) <= room else text[: max(0, room - len(_CUT))] + _CUT


def _answer(problem: str, detail: str = "", service: str = "") -> dict[str, str]:
    return {"problem": problem, "detail": detail, "service": service}


if __name__ == "__main__":
    main()
