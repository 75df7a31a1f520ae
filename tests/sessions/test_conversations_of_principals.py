"""Whose a session is: it shows its principal's tools, and is nobody else's."""

import pytest

from tests.kit.fake_servers import EXPANDING, call, gateway_of, search
from tests.kit.kept_sessions import ACME, NAMES, SEARCH, Counted, engine_of, stored
from toolsearch import Principal, Reach, SessionStore
from toolsearch.access.principals import LOCAL
from toolsearch.chat import ChatClient, ScriptedModel, ToolSearchAdvisor
from toolsearch.chat.models.scripted import scripted_calls
from toolsearch.errors import Kept, StorageError, UnknownSessionError, UnknownToolError
from toolsearch.storage.memory import InMemorySessionPersistence


def test_a_session_of_a_principal_never_sees_more_than_the_principal() -> None:
    reader = Principal("reader", Reach.parse(deny=["pay_bill"]))
    engine = engine_of()
    session = engine.session("a", principal=reader, allow=["pay_bill", "send_mail"])
    assert [found.name for found in session.search("select:pay_bill,send_mail")] == ["send_mail"]

    engine.sessions.evict("a")
    again = engine.session("a", principal=reader)  # without saying what it may see
    assert [found.name for found in again.search(f"select:{','.join(NAMES)}")] == [
        "send_mail",
        "list_events",
        "play_music",
    ]
    assert engine.search("select:pay_bill", principal=reader) == []
    assert engine.explain("pay bill", "pay_bill", principal=reader).place is None


async def test_a_principal_calls_by_name_only_what_it_reaches_and_is_shown_no_more() -> None:
    session = engine_of().session("a", principal=Principal("reader", Reach.parse(deny=["pay_bill"])))
    assert (await session.call("pay_bill")).error_code == "unknown_tool"
    with pytest.raises(UnknownToolError):
        session.resolve("pay_bill")


def test_pins_of_both_processes_stay(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a")
    with theirs.conversation("a", pins=["pay_bill"]):
        ours.session("a", pins=["send_mail"])

    assert engine_of(kept).session("a").state.pins == {"send_mail", "pay_bill"}


def test_a_principal_whose_reach_was_narrowed_is_bound_by_it_in_the_sessions_it_has(kept: Counted) -> None:
    engine = engine_of(kept)
    session = engine.session("a", principal=Principal("acme"))
    session.search("select:pay_bill,send_mail")

    narrowed = engine.session("a", principal=Principal("acme", Reach.parse(deny=["pay_bill"])))

    assert narrowed is session
    assert session.discovered == stored(kept) == ["send_mail"]
    assert session.search("select:pay_bill") == []


async def test_no_handle_on_a_session_that_has_ended_serves_the_one_of_somebody_else() -> None:
    engine = engine_of()
    session = engine.session("a", principal=ACME)
    engine.sessions.evict("a")
    engine.session("a").search("select:send_mail")

    for act in (session.shown, session.tools, session.end_turn, session.scope, lambda: session.search("x")):
        with pytest.raises(UnknownSessionError):
            act()
    with pytest.raises(UnknownSessionError):
        await session.call(SEARCH, {"query": "mail"})


async def test_a_conversation_in_a_chat_stays_with_its_principal_and_within_its_reach() -> None:
    engine = engine_of()
    reader = Principal("reader", Reach.parse(deny=["pay_bill"]))

    async def ask(principal: Principal) -> None:
        model = ScriptedModel(scripted_calls((SEARCH, {"query": "select:pay_bill,send_mail"})), "Done.")
        client = ChatClient(model, advisors=[ToolSearchAdvisor(engine)])
        await client.prompt("Pay").context(conversation_id="a", principal=principal).call()

    await ask(reader)
    assert engine.session("a", principal=reader).discovered == ["send_mail"]
    with pytest.raises(UnknownSessionError):
        await ask(LOCAL)


async def test_a_gateway_hands_on_the_result_of_a_call_whose_use_cannot_be_noted() -> None:
    class Full(InMemorySessionPersistence):
        is_full = False

        def save(self, session_id: str, text: str, *, version: int) -> int:
            if self.is_full:
                raise StorageError("disk full", Kept.SESSIONS)
            return super().save(session_id, text, version=version)

    kept = Full()
    async with gateway_of("a") as (gateway, servers):
        gateway.engine.sessions = SessionStore(persistence=kept)
        await servers["a"].lists("send_mail")
        await search(gateway, EXPANDING, "mail")
        kept.is_full = True

        assert await call(gateway, "a__send_mail", {}, EXPANDING) == {"content": []}
        kept.is_full = False
