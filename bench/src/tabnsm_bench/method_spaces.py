"""What a search may vary in each baseline: ranges about those of the methods' authors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabnsm.errors import InvalidOptionError
from tabnsm.tuning.space import Choice, Integer, Parameter, Real, search_space

Space = dict[str, Parameter]


def _rate(low: float, high: float) -> Real:
    return Real(low, high, log=True)


_HALF = Real(0.0, 0.5)
_WIDTH = Integer(64, 512, step=64)
_TRAINING: Space = {"learning_rate": _rate(1e-4, 3e-3), "weight_decay": _rate(1e-6, 1e-2)}
_MLP: Space = {"n_blocks": Integer(1, 6), "d_block": _WIDTH, "dropout": _HALF, **_TRAINING}
_FOREST: Space = {
    "max_features": Real(0.2, 1.0),
    "min_samples_leaf": Integer(1, 20, log=True),
    "max_depth": Choice(None, 10, 20, 40),
}
_ATTENTION: Space = {
    "n_heads": Choice(2, 4, 8),
    "n_layers": Integer(1, 6),
    "attn_dropout": _HALF,
    **_TRAINING,
}
_TOKENS: Space = {
    "n_layers": Integer(1, 4),
    "d_token": Choice(32, 64, 128),
    "n_heads": Choice(4, 8),
    "dropout": _HALF,
    **_TRAINING,
}
_SPACES: dict[str, Space] = {
    "knn-5": {"n_neighbors": Integer(1, 50, log=True), "weights": Choice("uniform", "distance")},
    "lasso": {"alpha": _rate(1e-5, 10.0)},
    "ridge": {"alpha": _rate(1e-4, 1e5)},
    "svr-linear": {"C": _rate(1e-3, 1e2), "epsilon": _rate(1e-3, 0.5)},
    "svr-rbf": {"C": _rate(1e-2, 1e3), "epsilon": _rate(1e-3, 0.5), "gamma": _rate(1e-4, 1.0)},
    "random-forest": _FOREST,
    "extratrees": _FOREST,
    "catboost": {
        "learning_rate": _rate(0.01, 0.3),
        "depth": Integer(3, 10),
        "l2_leaf_reg": _rate(0.5, 10.0),
        "random_strength": _rate(0.1, 10.0),
        "bagging_temperature": Real(0.0, 1.0),
    },
    "lightgbm": {
        "learning_rate": _rate(0.01, 0.2),
        "num_leaves": Integer(8, 256, log=True),
        "min_child_samples": Integer(2, 100, log=True),
        "subsample": Real(0.5, 1.0),
        "subsample_freq": Choice(0, 1),
        "colsample_bytree": Real(0.4, 1.0),
        "reg_alpha": _rate(1e-6, 1.0),
        "reg_lambda": _rate(1e-6, 10.0),
    },
    "xgboost": {
        "learning_rate": _rate(0.01, 0.2),
        "max_depth": Integer(3, 10),
        "min_child_weight": _rate(1.0, 100.0),
        "subsample": Real(0.5, 1.0),
        "colsample_bytree": Real(0.4, 1.0),
        "reg_alpha": _rate(1e-6, 1.0),
        "reg_lambda": _rate(0.1, 10.0),
        "gamma": _rate(1e-6, 1.0),
    },
    "mlp": _MLP,
    "snn": {**_MLP, "dropout": Real(0.0, 0.2)},
    "dcn-v2": {**_MLP, "n_cross_layers": Integer(1, 4)},
    "resnet": {
        "n_blocks": Integer(1, 6),
        "d_block": _WIDTH,
        "d_hidden_multiplier": Real(1.0, 4.0),
        "dropout1": _HALF,
        "dropout2": _HALF,
        **_TRAINING,
    },
    "mlp-plr": {
        **_MLP,
        "d_embedding": Integer(8, 32, step=8),
        "n_frequencies": Integer(16, 96, step=16),
        "frequency_init_scale": _rate(0.01, 10.0),
    },
    "tabm": {**_MLP, "n_blocks": Integer(1, 4), "d_block": Integer(128, 768, step=128)},
    "ft-transformer": {
        "n_blocks": Integer(1, 4),
        "d_block": Integer(64, 256, step=64),
        "attention_dropout": _HALF,
        "ffn_dropout": _HALF,
        "residual_dropout": Real(0.0, 0.2),
        "learning_rate": _rate(3e-5, 1e-3),
        "weight_decay": _rate(1e-6, 1e-3),
    },
    "t2g-former": {**_TOKENS, "d_column": Choice(4, 8, 16)},
    "amformer": {**_TOKENS, "max_queries": Choice(32, 64), "n_strongest": Choice(16, 32)},
    "ptarl": {
        **_MLP,
        "n_prototypes": Integer(8, 32, step=8),
        "projection_weight": _rate(0.01, 1.0),
        "diversity_weight": _rate(0.01, 1.0),
        "orthogonality_weight": _rate(0.01, 1.0),
    },
    "tabptm": {**_MLP, "n_neighbours": Integer(4, 64, log=True)},
    "switchtab": {**_MLP, "corruption_rate": Real(0.1, 0.5), "task_weight": _rate(0.1, 10.0)},
    "dnnr": {"n_neighbors": Integer(1, 20, log=True)},
    "grande": {
        "depth": Integer(3, 6),
        "learning_rate_weights": _rate(1e-4, 0.05),
        "learning_rate_index": _rate(1e-3, 0.1),
        "learning_rate_values": _rate(1e-3, 0.1),
        "learning_rate_leaf": _rate(1e-3, 0.1),
        "selected_variables": Real(0.4, 1.0),
    },
    "excelformer": {
        "in_channels": Choice(64, 128, 256),
        "num_layers": Integer(2, 5),
        "num_heads": Choice(4, 8, 16),
        "diam_dropout": _HALF,
        "aium_dropout": _HALF,
        "residual_dropout": _HALF,
        **_TRAINING,
    },
    "tabtransformer": {
        **_ATTENTION,
        "d_model": Choice(32, 64, 128),
        "transformer_dim_feedforward": Choice(128, 256, 512),
        "ff_dropout": _HALF,
    },
    "saint": {
        **_ATTENTION,
        "d_model": Choice(16, 32, 64),
        "n_layers": Integer(1, 3),
        "ff_dropout": _HALF,
    },
    "autoint": {**_ATTENTION, "d_model": Choice(32, 64, 128)},
    "tabr": {
        "d_main": Integer(96, 384, step=32),
        "context_dropout": Real(0.0, 0.6),
        "dropout0": Real(0.0, 0.6),
        "encoder_n_blocks": Integer(0, 1),
        "predictor_n_blocks": Integer(1, 2),
    },
    "modernnca": {
        "dim": Choice(64, 128, 256),
        "d_block": Choice(64, 128, 256, 512),
        "n_blocks": Integer(0, 2),
        "dropout": _HALF,
        "sample_rate": Real(0.05, 0.6),
        **_TRAINING,
    },
    "node": {
        "num_layers": Integer(1, 4),
        "layer_dim": Choice(64, 128, 256),
        "depth": Integer(4, 8),
        "tree_dim": Integer(1, 3),
        **_TRAINING,
    },
    "tabnet": {
        "n_d": Integer(8, 64, step=8),
        "n_a": Integer(8, 64, step=8),
        "n_steps": Integer(3, 8),
        "gamma": Real(1.0, 2.0),
        "lambda_sparse": _rate(1e-6, 1e-2),
        "learning_rate": _rate(2e-3, 5e-2),
    },
    "tangos": {
        "lamda1": _rate(1e-3, 10.0),
        "lamda2": _rate(1e-4, 1.0),
        "dropout": _HALF,
        **_TRAINING,
    },
    "danets": {
        "n_layers": Choice(4, 8, 16),
        "abstlay_dim_1": Choice(32, 64),
        "abstlay_dim_2": Choice(64, 96, 128),
        "k": Integer(3, 8),
        "dropout_rate": Real(0.0, 0.3),
        **_TRAINING,
    },
    "grownet": {
        "n_stages": Integer(10, 40),
        "d_hidden": Integer(16, 128, step=16),
        "boost_rate": Real(0.1, 1.0),
        "learning_rate": _rate(1e-4, 1e-2),
        "weight_decay": _rate(1e-6, 1e-2),
    },
    "realmlp": {
        "lr": _rate(0.02, 0.3),
        "num_emb_type": Choice("none", "pbld", "pl", "plr"),
        "add_front_scale": Choice(True, False),
        "p_drop": Choice(0.0, 0.15, 0.3),
        "wd": Choice(0.0, 0.02),
        "act": Choice("relu", "selu", "mish"),
        "plr_sigma": _rate(0.05, 0.5),
    },
}


def method_space(key: str, fixed: Mapping[str, Any] | None = None) -> Space:
    """What a search varies in a method.

    Parameters
    ----------
    key : str
        Of a baseline, or "tabnsm-default", "tabnsm-best", "tabnsm-paper", "tabnsm-fast".
    fixed : mapping or None
        Options that are given and so are not searched.

    Returns
    -------
    dict of str to Integer, Real or Choice

    Raises
    ------
    InvalidOptionError
        If there is nothing to search.

    Examples
    --------
    >>> sorted(method_space("svr-linear", {"C": 1.0}))
    ['epsilon']
    """
    if key.startswith("tabnsm-"):
        space = search_space(key.removeprefix("tabnsm-"))
    else:
        space = _SPACES.get(key, {})
    left = {name: parameter for name, parameter in space.items() if name not in (fixed or {})}
    if not left:
        raise InvalidOptionError(
            f"A method to tune must have options to search, got {key!r}, which has none left. "
            "Run it as it is."
        )
    return left
