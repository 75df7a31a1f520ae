"""Parses a model's name: its family, its version, and sometimes the cloud that serves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Cloud: TypeAlias = Literal["", "azure", "bedrock", "vertex", "other"]
"""The cloud that serves the model: "" is the API's own provider, "other" an unknown one with the same format."""

_BEFORE_MINOR_1 = "4o"  # GPT-4o takes the same as 4.1, so it is read as 4.1


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model as its maker names it: ``claude-opus-4-8`` is of the family "opus", ``gpt-5.4-mini`` of "gpt".

    family   "" if the name belongs to neither Claude nor GPT
    version  major and minor; (0, 0) if the name holds none
    words    the words after the version
    cloud    the cloud, if the form of the name shows it
    """

    family: str = ""
    version: tuple[int, int] = (0, 0)
    words: tuple[str, ...] = ()
    cloud: Cloud = ""


def read_model_name(model: str) -> ModelName:
    """Takes the names of the makers and of the clouds: ``eu.anthropic.claude-opus-4-5-20251101-v1:0``,
    ``claude-opus-4-8@20260601``, ``gpt-5.6-sol``, ``ft:gpt-4o-mini:team::1``.
    """
    name = model.lower()
    cloud = _cloud_in(name)
    before, claude, rest = name.replace("@", "-").partition("claude-")
    if claude and not before.endswith("-"):
        family, *words = rest.split("-")
        known = family if family.isalpha() else ""
        return ModelName(known, _version(words), tuple(words[2:]), cloud)
    own = name.removeprefix("ft:").partition(":")[0].rpartition("/")[2]
    family, *words = own.split("-")
    if family != "gpt" or not words:
        return ModelName(cloud=cloud)
    numbers = ["4", "1"] if words[0] == _BEFORE_MINOR_1 else words[0].split(".")
    return ModelName(family, _version(numbers), tuple(words[1:]), cloud)


def _cloud_in(name: str) -> Cloud:
    if "anthropic.claude-" in name:
        return "bedrock"
    if "publishers/" in name or ("claude-" in name and "@" in name):
        return "vertex"
    return "other" if "/" in name else ""  # routers put the maker before the slash


def _version(words: list[str]) -> tuple[int, int]:
    """Anything but a number of at most two digits, such as a date, counts as 0."""
    numbers = [int(word) if word.isascii() and word.isdigit() and len(word) <= 2 else 0 for word in words]
    major, minor, *_ = [*numbers, 0, 0]
    return major, minor
