"""The names of the methods that requests are made by; what only one place speaks of is named there."""

from __future__ import annotations

from typing import Final

LIST_TOOLS: Final = "tools/list"
CALL_TOOL: Final = "tools/call"
LIST_PROMPTS: Final = "prompts/list"
GET_PROMPT: Final = "prompts/get"
LIST_RESOURCES: Final = "resources/list"
LIST_TEMPLATES: Final = "resources/templates/list"
READ_RESOURCE: Final = "resources/read"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"
COMPLETE: Final = "completion/complete"
SET_LOG_LEVEL: Final = "logging/setLevel"
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
LIST_ROOTS: Final = "roots/list"
