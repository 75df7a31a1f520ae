"""``toolsearch backup``, ``restore`` and ``reseal``: what an operator does with the data of a service."""

from __future__ import annotations

import importlib.util
import os
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.output import stderr
from toolsearch.errors import MissingExtraError, StorageError

_Data: TypeAlias = Annotated[Path, typer.Option(metavar="DIR", help="Where the service keeps everything.")]
_DATA = Path("toolsearch-data")


def backup(
    *,
    to: Annotated[Path, typer.Option(metavar="FILE", help="A new file.", show_default=False)],
    data: _Data = _DATA,
) -> int:
    """Copy what a service keeps, while it runs, into one file that is checked before it gets its name.

    The secret key is not in the copy: keep that elsewhere. Nothing is ever overwritten.
    """
    _require_service()
    from toolsearch.service.backup import back_up

    state = back_up(data, to)
    stderr().print(f"{to} has everything but the secret key ({state}).", markup=False)
    return ExitCode.OK


def restore(
    backup: Annotated[Path, typer.Argument(metavar="FILE", help="What 'toolsearch backup' has made.")],
    *,
    data: _Data = _DATA,
) -> int:
    """Put a backup into a folder where nothing is kept yet, after it was checked."""
    _require_service()
    from toolsearch.service.backup import restore as put_back

    state = put_back(backup, data)
    stderr().print(
        f"{data} has what is in {backup} ({state}). Put the secret key beside it, or into the environment, before "
        "the start.",
        markup=False,
    )
    return ExitCode.OK


def reseal(
    *,
    data: _Data = _DATA,
    forget_key: Annotated[
        bool, typer.Option("--forget-lost-key", help="The key is lost: let the service start with another one.")
    ] = False,
) -> int:
    """Encrypt all credentials anew with the first of the secret keys, so that the others can be thrown away.

    To exchange the key, give the service the new one and the old one, in this order; restart it; run this with the same
    keys; then take the old one away. Exit code 1 if something could not be opened by any of the keys.
    """
    _require_service()
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.resealing import forget_lost_key, reseal_all
    from toolsearch.service.secret_keys import open_seal
    from toolsearch.storage.sqlite.storage import SqliteStorage

    if not (data / STORE_FILE).is_file():
        raise StorageError(f"no service keeps anything in {data}; name its folder by --data")
    with closing(SqliteStorage(data / STORE_FILE)) as storage:
        if forget_key:
            forget_lost_key(storage)
        done = reseal_all(storage, open_seal(os.environ, data, storage.records, clock=time.time))
    stderr().print(f"Sealed anew: {done.texts}. Cannot be opened by any key: {done.unreadable}.")
    return ExitCode.NOTHING if done.unreadable else ExitCode.OK


def _require_service() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise MissingExtraError("the service", "service")
