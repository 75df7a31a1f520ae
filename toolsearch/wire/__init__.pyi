# The public names. Type checkers read this list, and so does `toolsearch.lazy_names`.

from toolsearch.tools.strict import strict_schema as strict_schema
from toolsearch.wire.capabilities import Endpoint as Endpoint
from toolsearch.wire.capabilities import capabilities_of as capabilities_of
from toolsearch.wire.formats import WireFormat as WireFormat
from toolsearch.wire.formats import render_results as render_results
from toolsearch.wire.formats import render_tools as render_tools
from toolsearch.wire.formats import sendable_messages as sendable_messages
from toolsearch.wire.replies import parse_tool_calls as parse_tool_calls
