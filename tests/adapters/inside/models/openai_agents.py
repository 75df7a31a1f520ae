"""A model of the SDK's own for tests that says what it is given to say."""

from typing import Any

from agents.testing import ScriptedModel, assistant_message, function_call


def scripted(*replies: Any) -> ScriptedModel:
    return ScriptedModel([_items(place, said) for place, said in enumerate(replies)])


def _items(place: int, said: Any) -> list[Any]:
    if isinstance(said, str):
        return [assistant_message(said)]
    return [function_call(name, arguments, call_id=f"call_{place}_{name}") for name, arguments in said]
