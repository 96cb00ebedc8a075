"""MLP, ResNet, MLP-PLR, FT-Transformer and TabM: their authors' modules on the shared loop."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor, nn

from tabnsm_bench.baselines.common import Columns
from tabnsm_bench.baselines.hot_rows import (
    HotBatchEnsemble,
    HotLinear,
    Positions,
    has_long_rows,
    take_positions,
)
from tabnsm_bench.baselines.torch_models import NetworkMethod

_RTDL = "rtdl_revisiting_models"
_MLP_OPTIONS = {"n_blocks": 3, "d_block": 384, "dropout": 0.1}


class Flat(nn.Module):
    """Numbers and one-hot categories in one row, for a network on plain vectors.

    Parameters
    ----------
    columns : Columns
        Which features are codes.
    network : nn.Module
        From (B, d_in) to (B, 1).
    embedding : nn.Module or None
        From numbers (B, n) to (B, n, d), flattened before the network.
    first_layer : str or None
        Name of the network's linear layer that sees the row, if nothing else of it does: where
        categories come by the thousand, it looks them up.

    Shape
    -----
    numbers : (B, n_numbers)
    codes : (B, n_categories)
    returned : (B,)
    """

    def __init__(
        self,
        columns: Columns,
        network: nn.Module,
        embedding: nn.Module | None = None,
        *,
        first_layer: str | None = None,
    ) -> None:
        super().__init__()
        self.sizes = columns.category_sizes
        self.network = network
        self.embedding = embedding
        self.positions = None
        if first_layer is not None and has_long_rows(columns):
            d_in = network.get_parameter(f"{first_layer}.weight").shape[1]
            self.positions = Positions(self.sizes, d_in - sum(self.sizes))
            take_positions(network, first_layer, HotLinear, len(self.sizes))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Predict."""
        if self.embedding is not None and numbers.shape[1]:
            numbers = self.embedding(numbers).flatten(1)  # (B, n_numbers * d)
        if self.positions is not None:
            hot = [self.positions(codes).to(numbers.dtype)]
        else:
            hot = [
                nn.functional.one_hot(codes[:, position], size).to(numbers.dtype)
                for position, size in enumerate(self.sizes)
            ]
        output: Tensor = self.network(torch.cat([numbers, *hot], dim=1))
        return output.squeeze(1)


class Tokens(nn.Module):
    """A network that takes numbers and codes apart, None where there are none.

    Parameters
    ----------
    columns : Columns
        Which features are codes.
    network : nn.Module
        To (B, 1), or (B, k, 1) for k predictions.
    """

    def __init__(self, columns: Columns, network: nn.Module) -> None:
        super().__init__()
        self.has_numbers = columns.n_numbers > 0
        self.has_codes = bool(columns.category_sizes)
        self.network = network

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Predict; (B,) or (B, k)."""
        output: Tensor = self.network(
            numbers if self.has_numbers else None, codes if self.has_codes else None
        )
        return output.squeeze(-1)


def mlp(**given: Any) -> NetworkMethod:
    """Plain layers with ReLU and dropout."""
    library = importlib.import_module(_RTDL)

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        d_in = columns.n_numbers + sum(columns.category_sizes)
        network = library.MLP(d_in=d_in, d_out=1, **options)
        return Flat(columns, network, first_layer="blocks.0.linear")

    return NetworkMethod("MLP", _RTDL, build, _MLP_OPTIONS, {}, given)


def resnet(**given: Any) -> NetworkMethod:
    """Residual blocks with batch norm."""
    library = importlib.import_module(_RTDL)
    defaults = {
        "n_blocks": 3,
        "d_block": 192,
        "d_hidden_multiplier": 2.0,
        "dropout1": 0.15,
        "dropout2": 0.0,
    }

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        d_in = columns.n_numbers + sum(columns.category_sizes)
        network = library.ResNet(d_in=d_in, d_out=1, **options)
        return Flat(columns, network, first_layer="input_projection")

    return NetworkMethod("ResNet", _RTDL, build, defaults, {}, given)


def mlp_plr(**given: Any) -> NetworkMethod:
    """An MLP on periodic embeddings of the numbers."""
    library = importlib.import_module(_RTDL)
    embeddings = importlib.import_module("rtdl_num_embeddings")
    defaults = {
        **_MLP_OPTIONS,
        "d_embedding": 24,
        "n_frequencies": 48,
        "frequency_init_scale": 0.01,
        "lite": False,
    }

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        of_mlp = {name: options[name] for name in _MLP_OPTIONS}
        of_embedding = {name: options[name] for name in options if name not in _MLP_OPTIONS}
        embedding = None
        if columns.n_numbers:
            embedding = embeddings.PeriodicEmbeddings(columns.n_numbers, **of_embedding)
        d_in = columns.n_numbers * options["d_embedding"] + sum(columns.category_sizes)
        network = library.MLP(d_in=d_in, d_out=1, **of_mlp)
        return Flat(columns, network, embedding, first_layer="blocks.0.linear")

    return NetworkMethod("MLP-PLR", "rtdl-num-embeddings", build, defaults, {}, given)


def ft_transformer(**given: Any) -> NetworkMethod:
    """Attention over feature tokens, with its authors' default sizes and learning rate."""
    library = importlib.import_module(_RTDL)
    defaults = library.FTTransformer.get_default_kwargs()
    del defaults["_is_default"]

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        network = library.FTTransformer(
            n_cont_features=columns.n_numbers,
            cat_cardinalities=columns.category_sizes,
            d_out=1,
            **options,
        )
        return Tokens(columns, network)

    training = {"learning_rate": 1e-4, "weight_decay": 1e-5}
    return NetworkMethod("FT-Transformer", _RTDL, build, defaults, training, given)


def tabm(**given: Any) -> NetworkMethod:
    """Thirty-two MLPs that share most weights, with its authors' defaults."""
    library = importlib.import_module("tabm")
    defaults = {"k": 32, "n_blocks": 3, "d_block": 512, "dropout": 0.1}

    def build(columns: Columns, options: dict[str, Any]) -> nn.Module:
        network = library.TabM.make(
            n_num_features=columns.n_numbers,
            cat_cardinalities=columns.category_sizes,
            d_out=1,
            **options,
        )
        if has_long_rows(columns):
            sizes = columns.category_sizes
            network.cat_module = Positions(sizes, columns.n_numbers)
            take_positions(network, "backbone.blocks.0.0", HotBatchEnsemble, len(sizes))
        return Tokens(columns, network)

    training = {"learning_rate": 2e-3, "weight_decay": 3e-4}
    return NetworkMethod("TabM", "tabm", build, defaults, training, given)
