"""What a configuration refers to: the environment, files with secrets, and the system's keyring."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringError

from toolsearch.access.settings import token_sha256
from toolsearch.documents.references import References
from toolsearch.errors import BadSettingError, MissingExtraError
from toolsearch.gateway.config_file import ConfigFile, read_gateway_config
from toolsearch.upstreams.config import HttpServer, StdioServer, read_mcp_config

SECRET = "d2b1-correct-horse-7f"


class KeptKeyring(KeyringBackend):
    """A keyring in memory that counts how often it is asked."""

    priority = 1

    def __init__(self) -> None:
        self.entries = {("vault", "github"): SECRET, ("https://x.example/", "me"): "of an address"}
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        if service == "broken":
            raise KeyringError(f"the keyring is locked, and {SECRET} cannot be read")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptKeyring:
    backend = KeptKeyring()
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    return backend


def secret_file(folder: Path, content: bytes | str = SECRET, mode: int = 0o600, name: str = "secret") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return path


def reason_of(reference: str, folder: Path) -> str:
    with pytest.raises(BadSettingError) as caught:
        References({}, folder).value(reference)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (SECRET, SECRET),
        (f"{SECRET}\n", SECRET),
        (f"{SECRET}\r\n", SECRET),
        (f"{SECRET}\n\n", f"{SECRET}\n"),
        (f" {SECRET} \r", f" {SECRET} \r"),
        ("one\ntwo\n", "one\ntwo"),
        ("", ""),
    ],
)
def test_a_file_is_its_whole_content_without_the_last_line_break(tmp_path: Path, content: str, value: str) -> None:
    secret_file(tmp_path, content)

    assert References({}, tmp_path).value("file:secret") == value


def test_a_path_is_relative_to_the_folder_of_the_configuration_and_may_lead_over_links(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    target = secret_file(tmp_path / "run")
    (tmp_path / "link").symlink_to(target)  # as Kubernetes mounts secrets
    references = References({}, tmp_path)

    assert [references.value(f"file:{path}") for path in ("run/secret", target, "link")] == [SECRET] * 3


@pytest.mark.skipif(os.name != "posix", reason="other systems have other permissions")
@pytest.mark.parametrize(("mode", "is_taken"), [(0o400, True), (0o644, True), (0o620, False), (0o602, False)])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int, is_taken: bool) -> None:
    secret_file(tmp_path, mode=mode)

    if is_taken:
        assert References({}, tmp_path).value("file:secret") == SECRET
    else:
        assert "others than its owner can write it" in reason_of("file:secret", tmp_path)


def test_what_is_not_a_regular_file_or_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: to read it would last for ever
    secret_file(tmp_path, b"x" * 65_536, name="largest")
    secret_file(tmp_path, b"x" * 65_537, name="larger")
    secret_file(tmp_path, b"\xff" + SECRET.encode(), name="bytes")

    assert len(References({}, tmp_path).value("file:largest")) == 65_536
    assert "it is larger than 64 KiB" in reason_of("file:larger", tmp_path)
    assert "it is not a regular file" in reason_of("file:pipe", tmp_path)
    assert "it is not a regular file" in reason_of("file:/dev/null", tmp_path)
    assert "no text in UTF-8" in reason_of("file:bytes", tmp_path)
    assert "${file:missing} cannot be read: No such file" in reason_of("file:missing", tmp_path)
    assert "cannot be used" in reason_of("file:a\0b", tmp_path)


def test_an_entry_of_the_keyring_is_read_by_its_service_and_name(kept: KeptKeyring, tmp_path: Path) -> None:
    references = References({}, tmp_path)

    assert references.value("keyring:vault/github") == SECRET
    assert references.value("keyring:https://x.example//me") == "of an address"
    assert "the keyring has no entry 'gitlab' of the service 'vault'" in reason_of("keyring:vault/gitlab", tmp_path)
    assert "must name a service and an entry" in reason_of("keyring:vault", tmp_path)
    assert "must name a service and an entry" in reason_of("keyring:vault/", tmp_path)
    assert "${keyring:broken/x} cannot be read: KeyringError" in reason_of("keyring:broken/x", tmp_path)


def test_the_keyring_is_asked_only_where_the_file_names_it(kept: KeptKeyring, tmp_path: Path) -> None:
    servers = {"a": {"command": "x", "env": {"A": "${HOME_OF_A}"}}, "b": {"command": "y"}}
    read_gateway_config({"mcpServers": servers}, {"HOME_OF_A": "1"}, folder=tmp_path)
    assert kept.asked == 0

    read_gateway_config(
        {"mcpServers": {"a": {"command": "x", "args": ["${keyring:vault/github}"]}}}, {}, folder=tmp_path
    )
    assert kept.asked == 1


def test_without_its_library_the_keyring_is_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    servers = {"a": {"command": "x", "env": {"A": "${keyring:vault/github}"}}}
    with pytest.raises(MissingExtraError, match=r"pip install 'toolsearch\[keyring\]'"):
        read_gateway_config({"mcpServers": servers}, {}, folder=tmp_path)


def test_servers_get_secrets_of_files_and_the_keyring_and_no_message_shows_them(
    kept: KeptKeyring, tmp_path: Path
) -> None:
    secret_file(tmp_path, "of-a-file\nsecond-line\n")
    servers: dict[str, Any] = {
        "program": {"command": "x", "args": ["${file:secret}", "${keyring:vault/github}"]},
        "web": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${keyring:vault/github}"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    program, web = read_mcp_config(tmp_path / "mcp.json", {}).servers

    assert isinstance(program, StdioServer)
    assert isinstance(web, HttpServer)
    assert program.args == ("of-a-file\nsecond-line", SECRET)
    assert web.headers == {"Authorization": f"Bearer {SECRET}"}
    assert {SECRET, "of-a-file", "second-line"} <= program.secrets & program.credentials
    assert SECRET in web.secrets
    assert SECRET not in repr(program) + repr(web)


def test_a_secret_that_cannot_be_read_costs_only_its_server(kept: KeptKeyring, tmp_path: Path) -> None:
    servers = {
        "bad": {"command": "x", "env": {"A": "${file:missing}"}},
        "locked": {"command": "x", "env": {"A": "${keyring:broken/x}"}},
        "good": {"command": "y"},
    }
    config = read_mcp_config({"mcpServers": servers}, {}, folder=tmp_path)

    assert [server.name for server in config.servers] == ["good"]
    assert [refusal.reason for refusal in config.refused] == [
        "${file:missing} cannot be read: No such file or directory",
        "${keyring:broken/x} cannot be read: KeyringError",
    ]


@pytest.mark.parametrize("reference", ["${file:/etc/hostname}", "${keyring:vault/github}"])
def test_a_document_that_comes_from_somewhere_else_gets_no_file_and_nothing_of_the_keyring(
    kept: KeptKeyring, reference: str
) -> None:
    (refused,) = read_mcp_config({"mcpServers": {"a": {"command": "x", "args": [reference]}}}, {}).refused

    assert refused.reason == f"{reference} cannot be filled in; only environment variables can"
    assert kept.asked == 0


def test_tokens_of_principals_and_secrets_of_clients_are_read_as_well(kept: KeptKeyring, tmp_path: Path) -> None:
    secret_file(tmp_path, f"{SECRET}\n")
    oauth = {"clientId": "us", "clientSecret": "${keyring:vault/github}", "issuer": "https://login.example"}
    document = {
        "mcpServers": {"web": {"url": "https://x.example/mcp"}},
        "toolsearch": {
            "principals": {"alice": {"token": "${file:secret}"}},
            "servers": {"web": {"oauth": oauth}},
        },
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(document))
    config = ConfigFile(path, {}).read()

    assert config.settings.principals["alice"].token_sha256 == token_sha256(SECRET)
    assert config.upstreams[0].oauth.secret == SECRET
    assert SECRET not in repr(config)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (SECRET, "must not hold the secret itself"),
        (f"${{{SECRET}}}", "must not hold the secret itself"),
        ("${TOKEN:-" + SECRET + "}", "must not hold the secret itself"),
        ("x${file:secret}", "must not hold the secret itself"),
        ("${file:empty}", "${file:empty} is empty"),
        ("${file:none}", "${file:none} cannot be read"),
        ("${EMPTY}", "${EMPTY} is empty"),
    ],
)
def test_a_secret_that_is_written_down_or_missing_is_refused(tmp_path: Path, given: str, reason: str) -> None:
    secret_file(tmp_path)
    secret_file(tmp_path, "\n", name="empty")
    oauth = {"clientId": "us", "clientSecret": given, "issuer": "https://login.example"}
    for section in ({"principals": {"alice": {"token": given}}}, {"servers": {"a": {"oauth": oauth}}}):
        document = {"mcpServers": {"a": {"command": "x"}}, "toolsearch": section}
        with pytest.raises(BadSettingError) as caught:
            read_gateway_config(document, {"EMPTY": ""}, folder=tmp_path)
        assert reason in str(caught.value)
        assert SECRET not in str(caught.value)
