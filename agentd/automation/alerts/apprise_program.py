"""A program that sends one message through Apprise; the daemon starts it for each message.

It reads one order as JSON from its standard input, `{url, title, body, severity}`, and writes one
answer, `{"problem": "", "detail": "", "service": "ntfy"}`. With an empty body it only checks the
address. Of Apprise's own messages only a status number leaves this process, because addresses
contain secrets.
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

# Apprise's name for each severity.
_TYPES = {"info": "info", "warning": "warning", "urgent": "failure"}
# For a mail server, Apprise reports a failed connection whatever the server has answered.
_STATUS = re.compile(r"\berror=(\d{3,5})\b|\bSocket Exception: .*?\((\d{3}), b")
_UNREACHABLE = re.compile(r"connection error", re.IGNORECASE)
_SLACK = 100  # characters that services may add around a text
_CUT = "\n… cut here; `agentd alerts list` has all of it"


def main() -> None:
    """Carry out the order on standard input. Other output of the libraries is discarded."""
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
    """Check the address, send the body if there is one, and return the answer; Apprise's log goes
    to `said`.
    """
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
        # Markup may make the cut text too long again; of two messages, only one might arrive.
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
    """Return the text; if it has more than `room` characters, cut it and add a note that
    says so.
    """
    return text if len(text) <= room else text[: max(0, room - len(_CUT))] + _CUT


def _answer(problem: str, detail: str = "", service: str = "") -> dict[str, str]:
    return {"problem": problem, "detail": detail, "service": service}


if __name__ == "__main__":
    main()
