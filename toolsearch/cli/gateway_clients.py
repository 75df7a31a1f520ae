"""Known MCP clients: the place and the format of their servers, and the keys that the gateway's entry needs there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

Format: TypeAlias = Literal["json", "toml"]
ClientDialect: TypeAlias = Literal[
    "plain", "claude", "cline", "codex", "copilot", "editor", "gemini", "opencode", "qwen"
]
Guard: TypeAlias = tuple[Path, tuple[str, ...]]

EACH_PROJECT = "*"  # stands for each project; the client's file has the project's folder here
READS: Final = ("toolSearchTool", "callToolRead")  # the gateway's tools that change nothing
_CLAUDE_RULES: Final = (("permissions", "deny"), ("permissions", "ask"), ("disabledMcpjsonServers",))
_GEMINI_RULES: Final = (
    ("mcp", "allowed"),
    ("mcp", "excluded"),
    ("tools", "exclude"),
    ("tools", "confirmationRequired"),
)
_QWEN_RULES: Final = (("mcp", "allowed"), ("mcp", "excluded"), ("permissions", "deny"), ("permissions", "ask"))
_OPENCODE_RULES: Final = (("permission",), ("tools",), ("agent",))


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """One place where one client keeps servers, on one platform.

    section          the keys under which the servers are in *path*
    dialect          how its entries differ from the plain ``mcpServers``; see `gateway_dialects`
    variable         how an entry's ``env`` names a variable of the client's own environment; "" if it cannot
    hands_on_all     whether the programs that it starts get its whole environment
    extra            other keys of the gateway's entry, so that the client waits for it and shows its tools
    reads            keys of the entry if reading tools should run without a question
    reads_elsewhere  the other place for that, for people; "" if the entry can have it
    guards           files and the keys in them under which the client limits what single servers may do
    folder           the folder in which its servers run; None means the folder in which the client was started
    is_shared        whether the file is part of a project, and so perhaps other people's too
    """

    name: str
    path: Path
    section: tuple[str, ...] = ("mcpServers",)
    format: Format = "json"
    dialect: ClientDialect = "plain"
    variable: str = ""
    hands_on_all: bool = False
    extra: Mapping[str, Any] | None = None
    reads: Mapping[str, Any] | None = None
    reads_elsewhere: str = "when it asks about toolSearchTool or callToolRead, choose to allow it always"
    guards: tuple[Guard, ...] = ()
    folder: Path | None = None
    is_shared: bool = False

    @property
    def label(self) -> str:
        """Its name for people, with the project where it has several."""
        return f"{self.name} in {self.folder}" if len(self.section) > 1 else self.name

    def lacks(self, entry: Mapping[str, Any]) -> list[str]:
        """The keys that the gateway's *entry* lacks. Without them its tools stay hidden, or the client is too
        impatient.
        """
        return [key for key in self.extra or {} if key not in entry]

    def in_project(self, folder: str) -> ClientPlace:
        """The same client for one of the projects in its file."""
        section = tuple(folder if key == EACH_PROJECT else key for key in self.section)
        off = (self.path, (*section[:-1], "disabledMcpServers"))
        guards = (*self.guards, *_claude_guards(Path(folder)), off)
        return replace(self, section=section, folder=Path(folder), guards=guards)


def known_clients(home: Path, project: Path, platform: str) -> list[ClientPlace]:
    """All known clients, by name; none need be installed. *platform* has the form of `sys.platform`.

    A client that reads several files has one place for each.
    """
    applications = {
        "darwin": home / "Library" / "Application Support",
        "win32": home / "AppData" / "Roaming",
    }.get(platform, home / ".config")
    claude = ClientPlace(
        "claude-code",
        home / ".claude.json",
        dialect="claude",
        variable="${%s}",
        extra={"alwaysLoad": True},  # otherwise the first request is sent before the gateway's tools are there
        reads_elsewhere='put "mcp__toolsearch__toolSearchTool" and "mcp__toolsearch__callToolRead" into '
        "permissions.allow of ~/.claude/settings.json",
        guards=(*_claude_guards(home), *_claude_guards(project)),
    )
    cline = ClientPlace(
        "cline",  # the extension for VS Code has moved its servers to this file, too
        home / ".cline" / "data" / "settings" / "cline_mcp_settings.json",
        dialect="cline",
        extra={"timeout": 60},  # seconds; by default the command gives up after 3
        reads={"autoApprove": [*READS]},
        reads_elsewhere="",
    )
    codex = ClientPlace(
        "codex",
        home / ".codex" / "config.toml",
        section=("mcp_servers",),
        format="toml",
        dialect="codex",
        extra={"startup_timeout_sec": 30, "required": True, "omit_tools_from": ["deferred"]},
        reads={"tools": {tool: {"approval_mode": "approve"} for tool in READS}},
        reads_elsewhere="",
    )
    copilot = ClientPlace(
        "copilot",
        home / ".copilot" / "mcp-config.json",
        dialect="copilot",
        hands_on_all=True,
        extra={"type": "local", "tools": ["*"], "deferTools": "never"},
        reads_elsewhere="start it with --allow-tool='toolsearch(toolSearchTool)', and the same for callToolRead",
        guards=((home / ".copilot" / "settings.json", ("disabledMcpServers",)),),
    )
    cursor = ClientPlace("cursor", home / ".cursor" / "mcp.json", dialect="editor", variable="${env:%s}")
    gemini = ClientPlace(
        "gemini-cli",
        home / ".gemini" / "settings.json",
        dialect="gemini",
        variable="${%s}",
        reads_elsewhere='allow toolName = ["toolSearchTool", "callToolRead"] of mcpName = "toolsearch" in a rule in '
        '~/.gemini/policies; "trust" in the entry would allow every tool',
    )
    opencode = ClientPlace(
        "opencode",
        home / ".config" / "opencode" / "opencode.json",  # the same path on every platform
        section=("mcp",),
        dialect="opencode",
        variable="{env:%s}",
        extra={"type": "local"},
        reads_elsewhere='it only asks where "permission" says so; allow "toolsearch_toolSearchTool" and '
        '"toolsearch_callToolRead" there',
    )
    qwen = ClientPlace(
        "qwen",
        home / ".qwen" / "settings.json",
        dialect="qwen",
        variable="${%s}",
        extra={"alwaysLoadTools": True},
        reads_elsewhere='put "mcp__toolsearch__toolSearchTool" and "mcp__toolsearch__callToolRead" into '
        'permissions.allow of the same file; "trust" in the entry would allow every tool',
    )
    vscode = ClientPlace(
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
        ClientPlace("claude-desktop", applications / "Claude" / "claude_desktop_config.json"),
        cline,
        codex,
        copilot,
        cursor,
        gemini,
        opencode,
        replace(opencode, path=opencode.path.with_suffix(".jsonc")),
        qwen,
        vscode,
        ClientPlace("windsurf", home / ".codeium" / "windsurf" / "mcp_config.json", variable="${env:%s}"),
    ]
    projects = [
        replace(client, name=f"{client.name}-project", path=project / place, folder=project, is_shared=True)
        for client, place in (
            (claude, ".mcp.json"),
            (cursor, ".cursor/mcp.json"),
            (gemini, ".gemini/settings.json"),
            (opencode, "opencode.json"),
            (opencode, "opencode.jsonc"),
            (qwen, ".qwen/settings.json"),
            (vscode, ".vscode/mcp.json"),
        )
    ]
    taken = {client.path for client in users}  # in the home folder the user's file is no project's file
    found = [*users, *(each for each in projects if each.path not in taken)]
    return sorted(map(_with_rules_of_its_file, found), key=lambda each: each.name)


def _claude_guards(folder: Path) -> tuple[Guard, ...]:
    files = (folder / ".claude" / name for name in ("settings.json", "settings.local.json"))
    return tuple((file, keys) for file in files for keys in _CLAUDE_RULES)


def _with_rules_of_its_file(client: ClientPlace) -> ClientPlace:
    """*client* with the guards that stand beside its servers."""
    rules = {"gemini": _GEMINI_RULES, "opencode": _OPENCODE_RULES, "qwen": _QWEN_RULES}.get(client.dialect, ())
    return replace(client, guards=(*client.guards, *((client.path, keys) for keys in rules)))
