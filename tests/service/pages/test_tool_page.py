"""The page of one tool."""

from __future__ import annotations

from pathlib import Path

from tests.kit.pages import sign_in
from tests.kit.service import serving


async def test_the_page_of_a_tool_tells_what_models_are_sent_otherwise(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"first name": {"type": "string"}}}
    tools = [{"name": "greet", "inputSchema": schema}, {"name": "wait", "inputSchema": {"type": "object"}}]
    async with serving(tmp_path) as kit:
        key = kit.key("acme")
        await kit.catalog(key, tools=tools)
        browser = kit.client()
        await sign_in(browser, key)
        greet = (await browser.get("/pages/tools/catalog/default/greet")).text
        wait = (await browser.get("/pages/tools/catalog/default/wait")).text

    assert "its parameter &#39;first name&#39; is called &#39;first_name&#39;" in greet
    assert "Sent to models otherwise" in greet
    assert "Sent to models otherwise" not in wait
