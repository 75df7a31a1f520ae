"""Moving clients' servers behind the gateway: what is shown, what is written, and the way back."""

import json
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit.lines import has_line
from toolsearch.access.reach import Reach
from toolsearch.cli import main
from toolsearch.cli.gateway_adoption import redacted
from toolsearch.cli.gateway_client_files import TomlText
from toolsearch.cli.gateway_clients import known_clients
from toolsearch.documents.json_text import JsonText
from toolsearch.errors import SourceError
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.settings import GatewaySettings
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import all_namespaced

GIT = {"command": "uvx", "args": ["mcp-server-git"]}
HUB = {"command": "npx", "args": ["hub"], "env": {"HUB_TOKEN": "${HUB_TOKEN}", "PLAIN": "s3cret-value"}}
ASKS = {"command": "npx", "args": ["${input:which}"]}


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home folder of a Linux user, which is also the project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("shutil.which", lambda _: "/opt/bin/toolsearch")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(home, monkeypatch) -> Path:
    """A project of that user, in which the command is run."""
    project = home / "work"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def cursor(home) -> Path:
    return put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"git": GIT, "hub": HUB}}, indent=4))


@pytest.fixture
def run(home, capsys) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["gateway", "import", "--home", str(home), "--config", str(home / "own.json"), *arguments])
        return code, *capsys.readouterr()

    return run


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def gateway(home: Path, **environment: str) -> GatewaySettings:
    """The settings that the gateway itself reads in what was written."""
    return read_gateway_config(home / "own.json", environment).settings


def test_a_change_is_shown_without_secrets_and_nothing_is_written(run, home, cursor):
    before = cursor.read_bytes()
    code, out, err = run()

    assert code == 0
    assert '-  "git": {' in out
    assert '+  "toolsearch": {' in out
    assert "${HUB_TOKEN}" in out
    assert "s3cret-value" not in out + err
    assert "--write" in err
    assert cursor.read_bytes() == before
    assert not (home / "own.json").exists()


def test_the_gateway_takes_the_servers_over_as_they_are_and_the_client_keeps_one_entry(run, home, cursor):
    cursor.chmod(0o640)
    code, _, _ = run("--write")

    assert code == 0
    assert read(home / "own.json") == {"mcpServers": {"git": GIT, "hub": HUB}}
    assert stat.S_IMODE((home / "own.json").stat().st_mode) == 0o600
    assert read(cursor) == {
        "mcpServers": {
            "toolsearch": {
                "command": "/opt/bin/toolsearch",
                "args": ["gateway", "--config", str(home / "own.json")],
                "env": {"HUB_TOKEN": "${env:HUB_TOKEN}"},
            }
        }
    }
    assert stat.S_IMODE(cursor.stat().st_mode) == 0o640
    assert read(home / ".cursor" / "mcp.json.backup-1") == {"mcpServers": {"git": GIT, "hub": HUB}}
    assert run("--write")[0] == 1  # there is nothing left to take over


def test_the_same_server_of_two_clients_is_taken_once_and_another_of_that_name_gets_another(run, home, cursor):
    other = {"command": "uvx", "args": ["another-git"]}
    windsurf = put(
        home / ".codeium" / "windsurf" / "mcp_config.json",
        json.dumps({"mcpServers": {"hub": HUB, "git": other, "asks": ASKS}}),
    )
    _, _, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {"git": GIT, "hub": HUB, "git-windsurf": other}
    assert list(read(windsurf)["mcpServers"]) == ["asks", "toolsearch"]
    assert has_line(err, "windsurf", "'git'", "'git-windsurf'")
    assert "'asks' stays with windsurf" in err


def test_one_server_that_clients_call_differently_gets_the_most_frequent_name_and_keeps_it(run, home, cursor):
    """Three clients have it, and one has it twice, since it wants two of them."""
    limited = {**GIT, "excludeTools": ["push"]}
    windsurf = home / ".codeium" / "windsurf" / "mcp_config.json"
    for place, servers in (
        (windsurf, {"repository": GIT}),
        (home / ".gemini" / "settings.json", {"repository": limited, "again": GIT}),
    ):
        put(place, json.dumps({"mcpServers": servers}))
    _, _, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {"repository": GIT, "hub": HUB, "again": GIT}
    assert has_line(err, "cursor", "'git'", "'repository'")
    assert not Reach.parse(deny=gateway(home).rules.deny).allows(
        ToolDefinition("repository__push", server="repository")
    )

    run("--from", "windsurf", "--undo", "--write")
    assert read(windsurf) == {"mcpServers": {"repository": GIT}}
    put(windsurf, json.dumps({"mcpServers": {"g": GIT}}))
    run("--write")
    assert read(home / "own.json")["mcpServers"] == {"repository": GIT, "hub": HUB, "again": GIT}


def test_servers_of_two_projects_with_one_name_get_those_of_their_projects(run, home, project):
    other = home / "other"
    other.mkdir()
    entries = {str(folder): {"mcpServers": {"git": GIT}} for folder in (project, other)}
    put(home / ".claude.json", json.dumps({"projects": entries}))
    run("--write")

    servers = read(home / "own.json")["mcpServers"]
    assert {name: entry["cwd"] for name, entry in servers.items()} == {"git": str(project), "git-other": str(other)}


def test_undo_gives_a_client_its_servers_back_and_keeps_what_changed_since(run, home, cursor):
    run("--write")
    changed = read(cursor) | {"theme": "dark"}
    cursor.write_text(json.dumps(changed))

    assert run("--undo")[0] == 0
    assert read(cursor) == changed
    assert run("--undo", "--write")[0] == 0
    assert read(cursor) == {"mcpServers": {"git": GIT, "hub": HUB}, "theme": "dark"}
    assert run("--undo", "--write")[0] == 1


def test_codex_is_read_and_written_in_its_own_words(run, home):
    config = put(
        home / ".codex" / "config.toml",
        "# my settings\nmodel = 'gpt'\n\n[mcp_servers.git]\ncommand = 'uvx'\nargs = ['mcp-server-git']\n"
        "env_vars = ['GIT_TOKEN']\n\n[mcp_servers.git.env]\nPLAIN = '1'\n\n"
        "[mcp_servers.web]\nurl = 'https://web.example/mcp'\nbearer_token_env_var = 'WEB'\n\n"
        "[tui]\nbell = true # loud\n",
    )
    run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"GIT_TOKEN": "${GIT_TOKEN}", "PLAIN": "1"}},
        "web": {"url": "https://web.example/mcp", "headers": {"Authorization": "Bearer ${WEB}"}},
    }
    text = config.read_text()
    assert text.startswith("# my settings\nmodel = 'gpt'\n\n[tui]\nbell = true # loud\n")
    assert tomllib.loads(text)["mcp_servers"] == {
        "toolsearch": {
            "command": "/opt/bin/toolsearch",
            "args": ["gateway", "--config", str(home / "own.json")],
            "env_vars": ["GIT_TOKEN", "WEB"],
            "startup_timeout_sec": 30,
            "required": True,
            "omit_tools_from": ["deferred"],
        }
    }
    run("--undo", "--write")
    assert set(tomllib.loads(config.read_text())["mcp_servers"]) == {"git", "web"}


def test_a_file_that_cannot_be_read_is_left_alone_and_costs_no_other(run, home, cursor):
    put(home / ".gemini" / "settings.json", "{ broken")
    code, _, err = run("--write")

    assert code == 0
    assert has_line(err, "gemini-cli", "left alone")


def test_a_client_that_is_not_known_is_refused_with_those_that_are(run):
    code, _, err = run("--from", "emacs")

    assert code == 2
    assert "claude-code" in err


def test_clients_keep_their_files_where_their_platform_has_them(tmp_path):
    found = {
        platform: {client.name: client.path for client in known_clients(tmp_path, tmp_path, platform)}
        for platform in ("linux", "darwin", "win32")
    }
    desktop = {platform: paths["claude-desktop"].parent.parent for platform, paths in found.items()}
    assert desktop == {
        "linux": tmp_path / ".config",
        "darwin": tmp_path / "Library" / "Application Support",
        "win32": tmp_path / "AppData" / "Roaming",
    }


COMMENTED = """{
  // what I use
  "inputs": [], /* none */
  "servers": {
    "git": {"command": "uvx",}, // "quoted": {
  },
  "other": "// no comment",
}
"""


def test_comments_around_the_servers_stay():
    changed = JsonText("servers").changed(COMMENTED, remove={"git"}, add={"toolsearch": {"command": "ts"}})

    assert changed == COMMENTED.replace(
        """{
    "git": {"command": "uvx",}, // "quoted": {
  }""",
        """{ // "quoted": {
    "toolsearch": {
      "command": "ts"
    }
  }""",
    )


@pytest.mark.parametrize("text", ["", "{}", '{"a": 1}', '{\r\n  "a": 1\r\n}\r\n', "// note\n{}"])
def test_a_file_without_servers_gets_a_section(text):
    changed = JsonText("mcpServers").changed(text, remove=(), add={"git": GIT})

    assert JsonText("mcpServers").servers(changed) == {"git": GIT}
    assert JsonText("mcpServers").changed(changed, remove={"git"}, add={}).count("mcpServers") == 1


def test_toml_that_names_servers_in_a_line_is_left_to_its_owner():
    with pytest.raises(SourceError, match="by hand"):
        TomlText("mcp_servers").changed("mcp_servers = { git = { command = 'uvx' } }", remove={"git"}, add={})


def test_what_looks_secret_is_not_shown():
    shown = redacted(
        {
            "a": {"command": "x", "args": ["--api-key", "k1", "--token=k2", "--port", "80", "https://u:k3@h/p?key=k4"]},
            "b": {
                "url": "https://u:k5@host/mcp?token=k6",
                "headers": {"Authorization": "Bearer k7", "X": "Bearer ${T}"},
            },
        }
    )
    assert shown["a"]["args"] == ["--api-key", "***", "--token=***", "--port", "80", "https://***@h/p?key=***"]
    assert shown["b"] == {
        "url": "https://***@host/mcp?token=***",
        "headers": {"Authorization": "***", "X": "Bearer ${T}"},
    }


def test_gemini_is_read_in_its_own_words_and_its_addresses_stay_hidden(run, home):
    gemini = put(
        home / ".gemini" / "settings.json",
        json.dumps(
            {
                "theme": "dark",
                "mcpServers": {
                    "web": {
                        "httpUrl": "https://web.example/mcp?key=s3cret-value",
                        "headers": {"X-Key": "$WEB_KEY"},
                        "timeout": 5000,
                        "trust": True,
                    },
                    "few": {"command": "few", "includeTools": ["look"]},
                },
            }
        ),
    )
    _, out, err = run("--write")

    web = {"httpUrl": "https://web.example/mcp?key=s3cret-value", "headers": {"X-Key": "${WEB_KEY}"}}
    assert read(home / "own.json")["mcpServers"] == {"web": web}
    assert gateway(home).of_server("web").call_timeout_s == 5
    left = read(gemini)
    assert list(left["mcpServers"]) == ["few", "toolsearch"]
    assert left["mcpServers"]["toolsearch"]["env"] == {"WEB_KEY": "${WEB_KEY}"}
    assert left["theme"] == "dark"
    assert has_line(err, "'few' stays with gemini-cli", "'includeTools'")
    assert has_line(err, "gemini-cli", "'web'", "'trust'", "asks anew")
    assert "s3cret-value" not in out + err


VSCODE_PROJECT = """{
  // what the team uses
  "inputs": [
    {"type": "promptString", "id": "github-token", "description": "GitHub", "password": true},
  ],
  "servers": {
    "github": {
      "type": "stdio", "command": "npx", "args": ["github", "${workspaceFolder}/src"],
      "env": {"TOKEN": "${input:github-token}", "HOME_OF": "${userHome}", "TEAM": "${env:TEAM}"},
    },
    "filed": {"type": "stdio", "command": "npx", "envFile": "${workspaceFolder}/.env"},
    "asks": {"type": "stdio", "command": "npx", "args": ["${input:other}"]},
  },
}
"""


def test_the_project_of_vscode_keeps_asking_for_its_inputs_and_hands_them_on(run, home, project):
    file = put(project / ".vscode" / "mcp.json", VSCODE_PROJECT)
    _, out, err = run("--write")

    assert '"GITHUB_TOKEN": "${input:github-token}"' in out
    assert f"gateway check --config {home / 'own.json'}" in err
    assert read(home / "own.json")["mcpServers"] == {
        "github": {
            "type": "stdio",
            "command": "npx",
            "args": ["github", f"{project}/src"],
            "env": {"TOKEN": "${GITHUB_TOKEN}", "HOME_OF": str(home), "TEAM": "${env:TEAM}"},
            "cwd": str(project),
        }
    }
    text = file.read_text()
    assert text.startswith(VSCODE_PROJECT[: VSCODE_PROJECT.index('  "servers"')])
    servers = JsonText("servers").servers(text)
    assert list(servers) == ["filed", "asks", "toolsearch"]
    assert servers["toolsearch"]["env"] == {"GITHUB_TOKEN": "${input:github-token}", "TEAM": "${env:TEAM}"}
    assert has_line(err, "still asks", "GITHUB_TOKEN")
    assert has_line(err, "'filed' stays with vscode-project", "from a file")
    assert has_line(err, "'asks' stays with vscode-project", "${input:other}")
    assert has_line(err, str(file), "belongs to the project")


def test_an_input_whose_variable_means_something_else_is_not_taken(run, home, project):
    servers = {"a": {"command": "a", "env": {"A": "${input:key}", "B": "${env:KEY}"}}}
    put(project / ".vscode" / "mcp.json", json.dumps({"inputs": [{"id": "key"}], "servers": servers}))

    assert run("--write")[0] == 1
    assert not (home / "own.json").exists()


def test_the_projects_of_cursor_and_claude_code_are_found_and_run_where_they_did(run, home, project):
    put(project / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"git": GIT, "sub": {**GIT, "cwd": "sub"}}}))
    put(project / ".mcp.json", json.dumps({"mcpServers": {"git": GIT, "web": {"url": "https://web.example/mcp"}}}))
    run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "git": {**GIT, "cwd": str(project)},
        "web": {"url": "https://web.example/mcp"},
        "sub": {**GIT, "cwd": str(project / "sub")},
    }
    assert list(read(project / ".cursor" / "mcp.json")["mcpServers"]) == ["toolsearch"]
    assert list(read(project / ".mcp.json")["mcpServers"]) == ["toolsearch"]


def test_claude_code_keeps_servers_for_itself_and_for_each_project_in_one_file(run, home, project):
    gone = str(home / "gone")
    before = {
        "numStartups": 3,
        "mcpServers": {"hub": HUB},
        "projects": {
            str(project): {"allowedTools": [], "mcpServers": {"git": GIT}},
            str(home): {"mcpServers": {"web": {"type": "http", "url": "https://web.example/mcp"}}, "history": ["x"]},
            gone: {"mcpServers": {"lost": GIT}},
            "/empty": {"mcpServers": {}},
        },
    }
    claude = put(home / ".claude.json", json.dumps(before, indent=2))
    _, out, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "hub": HUB,
        "git": {**GIT, "cwd": str(project)},
        "web": {"type": "http", "url": "https://web.example/mcp"},
    }
    after = read(claude)
    assert list(after["mcpServers"]) == ["toolsearch"]
    assert [list(each["mcpServers"]) for each in after["projects"].values()] == [
        ["toolsearch"],
        ["toolsearch"],
        ["lost"],
        [],
    ]
    assert after["projects"][str(home)]["history"] == ["x"]
    assert f"(claude-code-local in {project})" in out
    assert has_line(err, "'lost' stays with", f"claude-code-local in {gone}", f"its project {gone}")
    assert run("--undo", "--write")[0] == 0
    assert read(claude) == before


def test_one_client_alone_is_asked_for_by_name(run, home, project):
    claude = {"mcpServers": {"hub": HUB}, "projects": {str(project): {"mcpServers": {"git": GIT}}}}
    put(home / ".claude.json", json.dumps(claude))
    run("--from", "claude-code-local", "--write")

    assert list(read(home / "own.json")["mcpServers"]) == ["git"]


def test_a_server_that_two_clients_say_in_their_own_words_is_one(run, home):
    put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "${env:K}"}}}}))
    put(home / ".gemini" / "settings.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "$K"}}}}))
    _, _, err = run("--write")

    assert "another server" not in err
    assert list(read(home / ".gemini" / "settings.json")["mcpServers"]) == ["toolsearch"]


def test_servers_that_differ_in_a_variable_alone_are_two(run, home):
    put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "${env:K}"}}}}))
    put(home / ".gemini" / "settings.json", json.dumps({"mcpServers": {"a": {**GIT, "env": {"K": "$L"}}}}))
    _, _, err = run("--write")

    assert has_line(err, "'a' of gemini-cli", "'a-gemini-cli'")
    assert list(read(home / "own.json")["mcpServers"]) == ["a", "a-gemini-cli"]


def own_command(home: Path) -> list[str]:
    return ["/opt/bin/toolsearch", "gateway", "--config", str(home / "own.json")]


@pytest.mark.parametrize(
    ("client", "place", "extra"),
    [
        ("claude-code", ".claude.json", {"alwaysLoad": True}),
        ("claude-code-project", "work/.mcp.json", {"alwaysLoad": True}),
        ("cline", ".cline/data/settings/cline_mcp_settings.json", {"timeout": 60}),
        ("copilot", ".copilot/mcp-config.json", {"type": "local", "tools": ["*"], "deferTools": "never"}),
        ("gemini-cli", ".gemini/settings.json", {}),
        ("qwen", ".qwen/settings.json", {"alwaysLoadTools": True}),
        ("qwen-project", "work/.qwen/settings.json", {"alwaysLoadTools": True}),
    ],
)
def test_the_entry_says_what_its_client_needs_to_wait_and_to_show_the_tools(run, home, project, client, place, extra):
    file = put(home / place, json.dumps({"mcpServers": {"git": GIT}}))
    assert run("--from", client, "--write")[0] == 0

    command, *args = own_command(home)
    assert read(file)["mcpServers"]["toolsearch"] == {**extra, "command": command, "args": args}


def test_the_servers_of_each_project_of_claude_code_leave_an_entry_that_is_always_loaded(run, home, project):
    claude = put(home / ".claude.json", json.dumps({"projects": {str(project): {"mcpServers": {"git": GIT}}}}))
    run("--write")

    assert read(claude)["projects"][str(project)]["mcpServers"]["toolsearch"]["alwaysLoad"] is True


OPENCODE = """{
  "$schema": "https://opencode.ai/config.json", // checked
  "mcp": {
    "hub": {
      "type": "local", "command": ["npx", "hub", "--key={env:HUB_KEY}"],
      "environment": {"HUB_TOKEN": "{env:HUB_TOKEN}"}, "enabled": true, "timeout": 20000, "cwd": "sub",
    },
    "web": {
      "type": "remote", "url": "https://web.example/mcp", "headers": {"Authorization": "Bearer {env:WEB}"},
      "oauth": false,
    },
    "off": {"type": "local", "command": ["off"], "enabled": false},
    "filed": {"type": "remote", "url": "https://f.example/mcp", "headers": {"X-Key": "{file:~/.key}"}},
    "logs-in": {"type": "remote", "url": "https://l.example/mcp", "oauth": {"scope": "all", "other": 1}},
    "shell": {"type": "local", "command": ["sh", "-c", "echo ${HOME}"]},
    "other": {"enabled": false},
  },
}
"""


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc"])
def test_opencode_is_read_and_written_in_its_own_words(run, home, project, name):
    file = put(project / name, OPENCODE)
    _, out, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "hub": {
            "command": "npx",
            "args": ["hub", "--key=${HUB_KEY}"],
            "env": {"HUB_TOKEN": "${HUB_TOKEN}"},
            "cwd": str(project / "sub"),
        },
        "web": {"url": "https://web.example/mcp", "headers": {"Authorization": "Bearer ${WEB}"}},
        "off": {"command": "off", "args": [], "disabled": True, "cwd": str(project)},
    }
    hub, web = (gateway(home).of_server(each) for each in ("hub", "web"))
    assert (hub.connect_timeout_s, hub.call_timeout_s, hub.credentials) == (20, 20, "shared")
    assert (web.credentials, web.call_timeout_s) == ("none", 60)
    servers = JsonText("mcp").servers(file.read_text())
    assert list(servers) == ["filed", "logs-in", "shell", "other", "toolsearch"]
    assert servers["toolsearch"] == {
        "type": "local",
        "command": own_command(home),
        "environment": {name: f"{{env:{name}}}" for name in ("HUB_KEY", "HUB_TOKEN", "WEB")},
    }
    assert '"HUB_TOKEN": "{env:HUB_TOKEN}"' in out
    assert has_line(err, "'filed' stays with opencode-project", "{file:~/.key}")
    assert has_line(err, "'logs-in' stays", "opencode-project", "it logs in")
    assert has_line(err, "'shell' stays with opencode-project", "${HOME}")
    assert has_line(err, "'other' stays with opencode-project", "'type'")
    assert "// checked" in file.read_text()


def test_opencode_keeps_its_settings_under_dot_config_on_every_platform(tmp_path):
    for platform in ("linux", "darwin", "win32"):
        paths = {each.path for each in known_clients(tmp_path, tmp_path / "work", platform) if each.name == "opencode"}
        assert paths == {tmp_path / ".config" / "opencode" / name for name in ("opencode.json", "opencode.jsonc")}


def test_copilot_is_read_in_its_own_words(run, home):
    hub = {
        "type": "local",
        "command": "npx",
        "args": ["hub", "$HUB_KEY"],
        "env": {"HUB_TOKEN": "TOKEN_OF_HUB", "LEVEL": "${LEVEL:-low}", "MODE": "fast"},
        "tools": ["*"],
        "timeout": 45000,
        "excludeTools": ["drop"],
    }
    servers = {
        "hub": hub,
        "web": {"type": "http", "url": "https://web.example/mcp", "headers": {"X-Key": "${KEY}"}},
        "few": {"type": "local", "command": "few", "tools": ["look"]},
        "none": {"type": "local", "command": "none", "tools": []},
        "filtered": {"type": "local", "command": "f", "filterMapping": "hidden_characters"},
        "secret": {"type": "http", "url": "https://s.example/mcp", "headers": {"X-Key": "${secret:key}"}},
    }
    file = put(home / ".copilot" / "mcp-config.json", json.dumps({"mcpServers": servers}))
    _, _, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "hub": {
            "type": "stdio",
            "command": "npx",
            "args": ["hub", "${HUB_KEY}"],
            "env": {"HUB_TOKEN": "${TOKEN_OF_HUB:-TOKEN_OF_HUB}", "LEVEL": "${LEVEL:-low}", "MODE": "fast"},
        },
        "web": servers["web"],
    }
    settings = gateway(home)
    assert (settings.of_server("hub").connect_timeout_s, settings.of_server("hub").call_timeout_s) == (45, 45)
    assert settings.rules.deny == ("hub__drop",)
    assert list(read(file)["mcpServers"]) == ["few", "none", "filtered", "secret", "toolsearch"]
    assert "env" not in read(file)["mcpServers"]["toolsearch"]  # it hands on its whole environment
    assert "hands on no variables" not in err
    assert has_line(err, "'few' stays with copilot", "'tools'")
    assert has_line(err, "'filtered' stays with copilot", "filters")
    assert has_line(err, "'secret' stays with copilot", "${secret:key}")


def test_cline_is_read_in_both_of_its_forms(run, home):
    servers = {
        "flat": {**GIT, "disabled": True, "timeout": 90, "autoApprove": ["git_log"]},
        "nested": {
            "transport": {"type": "stdio", "command": "npx", "env": {"KEY": "s3cret-value"}},
            "metadata": {"from": "market"},
        },
        "web": {"url": "https://web.example/mcp", "transportType": "http"},
        "events": {"transport": {"type": "sse", "url": "https://e.example/sse"}},
        "logged-in": {"transport": {"type": "sse", "url": "https://l.example/sse"}, "oauth": {"tokens": {}}},
        "managed": {**GIT, "remoteConfigured": True},
    }
    place = home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    file = put(place, json.dumps({"mcpServers": servers}))
    _, out, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {
        "flat": {**GIT, "disabled": True},
        "nested": {"type": "stdio", "command": "npx", "env": {"KEY": "s3cret-value"}},
        "web": {"type": "streamableHttp", "url": "https://web.example/mcp"},
        "events": {"type": "sse", "url": "https://e.example/sse"},
    }
    of_flat = gateway(home).of_server("flat")
    assert (of_flat.connect_timeout_s, of_flat.call_timeout_s) == (90, 90)
    assert list(read(file)["mcpServers"]) == ["logged-in", "managed", "toolsearch"]
    assert has_line(err, "cline", "'flat'", "'autoApprove'")
    assert has_line(err, "'nested' of cline moves", "'metadata'")
    assert "s3cret-value" not in out + err
    assert out.count('"command": "npx"') == 2  # in its own form, and in the gateway's file


def test_qwen_has_a_time_of_its_own_for_the_start(run, home):
    git = {**GIT, "timeout": 15000, "discoveryTimeoutMs": 2500, "env": {"A": "$A"}}
    put(home / ".qwen" / "settings.json", json.dumps({"mcpServers": {"git": git}}))
    run("--write")

    of_git = gateway(home).of_server("git")
    assert (of_git.connect_timeout_s, of_git.call_timeout_s) == (2.5, 15)
    assert read(home / "own.json")["mcpServers"]["git"]["env"] == {"A": "${A}"}


def codex(home: Path, lines: str) -> Path:
    """A file of Codex with one server, of which *lines* say more."""
    start = 'model = "gpt"\n\n[mcp_servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n'
    return put(home / ".codex" / "config.toml", f"{start}{lines}\n")


def test_the_time_outs_of_codex_move_with_the_server(run, home):
    codex(home, "startup_timeout_ms = 1000\nstartup_timeout_sec = 20\ntool_timeout_sec = 90.5")
    run("--write")

    git = gateway(home).of_server("git")
    assert (git.connect_timeout_s, git.call_timeout_s) == (20, 90.5)


def test_a_time_out_of_claude_code_is_one_of_calls_and_one_below_a_second_is_named(run, home):
    servers = {"git": {**GIT, "timeout": 5000}, "hub": {**HUB, "timeout": 30}}
    put(home / ".claude.json", json.dumps({"mcpServers": servers}))
    _, _, err = run("--write")

    assert read(home / "own.json")["toolsearch"]["servers"] == {"git": {"callTimeoutS": 5}}
    assert has_line(err, "'hub' of claude-code moves", "'timeout'")


def test_tools_that_a_client_forbids_are_denied_by_the_gateway(run, home):
    codex(home, "disabled_tools = ['git_push', 'git.reset']")
    _, out, _ = run("--write")

    reach = Reach.parse(deny=gateway(home).rules.deny)
    names = all_namespaced("git", ["git_push", "git_log", "git.reset", "git:reset"])  # the last two look alike
    assert [
        given
        for given, name in names.items()
        if reach.allows(ToolDefinition(name=name, server="git", description="", input_schema={}))
    ] == ["git_log", "git:reset"]
    assert '+        "git__git_push"' in out


def test_a_forbidden_tool_whose_name_is_cut_is_denied_alone_and_beside_one_that_is_cut_alike(run, home):
    forbidden, other = (f"{'n' * 70}{end}" for end in "ab")
    codex(home, f"disabled_tools = ['{forbidden}']")
    run("--write")

    reach = Reach.parse(deny=gateway(home).rules.deny)
    for listed in ([forbidden], [forbidden, other]):
        name = all_namespaced("git", listed)[forbidden]
        assert not reach.allows(ToolDefinition(name=name, server="git"))


@pytest.mark.parametrize("tools", [["git_*"], ["git_push, git_reset"], "git_push", [{"name": "git_push"}]])
def test_a_server_whose_tools_are_forbidden_by_more_than_their_names_stays(run, home, tools):
    put(home / ".gemini" / "settings.json", json.dumps({"mcpServers": {"git": {**GIT, "excludeTools": tools}}}))
    code, _, err = run("--write")

    assert code == 1
    assert has_line(err, "'git' stays with gemini-cli", "'excludeTools'")


@pytest.mark.parametrize("limit", ["enabled_tools = []", "enabled_tools = ['git_log']"])
def test_a_server_of_which_only_some_tools_are_allowed_stays(run, home, limit):
    codex(home, limit)
    code, _, err = run("--write")

    assert code == 1
    assert has_line(err, "'git' stays with codex", "'enabled_tools'")


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("default_tools_approval_mode = 'prompt'", "default_tools_approval_mode"),
        ("default_tools_approval_mode = 'writes'", "default_tools_approval_mode"),
        ("[mcp_servers.git.tools.git_log]\napproval_mode = 'prompt'", "tools.git_log.approval_mode"),
        ("[mcp_servers.git.tools.git_log]\noutput_token_limit = 100", "tools.git_log.output_token_limit"),
    ],
)
def test_a_server_about_whose_tools_codex_asks_more_stays(run, home, lines, key):
    file = codex(home, lines)
    before = file.read_bytes()
    code, _, err = run("--write")

    assert code == 1
    assert f"'git' stays with codex: {key!r} is" in err
    assert file.read_bytes() == before


def test_a_server_about_whose_tools_codex_asks_less_moves_and_is_asked_about_anew(run, home):
    of_log = "[mcp_servers.git.tools.git_log]\napproval_mode = 'approve'"
    codex(home, f"default_tools_approval_mode = 'auto'\nrequired = true\n\n{of_log}")
    code, _, err = run("--write")

    assert code == 0
    assert read(home / "own.json")["mcpServers"] == {"git": GIT}
    assert has_line(err, "codex", "'git'", "'tools.git_log.approval_mode'", "asks anew")
    assert has_line(err, "'git' of codex moves", "'required'")


@pytest.mark.parametrize("line", ["oauth_resource = 'x'", "experimental_environment = 'remote'"])
def test_a_server_that_codex_logs_in_to_in_a_way_of_its_own_or_runs_elsewhere_stays(run, home, line):
    put(home / ".codex" / "config.toml", f"[mcp_servers.web]\nurl = 'https://web.example/mcp'\n{line}\n")
    code, _, err = run("--write")

    assert code == 1
    assert "'web' stays with codex" in err


def test_variables_of_codex_may_be_tables_and_those_from_elsewhere_make_a_server_stay(run, home):
    codex(
        home,
        "env_vars = ['A', {name = 'B', source = 'local'}]\n\n"
        "[mcp_servers.far]\ncommand = 'far'\nenv_vars = [{name = 'A', source = 'remote'}]",
    )
    _, _, err = run("--write")

    assert read(home / "own.json")["mcpServers"] == {"git": {**GIT, "env": {"A": "${A}", "B": "${B}"}}}
    assert has_line(err, "'far' stays with codex", "another environment")


def test_a_server_that_runs_in_a_sandbox_of_the_client_stays(run, home, project):
    put(project / ".vscode" / "mcp.json", json.dumps({"servers": {"git": {**GIT, "sandboxEnabled": True}}}))
    code, _, err = run("--write")

    assert code == 1
    assert has_line(err, "'git' stays with vscode-project", "sandbox")


@pytest.mark.parametrize(
    ("client", "place", "file", "rules"),
    [
        (
            "claude-code",
            ".claude/settings.json",
            ".claude.json",
            {"permissions": {"deny": ["mcp__git__git_push"], "allow": ["mcp__github"]}},
        ),
        (
            "claude-code-project",
            "work/.claude/settings.local.json",
            "work/.mcp.json",
            {"disabledMcpjsonServers": ["git"]},
        ),
        ("copilot", ".copilot/settings.json", ".copilot/mcp-config.json", {"disabledMcpServers": ["git"]}),
        (
            "opencode-project",
            "work/opencode.json",
            "work/opencode.json",
            {"permission": {"git_*": "ask", "github_*": "allow", "bash": {"github *": "ask"}}},
        ),
        (
            "opencode-project",
            "work/opencode.json",
            "work/opencode.json",
            {"agent": {"plan": {"tools": {"git_git_push": False, "github_*": True}}}},
        ),
        ("qwen", ".qwen/settings.json", ".qwen/settings.json", {"permissions": {"ask": ["mcp__git"]}}),
        ("gemini-cli", ".gemini/settings.json", ".gemini/settings.json", {"mcp": {"excluded": ["git"]}}),
    ],
)
def test_a_server_that_a_client_has_rules_about_elsewhere_stays(run, home, project, client, place, file, rules):
    is_opencode = client.startswith("opencode")
    section = "mcp" if is_opencode else "mcpServers"
    git = {"type": "local", "command": ["uvx", "mcp-server-git"]} if is_opencode else GIT
    put(home / place, json.dumps(rules))
    beside = rules if place == file else {}
    put(home / file, json.dumps({**beside, section: {"git": git, "github": git}}))
    _, _, err = run("--write")

    assert list(read(home / "own.json")["mcpServers"]) == ["github"]
    assert list(read(home / file)[section]) == ["git", "toolsearch"]
    assert f"'git' stays with {client}" in err
    assert has_line(err, f"of {home / place}", "gateway")


def test_a_server_that_claude_code_has_switched_off_in_a_project_stays_there(run, home, project):
    of_project = {"mcpServers": {"git": GIT}, "disabledMcpServers": ["git"]}
    put(home / ".claude.json", json.dumps({"projects": {str(project): of_project}}))
    code, _, err = run("--write")

    assert code == 1
    assert has_line(err, f"claude-code-local in {project}", f"'projects.{project}.disabledMcpServers'")


def test_a_client_that_could_pass_by_its_limits_through_the_gateway_is_told_of(run, home, cursor):
    servers = "[mcp_servers.git]\ncommand = 'uvx'\nargs = ['mcp-server-git']\nenabled_tools = ['git_log']\n"
    put(home / ".codex" / "config.toml", f"{servers}\n[mcp_servers.web]\ncommand = 'web'\n")
    _, _, err = run("--write")

    assert list(read(home / "own.json")["mcpServers"]) == ["web", "git", "hub"]
    assert has_line(err, "codex could use", "'git'")
    assert "cursor could use" not in err


def test_a_client_that_limits_a_server_that_others_call_differently_is_told_of_too(run, home, cursor):
    limited = {"repository": {**GIT, "includeTools": ["log"]}, "web": {"command": "web"}}
    put(home / ".gemini" / "settings.json", json.dumps({"mcpServers": limited}))

    assert has_line(run("--write")[2], "gemini-cli could use", "'repository'")


def test_rules_that_cannot_be_read_make_a_server_stay(run, home):
    put(home / ".claude" / "settings.json", "{ broken")
    put(home / ".claude.json", json.dumps({"mcpServers": {"git": GIT}}))
    code, _, err = run("--write")

    assert code == 1
    assert has_line(err, "rules", "cannot be read")


def test_time_outs_of_two_clients_for_one_server_are_put_together_and_the_first_counts(run, home):
    put(home / ".claude.json", json.dumps({"mcpServers": {"git": {**GIT, "timeout": 5000}}}))
    codex(home, "startup_timeout_sec = 20\ntool_timeout_sec = 90")
    run("--write")

    git = {"connectTimeoutS": 20, "callTimeoutS": 5}
    assert read(home / "own.json")["toolsearch"] == {"servers": {"git": git}}


def test_settings_that_the_gateway_has_for_a_server_count_before_those_of_a_client(run, home):
    rules = {"deny": ["git__a"], "allow": ["server:git"]}
    own = {"toolsearch": {"servers": {"git": {"callTimeoutS": 7}}, "rules": rules}, "mcpServers": {"git": GIT}}
    put(home / "own.json", json.dumps(own))
    codex(home, "startup_timeout_sec = 20\ntool_timeout_sec = 90\ndisabled_tools = ['b', 'a']")
    run("--write")

    assert read(home / "own.json") == {
        "toolsearch": {
            "servers": {"git": {"connectTimeoutS": 20, "callTimeoutS": 7}},
            "rules": {"deny": ["git__a", "git__b"], "allow": ["server:git"]},
        },
        "mcpServers": {"git": GIT},
    }


def test_codex_can_be_told_to_run_what_only_reads_without_a_question(run, home):
    file = codex(home, "")
    run("--allow-reads", "--write")

    text = file.read_text()
    assert '[mcp_servers.toolsearch.tools.toolSearchTool]\napproval_mode = "approve"\n' in text
    assert tomllib.loads(text)["mcp_servers"]["toolsearch"]["tools"] == {
        "toolSearchTool": {"approval_mode": "approve"},
        "callToolRead": {"approval_mode": "approve"},
    }
    file.write_text(text + "\n[tui]\nbell = true\n")
    run("--undo", "--write")
    assert tomllib.loads(file.read_text()) == {"model": "gpt", "mcp_servers": {"git": GIT}, "tui": {"bell": True}}


def test_an_entry_that_is_there_can_be_told_later_and_keeps_what_it_said(run, home):
    place = home / ".cline" / "data" / "settings" / "cline_mcp_settings.json"
    file = put(place, json.dumps({"mcpServers": {"git": GIT}}))
    run("--write")
    entry = read(file)["mcpServers"]["toolsearch"] | {"autoApprove": ["git__git_log"], "timeout": 120}
    file.write_text(json.dumps({"mcpServers": {"toolsearch": entry}}))

    assert run("--allow-reads", "--write")[0] == 0
    told = read(file)["mcpServers"]["toolsearch"]
    assert sorted(told["autoApprove"]) == ["callToolRead", "git__git_log", "toolSearchTool"]
    assert told["timeout"] == 120
    assert run("--allow-reads", "--write")[0] == 1


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (".claude.json", "permissions.allow of ~/.claude/settings.json"),
        (".copilot/mcp-config.json", "--allow-tool='toolsearch(toolSearchTool)'"),
        (".gemini/settings.json", "~/.gemini/policies"),
        (".codeium/windsurf/mcp_config.json", "choose to allow it always"),
    ],
)
def test_where_other_clients_keep_approvals_is_told(run, home, place, words):
    put(home / place, json.dumps({"mcpServers": {"git": GIT}}))

    assert words not in run()[2]
    assert words in run("--allow-reads")[2]


def test_a_second_import_keeps_the_variables_of_the_first_and_undo_gives_back_both(run, home, cursor):
    run("--write")
    web = {"command": "web", "env": {"WEB": "${env:WEB}"}}
    cursor.write_text(json.dumps({"mcpServers": {**read(cursor)["mcpServers"], "web": web}}))
    run("--write")

    assert read(cursor)["mcpServers"]["toolsearch"]["env"] == {"HUB_TOKEN": "${env:HUB_TOKEN}", "WEB": "${env:WEB}"}
    run("--undo", "--write")
    assert read(cursor) == {"mcpServers": {"git": GIT, "hub": HUB, "web": web}}


TOML_AS_IT_WAS = """# mine\r\n\r\n[mcp_servers.git] # first\r\ncommand = 'uvx' # runs it\r\n\r\n
[mcp_servers.git.env]\r\nA = '''\r\nx'''\r\n\r\n\r\n[tui]\r\nbell=true"""
CLAUDE_AS_IT_WAS = """{"mcpServers": {"git": {"command":"uvx"}},
 "projects": {"%s": {"mcpServers":{"hub":{"command": "h"}}}}}"""


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (".codex/config.toml", TOML_AS_IT_WAS),
        (".cursor/mcp.json", '\ufeff{ "mcpServers":{ /* one */ "git":{"command":"uvx",}, },\r\n"b" :1 }'),
        (".claude.json", CLAUDE_AS_IT_WAS),
    ],
)
def test_undo_makes_a_file_that_has_not_changed_since_what_it_was_byte_for_byte(run, home, project, place, text):
    before = text.replace("%s", str(project)).encode()
    file = put(home / place, "")
    file.write_bytes(before)
    run("--write")
    assert b"toolsearch" in file.read_bytes()

    assert run("--undo", "--write")[0] == 0
    assert file.read_bytes() == before


TOML = """# top
[mcp_servers.web] # stays
url = "https://web.example/mcp"
scopes = ["a"]

# about git
[mcp_servers.git]
command = "uvx"
# not used: args = []

# variables of git
[mcp_servers.git.env]
A = "1"

# about the terminal

# and its bell
[[tui]]
bell = true

[mcp_servers.last]
command = "last"
# of the last

# the end
"""


def test_comments_of_servers_that_stay_and_of_the_rest_stay_in_toml():
    entry = {"command": "ts", "env_vars": ["A"], "tools": {"a b": {"approval_mode": "approve"}}}
    made = TomlText("mcp_servers").changed(TOML, remove={"git", "last"}, add={"toolsearch": entry})

    assert (
        made
        == """# top
[mcp_servers.web] # stays
url = "https://web.example/mcp"
scopes = ["a"]

# about git
# not used: args = []

# variables of git

# about the terminal

# and its bell
[[tui]]
bell = true

# of the last

# the end

[mcp_servers.toolsearch]
command = "ts"
env_vars = ["A"]

[mcp_servers.toolsearch.tools."a b"]
approval_mode = "approve"
"""
    )
    assert "toolsearch" not in TomlText("mcp_servers").changed(made, remove={"toolsearch"}, add={})


MINE = """# [mcp_servers.old]
# command = "old"
[mcp_servers.git]
command = "uvx"  # runs it
# the token is in the safe
args = ["mcp-server-git"]
# [mcp_servers.older]
# command = "older"

[mcp_servers.asks]
command = "asks"
enabled_tools = ["one"]  # and no other
"""


def test_no_line_of_comment_in_toml_is_lost_by_an_import_or_by_an_undo_after_another_change(run, home):
    codex = put(home / ".codex" / "config.toml", MINE)
    comments = [line for line in MINE.splitlines() if line.startswith("#")]
    assert run("--write")[0] == 0
    imported = codex.read_text()
    assert [line for line in imported.splitlines() if line.startswith("#")] == comments
    assert 'enabled_tools = ["one"]  # and no other' in imported

    codex.write_text('model = "o"\n' + imported)
    assert run("--undo", "--write")[0] == 0
    undone = codex.read_text()
    assert [line for line in undone.splitlines() if line.startswith("#")] == comments
    assert 'command = "uvx"  # runs it\nargs = ["mcp-server-git"]\n' in undone
    assert tomllib.loads(undone) == tomllib.loads(MINE) | {"model": "o"}


JSONC = """{
  // mine
  "servers": {
    // stays, since its tools are limited
    "few": { "command": "few", /* all */ "includeTools": ["one"] }, // of two
    // moves
    "git": {
      "command": "uvx", // runs it
      "args": ["mcp-server-git"],
    },
    /* the last */
  },
}
"""


def test_comments_between_servers_in_json_stay_and_undo_gives_back_those_inside_after_another_change(run, home):
    code = put(home / ".config" / "Code" / "User" / "mcp.json", JSONC)
    assert run("--write")[0] == 0
    imported = code.read_text()
    for words in ("// mine", "// stays", "/* all */", "// of two", "// moves", "/* the last */"):
        assert words in imported
    assert list(JsonText("servers").servers(imported)) == ["few", "toolsearch"]

    code.write_text(imported.replace("// mine", "// yours"))
    assert run("--undo", "--write")[0] == 0
    undone = code.read_text()
    for words in ("// yours", "// stays", "/* all */", "// of two", "// moves", "/* the last */", "// runs it"):
        assert undone.count(words) == 1
    assert JsonText("servers").servers(undone) == JsonText("servers").servers(JSONC)


def test_an_entry_of_the_gateway_that_lacks_what_the_client_needs_gets_it_and_keeps_the_rest(run, home):
    """It was written by hand, or by an earlier import."""
    entry = {"command": "mine", "args": ["gateway"], "timeout": 9000}
    path = put(home / ".claude.json", json.dumps({"mcpServers": {"toolsearch": entry}}))
    put(home / "own.json", json.dumps({"mcpServers": {"git": {"command": "git"}}}))

    assert run("--write")[0] == 0
    got = read(path)["mcpServers"]["toolsearch"]
    assert (got["alwaysLoad"], got["timeout"]) == (True, 9000)
    assert run("--write")[0] == 1  # there is nothing left to do


# --- Logins -----------------------------------------------------------------------------------------------------------


SECRET = "a-secret-that-nobody-may-see"


def client_file(home: Path, client: str, entry: dict[str, Any]) -> Path:
    """The file of *client* with one server to which it logs in."""
    place = next(each for each in known_clients(home, home, sys.platform) if each.name == client)
    return put(place.path, json.dumps({place.section[0]: {"crm": {"url": "https://crm.example/mcp", **entry}}}))


@pytest.mark.parametrize(
    ("client", "entry", "oauth"),
    [
        (
            "claude-code",
            {"type": "http", "oauth": {"clientId": "us", "callbackPort": 3118, "scopes": "read write"}},
            {"clientId": "us", "redirectUri": "http://localhost:3118/callback", "scopes": ["read", "write"]},
        ),
        ("claude-code", {"oauth": {"scopes": "read"}}, {"scopes": ["read"]}),
        (
            "cursor",
            {"auth": {"CLIENT_ID": "us", "scopes": ["read"]}},
            {"clientId": "us", "redirectUri": "http://localhost:8787/callback", "scopes": ["read"]},
        ),
        (
            "cursor",
            {"auth": {"CLIENT_ID": "us", "CLIENT_SECRET": "${env:CRM}", "issuer": "https://login.example"}},
            {
                "clientId": "us",
                "clientSecret": "${env:CRM}",
                "issuer": "https://login.example",
                "redirectUri": "http://localhost:8787/callback",
            },
        ),
        (
            "vscode",
            {"type": "http", "oauth": {"clientId": "us"}},
            {"clientId": "us", "redirectUri": "http://127.0.0.1:33418/"},
        ),
        (
            "gemini-cli",
            {"oauth": {"enabled": True, "clientId": "us", "clientSecret": "$CRM", "issuer": "https://login.example"}},
            {
                "clientId": "us",
                "clientSecret": "${CRM}",
                "issuer": "https://login.example",
                "redirectUri": "http://localhost/oauth/callback",
            },
        ),
        (
            "gemini-cli",
            {
                "authProviderType": "dynamic_discovery",
                "oauth": {"redirectUri": "http://localhost:7/x", "clientId": "us"},
            },
            {"clientId": "us", "redirectUri": "http://localhost:7/x"},
        ),
        (
            "qwen",
            {"oauth": {"clientId": "us"}},
            {"clientId": "us", "redirectUri": "http://localhost:7777/oauth/callback"},
        ),
        (
            "opencode",
            {"type": "remote", "oauth": {"clientId": "{env:CRM}", "scope": "read write"}},
            {
                "clientId": "${CRM}",
                "redirectUri": "http://127.0.0.1:19876/mcp/oauth/callback",
                "scopes": ["read", "write"],
            },
        ),
    ],
)
def test_a_registration_of_a_client_moves_with_its_server(run, home, client, entry, oauth):
    client_file(home, client, entry)
    code, _, err = run("--write")

    assert code == 0
    assert read(home / "own.json")["toolsearch"]["servers"]["crm"]["oauth"] == oauth
    assert gateway(home, CRM="the value").of_server("crm").oauth.redirect_uri == oauth.get(
        "redirectUri", "http://127.0.0.1/callback"
    )
    assert has_line(err, "log in to 'crm'", oauth.get("redirectUri", "")) is ("clientId" in oauth)


def test_the_registration_of_codex_moves_with_its_server(run, home):
    put(
        home / ".codex" / "config.toml",
        "[mcp_servers.crm]\nurl = 'https://crm.example/mcp'\nscopes = ['read']\n\n"
        "[mcp_servers.crm.oauth]\nclient_id = 'us'\ncallback_url = 'http://127.0.0.1/callback'\n",
    )
    run("--write")

    assert read(home / "own.json")["toolsearch"]["servers"]["crm"]["oauth"] == {
        "clientId": "us",
        "redirectUri": "http://127.0.0.1/callback",
        "scopes": ["read"],
    }


def test_the_variable_of_a_client_secret_is_handed_on_to_the_gateway(run, home):
    auth = {"CLIENT_ID": "us", "CLIENT_SECRET": "${env:CRM}", "issuer": "https://login.example"}
    file = client_file(home, "cursor", {"auth": auth})
    run("--write")
    assert read(file)["mcpServers"]["toolsearch"]["env"] == {"CRM": "${env:CRM}"}


@pytest.mark.parametrize(
    ("client", "entry", "words"),
    [
        ("cursor", {"auth": {"CLIENT_ID": "us", "CLIENT_SECRET": SECRET, "issuer": "https://x"}}, "written out"),
        ("cursor", {"auth": {"CLIENT_ID": "us", "CLIENT_SECRET": f"${{env:A:-{SECRET}}}"}}, "written out"),
        ("cursor", {"auth": {"CLIENT_ID": "us", "CLIENT_SECRET": "${env:CRM}"}}, "'issuer'"),
        ("cursor", {"auth": {"CLIENT_SECRET": "${env:CRM}", "issuer": "https://x"}}, "'oauth'"),
        ("cursor", {"auth": "login"}, "'auth'"),
        ("claude-code", {"oauth": {"clientId": "us", "authServerMetadataUrl": "https://x"}}, "'authServerMetadataUrl'"),
        ("gemini-cli", {"oauth": {"clientId": "us", "tokenUrl": "https://x"}}, "'tokenUrl'"),
        ("gemini-cli", {"authProviderType": "google_credentials"}, "'authProviderType'"),
        ("gemini-cli", {"oauth": {"clientId": "us", "redirectUri": "https://x.example/callback"}}, "'redirectUri'"),
        ("claude-code", {"oauth": {"clientId": "us", "callbackPort": 99999}}, "'redirectUri'"),
        ("opencode", {"type": "remote", "oauth": {"scope": ["two words"]}}, "'scopes"),
    ],
)
def test_a_server_stays_if_the_gateway_would_log_in_in_another_way_or_tell_a_secret(run, home, client, entry, words):
    client_file(home, client, entry)
    code, out, err = run("--write")

    assert code == 1
    assert has_line(err, f"'crm' stays with {client}", words)
    assert SECRET not in out + err


def test_a_client_secret_in_the_gateways_own_file_is_not_shown(run, home, cursor):
    servers = {"old": {"oauth": {"clientId": "shown", "clientSecret": SECRET}}}
    put(home / "own.json", json.dumps({"toolsearch": {"servers": servers}}))
    put(home / ".codex" / "config.toml", "[mcp_servers.x]\nurl = 'https://x.example'\ntool_timeout_sec = 5\n")
    _, out, err = run()

    assert '"clientId": "shown"' in out
    assert SECRET not in out + err
