"""Shared parts of the adapters: the steps of a session if a framework, and not this library, writes the requests."""

from __future__ import annotations

from toolsearch.session import Session
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.results import image_of, in_words
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch.wire.model_names import ModelName, read_model_name
from toolsearch.wire.sendable_tools import sendable_definition


def suit_model(session: Session, model: object, *, announces: bool = False) -> Session:
    """Return *session*. If *model* is the name of a Claude, its list is fixed from the start.

    When its list grows, a Claude reads the whole conversation again, or refuses it. An exposure that the user has
    chosen is left alone.

    announces  the framework itself tells the model of new tools in a message, if the model accepts that
    """
    name = read_model_name(model) if isinstance(model, str) else ModelName()
    if name.family in ("", "gpt") or session.state.exposure is not None:
        return session
    if announces and "messages" in capabilities_of(Endpoint("anthropic", str(model))).modes:
        return session
    with session.conversation() as conversation:
        if conversation.options.exposure == "auto":
            conversation.state.exposure = "fixed"
    return session


def for_framework(definition: ToolDefinition) -> ToolDefinition:
    """*definition* in a form that every model API accepts, since a framework does not say to which one it will
    send it.
    """
    return sendable_definition(definition, "openai")  # OpenAI has the tightest bound on descriptions


def anticipate(session: Session, said: object, wire_format: str = "mcp") -> None:
    """Show the tools that *said*, the user's words, surely asks for in the first list, if it is in *wire_format*. Later
    lists are left alone, and so is whatever is not a text.

    This searches. An event loop is to run it, or `listed`, by `search_threads`.
    """
    if isinstance(said, str) and session.state.sent.now.endpoint is None:
        with session.conversation() as conversation:
            conversation.anticipate(said, Endpoint(wire_format))


def listed(session: Session, said: object = "") -> list[ToolDefinition]:
    """The tools of the next request, in order, after `anticipate`. Each call counts as a request."""
    anticipate(session, said)
    names = [entry["name"] for entry in session.tools("mcp")]
    sent = session.state.sent.now.visible
    return [for_framework(sent[name]) for name in names]


def next_turn(session: Session) -> None:
    """Note that the user has spoken again. Most frameworks say when a run begins, and not always when it ends."""
    session.end_turn()
    session.begin_turn()


def text_and_images(result: ToolResult) -> tuple[str, list[tuple[str, str]]]:
    """The parts of *result* that a model reads: a text, and images by MIME type and base64. Other contents are
    named.
    """
    images = [image for block in result.content if (image := image_of(block)) is not None]
    return "\n".join(in_words(block) for block in result.content if image_of(block) is None), images
