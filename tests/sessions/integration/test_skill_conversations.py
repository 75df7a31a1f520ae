"""A model finds a skill and tools by one search, reads the skill and calls the tools, with the official SDKs.

In every exposure, no request is refused and no prefix is broken, also when the skills have left.
"""

from pathlib import Path

import pytest

from tests.kit.conversation import Conversation, play
from tests.kit.conversation.script import Find, Read, Turn, Use
from tests.kit.loopback import LoopbackApi, available_tools
from tests.kit.skills import skill_text, write_skill
from toolsearch import Tool
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.documents.skills import SKILL_FILE

REFUND = "office__refund-customer"
QUERY = "refund a customer"
ABOUT = '"How we refund a customer: limits, approval, and how the customer is told"'
BODY = "# Refunds\nApprove the refund, then send it. Over 500, read limits.md first."
TURNS = (
    Turn("Hello."),
    Turn(
        "Please refund the customer Ann.",
        (
            (Find(QUERY), Find("approve a refund"), Find("send a refund")),
            (Read(REFUND),),
            (Read(REFUND, "limits.md"), Use("approve_refund")),
            (Use("send_refund"),),
        ),
    ),
    Turn("And Bob.", ((Use("approve_refund"), Use("send_refund")),)),
    Turn("And Carl.", ((Read(REFUND),), (Use("send_refund"),)), event="restart"),
    Turn("And Dora.", ((Read(REFUND),), (Use("send_refund"),)), event="skills go away"),
)
WAYS = [
    Conversation("anthropic", "claude-opus-5-5", turns=TURNS),
    Conversation("anthropic", "claude-opus-5-5", "deferred", turns=TURNS),
    Conversation("anthropic", "claude-haiku-4-5", "fixed", turns=TURNS, is_typed=True),
    Conversation("openai-responses", "gpt-5.6", turns=TURNS),
    Conversation("openai-responses", "gpt-5.6", "deferred", turns=TURNS, is_typed=True),
    Conversation("openai-responses", "gpt-5.1", turns=TURNS),
    Conversation("openai", "gpt-5.1", "fixed", turns=TURNS, is_typed=True),
    Conversation("openai", "gpt-5.1", turns=TURNS),
]


def skills_in(folder: Path, frontmatter: str = "") -> list[Tool]:
    text = skill_text("refund-customer", ABOUT, more=frontmatter, body=BODY)
    write_skill(folder, "refund-customer", files={SKILL_FILE: text, "limits.md": "At most 500 a month."})
    return list(SkillsSource(folder).load().tools)


def named(conversation: Conversation) -> str:
    return f"{conversation.format}-{conversation.model}-{conversation.exposure}"


@pytest.mark.parametrize("way", WAYS, ids=named)
async def test_a_skill_is_found_beside_tools_read_and_followed(
    way: Conversation, api: LoopbackApi, tmp_path: Path
) -> None:
    skills = skills_in(tmp_path / "office")
    played = await play(Conversation(**{**way.__dict__, "skills": skills}), api, tmp_path)

    assert api.refusals == []
    assert played.ran == ["approve_refund", "send_refund"] * 2 + ["send_refund"] * 2
    assert all("readSkill" in available_tools(request) for request in api.requests)
    told = str(api.bodies[2])
    assert f"{REFUND} [skill, fits]" in told
    assert "approve_refund" in told
    assert BODY.splitlines()[1] in str(api.bodies[3])
    assert "At most 500 a month." in str(api.bodies[4])
    assert str(api.bodies[-1]).count("there is no skill") == 1
    if way.format != "openai" or way.exposure == "fixed":  # the other list grows, and each search breaks the cache
        assert [use.read for use in played.uses] == [use.readable for use in played.uses]
        assert played.breaks == 0


@pytest.mark.parametrize("way", [WAYS[0], WAYS[3]], ids=named)
async def test_the_tools_that_a_skill_names_are_added_by_a_message(
    way: Conversation, api: LoopbackApi, tmp_path: Path
) -> None:
    skills = skills_in(tmp_path / "office", frontmatter="allowed-tools: approve_refund send_refund\n")
    turns = (Turn("Refund Ann.", ((Find(QUERY),), (Read(REFUND),), (Use("approve_refund"), Use("send_refund")))),)
    played = await play(Conversation(**{**way.__dict__, "skills": skills, "turns": turns}), api, tmp_path)

    assert api.refusals == []
    assert played.ran == ["approve_refund", "send_refund"]
    assert {"approve_refund", "send_refund"} <= available_tools(api.requests[2])
    assert [use.read for use in played.uses] == [use.readable for use in played.uses]
