"""Held results by the command: of a gateway over HTTP, whose operator has a token."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.test_decisions import ENVIRONMENT, PRINCIPALS
from tests.gateway.test_marked_results import POISON, of_text
from tests.kit.fake_servers import MODERN, FakeServer, Nobody
from tests.kit.gateway import listening
from toolsearch.cli import main
from toolsearch.errors import ToolExecutionError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app


def made(folder: Path, **section: Any) -> Gateway:
    document = {"mcpServers": {}, "toolsearch": {"stateDir": str(folder), **section}}
    return Gateway(read_gateway_config(document, ENVIRONMENT), upstreams=FakeServer)


async def test_an_operator_lists_shows_releases_and_discards_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLSEARCH_GATEWAY_TOKEN", ENVIRONMENT["ANN"])
    gateway = made(tmp_path, principals=PRINCIPALS)
    async with listening(http_app(gateway)) as url:

        async def run(*arguments: str) -> tuple[int, str, str]:
            code = await asyncio.to_thread(main, ["gateway", "results", "--url", url, *arguments])
            said = capsys.readouterr()
            return code, said.out, said.err

        assert await run() == (1, "No result waits for an operator.\n", "")
        held = gateway.held_results
        one, two = [
            await held.hold(MODERN, "hub", "tools/call", {"name": name}, of_text(POISON), ["pressures"])
            for name in ("read", "write")
        ]
        code, out, _ = await run()
        assert (code, one.id in out, two.id in out, POISON in out) == (0, True, True, False)
        code, out, _ = await run("--json")
        assert [each["id"] for each in json.loads(out)["held"]] == [one.id, two.id]
        assert POISON in (await run(one.id))[1]
        assert (await run(one.id, "--release"))[0] == 0
        assert (await run(two.id, "--discard"))[0] == 0
        assert await held.outcome_of(one, Nobody()) == of_text(POISON)  # type: ignore[arg-type]
        with pytest.raises(ToolExecutionError):
            await held.outcome_of(two, Nobody())  # type: ignore[arg-type]
        code, _, err = await run(one.id, "--release")
        assert (code, one.id in err) == (1, True)
        monkeypatch.setenv("TOOLSEARCH_GATEWAY_TOKEN", ENVIRONMENT["BOB"])
        code, _, err = await run()
        assert (code, "for operators" in err) == (3, True)


async def test_a_gateway_without_principals_has_nobody_who_could_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with listening(http_app(made(tmp_path))) as url:
        assert await asyncio.to_thread(main, ["gateway", "results", "--url", url]) == 3
    assert "without principals" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--release"], ["--discard"], ["1", "--release", "--discard"]])
def test_a_decision_is_one_about_one_result(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "results", *arguments]) == 2
    assert "error [bad_setting]" in capsys.readouterr().err
