"""What every form of the pages owes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import serving
from tests.kit.service_routes import page_operations

IDS = dict.fromkeys(("catalog", "tool", "source", "job", "toolset", "call", "key_id", "session", "tenant"), "made-up")


@pytest.mark.parametrize(("is_own_token", "origin"), [(False, HOST), (True, "https://evil.test")])
async def test_no_form_is_taken_that_was_not_on_a_page_of_the_service(
    tmp_path: Path,
    is_own_token: bool,
    origin: str,
) -> None:
    async with serving(tmp_path) as kit:
        browser = kit.client()
        await sign_in(browser, kit.operator)
        token = form_token(await browser.get("/pages/keys")) if is_own_token else "0" * 64
        browser.headers["origin"] = origin
        forms = [each for each in page_operations() if each.method == "POST"]
        answers = {str(each): await each.asked(browser, token, {**IDS, "number": "1"}) for each in forms}

    assert len(forms) >= 18
    assert {name for name, sent in answers.items() if any(each.status_code != 403 for each in sent)} == set()
