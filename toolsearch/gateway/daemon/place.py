"""Where the background process of a configuration is reached: a socket in a folder that only its user can open.

A client reaches the process that was started with the same configuration file, the same settings that are only read at
the start, the same installation of toolsearch, and the same values of the variables of the environment that matter to
it. All of that is in the name of the socket, as a digest with a key that only the user can read.
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
from typing import Final

from toolsearch.documents.json_values import as_object, object_in
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.upstreams.sections import CHANGEABLE, SERVERS, gateway_section, variables_in
from toolsearch.wire.relayed import line_of

_PROGRAM: Final = Path(__file__).parents[2]  # the package toolsearch
_KEY_BYTES = 32
_ANSWER_S = 30.0
_LOCAL_PEERCRED = 1  # of macOS, as in sys/un.h; Python has no name for it
# Variables that servers inherit, that say where things are, or that the process reads, beside those that the
# configuration names.
_PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy")
_ALWAYS = (
    *("HOME", "PATH", "XDG_STATE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *(name for proxy in _PROXIES for name in (proxy, proxy.upper())),
)
_ALWAYS_FROM = ("TOOLSEARCH_", "OTEL_")  # all variables that begin so
# Settings that may name a place relative to the working folder.
_PLACES = ("stateDir", "state_dir", "requestsFiles", "requests_files", "encoder", "reader")


# What the background process says of itself, in between the lines for the client.
STOPPED = b'{"toolsearch":"stopped"}\n'  # it was told to end; the next is started when it is needed
MOVED = b'{"toolsearch":"moved"}\n'  # another process serves the configuration from now on


class NoPlaceError(Exception):
    """There can be no background process; the text says why, for people."""


class Place:
    """The socket and the lock of the background process of one configuration.

    The process has the lock for as long as it lives. A client that gets it starts the process, and hands the lock on.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.identity = identity
        self.path = folder / f"{identity[:20]}.sock"  # short, since the path of a socket has 104 bytes at most
        self._lock_path = folder / f"{identity[:20]}.lock"

    @classmethod
    def of(cls, config: Path, environment: Mapping[str, str], content: bytes | None = None) -> Place:
        """The place for the configuration at *config*, or for what it would be with *content*. Raises NoPlaceError."""
        if not hasattr(socket, "AF_UNIX") or sys.platform == "win32":
            raise NoPlaceError("this system has no sockets that only one user can open")
        folder = _own_folder(environment)
        try:
            content = config.read_bytes() if content is None else content
            return cls(folder, _identity(config, content, environment, _key(folder)))
        except OSError as error:
            raise NoPlaceError(f"{error.filename or folder}: {error.strerror}") from error

    def connect(self) -> socket.socket | None:
        """A connection; None if nobody listens. Raises NoPlaceError if somebody else does."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(self.path))
        except OSError:
            connection.close()
            return None
        if not is_own(connection):
            connection.close()
            raise NoPlaceError(f"another user listens at {self.path}")
        return connection

    def lock(self) -> int | None:
        """The handle of the lock; None if a process lives that has it. Raises NoPlaceError."""
        import fcntl

        try:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise NoPlaceError(f"{self._lock_path}: {error.strerror}") from error
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
        """Listen in the place of a process that was killed. To be called with the lock. Raises NoPlaceError."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path.unlink(missing_ok=True)
            listening.bind(str(self.path))
            self.path.chmod(0o600)
            listening.listen(socket.SOMAXCONN)
        except OSError as error:
            listening.close()
            raise NoPlaceError(f"{self.path}: {error.strerror or error}") from error
        return listening

    def is_here(self, lock: int) -> bool:
        """Whether clients still find the socket of whoever has *lock*."""
        return self._is_locked_by(lock) and self.path.exists()

    def leave(self, lock: int) -> None:
        """Remove the socket, so that nobody comes any more."""
        if self._is_locked_by(lock):
            self.path.unlink(missing_ok=True)

    def give_up(self, lock: int) -> None:
        """Remove the lock as the last thing."""
        if self._is_locked_by(lock):
            self._lock_path.unlink(missing_ok=True)

    def _is_locked_by(self, lock: int) -> bool:
        """Whether *lock* is the lock of this place. If its file was removed, the socket may be another's too."""
        try:
            return os.path.samestat(os.fstat(lock), os.stat(self._lock_path))  # noqa: PTH116
        except OSError:
            return False


def asked(path: Path, what: str, **more: Json) -> JsonObject:
    """The answer of the background process that listens at *path*, told *more*. Raises OSError and NoPlaceError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(str(path))
        if not is_own(connection):
            raise NoPlaceError(f"another user listens at {path}")
        with connection.makefile("rb") as lines:
            lines.readline()  # what it says of itself
            connection.sendall(line_of({**more, "do": what}))
            return object_in(lines.readline())


def is_own(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user. Where the system cannot say, the folder has to be enough."""
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        user = struct.unpack("3i", credentials)[1]
    elif sys.platform == "darwin":
        user = struct.unpack("=II", connection.getsockopt(0, _LOCAL_PEERCRED, 128)[:8])[1]
    else:
        return True
    return bool(user == os.getuid())


def pid_of(connection: socket.socket) -> int | None:
    """The process at the other end, where the system says so."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])


def _own_folder(environment: Mapping[str, str]) -> Path:
    base = Path(environment.get("XDG_RUNTIME_DIR") or "-")
    if base.is_absolute() and base.is_dir():
        folder = base / "toolsearch"
    else:
        folder = Path(environment.get("TMPDIR") or "/tmp", f"toolsearch-{os.getuid()}")  # noqa: S108  checked below
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NoPlaceError(f"{folder}: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise NoPlaceError(f"{folder} is not a folder of this user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise NoPlaceError(f"{folder} can be opened by other users")
    return folder


def _key(folder: Path) -> bytes:
    """The key of the digests. Names of sockets are public, and a digest without a key can be guessed from."""
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
        raise NoPlaceError(f"{config.name} is no JSON") from error
    program = (_PROGRAM / "__init__.py").stat()
    names = {*_ALWAYS, *variables_in(document), *(name for name in environment if name.startswith(_ALWAYS_FROM))}
    what = [
        *(str(_PROGRAM), program.st_mtime_ns, program.st_ino, sys.executable),
        str(config.absolute()),
        str(Path.cwd()) if _depends_on_folder(document) else "",
        _read_once(document),
        {name: environment[name] for name in sorted(names) if name in environment},
    ]
    return hashlib.blake2b(json.dumps(what).encode(), key=key, digest_size=32).hexdigest()


def _read_once(document: Json) -> Json:
    """The settings that a gateway only reads at its start: with others, another process serves."""
    section = gateway_section(document)
    if section is None:
        return None
    return {name: section[name] for name in sorted(section) if name not in CHANGEABLE}


def _depends_on_folder(document: Json) -> bool:
    """Whether the working folder may matter: a server without an absolute ``cwd`` runs in it."""
    whole = as_object(document) or {}
    servers, section = as_object(whole.get(SERVERS[0])), gateway_section(whole)
    if servers is None or section is None or SERVERS[1] in whole:
        return True
    entries = [as_object(each) for each in servers.values()]
    places = [section[name] for name in _PLACES if name in section]
    places += [None if each is None else each.get("cwd") for each in entries if each is None or "command" in each]
    return not all(isinstance(place, str) and place.startswith("/") for place in places)
