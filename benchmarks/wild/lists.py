"""Which servers and documents there are: packages of npm and PyPI, each in one version."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

LISTS: Final = ("servers", "documents", "report")
UNSEEN: Final = "report"  # the list whose failures are counted and not told

_FOLDER: Final = Path(__file__).parent


class Package(BaseModel):
    """A package of a registry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry: Literal["npm", "pypi"]
    package: str
    version: str


class WildServer(Package):
    """A server that speaks MCP over stdio.

    program      the command of the package that starts it; "": the only one it has, or the one that names MCP
    arguments    behind it; ``{folder}`` stands for an empty one
    environment  what it asks for before it starts, made up; ``{folder}`` as in *arguments*
    """

    program: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        return self.package


class WildDocument(Package):
    """An OpenAPI document within a package; *file* is its path there."""

    file: str

    @property
    def name(self) -> str:
        return f"{self.package}/{Path(self.file).stem}"


Wild = WildServer | WildDocument

_SERVERS: Final = TypeAdapter(list[WildServer])
_DOCUMENTS: Final = TypeAdapter(list[WildDocument])


def listed(name: str) -> Sequence[Wild]:
    """What the list *name* of LISTS holds, in its order."""
    content = tomllib.loads((_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if name == "documents":
        return _DOCUMENTS.validate_python(content["document"])
    return _SERVERS.validate_python(content["server"])
