"""The agents that are run: where each keeps its servers, how it is told of a model on the loopback interface, and run.

What would ask a person is allowed beforehand, by each agent's own options. No agent reports its use or updates itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Servers: TypeAlias = Mapping[str, Sequence[str]]  # name -> command
_Files: TypeAlias = Mapping[str, str]  # path in the home folder -> text
_MODEL = "m"


@dataclass(frozen=True, slots=True)
class Agent:
    """
    name         as ``toolsearch gateway import --from`` has it
    package      on npm
    program      what the package puts on the PATH
    file         in the home folder: where it keeps its servers
    called       what a model calls a server's tool, with the places {server} and {tool}
    files        from the model's URL and the servers to all files that it reads, *file* among them
    command      from a prompt and the servers' names to its arguments
    environment  from the model's URL to the variables that it reads, beside those that all get
    """

    name: str
    package: str
    program: str
    file: str
    called: str
    files: Callable[[str, Servers], _Files]
    command: Callable[[str, Sequence[str]], Sequence[str]]
    environment: Callable[[str], Mapping[str, str]]

    def called_name(self, server: str, tool: str) -> str:
        return self.called.format(server=server, tool=tool)


def _plain(servers: Servers, **more: Any) -> dict[str, Any]:
    return {name: {**more, "command": command[0], "args": [*command[1:]]} for name, command in servers.items()}


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _claude_files(_: str, servers: Servers) -> _Files:
    return {".claude.json": _text({"hasCompletedOnboarding": True, "mcpServers": _plain(servers)})}


def _claude_command(prompt: str, servers: Sequence[str]) -> list[str]:
    allowed = [f"mcp__{server}" for server in servers]
    return ["-p", prompt, "--model", "claude-sonnet-5", "--allowedTools", "ToolSearch", *allowed]


def _claude_environment(url: str) -> dict[str, str]:
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k", **quiet}


def _codex_files(url: str, servers: Servers) -> _Files:
    provider = {"name": "lo", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "LO_KEY"}
    lines = ['model = "gpt-5.5"', 'model_provider = "lo"', "check_for_update_on_startup = false"]
    lines += ["", "[model_providers.lo]", *(f"{key} = {json.dumps(value)}" for key, value in provider.items())]
    for name, entry in _plain(servers).items():
        lines += ["", f"[mcp_servers.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
    return {".codex/config.toml": "\n".join(lines) + "\n"}


def _opencode_files(url: str, servers: Servers) -> _Files:
    provider: dict[str, Any] = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "lo",
        "options": {"baseURL": f"{url}/v1", "apiKey": "k"},
        "models": {_MODEL: {"name": _MODEL, "tool_call": True, "limit": {"context": 200_000, "output": 8_000}}},
    }
    document = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": f"lo/{_MODEL}",
        "small_model": f"lo/{_MODEL}",
        "provider": {"lo": provider},
        "mcp": {name: {"type": "local", "command": [*command]} for name, command in servers.items()},
    }
    return {".config/opencode/opencode.json": _text(document)}


def _opencode_environment(_: str) -> dict[str, str]:
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {f"OPENCODE_DISABLE_{each}": "1" for each in off}


def _settings(folder: str, auth: str) -> Callable[[str, Servers], _Files]:
    """Of Gemini CLI and of Qwen Code, which has grown out of it."""

    def files(_: str, servers: Servers) -> _Files:
        document = {
            "security": {"auth": {"selectedType": auth}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
            "mcpServers": _plain(servers),
        }
        return {f"{folder}/settings.json": _text(document)}

    return files


def _gemini_environment(url: str) -> dict[str, str]:
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "1"}
    return {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url, **trusted}


def _qwen_environment(url: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": _MODEL}


def _copilot_files(_: str, servers: Servers) -> _Files:
    return {".copilot/mcp-config.json": _text({"mcpServers": _plain(servers, type="local", tools=["*"])})}


def _copilot_environment(url: str) -> dict[str, str]:
    provider = {"BASE_URL": f"{url}/v1", "TYPE": "openai", "API_KEY": "k"}
    quiet = {"COPILOT_MODEL": "gpt-5.1", "COPILOT_OFFLINE": "1", "COPILOT_AUTO_UPDATE": "false"}
    return {**{f"COPILOT_PROVIDER_{name}": value for name, value in provider.items()}, **quiet}


def _cline_files(url: str, servers: Servers) -> _Files:
    provider = {"provider": "openai-compatible", "apiKey": "k", "model": _MODEL, "baseUrl": f"{url}/v1"}
    kept = {"settings": provider, "updatedAt": "2026-11-23T00:00:00.000Z", "tokenSource": "manual"}
    providers = {"openai-compatible": kept}
    return {
        ".cline/data/settings/providers.json": _text(
            {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": providers}
        ),
        ".cline/data/settings/cline_mcp_settings.json": _text({"mcpServers": _plain(servers)}),
    }


AGENTS: Final[Sequence[Agent]] = (
    Agent(
        "claude-code",
        package="@anthropic-ai/claude-code",
        program="claude",
        file=".claude.json",
        called="mcp__{server}__{tool}",
        files=_claude_files,
        command=_claude_command,
        environment=_claude_environment,
    ),
    Agent(
        "codex",
        package="@openai/codex",
        program="codex",
        file=".codex/config.toml",
        called="mcp__{server}.{tool}",
        files=_codex_files,
        command=lambda prompt, _: [
            "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt,
        ],
        environment=lambda _: {"LO_KEY": "k", "RUST_LOG": "error"},
    ),
    Agent(
        "opencode",
        package="opencode-ai",
        program="opencode",
        file=".config/opencode/opencode.json",
        called="{server}_{tool}",
        files=_opencode_files,
        command=lambda prompt, _: ["run", "--auto", prompt],
        environment=_opencode_environment,
    ),
    Agent(
        "gemini-cli",
        package="@google/gemini-cli",
        program="gemini",
        file=".gemini/settings.json",
        called="mcp_{server}_{tool}",
        files=_settings(".gemini", "gemini-api-key"),
        command=lambda prompt, _: ["-y", "-p", prompt, "-m", "gemini-2.5-pro"],
        environment=_gemini_environment,
    ),
    Agent(
        "qwen",
        package="@qwen-code/qwen-code",
        program="qwen",
        file=".qwen/settings.json",
        called="mcp__{server}__{tool}",
        files=_settings(".qwen", "openai"),
        command=lambda prompt, _: ["-y", "-p", prompt],
        environment=_qwen_environment,
    ),
    Agent(
        "copilot",
        package="@github/copilot",
        program="copilot",
        file=".copilot/mcp-config.json",
        called="{server}-{tool}",
        files=_copilot_files,
        command=lambda prompt, _: ["-p", prompt, "--allow-all-tools", "--no-auto-update"],
        environment=_copilot_environment,
    ),
    Agent(
        "cline",
        package="cline",
        program="cline",
        file=".cline/data/settings/cline_mcp_settings.json",
        called="{server}__{tool}",
        files=_cline_files,
        command=lambda prompt, _: ["-P", "openai-compatible", "-k", "k", "-m", _MODEL, prompt],
        environment=lambda _: {},
    ),
)  # fmt: skip
