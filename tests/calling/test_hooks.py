"""Hooks around a call: who is asked, in what order, and what happens if a hook itself goes wrong."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from toolsearch.calling.hooks import Allow, Decision, Deny, Edit
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.errors import CallDeniedError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition, ToolMetadata
from toolsearch.tools.json_types import JsonObject

WITHHELD = "the tool 'pay' ran, but its result is withheld"
SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 100}}}


class Account:
    """A tool that pays, and remembers what."""

    def __init__(self) -> None:
        self.paid: list[object] = []
        self.contexts: list[ToolContext] = []

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        self.contexts.append(context)
        self.paid.append(arguments["amount"])
        if arguments["amount"] == 0:
            raise ValueError("nothing to pay")
        return f"paid {arguments['amount']} to account 4711"


def pay(account: Account, **metadata: Any) -> AttachedTools:
    return AttachedTools([Tool(ToolDefinition("pay", input_schema=SCHEMA), account, ToolMetadata(**metadata))])


def calls(*amounts: int) -> list[ToolCall]:
    return [ToolCall(f"c{amount}", "pay", {"amount": amount}) for amount in amounts]


def deny_above_10(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
    assert not isinstance(call.arguments, str)
    return Deny("too much") if call.arguments["amount"] > 10 else Allow()


# Before


async def test_a_denied_call_is_not_run_and_the_model_reads_the_reason():
    account = Account()

    denied, allowed = await ToolCallingManager(before=[deny_above_10]).execute(calls(11, 10), pay(account))

    assert account.paid == [10]
    assert denied.error_code == "call_denied"
    assert denied.text.endswith(": too much")
    assert not allowed.is_error


async def test_arguments_reach_a_hook_as_an_object_even_if_the_model_wrote_text():
    account = Account()

    await ToolCallingManager(before=[deny_above_10]).execute([ToolCall("c", "pay", '{"amount": 12}')], pay(account))

    assert account.paid == []


async def test_edited_arguments_are_what_the_next_hook_and_the_tool_see():
    account = Account()

    def halve(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        assert not isinstance(call.arguments, str)
        return Edit({"amount": call.arguments["amount"] // 2})

    [result] = await ToolCallingManager(before=[halve, deny_above_10]).execute(calls(20), pay(account))

    assert account.paid == [10]
    assert result.text == "paid 10 to account 4711"


async def test_edited_arguments_that_do_not_fit_the_schema_never_reach_the_tool():
    account = Account()

    def raise_the_price(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        return Edit({"amount": 101})

    [result] = await ToolCallingManager(before=[raise_the_price]).execute(calls(1), pay(account))

    assert account.paid == []
    assert result.error_code == "bad_arguments"


async def test_changing_the_arguments_behind_the_check_changes_nothing():
    account = Account()

    def tamper(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        assert isinstance(call.arguments, dict)
        call.arguments["amount"] = 101
        return Allow()

    await ToolCallingManager(before=[tamper]).execute(calls(1), pay(account))

    assert account.paid == [1]


async def test_a_hook_that_fails_denies_its_call_alone():
    account = Account()

    def fragile(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        if call.id == "c1":
            raise RuntimeError("the approval service is down")
        return Allow()

    denied, allowed = await ToolCallingManager(before=[fragile]).execute(calls(1, 2), pay(account))

    assert account.paid == [2]
    assert denied.error_code == "call_denied"
    assert denied.text.endswith("its approval hook failed")
    assert not allowed.is_error


async def test_a_hook_that_is_cancelled_from_within_denies_its_call_alone():
    account = Account()

    async def closed(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        raise asyncio.CancelledError

    [denied] = await ToolCallingManager(before=[closed]).execute(calls(1), pay(account))

    assert (account.paid, denied.error_code) == ([], "call_denied")


async def test_a_hook_that_would_end_the_program_denies_its_call_alone():
    account = Account()

    def fragile(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        return sys.exit(2) if call.id == "c1" else Allow()

    denied, allowed = await ToolCallingManager(before=[fragile]).execute(calls(1, 2), pay(account))

    assert (account.paid, denied.error_code, allowed.error_code) == ([2], "call_denied", None)


async def test_a_hook_that_would_end_the_program_afterwards_withholds_its_result_alone():
    def fragile(call: ToolCall, tool: Tool, result: ToolResult) -> None:
        if call.id == "c1":
            sys.exit(2)

    withheld, given = await ToolCallingManager(after=[fragile]).execute(calls(1, 2), pay(Account()))

    assert (withheld.error_code, given.error_code) == ("tool_failed", None)
    assert "withheld" in withheld.text


async def test_a_hook_that_forgets_to_decide_has_not_allowed_anything():
    account = Account()

    def forgetful(call: ToolCall, tool: Tool, context: ToolContext) -> Any:
        return None

    [denied] = await ToolCallingManager(before=[forgetful]).execute(calls(1), pay(account))

    assert account.paid == []
    assert denied.error_code == "call_denied"
    assert denied.text.endswith("gave no decision")


async def test_a_hook_may_deny_by_raising_the_error_itself():
    def refuse(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        raise CallDeniedError("not on a Sunday")

    [denied] = await ToolCallingManager(before=[refuse]).execute(calls(1), pay(Account()))

    assert (denied.error_code, denied.text) == ("call_denied", "not on a Sunday")


async def test_a_person_may_take_longer_than_the_tool_while_other_calls_go_on():
    account = Account()
    paid_the_other = asyncio.Event()

    async def ask(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        if call.id == "c1":
            await paid_the_other.wait()  # in the end this call is let through although the tool's time is nothing
        return Allow()

    def note(call: ToolCall, tool: Tool, result: ToolResult) -> None:
        paid_the_other.set()

    manager = ToolCallingManager(before=[ask], after=[note], max_parallel=1)
    results = await manager.execute(calls(1, 2), pay(account, timeout_s=0.5))

    assert account.paid == [2, 1]
    assert [result.call_id for result in results] == ["c1", "c2"]


async def test_cancelling_the_batch_ends_the_wait_for_a_person():
    asked = asyncio.Event()

    async def ask(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        asked.set()
        await asyncio.Event().wait()
        return Allow()

    task = asyncio.create_task(ToolCallingManager(before=[ask]).execute(calls(1), pay(Account())))
    await asked.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_hooks_are_asked_only_about_calls_that_are_ready_to_run():
    asked: list[str] = []

    def note(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        asked.append(call.id)
        return Allow()

    batch = [ToolCall("unknown", "gone"), ToolCall("unfit", "pay", {"amount": "x"}), *calls(5)]
    await ToolCallingManager(before=[note]).execute(batch, pay(Account()))

    assert asked == ["c5"]


async def test_a_hook_and_its_tool_share_one_context_that_no_other_call_sees():
    account = Account()

    def sign(call: ToolCall, tool: Tool, context: ToolContext) -> Decision:
        context["signed"] = [*context.get("signed", []), call.id]
        return Allow()

    given = {"user": "ada"}
    await ToolCallingManager(before=[sign]).execute(calls(1, 2), pay(account), context=given)

    assert account.contexts == [{"user": "ada", "signed": ["c1"]}, {"user": "ada", "signed": ["c2"]}]
    assert given == {"user": "ada"}


# After


async def test_a_hook_may_replace_a_result_and_the_next_sees_the_replacement():
    def redact(call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
        return replace(result, content=({"type": "text", "text": result.text.replace("4711", "***")},))

    seen: list[str] = []

    async def note(call: ToolCall, tool: Tool, result: ToolResult) -> None:
        seen.append(result.text)

    [result] = await ToolCallingManager(after=[redact, note]).execute(calls(1), pay(Account()))

    assert result.text == "paid 1 to account ***"
    assert seen == ["paid 1 to account ***"]


async def test_a_hook_sees_the_failures_of_tools_and_not_the_calls_that_never_ran():
    seen: list[tuple[str, bool]] = []

    def note(call: ToolCall, tool: Tool, result: ToolResult) -> None:
        seen.append((call.id, result.is_error))

    await ToolCallingManager(before=[deny_above_10], after=[note]).execute(calls(0, 11, 1), pay(Account()))

    assert sorted(seen) == [("c0", True), ("c1", False)]


async def test_a_result_whose_hook_failed_is_withheld_and_its_siblings_stay():
    def redact(call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
        if call.id == "c1":
            raise RuntimeError("no rules loaded")
        return result

    withheld, other = await ToolCallingManager(after=[redact]).execute(calls(1, 2), pay(Account()))

    assert (withheld.is_error, withheld.text.partition(":")[0]) == (True, WITHHELD)
    assert other.text == "paid 2 to account 4711"


async def test_a_hook_that_gives_something_else_than_a_result_withholds_it():
    def shorten(call: ToolCall, tool: Tool, result: ToolResult) -> Any:
        return result.text[:4]

    [result] = await ToolCallingManager(after=[shorten]).execute(calls(10), pay(Account()))

    assert result.error_code == "tool_failed"
    assert result.text.partition(":")[0] == WITHHELD


async def test_a_replaced_result_stays_that_of_its_call_and_a_failure_is_never_returned_directly():
    def swap(call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
        return replace(result, call_id="other", name="other", is_error=True)

    [result] = await ToolCallingManager(after=[swap]).execute(calls(1), pay(Account(), return_direct=True))

    assert (result.call_id, result.name, result.return_direct) == ("c1", "pay", False)
    assert result.error_code == "tool_failed"


async def test_a_hook_may_make_an_answer_of_a_failure():
    def excuse(call: ToolCall, tool: Tool, result: ToolResult) -> ToolResult:
        return replace(result, content=({"type": "text", "text": "nothing was due"},), is_error=False)

    [result] = await ToolCallingManager(after=[excuse]).execute(calls(0), pay(Account()))

    assert (result.is_error, result.error_code, result.text) == (False, None, "nothing was due")
