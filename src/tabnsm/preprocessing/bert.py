"""Forward pass of BERT sentence encoders over texts of one length: no padding, no mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tabnsm.preprocessing.linear_int8 import Int8Linear

Linear = Callable[[Tensor], Tensor]


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

    Parameters
    ----------
    words : Tensor
        Embedding of each token.
    positions : Tensor
        Embedding of each place, that of the first segment added.
    embedding_norm : Norm
        LayerNorm of their sum.
    layers : tuple of Layer
        Encoder layers.
    n_heads : int
        Attention heads.
    eps : float
        Of the LayerNorms.

    Shape
    -----
    words : (n_tokens, d_text)
    positions : (n_positions, d_text)
    """

    words: Tensor
    positions: Tensor
    embedding_norm: Norm
    layers: tuple[Layer, ...]
    n_heads: int
    eps: float

    @classmethod
    def of(cls, bert: Any, precision: str) -> BertForward:
        """Read the weights of a model of transformers.

        Parameters
        ----------
        bert : transformers.BertModel
            The model.
        precision : {"float32", "int8"}
            Arithmetic of the matrix products.

        Returns
        -------
        BertForward
            In float32 it shares embeddings and norms with the model.

        Raises
        ------
        AttributeError, KeyError
            If the model is not built like BERT.
        """
        weights = {name: tensor.detach().float() for name, tensor in bert.state_dict().items()}

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
            layers=tuple(layer(f"encoder.layer.{k}") for k in range(bert.config.num_hidden_layers)),
            n_heads=bert.config.num_attention_heads,
            eps=bert.config.layer_norm_eps,
        )

    @torch.inference_mode()
    def __call__(self, ids: Tensor) -> Tensor:
        """Embed texts that have equally many tokens.

        Parameters
        ----------
        ids : Tensor
            Token ids, int64.

        Returns
        -------
        Tensor
            Rows of unit length, float32.

        Shape
        -----
        ids : (n_texts, n_tokens)
        result : (n_texts, d_text)
        """
        n_texts, n_tokens = ids.shape
        x = F.embedding(ids, self.words).add_(self.positions[:n_tokens]).flatten(0, 1)
        x = self._norm(x, self.embedding_norm)  # (n_texts * n_tokens, d_text)
        for layer in self.layers:
            mixed = layer.attention_out(self._attend(layer, x, n_texts))
            x = self._norm(mixed.add_(x), layer.attention_norm)
            x = self._norm(layer.narrow(F.gelu(layer.widen(x))).add_(x), layer.norm)
        return F.normalize(x.view(n_texts, n_tokens, -1).mean(1), dim=1)

    def _attend(self, layer: Layer, x: Tensor, n_texts: int) -> Tensor:
        split = (n_texts, -1, 3, self.n_heads, x.shape[1] // self.n_heads)
        queries, keys, values = layer.attention_in(x).view(split).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(queries, keys, values)  # (n_texts, n_heads, T, d)
        return mixed.transpose(1, 2).reshape(x.shape)

    def _norm(self, x: Tensor, norm: Norm) -> Tensor:
        return F.layer_norm(x, x.shape[1:], norm.weight, norm.bias, self.eps)
