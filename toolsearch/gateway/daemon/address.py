"""The address of the background process of a configuration: a socket in a folder that only its user can open.

A client reaches the process that was started with the same configuration file, the same settings that are only read at
the start, the same installation of toolsearch, and the same values of relevant environment variables. The name of the
socket is a digest of all these, with a key that only the user can read.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from toolsearch.documents.json_values import as_object, object_in, texts_in
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.sections import CHANGEABLE, SERVERS, gateway_section, variables_in
from toolsearch.wire.relayed import line_of

_PROGRAM: Final = Path(__file__).parents[2]  # the package toolsearch
_KEY_BYTES = 32
_ANSWER_S = 30.0
_LOCAL_PEERCRED = 1  # of macOS, as in sys/un.h; Python has no name for it
# Relevant variables beside those that the configuration names: servers inherit them, or the process reads them.
_PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
_ALWAYS = (
    *("HOME", "XDG_STATE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *(name for proxy in _PROXIES for name in (proxy, proxy.upper())),
)
_ALWAYS_FROM = ("TOOLSEARCH_", "OTEL_")  # prefixes of variables
# PATH counts by where it finds these and each server's own program. Servers may start these in turn. Some clients add
# folders of their own to PATH, one of them another at each start.
_LAUNCHERS = ("bun", "bunx", "deno", "docker", "java", "node", "npx", "python", "python3", "uv", "uvx")
_SHARED_FOLDER = Path("/tmp")  # noqa: S108  the folder in it is checked
# Settings with a path that may be relative to the working folder.
_PATHS = ("stateDir", "state_dir", "requestsFiles", "requests_files", "encoder", "reader")


# Lines by which the background process tells the small program about itself.
STOPPED = b'{"toolsearch":"stopped"}\n'  # it was told to end; the next is started when it is needed
MOVED = b'{"toolsearch":"moved"}\n'  # another process serves the configuration from now on


class NoDaemonError(Exception):
    """There can be no background process; the text tells people why."""


class DaemonAddress:
    """The socket and the lock of the background process of one configuration.

    The process holds the lock for as long as it lives. A client that gets the lock starts the process, and passes the
    lock on.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.identity = identity
        self.path = folder / f"{identity[:20]}.sock"  # short, since the path of a socket has 104 bytes at most
        self._lock_path = folder / f"{identity[:20]}.lock"

    @classmethod
    def at(cls, path: Path) -> DaemonAddress:
        """The address of the socket at *path*, by which no client can be recognized."""
        return cls(path.parent, path.stem)

    @classmethod
    def of(cls, config: Path, environment: Mapping[str, str], content: bytes | None = None) -> DaemonAddress:
        """The address for the configuration at *config*, whose content is *content* if that is given.

        Raises NoDaemonError.
        """
        if not hasattr(socket, "AF_UNIX") or sys.platform == "win32":
            raise NoDaemonError("this system has no sockets that only one user can open")
        folder = _own_folder(environment)
        try:
            content = config.read_bytes() if content is None else content
            return cls(folder, _identity(config, content, environment, _key(folder)))
        except OSError as error:
            raise NoDaemonError(f"{error.filename or folder}: {error.strerror}") from error

    def connect(self) -> socket.socket | None:
        """A connection; None if nobody listens. Raises NoDaemonError if somebody else does."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self.path))
        except OSError:
            connection.close()
            return None
        if not is_own(connection):
            connection.close()
            raise NoDaemonError(f"another user listens at {self.path}")
        return connection

    def lock(self) -> int | None:
        """The handle of the lock; None if a running process holds it. Raises NoDaemonError."""
        import fcntl

        try:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NoDaemonError(f"{self._lock_path}: {error.strerror}") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            is_ours = False
        else:
            is_ours = self._is_locked_by(handle)
        if is_ours:
            return handle
        os.close(handle)
        return None

    def listen(self) -> socket.socket:
        """Listen at the socket, and remove that of a killed process. Call this with the lock. Raises NoDaemonError."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path.unlink(missing_ok=True)
            listening.bind(str(self.path))
            self.path.chmod(0o600)
            listening.listen(socket.SOMAXCONN)
        except OSError as error:
            listening.close()
            raise NoDaemonError(f"{self.path}: {error.strerror or error}") from error
        return listening

    def is_here(self, lock: int) -> bool:
        """Whether clients still find the socket of the process that holds *lock*."""
        return self._is_locked_by(lock) and self.path.exists()

    def remove_socket(self, lock: int) -> None:
        """Remove the socket, so that no client comes any more."""
        if self._is_locked_by(lock):
            self.path.unlink(missing_ok=True)

    def remove_lock(self, lock: int) -> None:
        """Remove the lock as the last thing."""
        if self._is_locked_by(lock):
            self._lock_path.unlink(missing_ok=True)

    def _is_locked_by(self, lock: int) -> bool:
        """Whether *lock* is the lock of this address. If not, its file was removed, and the socket may be
        another one's.
        """
        try:
            return os.path.samestat(os.fstat(lock), os.stat(self._lock_path))  # noqa: PTH116
        except OSError:
            return False


def asked(path: Path, what: str, **more: Json) -> JsonObject:
    """The answer of the background process that listens at *path*, told *more*. Raises OSError and NoDaemonError."""
    connection = DaemonAddress.at(path).connect()
    if connection is None:
        raise NoDaemonError(f"no process listens at {path}")
    connection.settimeout(_ANSWER_S)
    with connection, connection.makefile("rb") as lines:
        lines.readline()  # the banner
        connection.sendall(line_of({**more, "do": what}))
        return object_in(lines.readline())


class Peer(NamedTuple):
    """The process at the other end of a socket; None for what the system does not tell."""

    pid: int | None = None
    user: int | None = None


def peer_of(connection: socket.socket) -> Peer:
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, user, _ = struct.unpack("3i", credentials)
        return Peer(pid, user)
    if sys.platform == "darwin":
        return Peer(user=struct.unpack("=II", connection.getsockopt(0, _LOCAL_PEERCRED, 128)[:8])[1])
    return Peer()


def is_own(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user. Where the system does not tell, the folder has to be enough."""
    return peer_of(connection).user in {None, os.getuid()}


def _own_folder(environment: Mapping[str, str]) -> Path:
    """The folder of the sockets, made if it is not there. Many clients keep XDG_RUNTIME_DIR from the programs that they
    start, so its usual value counts as well.
    """
    of_session = Path(environment.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    if of_session.is_absolute() and _is_owned(of_session):
        folder = of_session / "toolsearch"
    else:
        folder = _SHARED_FOLDER / f"toolsearch-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NoDaemonError(f"{folder}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise NoDaemonError(f"{folder} is not a folder of this user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise NoDaemonError(f"{folder} can be opened by other users")
    return folder


def _is_owned(folder: Path) -> bool:
    """False for the folder of another user, whose variables ``sudo -E`` keeps."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _key(folder: Path) -> bytes:
    """The key of the digests. Without a key, others could guess secrets from the public names of sockets."""
    import fcntl

    handle = os.open(folder / "key", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        key = os.read(handle, _KEY_BYTES)
        if len(key) < _KEY_BYTES:
            key = os.urandom(_KEY_BYTES)
            os.pwrite(handle, key, 0)
        return key
    finally:
        os.close(handle)


def _identity(config: Path, content: bytes, environment: Mapping[str, str], key: bytes) -> str:
    try:
        document: Json = json.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise NoDaemonError(f"{config.name} is no JSON") from error
    program = (_PROGRAM / "__init__.py").stat()
    names = {*_ALWAYS, *variables_in(document), *(name for name in environment if name.startswith(_ALWAYS_FROM))}
    shared = [
        *(str(_PROGRAM), program.st_mtime_ns, program.st_ino, sys.executable),
        str(config.absolute()),
        str(Path.cwd()) if _depends_on_folder(document) else "",
        _read_once(document),
        {name: environment[name] for name in sorted(names) if name in environment},
        {name: _found(name, environment.get("PATH", "")) for name in _programs(document)},
    ]
    return hashlib.blake2b(json.dumps(shared).encode(), key=key, digest_size=32).hexdigest()


def _programs(document: Json) -> list[str]:
    """The programs that PATH may have to find."""
    whole = as_object(document) or {}
    entries = (entry for section in SERVERS for entry in (as_object(whole.get(section)) or {}).values())
    commands = ((as_object(entry) or {}).get("command") for entry in entries)
    return sorted({*_LAUNCHERS, *(each for each in commands if isinstance(each, str) and "/" not in each)})


def _found(program: str, path: str) -> str:
    """The file that *program* is, by the variable PATH; "" if there is none. The whole of PATH counts for a program
    whose name is not known before variables are filled in.
    """
    if "${" in program:
        return path
    files = (os.path.join(folder, program) for folder in path.split(os.pathsep))  # noqa: PTH118  paths would be slower
    return next((file for file in files if os.path.isfile(file) and os.access(file, os.X_OK)), "")  # noqa: PTH113


def _read_once(document: Json) -> Json:
    """The settings that a gateway only reads at its start. Another process serves clients with other ones."""
    section = gateway_section(document)
    if section is None:
        return None
    return {name: section[name] for name in sorted(section) if name not in CHANGEABLE}


def _depends_on_folder(document: Json) -> bool:
    """Whether the working folder may matter: paths may be relative to it, and servers without a ``cwd`` run in it."""
    whole = as_object(document) or {}
    servers, section = as_object(whole.get(SERVERS[0])), gateway_section(whole)
    if servers is None or section is None or SERVERS[1] in whole:
        return True
    entries = [as_object(each) for each in servers.values()]
    paths: list[Json] = [path for name in _PATHS for path in texts_in(section.get(name))]
    paths += [None if each is None else each.get("cwd") for each in entries if each is None or "command" in each]
    return not all(isinstance(path, str) and path.startswith("/") for path in paths)
