"""Views of tools (MCP Apps): a host can read each by the URI that the tool's entry names."""

from typing import Any

import pytest
from mcp import MCPError

from tests.kit.fake_servers import Nobody, entry, gateway_of
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.gateway.caller import Caller
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.views import unwrapped_view, wrapped_view

VIEW = "ui://chart/view.html"
HOST = Caller(Grant(Principal("host")), Era.LEGACY, session_key="one", client_name="growing")
RESOURCE = {"uri": VIEW, "name": "view", "mimeType": "text/html;profile=mcp-app"}


def drawing(**meta: Any) -> dict[str, Any]:
    return entry("draw", _meta=meta)


async def listed(gateway: Any, server: str) -> dict[str, Any]:
    gateway.surface._pins = (f"{server}__draw",)
    return {each["name"]: each for each in await gateway.list_tools(HOST)}[f"{server}__draw"]["_meta"]


async def read(gateway: Any, uri: str, caller: Caller = HOST) -> Any:
    return await gateway.read_resource(caller, {"uri": uri}, Nobody())


async def test_a_view_that_one_server_lists_keeps_its_uri(tmp_path):
    async with gateway_of("a") as (gateway, servers):
        servers["a"].has[VIEW] = {"contents": [{"uri": VIEW, "text": "<p>"}]}
        await servers["a"].lists(drawing(ui={"resourceUri": VIEW, "visibility": ["model"]}), resources=(RESOURCE,))
        assert await listed(gateway, "a") == {"ui": {"resourceUri": VIEW, "visibility": ["model"]}}
        assert (await read(gateway, VIEW))["contents"][0]["text"] == "<p>"


async def test_views_of_the_same_uri_are_told_apart_by_their_servers():
    async with gateway_of("a", "b") as (gateway, servers):
        for name in ("a", "b"):
            servers[name].has[VIEW] = {"contents": [{"uri": VIEW, "text": name}]}
            metas = {"ui": {"resourceUri": VIEW}, "ui/resourceUri": VIEW, "openai/outputTemplate": VIEW}
            await servers[name].lists(drawing(**metas), resources=(RESOURCE,))
        for name in ("a", "b"):
            meta = await listed(gateway, name)
            (uri,) = {meta["ui"]["resourceUri"], meta["ui/resourceUri"], meta["openai/outputTemplate"]}
            assert uri.startswith("ui://")  # hosts read no other scheme
            assert (await read(gateway, uri))["contents"][0]["text"] == name


async def test_a_view_that_its_server_does_not_list_can_be_read():
    async with gateway_of("a") as (gateway, servers):
        servers["a"].has[VIEW] = {"contents": [{"uri": VIEW, "text": "<p>"}]}
        await servers["a"].lists(drawing(ui={"resourceUri": VIEW}))
        uri = (await listed(gateway, "a"))["ui"]["resourceUri"]
        assert uri != VIEW
        assert (await read(gateway, uri))["contents"][0]["text"] == "<p>"


async def test_a_view_is_no_way_to_a_server_that_is_out_of_reach():
    stranger = Caller(Grant(Principal("ann", Reach.parse(("*",), ("server:a",)))), Era.LEGACY)
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(drawing(ui={"resourceUri": VIEW}), resources=(RESOURCE,))
        for uri in (VIEW, wrapped_view("a", VIEW), wrapped_view("none", VIEW)):
            with pytest.raises(MCPError, match="Resource not found"):
                await read(gateway, uri, stranger)
        assert not servers["a"].called


@pytest.mark.parametrize(
    "uri", ["ui://toolsearch/a", "ui://toolsearch/a/file%3A%2F%2Fx", "ui://other/a/ui%3A%2F%2Fx", ""]
)
def test_only_what_we_have_wrapped_is_unwrapped(uri):
    assert unwrapped_view(uri) is None
    assert unwrapped_view(wrapped_view("a/b", VIEW)) == ("a/b", VIEW)
    assert wrapped_view("a", "https://example.org") == "https://example.org"


@pytest.mark.parametrize("meta", [{"ui": "text"}, {"ui": {}}, {"ui": {"resourceUri": 1}}, {"ui/resourceUri": None}])
async def test_what_names_no_view_is_passed_on_as_it_is(meta):
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(drawing(**meta))
        assert await listed(gateway, "a") == meta
