"""Operations over HTTP: what is sent, with which credentials, and what a model reads of the answer."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.imports import TENANT, ImportsKit, importing, petstore
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.errors import BadArgumentsError, ToolExecutionError
from toolsearch.service.calls.executions import HttpTools
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext, ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.results import ToolOutput

KEY = "s3cret+key/1"


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ImportsKit]:
    async with importing(tmp_path) as kit:
        yield kit


def callback_of(kit: ImportsKit, tool: str, *, limit: int = 1_000) -> ToolCallback:
    """The callback of the tool as it is after a restart: from its row alone."""
    (row,) = kit.storage.contents.get(TENANT, "default", [tool])
    tools = HttpTools(kit.imports.sources, kit.web.open_client, max_answer_bytes=limit)
    execution: Any = row.document["execution"]
    return tools.callback(TENANT, execution)


async def called(kit: ImportsKit, tool: str, arguments: dict[str, Json] | None = None, *, limit: int = 1_000) -> object:
    result: object = await callback_of(kit, tool, limit=limit).call(arguments or {}, ToolContext())
    return result


def schemes(**given: Any) -> dict[str, Any]:
    """A document with security schemes, of which each operation needs the first or the second."""
    return {"components": {"securitySchemes": given}, "security": [{name: []} for name in given]}


CATS = "https://pets.example/v1/cats"


async def test_an_operation_is_sent_as_its_document_says_and_json_comes_back(kit: ImportsKit) -> None:
    document = petstore()
    document = {
        **document,
        "paths": {
            "/owners/{owner}/cats": {
                "post": {
                    "operationId": "add",
                    "parameters": [
                        {"name": "owner", "in": "path", "required": True, "schema": {"type": "string"}},
                        {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                        {"name": "who", "in": "cookie", "schema": {"type": "string"}},
                    ],
                    "requestBody": {
                        "content": {
                            "application/json": {
                                "schema": {"type": "object", "properties": {"name": {"type": "string"}}}
                            }
                        }
                    },
                }
            }
        },
    }
    await kit.add("pets", "openapi", document)
    url = "https://pets.example/v1/owners/a%2Fb/cats?tag=x&tag=y"
    kit.web.pages[url] = httpx2.Response(200, json={"id": 1})
    arguments: dict[str, Json] = {
        "owner": "a/b",
        "tag": ["x", "y"],
        "X-Trace": "t",
        "who": "me; admin=1",
        "name": "Tom",
    }
    value = await called(kit, "pets__add", arguments)

    (request,) = kit.web.asked
    assert value == {"id": 1}
    assert (request.method, json.loads(request.content)) == ("POST", {"name": "Tom"})
    assert request.headers["x-trace"] == "t"
    assert request.headers["cookie"] == "who=me%3B%20admin%3D1"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("scheme", "credential", "place", "sent"),
    [
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, KEY, "x-key", KEY),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, KEY, "cookie", f"sid={KEY}"),
        ({"type": "http", "scheme": "bearer"}, KEY, "authorization", f"Bearer {KEY}"),
        ({"type": "oauth2", "flows": {}}, KEY, "authorization", f"Bearer {KEY}"),
        (
            {"type": "http", "scheme": "Basic"},
            ["tom", KEY],
            "authorization",
            f"Basic {base64.b64encode(b'tom:s3cret+key/1').decode()}",
        ),
    ],
)
async def test_the_credential_goes_where_its_security_scheme_says(
    kit: ImportsKit, scheme: dict[str, Any], credential: Any, place: str, sent: str
) -> None:
    kit.web.pages[CATS] = httpx2.Response(200, json=[])
    await kit.add(
        "pets", "openapi", petstore("cats", **schemes(key=scheme)), secrets={"credentials": {"key": credential}}
    )
    await called(kit, "pets__cats")

    (request,) = kit.web.asked
    assert request.headers[place] == sent


async def test_a_key_in_the_query_is_added_and_encoded(kit: ImportsKit) -> None:
    kit.web.pages[f"{CATS}?api_key=s3cret%2Bkey%2F1"] = httpx2.Response(200, json=["Tom"])
    scheme = {"type": "apiKey", "in": "query", "name": "api_key"}
    await kit.add("pets", "openapi", petstore("cats", **schemes(key=scheme)), secrets={"credentials": {"key": KEY}})
    assert await called(kit, "pets__cats") == ["Tom"]


async def test_of_several_ways_in_the_first_with_all_its_credentials_is_taken(kit: ImportsKit) -> None:
    kit.web.pages[CATS] = httpx2.Response(200, json=[])
    bearer, header = {"type": "http", "scheme": "bearer"}, {"type": "apiKey", "in": "header", "name": "X-Key"}
    document = petstore("cats", **schemes(oauth=bearer, key=header))
    await kit.add("pets", "openapi", document, secrets={"credentials": {"key": KEY}})
    await called(kit, "pets__cats")

    (request,) = kit.web.asked
    assert request.headers["x-key"] == KEY
    assert "authorization" not in request.headers


async def test_an_operation_that_is_sent_elsewhere_gets_no_credentials(kit: ImportsKit) -> None:
    """One that needs some is not sent at all, also where a header of the source could have let it in."""
    kit.web.pages["https://evil.example/dogs"] = httpx2.Response(200, json=[])
    kit.web.pages["https://evil.example/cows"] = httpx2.Response(200, json=[])
    document: Any = petstore("cats", "dogs", "cows", **schemes(key={"type": "http", "scheme": "bearer"}))
    for animal in ("dogs", "cows"):
        document["paths"][f"/{animal}"]["get"]["servers"] = [{"url": "https://evil.example"}]
    document["paths"]["/dogs"]["get"]["security"] = []
    secrets = {"credentials": {"key": KEY}, "headers": {"x-also": KEY, "authorization": KEY}}
    await kit.add("pets", "openapi", document, secrets=secrets)
    await called(kit, "pets__dogs")
    with pytest.raises(ToolExecutionError) as refused:
        await called(kit, "pets__cows")

    (request,) = kit.web.asked
    assert not {"authorization", "x-also"} & set(request.headers)
    assert str(refused.value).startswith("not sent: ")
    assert str(refused.value).endswith(" for https://pets.example alone")


async def test_an_operation_that_no_credential_lets_in_is_not_sent(kit: ImportsKit) -> None:
    bearer, header = {"type": "http", "scheme": "bearer"}, {"type": "apiKey", "in": "header", "name": "X-Key"}
    document: Any = petstore("cats", **schemes(oauth=bearer, key=header))
    document["components"]["securitySchemes"]["other"] = bearer
    await kit.add("pets", "openapi", document, secrets={"credentials": {"other": KEY}})
    with pytest.raises(ToolExecutionError, match=r"there is no credential for the security scheme oauth, or key$"):
        await called(kit, "pets__cats")

    assert kit.web.asked == []


async def test_arguments_cannot_set_the_headers_that_are_ours_or_replace_a_credential(kit: ImportsKit) -> None:
    kit.web.pages[CATS] = httpx2.Response(200, json=[])
    document: Any = petstore("cats")
    names = ["Host", "Cookie", "Transfer-Encoding", "X-KEY"]
    document["paths"]["/cats"]["get"]["parameters"] = [
        {"name": name, "in": "header", "schema": {"type": "string"}} for name in names
    ]
    await kit.add("pets", "openapi", document, secrets={"headers": {"x-key": KEY}})
    await called(kit, "pets__cats", dict.fromkeys(names, "forged"))

    (request,) = kit.web.asked
    assert "forged" not in repr(request.headers.raw)
    assert request.headers["x-key"] == KEY


async def test_an_answer_that_is_no_success_is_an_error_that_a_model_can_read(kit: ImportsKit) -> None:
    kit.web.pages[CATS] = httpx2.Response(404, json={"detail": "no cats"})
    await kit.add("pets", "openapi", petstore("cats"))
    output = await called(kit, "pets__cats")

    assert isinstance(output, ToolOutput)
    assert output.is_error
    assert output.content == ({"type": "text", "text": 'HTTP 404 Not Found\n\n{"detail":"no cats"}'},)


@pytest.mark.parametrize(
    ("answer", "text", "structured"),
    [
        (httpx2.Response(201, json={"id": 1}), 'HTTP 201 Created\n\n{"id":1}', {"id": 1}),
        (httpx2.Response(204), "HTTP 204 No Content", None),
        (httpx2.Response(200, text="plain"), "plain", None),
        (httpx2.Response(200, text="{not json", headers={"content-type": "application/json"}), "{not json", None),
    ],
)
async def test_other_answers_are_text_with_a_status_that_says_something(
    kit: ImportsKit, answer: httpx2.Response, text: str, structured: Json
) -> None:
    kit.web.pages[CATS] = answer
    await kit.add("pets", "openapi", petstore("cats"))
    output = await called(kit, "pets__cats")

    assert isinstance(output, ToolOutput)
    assert (output.content[0]["text"], output.structured, output.is_error) == (text, structured, False)


async def test_a_credential_that_the_api_echoes_is_hidden(kit: ImportsKit) -> None:
    scheme = {"type": "http", "scheme": "bearer"}
    await kit.add("pets", "openapi", petstore("cats", **schemes(key=scheme)), secrets={"credentials": {"key": KEY}})
    kit.web.pages[CATS] = httpx2.Response(200, json={"you sent": f"Bearer {KEY}", "url": "?k=s3cret%2Bkey%2F1"})
    assert await called(kit, "pets__cats") == {"you sent": "***", "url": "?k=***"}

    kit.web.pages[CATS] = httpx2.Response(500, text=f"bad key {KEY}")
    output = await called(kit, "pets__cats")
    assert isinstance(output, ToolOutput)
    assert output.content[0]["text"] == "HTTP 500 Internal Server Error\n\nbad key ***"


async def test_an_answer_that_is_too_long_is_not_read_to_its_end(kit: ImportsKit) -> None:
    kit.web.pages[CATS] = httpx2.Response(200, text="x" * 1_001)
    await kit.add("pets", "openapi", petstore("cats"))
    with pytest.raises(ToolExecutionError, match="more than 1,000 bytes"):
        await called(kit, "pets__cats")


async def test_an_api_that_does_not_answer_is_given_up_after_the_time_of_a_call_and_no_sooner(kit: ImportsKit) -> None:
    await kit.add("pets", "openapi", petstore("cats"))
    kit.web.may_answer.clear()
    cats = Tool(ToolDefinition("cats"), callback_of(kit, "pets__cats"))
    (result,) = await ToolCallingManager(timeout_s=0.05).execute([ToolCall("1", "cats", "{}")], AttachedTools([cats]))

    assert result.error_code == "tool_timeout"
    assert set(kit.web.asked[0].extensions["timeout"].values()) == {None}


async def test_a_redirect_is_followed_to_the_same_origin_and_nowhere_else(kit: ImportsKit) -> None:
    await kit.add("pets", "openapi", petstore("cats"), secrets={"headers": {"x-key": KEY}})
    kit.web.pages[CATS] = httpx2.Response(307, headers={"location": "/v2/cats"})
    kit.web.pages["https://pets.example/v2/cats"] = httpx2.Response(200, json=["Tom"])
    assert await called(kit, "pets__cats") == ["Tom"]

    kit.web.pages[CATS] = httpx2.Response(307, headers={"location": "https://evil.example/?take=it"})
    with pytest.raises(ToolExecutionError, match=r"redirects to https://evil\.example"):
        await called(kit, "pets__cats")
    assert [request.url.host for request in kit.web.asked] == ["pets.example"] * 3


async def test_arguments_that_would_call_another_operation_are_refused(kit: ImportsKit) -> None:
    document: Any = petstore()
    parameter = {"name": "cat", "in": "path", "required": True, "schema": {"type": "string"}}
    document["paths"] = {"/cats/{cat}": {"get": {"operationId": "cat", "parameters": [parameter]}}}
    await kit.add("pets", "openapi", document)
    with pytest.raises(BadArgumentsError):
        await called(kit, "pets__cat", {"cat": ".."})
    assert kit.web.asked == []
