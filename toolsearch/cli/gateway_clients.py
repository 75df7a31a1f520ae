"""Known MCP clients: where each keeps its servers, in what format, and how it hands on the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

Format: TypeAlias = Literal["json", "toml"]
Dialect: TypeAlias = Literal["plain", "codex", "editor", "gemini"]

EACH_PROJECT = "*"  # in a section: the servers of each project, which the file itself names by its folder


@dataclass(frozen=True, slots=True)
class KnownClient:
    """One place where one client keeps servers, on one platform.

    section    the keys under which the servers are in *path*
    dialect    how its entries differ from the plain ``mcpServers``; see `gateway_dialects`
    variable   how an entry's ``env`` names a variable of the client's own environment; "" where it cannot
    extra      what else an entry for a command must say
    folder     where its servers run; None: wherever the client was started
    is_shared  whether the file is part of a project, and so perhaps other people's too
    """

    name: str
    path: Path
    section: tuple[str, ...] = ("mcpServers",)
    format: Format = "json"
    dialect: Dialect = "plain"
    variable: str = ""
    extra: Mapping[str, Any] | None = None
    folder: Path | None = None
    is_shared: bool = False

    @property
    def label(self) -> str:
        """Its name for people, with the project where it has several."""
        return f"{self.name} in {self.folder}" if len(self.section) > 1 else self.name

    def in_project(self, folder: str) -> KnownClient:
        """The same for one project out of those of its file."""
        section = tuple(folder if key == EACH_PROJECT else key for key in self.section)
        return replace(self, section=section, folder=Path(folder))


def known_clients(home: Path, project: Path, platform: str) -> list[KnownClient]:
    """All that are known, by name; none need be installed. *platform* as `sys.platform` has it."""
    applications = {
        "darwin": home / "Library" / "Application Support",
        "win32": home / "AppData" / "Roaming",
    }.get(platform, home / ".config")
    claude = KnownClient("claude-code", home / ".claude.json", variable="${%s}")
    cursor = KnownClient("cursor", home / ".cursor" / "mcp.json", dialect="editor", variable="${env:%s}")
    gemini = KnownClient("gemini-cli", home / ".gemini" / "settings.json", dialect="gemini", variable="${%s}")
    vscode = KnownClient(
        "vscode",
        applications / "Code" / "User" / "mcp.json",
        section=("servers",),
        dialect="editor",
        variable="${env:%s}",
        extra={"type": "stdio"},
    )
    users = [
        claude,
        replace(claude, name="claude-code-local", section=("projects", EACH_PROJECT, "mcpServers")),
        KnownClient("claude-desktop", applications / "Claude" / "claude_desktop_config.json"),
        KnownClient("codex", home / ".codex" / "config.toml", section=("mcp_servers",), format="toml", dialect="codex"),
        cursor,
        gemini,
        vscode,
        KnownClient("windsurf", home / ".codeium" / "windsurf" / "mcp_config.json", variable="${env:%s}"),
    ]
    projects = [
        replace(client, name=f"{client.name}-project", path=project / place, folder=project, is_shared=True)
        for client, place in (
            (claude, ".mcp.json"),
            (cursor, ".cursor/mcp.json"),
            (gemini, ".gemini/settings.json"),
            (vscode, ".vscode/mcp.json"),
        )
    ]
    taken = {client.path for client in users}  # who stands in the home folder has no project
    return sorted([*users, *(each for each in projects if each.path not in taken)], key=lambda each: each.name)
