"""Forward pass of BERT sentence encoders over texts of one length: no padding, no mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tabnsm.text.int8 import Int8Linear

Linear = Callable[[Tensor], Tensor]

# A product of very few rows may add in another order than that of many.
MIN_ROWS = 16


class Norm(NamedTuple):
    """Weight and bias of a LayerNorm."""

    weight: Tensor
    bias: Tensor


class Layer(NamedTuple):
    """One encoder layer; LayerNorm comes after each residual sum."""

    attention_in: Linear
    attention_out: Linear
    attention_norm: Norm
    widen: Linear
    narrow: Linear
    norm: Norm


@dataclass(frozen=True)
class BertForward:
    """Sentence embeddings of token ids: BERT, mean over the tokens, unit length.

    The arithmetic is that of the model it is made from, without what equal lengths make
    superfluous, and with one matrix for queries, keys and values. It holds no state, so that
    threads can share it.
    """

    words: Tensor  # (n_tokens, d_text)
    positions: Tensor  # (n_positions, d_text), the embedding of the first segment added
    embedding_norm: Norm
    layers: tuple[Layer, ...]
    n_heads: int
    eps: float

    @classmethod
    def of(cls, bert: Any, precision: str) -> BertForward:
        """Read the weights of a model of transformers; see `from_weights`.

        In float32 it shares embeddings and norms with the model.
        """
        return cls.from_weights(bert.state_dict(), bert.config.to_dict(), precision)

    @classmethod
    def from_weights(
        cls, tensors: Mapping[str, Tensor], config: Mapping[str, Any], precision: str
    ) -> BertForward:
        """Take weights and settings by the names that transformers gives them.

        Raises AttributeError or KeyError if the model is not built like BERT.
        """
        weights = {name: tensor.detach().float() for name, tensor in tensors.items()}

        def norm(name: str) -> Norm:
            return Norm(weights[f"{name}.weight"], weights[f"{name}.bias"])

        def linear(*names: str) -> Linear:
            weight, bias = (
                torch.cat([weights[f"{name}.{part}"] for name in names])
                for part in ("weight", "bias")
            )
            if precision == "int8":
                return Int8Linear(weight, bias)
            return lambda x: F.linear(x, weight, bias)

        def layer(name: str) -> Layer:
            attention = f"{name}.attention"
            return Layer(
                linear(*(f"{attention}.self.{part}" for part in ("query", "key", "value"))),
                linear(f"{attention}.output.dense"),
                norm(f"{attention}.output.LayerNorm"),
                linear(f"{name}.intermediate.dense"),
                linear(f"{name}.output.dense"),
                norm(f"{name}.output.LayerNorm"),
            )

        segment = weights["embeddings.token_type_embeddings.weight"][0]
        return cls(
            words=weights["embeddings.word_embeddings.weight"],
            positions=weights["embeddings.position_embeddings.weight"] + segment,
            embedding_norm=norm("embeddings.LayerNorm"),
            layers=tuple(layer(f"encoder.layer.{k}") for k in range(config["num_hidden_layers"])),
            n_heads=config["num_attention_heads"],
            eps=config["layer_norm_eps"],
        )

    @torch.inference_mode()
    def __call__(self, ids: Tensor) -> Tensor:
        """Embed texts that have equally many tokens: (n_texts, n_tokens) to (n_texts, d_text)."""
        n_texts, n_tokens = ids.shape
        first, *others = self.layers
        x, projected = self._begin(first, ids)
        x = self._finish(first, x, projected, n_texts)
        for layer in others:
            x = self._finish(layer, x, layer.attention_in(x), n_texts)
        return F.normalize(x.view(n_texts, n_tokens, -1).mean(1), dim=1)

    def embed(self, ids: Tensor) -> Tensor:
        """The same as a call, without a step that depends on the values of the tokens."""
        n_texts, n_tokens = ids.shape
        x = F.embedding(ids, self.words) + self.positions[:n_tokens]
        x = self._norm(x.flatten(0, 1), self.embedding_norm)  # (n_texts * n_tokens, d_text)
        for layer in self.layers:
            x = self._finish(layer, x, layer.attention_in(x), n_texts)
        return F.normalize(x.view(n_texts, n_tokens, -1).mean(1), dim=1)

    def _begin(self, layer: Layer, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Input of the first layer, and its queries, keys and values.

        Both depend on the token and its place alone, and texts of one table share many of these.
        """
        n_tokens = ids.shape[1]
        keys = ids * n_tokens + torch.arange(n_tokens)
        distinct, index = torch.unique(keys, return_inverse=True)
        distinct = distinct.repeat(-(-MIN_ROWS // len(distinct)))
        x = F.embedding(distinct // n_tokens, self.words)
        x = self._norm(x.add_(self.positions[distinct % n_tokens]), self.embedding_norm)
        index = index.flatten()
        # (n_texts * n_tokens, d_text) and (n_texts * n_tokens, 3 * d_text)
        return x.index_select(0, index), layer.attention_in(x).index_select(0, index)

    def _finish(self, layer: Layer, x: Tensor, projected: Tensor, n_texts: int) -> Tensor:
        """Output of a layer from its input and that input's queries, keys and values."""
        mixed = layer.attention_out(self._attend(projected, n_texts))
        x = self._norm(mixed.add_(x), layer.attention_norm)
        # In place: a new array of this size costs as much as its values.
        wide = torch.ops.aten.gelu_(layer.widen(x))
        return self._norm(layer.narrow(wide).add_(x), layer.norm)

    def _attend(self, projected: Tensor, n_texts: int) -> Tensor:
        d_text = projected.shape[1] // 3
        split = (n_texts, -1, 3, self.n_heads, d_text // self.n_heads)
        queries, keys, values = projected.view(split).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(queries, keys, values)  # (n_texts, n_heads, T, d)
        return mixed.transpose(1, 2).reshape(-1, d_text)

    def _norm(self, x: Tensor, norm: Norm) -> Tensor:
        return F.layer_norm(x, x.shape[1:], norm.weight, norm.bias, self.eps)
