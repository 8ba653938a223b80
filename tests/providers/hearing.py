"""What the tests of both services share: hearing a stream out, and what each status means."""

from agentd.core.errors import ProviderError
from agentd.core.prompt import AnswerBegun

# status, kind of the error, whether it is worth another try
STATUSES = [
    (400, "bad_request", False),
    (401, "auth", False),
    (402, "billing", False),
    (403, "forbidden", False),
    (404, "not_found", False),
    (408, "server_timeout", True),
    (409, "conflict", True),
    (413, "overflow", False),
    (422, "bad_request", False),
    (429, "rate_limited", True),
    (500, "server_error", True),
    (502, "server_error", True),
    (503, "overloaded", True),
    (504, "server_timeout", True),
    (529, "overloaded", True),
]


async def hear(provider, prompt):
    """The deltas, and the answer or the error that ended them."""
    events = []
    async with provider:
        try:
            async for event in provider.stream(prompt):
                if not isinstance(event, AnswerBegun):
                    events.append(event)  # noqa: PERF401 - those before an error count
        except ProviderError as error:
            return events, error
    return events[:-1], events[-1]
