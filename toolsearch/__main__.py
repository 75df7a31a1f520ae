"""``python -m toolsearch``: the command line."""

import sys

from toolsearch.cli import main

if __name__ == "__main__":
    sys.exit(main())
