"""The table of faults, in the code and in the documentation."""

from pathlib import Path

import pytest

from agentd.core.errors import ContextOverflow
from agentd.providers.faults import FAULTS, ONCE_MORE, failure, kind_of

DOCS = Path(__file__).parents[2] / "docs" / "providers.md"


def row(kind):
    fault = FAULTS[kind]
    retry = "once" if kind in ONCE_MORE else "yes" if fault.retryable else "no"
    counts = "yes" if fault.counts else "no"
    waits = "yes" if fault.waits else "no"
    return f"| `{kind}` | {fault.message} | {retry} | {counts} | {waits} | {fault.cure} |"


def test_the_documentation_shows_the_whole_table():
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    shown = [line for line in lines if line.count("|") == 7 and line.startswith("| `")]
    assert shown == [row(kind) for kind in FAULTS]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_becomes_an_error_with_a_cure(kind):
    error = failure(kind, "HTTP 500", retry_after=3)
    assert error.kind == kind
    assert error.reason == f"provider_{kind}"
    assert error.message.endswith("(HTTP 500)")
    assert error.cure
    assert isinstance(error, ContextOverflow) == (kind == "overflow")
    assert error.retryable == FAULTS[kind].retryable


@pytest.mark.parametrize(
    ("status", "error_type", "text", "kind"),
    [
        (200, "overloaded_error", "", "overloaded"),
        (200, "rate_limit_error", "", "rate_limited"),
        (200, "api_error", "", "server_error"),
        (200, "timeout_error", "", "server_timeout"),
        (200, "authentication_error", "", "auth"),
        (200, "invalid_request_error", "input is too long for the model", "overflow"),
        (200, "something_new", "", "server_error"),
        (400, "", "bad value", "bad_request"),
        (400, "api_error", "no such role", "bad_request"),
        (422, "server_error", "extra field", "bad_request"),
        (400, "overloaded_error", "", "bad_request"),
        (400, "invalid_api_key", "", "auth"),
        (500, "invalid_request_error", "", "server_error"),
        (400, "", "Your credit balance is too low", "billing"),
        (429, "", "spend limit reached", "billing"),
        (429, "rate_limit_error", "requests per minute", "rate_limited"),
        (429, "rate_limit_exceeded", "this key is suspended for 2 s", "rate_limited"),
        (418, "", "", "bad_request"),
        (599, "", "", "server_error"),
        (302, "", "", "redirected"),
    ],
)
def test_each_report_of_the_service_has_one_kind(status, error_type, text, kind):
    assert kind_of(status, error_type, text) == kind


def test_messages_wait_for_an_open_breaker_only_if_what_opened_it_may_pass():
    assert failure("breaker_open", away=True).away
    assert not failure("breaker_open").away
    assert not failure("auth").away


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_messages_wait_for_a_service_that_answers_so(status):
    assert failure(kind_of(status, "", "")).away


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 409, 413, 422])
def test_messages_do_not_wait_for_a_service_that_refuses_them(status):
    assert not failure(kind_of(status, "", "")).away
