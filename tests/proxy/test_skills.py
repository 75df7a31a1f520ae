"""The operator's skills through the proxy: models find and read them, and clients see nothing of it."""

import json
from pathlib import Path

import pytest

from tests.kit.loopback import LoopbackApi, Reply
from tests.kit.proxied import served_proxy
from tests.kit.skills import skill_text, write_skill
from tests.proxy.test_conversations import EVERY_WAY, Wire
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.documents.skills import SKILL_FILE

MAILS = "office__mails"
BODY = "Sign every e-mail with the name of the office."


@pytest.fixture(params=EVERY_WAY, ids=lambda each: f"{each[0]}-{'stream' if each[1] else 'whole'}")
def wire(request: pytest.FixtureRequest) -> Wire:
    return Wire(*request.param)


@pytest.fixture
def skills(tmp_path: Path) -> Catalog:
    text = skill_text("mails", "How we send an e-mail to somebody", body=BODY)
    write_skill(tmp_path / "office", "mails", files={SKILL_FILE: text})
    catalog = Catalog()
    catalog.add(*SkillsSource(tmp_path / "office").load().tools)
    return catalog


def test_an_operators_skill_is_found_read_and_followed(api: LoopbackApi, wire: Wire, skills: Catalog) -> None:
    api.script(
        Reply(calls=[wire.search("send an e-mail to somebody")]),
        Reply(calls=[wire.call("readSkill", name=MAILS)]),
        Reply(calls=[wire.run("mail__send_mail", text="hi")]),
        Reply("Sent."),
        Reply("Bye."),
    )
    with served_proxy(api.url, tools=skills) as url:
        client = wire.client(url)
        assert client.ask("Please greet Bob", wire.tools).calls == [("mail__send_mail", {"text": "hi"})]
        assert client.give("done", tools=wire.tools).text.strip() == "Sent."
        assert client.ask("Thanks", wire.tools).text == "Bye."

    assert api.refusals == []
    assert api.tools == [["Read", "toolSearchTool", "readSkill", "callTool"]] * 5
    assert f"{MAILS} [skill, fits]" in json.dumps(api.bodies[1])
    assert "mail__send_mail" in json.dumps(api.bodies[1]["messages" if "messages" in api.bodies[1] else "input"])
    assert BODY in json.dumps(api.bodies[2])
    assert BODY in json.dumps(api.bodies[3])


def test_a_few_tools_stay_listed_beside_skills(api: LoopbackApi, wire: Wire, skills: Catalog) -> None:
    api.script(Reply(calls=[wire.call("readSkill", name=MAILS)]), Reply("Read."))
    tools = wire.tools[:3]
    with served_proxy(api.url, tools=skills) as url:
        assert wire.client(url).ask("Please greet Bob", tools).text.strip() == "Read."

    assert api.refusals == []
    assert set(api.tools[0]) == {"Read", "mail__send_mail", "mail__list_mails", "toolSearchTool", "readSkill"}
    assert BODY in json.dumps(api.bodies[1])


def test_reading_runs_no_tool_of_the_client(api: LoopbackApi, wire: Wire, skills: Catalog) -> None:
    api.script(Reply(calls=[wire.call("readSkill", name="mail__send_mail")]), Reply("So be it."))
    with served_proxy(api.url, tools=skills) as url:
        said = wire.client(url).ask("Please greet Bob", wire.tools)

    assert (said.calls, said.text.strip()) == ([], "So be it.")
    assert "is a tool, not a skill" in json.dumps(api.bodies[1])


def test_a_client_that_has_a_tool_of_that_name_gets_no_skills(api: LoopbackApi, wire: Wire, skills: Catalog) -> None:
    api.script(Reply(calls=[wire.call("readSkill", text="x")]))
    tools = [*wire.tools, wire.tool("readSkill", "Reads a skill of the client's own.")]
    with served_proxy(api.url, tools=skills) as url:
        assert wire.client(url).ask("Please use readSkill", tools).calls == [("readSkill", {"text": "x"})]

    assert api.tools[0].count("readSkill") == 1
    assert MAILS not in json.dumps(api.bodies)
