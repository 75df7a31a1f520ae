"""Servers that come and go while the gateway runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kit.fake_servers import MODERN, FakeServer, call, gateway_of, text
from tests.kit.trust import OTHER, PLAIN
from toolsearch.errors import BadSettingError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.storage.sqlite.stores import SqlitePins
from toolsearch.upstreams.config import server_identity
from toolsearch.upstreams.settings import UpstreamSettings


def settings_of(name: str, **entry: Any) -> UpstreamSettings:
    (settings,) = read_gateway_config({"mcpServers": {name: {"command": "none", **entry}}}, {"KEY": "s3cret"}).upstreams
    return replace(settings, state_folder=None)


async def test_the_tools_of_an_added_server_are_found_and_those_of_a_removed_one_are_gone() -> None:
    async with gateway_of("git") as (gateway, servers):
        await servers["git"].lists("log")
        await gateway.servers.add(settings_of("mail"))
        await servers["mail"].lists("send", prompts=({"name": "greet"},))
        assert sorted(gateway.engine.catalog.names()) == ["git__log", "mail__send"]
        await call(gateway, "mail__send", {})
        assert servers["mail"].called == [("send", {})]

        gone = servers["mail"]
        await gateway.servers.remove("mail")
        assert gateway.engine.catalog.names() == ["git__log"]
        assert gateway.content.prompts(MODERN) == []
        assert [row.upstream.name for row in gateway.status().servers] == ["git"]
        await gone.lists("send")  # what it lists while it is stopped counts no more
        assert gateway.engine.catalog.names() == ["git__log"]
        assert text(await call(gateway, "callToolDestructive", {"name": "mail__send"})).startswith("no tool named")


async def test_removing_a_server_that_is_not_there_is_no_error() -> None:
    async with gateway_of("git") as (gateway, _):
        await gateway.servers.remove("mail")


async def test_a_server_whose_tools_could_have_names_of_another_is_refused() -> None:
    async with gateway_of("git") as (gateway, _):
        for name in ("git", "git__hub"):
            with pytest.raises(BadSettingError, match="give it another name"):
                await gateway.servers.add(settings_of(name))
        assert list(gateway.upstreams) == ["git"]


async def test_a_removed_server_that_never_answered_is_waited_for_no_more() -> None:
    async with gateway_of("git", "mail") as (gateway, servers):
        await servers["git"].lists("log")
        assert not gateway.first_listings.is_complete
        await gateway.servers.remove("mail")
        assert gateway.first_listings.is_complete


class Closing(FakeServer):
    closed: list[str]

    async def aclose(self) -> None:
        type(self).closed.append(self.name)


async def test_other_credentials_keep_the_tools_and_another_place_drops_them() -> None:
    Closing.closed = []
    config = GatewayConfig("here", (), GatewaySettings(trust={"suspicious": "allow", "changed": "allow"}))  # type: ignore[arg-type]
    async with Gateway(config, upstreams=Closing) as gateway:
        await gateway.servers.add(settings_of("mail"))
        mail: Any = gateway.upstreams["mail"]
        await mail.lists("send")
        await gateway.servers.update(settings_of("mail"))
        assert gateway.upstreams["mail"] is mail

        await gateway.servers.update(settings_of("mail", env={"TOKEN": "${KEY}"}))
        assert gateway.upstreams["mail"] is not mail
        assert gateway.engine.catalog.names() == ["mail__send"]

        await gateway.servers.update(settings_of("mail", command="elsewhere"))
        assert gateway.engine.catalog.names() == []
        assert Closing.closed == ["mail", "mail"]


async def test_approvals_are_kept_where_the_gateway_is_told_and_hold_for_servers_that_come_later(
    tmp_path: Path,
) -> None:
    """A changed definition is held; and what one place was approved does not count for another of the same name."""
    with SqlitePins(tmp_path / "elsewhere.db") as pins:
        config = GatewayConfig("here", (), GatewaySettings(state_dir=tmp_path / "state"))
        async with Gateway(config, upstreams=FakeServer, pins=pins) as gateway:
            await gateway.servers.add(settings_of("sums"))
            sums: Any = gateway.upstreams["sums"]
            await sums.lists({**PLAIN, "name": "add"})
            await sums.lists({**OTHER, "name": "add"})
            assert [held.name for held in gateway.registry.servers["sums"].held] == ["sums__add"]

            await gateway.servers.update(settings_of("sums", command="another"))
            there: Any = gateway.upstreams["sums"]
            await there.lists({**OTHER, "name": "add"})
            assert gateway.engine.catalog.names() == ["sums__add"]

        pins.version()  # it was given, so it is still open
        assert not (tmp_path / "state" / "trust.db").exists()


async def test_a_review_follows_an_approval_at_once(tmp_path: Path) -> None:
    with SqlitePins(tmp_path / "pins.db") as pins:
        config = GatewayConfig("here", (), GatewaySettings(state_dir=tmp_path))
        async with Gateway(config, upstreams=FakeServer, pins=pins, trust_poll_s=1_000) as gateway:
            await gateway.servers.add(settings_of("sums"))
            sums: Any = gateway.upstreams["sums"]
            await sums.lists({**PLAIN, "name": "add"})
            await sums.lists({**OTHER, "name": "add"})
            (held,) = gateway.registry.servers["sums"].held
            owner = server_identity(settings_of("sums").server)
            assert pins.approve(owner, "add", held.pin, by="ann", at_s=1.0)
            await gateway.servers.review()
            assert gateway.registry.servers["sums"].held == ()
