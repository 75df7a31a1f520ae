"""The pages of all settings are made from the settings, and say something of each."""

from pathlib import Path

import pytest
from pydantic.alias_generators import to_camel

from toolsearch.gateway.settings import GatewaySettings
from toolsearch.reference_pages import settings_pages
from toolsearch.service.settings import ServiceSettings
from toolsearch.setting_sections import settings_in
from toolsearch.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
ALL = "".join(settings_pages().values())


def test_the_pages_are_those_of_the_settings_as_they_are() -> None:
    """If this fails, run: just reference"""
    assert {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("settings*.md")} == settings_pages()


@pytest.mark.parametrize("settings", [Settings, GatewaySettings, ServiceSettings])
def test_every_setting_has_a_description_that_is_a_sentence(settings: type) -> None:
    bare = [each.name for each in settings_in(settings) if not each.description.endswith(".")]

    assert bare == []


@pytest.mark.parametrize(
    "row",
    [
        "|`TOOLSEARCH_BUDGET__MAX_TOOLS`|whole number or none|`50`|Tools that a session keeps between turns.",
        "|`TOOLSEARCH_CALLING__TIMEOUT_S`|duration|`60.0`|",
        "|`TOOLSEARCH_INDEX__REQUESTS_FILES`|list|empty|",
        "|`toolsearch.search.answerTokens`|whole number|`2000`|Token limit of one search answer.|",
        "The section [Pass through](settings.md#pass-through) describes `toolsearch.passThrough.maxTools`, ",
        "|`toolsearch.servers.<name>.listingTtlS`|duration or none|`300.0`|",
        "The section [Rules](settings-gateway.md#rules) describes `toolsearch.principals.<name>.allow`, ",
        "|`toolsearch.jwt.issuer`|text|required|",
        "|`TOOLSEARCH_SERVE__PUBLIC_URL`|text or none|`none`|Where clients reach the service",
    ],
)
def test_a_line_says_how_to_write_a_setting_what_it_may_be_and_its_default(row: str) -> None:
    assert f"\n{row}" in ALL


def test_every_setting_of_every_program_is_on_a_page_under_its_own_name() -> None:
    """Also one whose description stands in another section."""
    variables = {f"TOOLSEARCH_{each.name.replace('.', '__').upper()}" for each in settings_in(ServiceSettings)}
    keys = {f".{to_camel(each.path[-1])}`" for each in settings_in(GatewaySettings)}

    assert [name for name in sorted(variables) if f"`{name}`" not in ALL] == []
    assert [name for name in sorted(keys) if name not in ALL] == []
