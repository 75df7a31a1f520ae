"""A long conversation with a scripted model, through the official SDKs and the loopback APIs, and what it has cost.

    from tests.kit.conversation import Conversation, play

    played = await play(Conversation("anthropic", "claude-opus-5-5"), api, folder)
    assert api.refusals == []
    assert all(use.read == use.readable for use in played.uses)

`script` says what happens in its 30 turns, `tools` has the catalog of 2,000 tools, `loop` plays it.
"""

from tests.kit.conversation.loop import Conversation, Played, play

__all__ = ["Conversation", "Played", "play"]
