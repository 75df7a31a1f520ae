# The public names. Type checkers read this list, and so does `toolsearch.lazy_names`.

from toolsearch.gateway.config_file import read_gateway_config as read_gateway_config
from toolsearch.gateway.gateway import Gateway as Gateway
from toolsearch.gateway.http import http_app as http_app
from toolsearch.storage.pins import SeenEntry as SeenEntry
from toolsearch.storage.sqlite.stores import SqliteAuditLog as SqliteAuditLog
from toolsearch.storage.sqlite.stores import SqlitePins as SqlitePins
