# Check everything that .ci/run checks, in the environment at hand.
check: lint types test-all

# Rewrite what has one right form.
format:
    ruff format .
    ruff check --fix .

lint:
    ruff format --check .
    ruff check .
    just spelling

spelling:
    codespell *.md docs examples toolsearch benchmarks/*.md indexes/*/*.md

types:
    mypy
    pyright
    lint-imports

# What needs no other process, server, browser, README or benchmark; CONTRIBUTING.md says when to run which.
test *options:
    python -m pytest -n 2 --dist loadfile -m 'not slow' {{options}}

test-all *options:
    python -m pytest -n 2 --dist loadfile --no-loadscope-reorder {{options}}

# What the benchmarks compare with and take real tools from.
bench-install:
    pip install --constraint constraints.txt --editable '.[bench]'
    npm ci --prefix benchmarks

benchmarks *options:
    python -m benchmarks {{options}}

recall *options:
    python -m benchmarks.recall {{options}}

latency *options:
    python -m benchmarks.latency {{options}}

# Write the pages of errors and settings anew, after a change of either.
reference:
    python -m toolsearch.reference_pages docs

# Write docs/openapi.json anew, after a change of the service's routes or bodies.
openapi:
    python -m toolsearch.service.openapi_page > docs/openapi.json

# Pack the requests that ship anew, after a change of indexes/training/data/requests.
requests:
    PYTHONPATH=.:indexes python -m training.request_packs

# Fit what a score means anew, after a change of ranking; prints the constants of calibration.py.
calibrate *options:
    PYTHONPATH=.:indexes python -m training.calibration {{options}}

# The documentation site, in build/site; needs the docs extra, and no network.
site:
    NO_MKDOCS_2_WARNING=1 mkdocs build --config-file docs/site/mkdocs.yml

# The same at http://127.0.0.1:8000, following changes of the pages.
site-preview:
    NO_MKDOCS_2_WARNING=1 mkdocs serve --config-file docs/site/mkdocs.yml

wheel:
    pip wheel --no-deps --wheel-dir dist .
