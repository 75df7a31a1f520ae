"""A BERT that reads two texts together, and gives the log odds that the second serves the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolsearch_indexes.encoders.protocol import require
from training.sentence_model import SentenceModel

_WHAT, _EXTRA = "training a reader", "semantic"


@dataclass(frozen=True, slots=True)
class PairModel:
    """bert       as in `SentenceModel`
    head       a torch.nn.Linear from twice the width of the BERT to 1
    tokenizer  a tokenizers.Tokenizer
    """

    bert: Any
    head: Any
    tokenizer: Any

    @classmethod
    def on(cls, model: SentenceModel) -> PairModel:
        """Start from *model* and take over its BERT. The first outputs depend on torch's seed."""
        torch = require("torch", what=_WHAT, extra=_EXTRA)
        head = torch.nn.Linear(2 * model.bert.config.hidden_size, 1)
        torch.nn.init.normal_(head.weight, std=0.02)
        torch.nn.init.zeros_(head.bias)
        return cls(model.bert, head, model.tokenizer)


def log_odds(bert: Any, head: Any, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
    """Return (n,): the output of *head* for the first token's vector and the mean of all. Inputs are (n, tokens)
    integers.
    """
    torch = require("torch", what=_WHAT, extra=_EXTRA)
    tokens = bert(
        input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
    ).last_hidden_state.float()
    weights = attention_mask.unsqueeze(-1).to(tokens.dtype)
    mean = (tokens * weights).sum(1) / weights.sum(1).clamp(min=1)
    return head(torch.cat([tokens[:, 0], mean], dim=1))[:, 0]
