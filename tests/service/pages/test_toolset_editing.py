"""Making and changing toolsets on pages: what would change is shown first, and can be taken back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving
from toolsearch.service.corpora.toolset_specs import ToolsetMember, ToolsetRule, ToolsetSpec

WORDS = "  Two lines,\n\u202eturned round "
TOOLS = [{"name": name, "description": f"Does {name}."} for name in ("read_log", "send_mail", "send_fax")]


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        running.operator = running.key("acme")
        await running.catalog(running.operator, tools=TOOLS)
        yield running


@pytest.fixture
async def browser(kit: ServiceKit) -> httpx.AsyncClient:
    client = kit.client(origin=HOST)
    await sign_in(client, kit.operator)
    return client


async def _kept(kit: ServiceKit) -> ToolsetSpec:
    return (await kit.service.toolsets.get("acme", "desk")).spec


async def _made(kit: ServiceKit) -> ToolsetSpec:
    spec = ToolsetSpec(
        "Ours.",
        (ToolsetMember("default", "read_log", "log", WORDS, "Log", ("a", "b")), ToolsetMember("default", "gone")),
        (ToolsetRule("default", ("send_*",), ("send_fax",)),),
    )
    return (await kit.service.toolsets.create("acme", "desk", spec)).spec


def _fields(page: httpx.Response, **changes: str) -> dict[str, str]:
    """What a browser sends for the form of the toolset, without its buttons."""
    main = page.text[page.text.index("<main") :]
    inputs = re.findall(r'<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"', main)
    found = {name: unescape(value) for name, value in inputs}
    for name, text in re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n(.*?)</textarea>', main, re.DOTALL):
        found[name] = unescape(text)
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', main, re.DOTALL):
        found[name] = (re.findall(r"<option selected>([^<]*)", options) or re.findall(r"<option>([^<]*)", options))[0]
    sent = {name: value.replace("\n", "\r\n") for name, value in found.items() if not name.endswith(".out")}
    return sent | changes


def _texts(page: httpx.Response) -> str:
    main = page.text[page.text.index("<main") :]
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", main.replace("<wbr>", "")).split()))


async def test_a_form_that_is_sent_back_as_it_was_changes_nothing(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    """Line breaks, spaces and characters that hide included."""
    made = await _made(kit)
    form = await browser.get("/pages/toolsets/desk/edit")
    preview = await browser.post("/pages/toolsets/desk/edit", data=_fields(form, do="preview"))
    applied = await browser.post("/pages/toolsets/desk/edit", data=_fields(form, do="apply"))

    assert "Nothing would change" in preview.text
    assert applied.status_code == 303
    assert await _kept(kit) == made


async def test_a_change_is_shown_before_it_is_applied_and_can_be_taken_back(
    kit: ServiceKit, browser: httpx.AsyncClient
) -> None:
    made = await _made(kit)
    form = await browser.get("/pages/toolsets/desk/edit")
    changes = {"tool.0.name": "journal", "tool.1.out": "yes", "rule.0.deny": "", "description": "Theirs."}
    preview = await browser.post("/pages/toolsets/desk/edit", data=_fields(form, do="preview", **changes))
    text = _texts(preview)

    assert "3 tools: 2 come, 1 go, 0 differ." in text
    assert "log − goes default: read_log" in text
    assert "journal + comes default: read_log" in text
    assert "send_fax + comes default: send_fax" in text
    assert "Ours" in text
    assert "\u202e" not in _texts(preview)
    assert await _kept(kit) == made

    applied = await browser.post("/pages/toolsets/desk/edit", data=_fields(preview, do="apply"))
    shown = await browser.get("/pages/toolsets/desk")

    assert applied.headers["location"] == "/pages/toolsets/desk"
    member = ToolsetMember("default", "read_log", "journal", WORDS, "Log", ("a", "b"))
    assert await _kept(kit) == ToolsetSpec("Theirs.", (member,), (ToolsetRule("default", ("send_*",)),), 2)
    assert 'href="/pages/toolsets/desk/versions/1">' in shown.text

    back = await browser.get("/pages/toolsets/desk/versions/1")
    assert "send_fax − goes" in _texts(back)
    assert "gone" in _texts(back)
    await browser.post("/pages/toolsets/desk/versions/1", data=_fields(back))

    assert await _kept(kit) == ToolsetSpec(made.description, made.tools, made.rules, 3)


async def test_a_preview_says_what_the_toolset_then_shows(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    """Also where a name belongs to whoever had it first."""
    await kit.catalog(kit.operator, "other", [{"name": "send_mail"}, {"name": "walk_dog"}])
    first = ToolsetSpec("", (), (ToolsetRule("other", ("send_*",)),))
    await kit.service.toolsets.create("acme", "desk", first)
    then = ToolsetSpec("", (), (ToolsetRule("default"), ToolsetRule("other")))
    preview = await kit.service.toolsets.preview("acme", then, of="desk")
    kept = await kit.service.toolsets.change("acme", "desk", lambda _: then)
    grant = await kit.service.of_token(kit.operator)
    assert grant
    tools, absent = await kit.service.toolsets.tools(kept.name, grant)

    assert dict(preview.after) == {each.tool.name: each.member for each in tools}
    assert preview.after["send_mail"].catalog == "other"
    assert list(preview.absent) == absent
    assert len(absent) == 1


async def test_a_toolset_is_made_of_tools_that_were_found(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    form = await browser.get("/pages/new-toolset")
    found = await browser.post("/pages/new-toolset", data=_fields(form, do="find", find="SEND", name="desk"))
    assert re.findall(r'name="add" value="([^"]+)"', found.text) == ["default/send_fax", "default/send_mail"]
    fields = _fields(found, do="preview", add="default/send_mail")
    preview = await browser.post("/pages/new-toolset", data=fields)
    made = await browser.post("/pages/new-toolset", data=_fields(preview, do="apply"))

    assert "send_mail + comes" in _texts(preview)
    assert made.headers["location"] == "/pages/toolsets/desk"
    assert [each.tool for each in (await _kept(kit)).tools] == ["send_mail"]


async def test_who_has_read_an_older_version_writes_over_nothing(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    await _made(kit)
    form = await browser.get("/pages/toolsets/desk/edit")
    newer = await kit.service.toolsets.change("acme", "desk", lambda spec: ToolsetSpec("Newer.", spec.tools))
    back = await browser.get("/pages/toolsets/desk/versions/1")
    newest = await kit.service.toolsets.change("acme", "desk", lambda spec: ToolsetSpec("Newest.", spec.tools))
    late = await browser.post("/pages/toolsets/desk/edit", data=_fields(form, do="apply", description="Late."))
    late_back = await browser.post("/pages/toolsets/desk/versions/1", data=_fields(back))
    without = await browser.post("/pages/toolsets/desk/versions/1", data=_fields(back, over=""))

    assert [each.status_code for each in (late, late_back, without)] == [422] * 3
    assert "changed since this form" in late.text
    assert newer.spec.number == 2
    assert await _kept(kit) == newest.spec


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"name": "No Name"}, "name:"),
        ({"name": "taken"}, "There is a toolset taken already."),
        ({"tool.0.tool": "read_log", "tool.0.name": "no name"}, "no legal tool name"),
        ({"rule.0.allow": "nokind:x"}, "rule"),
    ],
)
async def test_what_cannot_be_used_is_told_beside_the_form_and_what_was_typed_stays(
    kit: ServiceKit, browser: httpx.AsyncClient, changes: dict[str, str], wrong: str
) -> None:
    await kit.service.toolsets.create("acme", "taken", ToolsetSpec())
    form = await browser.get("/pages/new-toolset")
    fields = _fields(form, **{"do": "preview", "name": "desk", "description": "Typed.", **changes})
    answer = await browser.post("/pages/new-toolset", data=fields)

    assert answer.status_code == 422
    assert wrong in unescape(answer.text)
    assert "Typed.</textarea>" in answer.text


async def test_a_preview_is_no_entry_of_the_audit_and_a_change_is_one(
    kit: ServiceKit, browser: httpx.AsyncClient
) -> None:
    await _made(kit)
    form = await browser.get("/pages/toolsets/desk/edit")
    for do in ("preview", "find", "rows", "apply"):
        await browser.post("/pages/toolsets/desk/edit", data=_fields(form, do=do))
    records = kit.service.storage.audit.records(limit=10, tenant="acme", holding="/edit")

    assert [(each.action, each.subject, each.outcome) for each in records] == [
        ("POST /toolsets/{name}/edit", "desk", "done")
    ]


async def test_a_toolset_is_deleted_with_its_versions(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    await _made(kit)
    token = form_token(await browser.get("/pages/toolsets/desk"))
    await browser.post("/pages/toolsets/desk/delete", data={"form_token": token})

    assert (await browser.get("/pages/toolsets/desk")).status_code == 404


async def test_a_toolset_too_large_for_a_form_says_how_it_is_changed(
    kit: ServiceKit, browser: httpx.AsyncClient
) -> None:
    tools = tuple(ToolsetMember("default", f"tool_{number}") for number in range(401))
    await kit.service.toolsets.create("acme", "desk", ToolsetSpec("", tools))
    form = await browser.get("/pages/toolsets/desk/edit")

    assert "PATCH /v1/toolsets/desk" in form.text
    assert 'name="tool.0.tool"' not in form.text


async def test_the_largest_toolset_that_a_form_shows_is_taken_back(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    tools = tuple(ToolsetMember("default", f"tool_{number}") for number in range(400))
    made = await kit.service.toolsets.create("acme", "desk", ToolsetSpec("", tools))
    form = await browser.get("/pages/toolsets/desk/edit")
    applied = await browser.post("/pages/toolsets/desk/edit", data=_fields(form, do="apply"))

    assert applied.status_code == 303
    assert await _kept(kit) == made.spec
