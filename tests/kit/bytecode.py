"""Import this first: what is compiled is kept, as ``.ci/run`` keeps it, whatever the environment says.

Else each worker, and each of the processes that tests start, compiles the package and hundreds of tests anew.
"""

import os
import sys

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
