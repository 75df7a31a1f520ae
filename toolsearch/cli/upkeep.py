"""``toolsearch backup``, ``restore``, ``reseal`` and ``keys``: what an operator does with the data of a service."""

from __future__ import annotations

import importlib.util
import os
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from toolsearch.cli.exits import ExitCode
from toolsearch.cli.options import JsonOption, StoreOption
from toolsearch.cli.output import print_json, print_text, tell
from toolsearch.environment import SERVICE_KEY
from toolsearch.errors import MissingExtraError

if TYPE_CHECKING:
    from toolsearch.storage.copying import Progress

_Data: TypeAlias = Annotated[Path, typer.Option(metavar="DIR", help="Where the service keeps everything.")]
_DATA = Path("toolsearch-data")


def backup(
    *,
    to: Annotated[Path, typer.Option(metavar="FILE", help="A new file.", show_default=False)],
    data: _Data = _DATA,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Copy what a service keeps, while it runs, into one file that is checked before it gets its name.

    The file is a SQLite database, whatever the service keeps its data in, and can be restored into either. The secret
    key is not in it: keep that elsewhere. Nothing is ever overwritten.
    """
    _require_service()
    from toolsearch.service.backup import back_up

    state = back_up(data, to, store=store, on_progress=_tell)
    tell(f"{to} has everything but the secret key ({state}).")
    if as_json:
        print_json({"path": str(to), "holds": str(state)})
    return ExitCode.OK


def restore(
    backup: Annotated[Path, typer.Argument(metavar="FILE", help="What 'toolsearch backup' has made.")],
    *,
    data: _Data = _DATA,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Put a backup into a folder or a database where nothing is kept yet, after it was checked."""
    _require_service()
    from toolsearch.service.backup import restore as put_back
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.storage.opening import place_of

    state = put_back(backup, data, store=store, on_progress=_tell)
    place = place_of(store, data / STORE_FILE)
    if place.is_shared:
        told = f"{place.name} has what is in {backup} ({state}). Give the secret key to each service that is to use it."
    else:
        told = (
            f"{data} has what is in {backup} ({state}). Put the secret key beside it, or into the environment, before "
            "the start."
        )
    tell(told)
    if as_json:
        print_json({"path": place.name, "holds": str(state)})
    return ExitCode.OK


def reseal(
    *,
    data: _Data = _DATA,
    store: StoreOption = None,
    forget_key: Annotated[
        bool, typer.Option("--forget-lost-key", help="The key is lost: let the service start with another one.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Encrypt all credentials anew with the first of the secret keys, so that the others can be thrown away.

    To exchange the key, give every service the new one and the old one, in this order; restart them; run this with the
    same keys; then take the old one away. Exit code 1 if something could not be opened by any of the keys.
    """
    _require_service()
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.resealing import forget_lost_key, reseal_all
    from toolsearch.service.secret_keys import open_seal
    from toolsearch.storage.opening import place_of

    place = place_of(store, data / STORE_FILE)
    place.require()
    with closing(place.open()) as storage:
        if forget_key:
            forget_lost_key(storage)
        done = reseal_all(storage, open_seal(os.environ, data, storage.records, clock=time.time))
    tell(f"Sealed anew: {done.texts}. Cannot be opened by any key: {done.unreadable}.")
    if as_json:
        print_json({"sealed": done.texts, "unreadable": done.unreadable})
    return ExitCode.NOTHING if done.unreadable else ExitCode.OK


def keys(*, data: _Data = _DATA, store: StoreOption = None, as_json: JsonOption = False) -> int:
    """Make an operator's key, for when none is left that is accepted. The service may run meanwhile.

    Prints it as TOOLSEARCH_KEY=...; it is never shown again. The audit tells that it was made here.
    """
    _require_service()
    from toolsearch.service.data_folder import STORE_FILE
    from toolsearch.service.service import Service
    from toolsearch.service.settings import ServiceSettings
    from toolsearch.storage.opening import place_of

    place = place_of(store, data / STORE_FILE)
    place.require()
    with closing(place.open()) as storage:
        key = Service(ServiceSettings(), storage).tenants.operators_key("toolsearch keys")
    if as_json:
        print_json({"key": key})
    else:
        print_text(f"{SERVICE_KEY}={key}")
    return ExitCode.OK


def _tell(progress: Progress) -> None:
    tell(f"{progress.table}: {progress.rows:,} of {progress.of:,} rows")


def _require_service() -> None:
    if importlib.util.find_spec("cryptography") is None:
        raise MissingExtraError("the service", "service")
