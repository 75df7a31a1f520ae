"""Known MCP clients: where each keeps its servers, in what format, and how it hands on the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Format: TypeAlias = Literal["json", "toml"]


@dataclass(frozen=True, slots=True)
class KnownClient:
    """One client on one platform.

    section    the key of the servers in *path*
    variable   how an entry's ``env`` names a variable of the client's own environment; "" where it cannot
    extra      what else an entry for a command must say
    """

    name: str
    path: Path
    section: str = "mcpServers"
    format: Format = "json"
    variable: str = ""
    extra: Mapping[str, Any] | None = None


def known_clients(home: Path, project: Path, platform: str) -> list[KnownClient]:
    """All that are known, by name; none need be installed. *platform* as `sys.platform` has it."""
    applications = {
        "darwin": home / "Library" / "Application Support",
        "win32": home / "AppData" / "Roaming",
    }.get(platform, home / ".config")
    return [
        KnownClient("claude-code", home / ".claude.json", variable="${%s}"),
        KnownClient("claude-code-project", project / ".mcp.json", variable="${%s}"),
        KnownClient("claude-desktop", applications / "Claude" / "claude_desktop_config.json"),
        KnownClient("codex", home / ".codex" / "config.toml", section="mcp_servers", format="toml"),
        KnownClient("cursor", home / ".cursor" / "mcp.json", variable="${env:%s}"),
        KnownClient("gemini-cli", home / ".gemini" / "settings.json", variable="${%s}"),
        KnownClient(
            "vscode",
            applications / "Code" / "User" / "mcp.json",
            section="servers",
            variable="${env:%s}",
            extra={"type": "stdio"},
        ),
        KnownClient("windsurf", home / ".codeium" / "windsurf" / "mcp_config.json", variable="${env:%s}"),
    ]
