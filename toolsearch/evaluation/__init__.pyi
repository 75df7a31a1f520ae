# The public names. Type checkers read this list, and so does `toolsearch.lazy_names`.

from toolsearch.evaluation.evaluation import evaluate as evaluate
from toolsearch.evaluation.queries import LabelledQuery as LabelledQuery
from toolsearch.evaluation.queries import read_queries as read_queries
