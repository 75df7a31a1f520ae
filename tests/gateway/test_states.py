"""What a client of 2026 carries from round to round, and the calls that wait for it meanwhile."""

import asyncio
from typing import Any

import pytest
from mcp import MCPError

from toolsearch.gateway.proxy.suspended_calls import Binding, StateSeal, SuspendedCalls

ANNS = Binding("ann", "files", "tools/call", "delete")
FORM = {"mode": "form", "message": "Really?", "requestedSchema": {"type": "object"}}


class Now:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


SEAL = StateSeal(b"k" * 32, Now())


def is_asked(result: dict[str, Any]) -> bool:
    return result.get("resultType") == "input_required"


def state_of(result: dict[str, Any]) -> dict[str, Any]:
    return SEAL.unseal(ANNS, result["requestState"])


class Client:
    """A client that can be asked; as a `Downstream` it hears nothing."""

    session_key = "request 1"
    log_level = None

    def __init__(self, capabilities: dict[str, Any] | None = None) -> None:
        self.capabilities = {"elicitation": {}} if capabilities is None else capabilities

    async def progress(self, *_: Any) -> None: ...

    async def tell(self, *_: Any) -> None: ...

    async def ask(self, *_: Any) -> dict[str, Any]:
        raise AssertionError("a request of 2026 cannot be asked")


@pytest.mark.parametrize(
    "other",
    [
        Binding("bob", "files", "tools/call", "delete"),
        Binding("ann", "mail", "tools/call", "delete"),
        Binding("ann", "files", "prompts/get", "delete"),
        Binding("ann", "files", "tools/call", "read"),
    ],
)
def test_a_state_is_good_for_its_principal_server_method_and_target_only(other):
    seal = StateSeal(b"k" * 32, Now())
    sealed = seal.seal(ANNS, {"server": "s"})
    assert seal.unseal(ANNS, sealed) == {"server": "s"}
    with pytest.raises(MCPError, match="Invalid or expired"):
        seal.unseal(other, sealed)


def test_a_state_is_good_for_its_ttl_only_and_with_the_key_it_was_sealed_with():
    now = Now()
    seal = StateSeal(b"k" * 32, now, ttl_s=60)
    sealed = seal.seal(ANNS, {})
    now.seconds = 59.9
    assert seal.unseal(ANNS, sealed) == {}
    now.seconds = 60.0
    with pytest.raises(MCPError, match="Invalid or expired"):
        seal.unseal(ANNS, sealed)
    with pytest.raises(MCPError, match="Invalid or expired"):
        StateSeal(b"l" * 32, Now()).unseal(ANNS, sealed)


@pytest.mark.parametrize("garbage", ["", ".", "a.b", "ü", "W10=.", "state"])
def test_what_was_never_sealed_is_refused(garbage):
    with pytest.raises(MCPError, match="Invalid or expired"):
        StateSeal(b"k" * 32, Now()).unseal(ANNS, garbage)


async def test_two_questions_asked_at_once_can_be_answered_one_by_one():
    async def send(client: Any) -> dict[str, Any]:
        answers = await asyncio.gather(*(client.ask("elicitation/create", {**FORM, "message": m}) for m in "ab"))
        return {"content": answers}

    suspended = SuspendedCalls(SEAL)
    first = await suspended.begin(ANNS, send, Client())
    assert {key: each["params"]["message"] for key, each in first["inputRequests"].items()} == {
        "elicitation-1": "a",
        "elicitation-2": "b",
    }
    second = await suspended.go_on(ANNS, state_of(first), {"elicitation-2": {"action": "decline"}}, Client())
    assert list(second["inputRequests"]) == ["elicitation-1"]
    with pytest.raises(MCPError, match="Invalid or expired"):
        await suspended.go_on(ANNS, state_of(first), {"elicitation-1": {"action": "accept"}}, Client())
    result = await suspended.go_on(ANNS, state_of(second), {"elicitation-1": {"action": "cancel"}}, Client())
    assert result == {"content": [{"action": "cancel"}, {"action": "decline"}]}


async def test_only_so_many_questions_of_one_principal_wait_at_the_same_time():
    async def send(client: Any) -> dict[str, Any]:
        return await client.ask("elicitation/create", FORM)

    suspended = SuspendedCalls(SEAL, max_open=1)
    bobs = Binding("bob", "files", "tools/call", "delete")
    assert is_asked(await suspended.begin(ANNS, send, Client()))
    with pytest.raises(MCPError, match="too many questions"):
        await suspended.begin(ANNS, send, Client())
    assert is_asked(await suspended.begin(bobs, send, Client()))
    await suspended.aclose()


async def test_a_question_that_the_server_no_longer_waits_for_cannot_be_answered():
    give_up = asyncio.Event()

    async def send(client: Any) -> dict[str, Any]:
        question = asyncio.ensure_future(client.ask("elicitation/create", FORM))
        await give_up.wait()
        question.cancel()
        await asyncio.wait([question])
        given_up.set()
        return {"content": []}

    given_up = asyncio.Event()
    suspended = SuspendedCalls(SEAL)
    pending = await suspended.begin(ANNS, send, Client())
    give_up.set()
    await given_up.wait()
    with pytest.raises(MCPError, match="Invalid or expired"):
        await suspended.go_on(ANNS, state_of(pending), {"elicitation-1": {"action": "accept"}}, Client())


async def test_cancelling_the_request_cancels_the_call():
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def send(client: Any) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return {}

    request = asyncio.create_task(SuspendedCalls(SEAL).begin(ANNS, send, Client()))
    await started.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await cancelled.wait()
