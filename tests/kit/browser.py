"""A real Chromium, which npm carries, without a window; and a service in this process for it to look at."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, sync_playwright

from tests.kit.published_servers import NODE_MODULES
from toolsearch.service.app import make_app
from toolsearch.service.service import Service

# Left out: what would switch off what the tests look for, and a single process does not survive its first context.
_UNWANTED = ("--disable-web-security", "--allow-running-insecure-content", "--single-process")


@contextmanager
def chromium() -> Iterator[Browser]:
    script = NODE_MODULES.parent / "chromium.mjs"
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "@sparticuz" / "chromium").is_dir():
        pytest.skip("Chromium is not installed: npm ci --prefix tests/mcp_servers")
    told = subprocess.run([node, script], capture_output=True, text=True, check=True, timeout=60)
    known = json.loads(told.stdout)
    arguments = [each for each in known["args"] if each not in _UNWANTED]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=known["path"], args=arguments, headless=True)
        yield browser
        browser.close()


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Serve it over a socket, and give its address."""
    server = uvicorn.Server(uvicorn.Config(make_app(service), host="127.0.0.1", port=0, log_config=None))
    ready = threading.Event()

    class Announced(uvicorn.Server):
        pass

    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    ready.set()
    yield ""
