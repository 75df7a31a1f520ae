"""What MCP clients of a session do is in the same receipts, figures and misses as what is done over HTTP."""

from pathlib import Path

import pytest

from tests.kit.agents import THEIRS, double
from tests.kit.gateway import ERAS, names
from tests.kit.mcp_sessions import mcp_service
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.tools.naming import TOOL_NAME

ACME = CorpusRef("acme", "catalog", "default")


@pytest.mark.parametrize("era", ERAS)
async def test_searches_and_calls_by_mcp_are_noted_with_key_session_and_request(tmp_path: Path, era: str) -> None:
    async with mcp_service(tmp_path, THEIRS) as served, served.kit.service.corpora.using(ACME) as corpus:
        corpus.engine.catalog.put(tool_from_function(double))
        session = await served.session()
        async with served.mcp(session["mcp_url"], era) as client:
            await names(client)
            await client.call_tool(TOOL_NAME, {"queries": ["double a number", "quark soup recipe"]})
            await client.call_tool("callToolDestructive", {"name": "double", "arguments": {"n": 4}})
        async with served.http() as http:
            (receipt,) = (await http.get("/v1/receipts")).json()["items"]
            (row,) = (await http.get("/v1/usage?by=session")).json()["items"]
            (miss,) = (await http.get("/v1/misses")).json()["items"]
            saved = (await http.get("/v1/savings?by=key")).json()["total"]
            of_session = (await http.get(f"/v1/sessions/{session['id']}/savings")).json()

    assert (receipt["tool"], receipt["decision"], receipt["outcome"]) == ("double", "allowed", "ok")
    assert (receipt["session"], receipt["key"][:4]) == (session["id"], "key_")
    assert receipt["request_id"].startswith("req_")
    assert (row["group"], row["searches"], row["weak_searches"], row["calls"]) == (session["id"], 2, 1, 1)
    assert (miss["query"], miss["count"]) == ("quark soup recipe", 1)
    assert saved["requests"] >= 1
    assert min(saved["sent_tokens"], saved["written_tokens"], saved["all_tools_tokens"]) > 0
    assert {name: of_session.get(name, amount) for name, amount in saved.items()} == saved
