"""Fills in what a configuration refers to: values of the environment, files with a secret, and the system's keyring."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from toolsearch.errors import BadSettingError, MissingExtraError

_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_WHOLE = re.compile(r"\$\{((?:env:)?[A-Za-z_][A-Za-z0-9_]*|file:[^{}]+|keyring:[^{}]+)\}")
_FILE = "file:"
_KEYRING = "keyring:"
_LARGEST = 64 * 1024  # bytes of a file with a secret


class References:
    """The values of ``${NAME}``, ``${env:NAME}``, ``${NAME:-default}``, ``${file:PATH}`` and
    ``${keyring:SERVICE/NAME}``.

    folder  the folder of the configuration, in which relative paths begin. None: the document comes from somewhere
            else, and gets values of *environment* alone.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path | None = None) -> None:
        self._environment = environment
        self._folder = folder
        self.used: list[str] = []  # the values that were filled in, which may be secrets

    def value(self, reference: str) -> str:
        """The value of *reference*, the text between the braces. A default also replaces an empty value.

        Raises BadSettingError if there is none, and MissingExtraError if the keyring cannot be asked. No message has a
        value in it.
        """
        if variable := _VARIABLE.fullmatch(reference):
            name, default = variable[1], variable[2]
            value = self._environment.get(name)
            if not value and default is not None:
                return default
            if value is None:
                remedy = f"set it, or write ${{{name}:-}} where it may be empty"
                raise BadSettingError(f"the environment variable {name} is not set; {remedy}")
        elif self._folder is not None and reference.startswith(_FILE):
            value = _content(self._folder / reference.removeprefix(_FILE), f"${{{reference}}}")
        elif self._folder is not None and reference.startswith(_KEYRING):
            value = _entry(reference.removeprefix(_KEYRING), f"${{{reference}}}")
        else:
            raise BadSettingError(f"${{{reference}}} cannot be filled in; {self._possible}")
        self.used.append(value)
        return value

    def secret(self, given: object) -> str:
        """The secret that *given* refers to, as a whole. Raises as `value`, and for a secret that stands there itself
        or is empty.
        """
        whole = _WHOLE.fullmatch(given) if isinstance(given, str) else None
        if whole is None:
            raise BadSettingError(
                "it must not hold the secret itself: put that into an environment variable and write ${NAME} here, or "
                "write ${file:PATH} or ${keyring:SERVICE/NAME}"
            )
        secret = self.value(whole[1])
        if not secret:
            raise BadSettingError(f"{given} is empty")
        return secret

    @property
    def _possible(self) -> str:
        if self._folder is None:
            return "only environment variables can"
        return "only environment variables, ${file:PATH} and ${keyring:SERVICE/NAME} can"


def _content(path: Path, reference: str) -> str:
    """The text of the file without its last line break."""
    try:
        content = _secret_bytes(path)
        text = content.decode()
    except OSError as error:
        raise BadSettingError(f"{reference} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadSettingError(f"{reference} cannot be read: it is no text in UTF-8") from None  # it has the content
    except ValueError as error:
        raise BadSettingError(f"{reference} cannot be used: {error}") from error
    return text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")


def _secret_bytes(path: Path) -> bytes:
    """The content of the file, which is checked once it is open. Raises OSError, and ValueError with the reason."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError("it is not a regular file")
        if os.name == "posix" and mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError("others than its owner can write it; run: chmod go-w FILE")
        content = file.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST // 1024} KiB")
    return content


def _entry(name: str, reference: str) -> str:
    """The password of the entry ``SERVICE/NAME`` of the system's keyring. A service may have slashes, too."""
    try:
        import keyring
    except ImportError as error:
        raise MissingExtraError(reference, "keyring") from error

    service, slash, user = name.rpartition("/")
    if not (service and slash and user):
        raise BadSettingError(f"{reference} must name a service and an entry, as ${{keyring:SERVICE/NAME}}")
    try:
        value = keyring.get_password(service, user)
    except Exception as error:  # each backend has errors of its own
        raise BadSettingError(f"{reference} cannot be read: {type(error).__name__}") from error
    if value is None:
        raise BadSettingError(f"the keyring has no entry {user!r} of the service {service!r}")
    return value
