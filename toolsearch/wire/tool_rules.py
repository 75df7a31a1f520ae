"""What model APIs demand of a tool's definition. For one that does not meet it, they refuse the whole request.

Rules about a schema hold on every wire, also where only one API demands them: MCP's clients and OpenAI's format reach
other models as well, and an argument is to have one name wherever a conversation goes on.

rule                             who refuses what does not meet it, and where that is known from
-------------------------------  --------------------------------------------------------------------------------------
keys of properties               Anthropic, "Property keys should match pattern": anthropics/claude-code#34771 #79418
valid by draft 2020-12           Anthropic, "It must match JSON Schema draft 2020-12": Dokploy/mcp#74,
                                 homeassistant-ai/ha-mcp#2361; xAI: NousResearch/hermes-agent#20976
no alternatives at the root      Anthropic and OpenAI: nspady/google-calendar-mcp#39
the root has properties          OpenAI: spring-projects/spring-ai#4776; only the root: caozhiyuan/copilot-api#131
arrays have items                OpenAI: streamnative/streamnative-mcp-server#26; beside ``prefixItems`` as well:
                                 AnswerDotAI/fastcore#798; also if array is one of several types: byterover-cli#42
references lead to ``#/$defs/``  Moonshot, by OpenAI's format and by Anthropic's: HKUDS/nanobot#5040
text is Unicode                  SDKs, which send UTF-8: half of a surrogate pair has none
length of the description        OpenAI and Azure: getsentry/sentry-mcp#106, langchain-ai/open_deep_research#80. Newer
                                 models take more (run-llama/llama_index#18784), but nothing tells which servers do
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")  # of a property, as a whole
LONGEST_KEY: Final = 64
MOST_LEVELS: Final = 60  # schemas in schemas; a catalog takes no tool that is nested deeper
MOST_SCHEMAS: Final = 20_000  # in one tool

LONGEST_DESCRIPTION: Final[Mapping[str, int]] = {"openai": 1_024, "openai-responses": 1_024}
"""By format, in UTF-16 units, which are never fewer than characters; a format that is missing has no bound."""
