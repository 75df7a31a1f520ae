"""What the adapters share: the steps of a session where a framework, and not this library, writes the requests."""

from __future__ import annotations

from toolsearch.engine import ToolSearch
from toolsearch.session import Session
from toolsearch.tools.blocks import image_of, in_words
from toolsearch.tools.calls import ToolResult
from toolsearch.wire.capabilities import Endpoint, RevealSetting, capabilities_of
from toolsearch.wire.model_names import read_model_name


def exposure_for(engine: ToolSearch, model: str, *, announces: bool = False) -> RevealSetting | None:
    """How found tools are to reach *model*; None is as the engine says, which by default is that they are appended.

    A Claude model reads the whole conversation again when its list grows, or refuses it: its list stays as it is.

    announces  the framework itself tells the model of new tools in a message, where the model takes that
    """
    name = read_model_name(model)
    if engine.options.exposure != "auto" or name.family in ("", "gpt"):
        return None
    takes_messages = "messages" in capabilities_of(Endpoint("anthropic", model)).modes
    return None if announces and takes_messages else "fixed"


def next_turn(session: Session) -> None:
    """Note that the user has spoken again. Most frameworks say when a run begins, and not always when it ends."""
    session.end_turn()
    session.begin_turn()


def text_and_images(result: ToolResult) -> tuple[str, list[tuple[str, str]]]:
    """What a model reads of *result*: a text, and images by MIME type and base64 data. What is neither, is named."""
    images = [image for block in result.content if (image := image_of(block)) is not None]
    return "\n".join(in_words(block) for block in result.content if image_of(block) is None), images
