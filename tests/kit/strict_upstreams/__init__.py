"""A strict fake of the Anthropic and OpenAI APIs, and a fuzzing client for anything that speaks them."""

from __future__ import annotations

from .app import StrictUpstreams
from .brain import (
    Need,
    RandomBrain,
    Reply,
    Search,
    TaskBrain,
    Text,
    Thinking,
    ToolCall,
    Turn,
    VisibleTool,
    say,
    scripted,
)
from .faults import Fault

__all__ = [
    "Fault",
    "Need",
    "RandomBrain",
    "Reply",
    "Search",
    "StrictUpstreams",
    "TaskBrain",
    "Text",
    "Thinking",
    "ToolCall",
    "Turn",
    "VisibleTool",
    "say",
    "scripted",
]
