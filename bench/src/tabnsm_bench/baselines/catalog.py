"""All baselines by name, in the paper's families and order, and how a method is made from one."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines.environment import find_environment
from tabnsm_bench.baselines.info import READY, BaselineInfo
from tabnsm_bench.protocol import Method

TABNSM_METHODS = ("tabnsm-default", "tabnsm-best", "tabnsm-paper", "tabnsm-fast")

_ENTRIES = (
    BaselineInfo("LinearRegression", "Classical", "scikit-learn", "scikit_learn:linear_regression"),
    BaselineInfo("KNN-5", "Classical", "scikit-learn", "scikit_learn:knn"),
    BaselineInfo("Lasso", "Classical", "scikit-learn", "scikit_learn:lasso"),
    BaselineInfo("Ridge", "Classical", "scikit-learn", "scikit_learn:ridge"),
    BaselineInfo("SVR-Linear", "Classical", "scikit-learn", "scikit_learn:svr_linear"),
    BaselineInfo("SVR-RBF", "Classical", "scikit-learn", "scikit_learn:svr_rbf"),
    BaselineInfo("Random Forest", "Tree-based", "scikit-learn", "forests:random_forest"),
    BaselineInfo("CatBoost", "Tree-based", "catboost", "catboost:CatBoost"),
    BaselineInfo("LightGBM", "Tree-based", "lightgbm", "lightgbm:LightGBM"),
    BaselineInfo("XGBoost", "Tree-based", "xgboost", "xgboost:XGBoost"),
    BaselineInfo("Extratrees", "Tree-based", "scikit-learn", "forests:extra_trees"),
    BaselineInfo("MLP", "MLP-style", "rtdl-revisiting-models", "networks:mlp"),
    BaselineInfo("ResNet", "MLP-style", "rtdl-revisiting-models", "networks:resnet"),
    BaselineInfo("MLP-PLR", "MLP-style", "rtdl-num-embeddings", "networks:mlp_plr"),
    BaselineInfo("TabM", "MLP-style", "tabm", "networks:tabm"),
    BaselineInfo("T2G-Former", "MLP-style", "tabnsm", "t2g_former:t2g_former"),
    BaselineInfo("TabTransformer", "Transformer", "deeptab", "deeptab:tab_transformer", "deeptab"),
    BaselineInfo("SAINT", "Transformer", "deeptab", "deeptab:saint", "deeptab"),
    BaselineInfo(
        "FT-Transformer", "Transformer", "rtdl-revisiting-models", "networks:ft_transformer"
    ),
    BaselineInfo("AutoInt", "Transformer", "deeptab", "deeptab:autoint", "deeptab"),
    BaselineInfo("DCN-v2", "Transformer", "tabnsm", "dcn:dcn_v2"),
    BaselineInfo(
        "ExcelFormer", "Transformer", "pytorch-frame", "pytorch_frame:excelformer", "pytorch-frame"
    ),
    BaselineInfo("TabR", "Retrieval", "pytabkit", "pytabkit:tabr", "pytabkit"),
    BaselineInfo("ModernNCA", "Retrieval", "deeptab", "deeptab:modern_nca", "deeptab"),
    BaselineInfo("NODE", "Retrieval", "deeptab", "deeptab:node", "deeptab"),
    BaselineInfo(
        "TabNet", "Retrieval", "pytorch-tabnet", "pytorch_tabnet:TabNet", "pytorch-tabnet"
    ),
    BaselineInfo("SNN", "Other", "tabnsm", "snn:snn"),
    BaselineInfo("TANGOS", "Other", "deeptab", "deeptab:tangos", "deeptab"),
    BaselineInfo("PTaRL", "Other", "tabnsm", "ptarl:ptarl"),
    BaselineInfo("DANets", "Other", "pytorch-tabular", "pytorch_tabular:danets", "pytorch-tabular"),
    BaselineInfo("GrowNet", "Other", "tabnsm", "grownet:GrowNet"),
    BaselineInfo("DNNR", "Other", "dnnr", "dnnr:DNNR", "dnnr"),
    BaselineInfo("SwitchTab", "Other", "ts3l", "switchtab:switchtab", "pytorch-tabular"),
    BaselineInfo("GRANDE", "Other", "GRANDE", "grande:GRANDE", "grande"),
    BaselineInfo("AMFormer", "Foundation", "tabnsm", "amformer:amformer"),
    BaselineInfo(
        "TabEBM",
        "Foundation",
        why_not="It generates rows class by class from energies of a classifier: there is no "
        "regressor to run, neither in the package tabebm nor in its paper.",
    ),
    BaselineInfo(
        "TabPFN-v2",
        "Foundation",
        "tabpfn",
        "tabpfn:TabPFN",
        "tabpfn",
        weights="TABNSM_TABPFN_WEIGHTS",
        why_not="The weights, tabpfn-v2-regressor.ckpt of huggingface.co/Prior-Labs/TabPFN-v2-reg, "
        "come with a licence of their own and are not downloaded by tabnsm.",
    ),
    BaselineInfo("TabPTM", "Foundation", "tabnsm", "tabptm:tabptm"),
    BaselineInfo("RealMLP", "MLP-style", "pytabkit", "pytabkit:realmlp", "pytabkit"),
)
BASELINES: dict[str, BaselineInfo] = {info.key: info for info in _ENTRIES}


def make(key: str, options: Mapping[str, Any] | None = None) -> Method:
    """A method that has not been fitted yet.

    Parameters
    ----------
    key : str
        Of a baseline, or "tabnsm-default", "tabnsm-best", "tabnsm-paper", "tabnsm-fast".
    options : mapping or None
        Options of the method; "max_epochs" is ignored where there are no epochs.

    Returns
    -------
    Method

    Raises
    ------
    InvalidOptionError
        If there is no such method, if it cannot run here, or if it has no such option.

    Examples
    --------
    >>> make("ridge", {"alpha": 2.0}).takes_frames
    False
    """
    options = dict(options or {})
    if key in TABNSM_METHODS:
        from tabnsm_bench.baselines.tabnsm import TabNSMMethod

        return TabNSMMethod(key.removeprefix("tabnsm-"), **options)
    info = find(key)
    if info.user_factory:
        from tabnsm_bench.baselines.user_method import user_method

        return user_method(info, options)
    if info.state != READY:
        raise InvalidOptionError(f"{info.name} cannot run here. {info.reason} {info.remedy}")
    environment = find_environment(info.environment) if info.environment else None
    if environment is not None:
        from tabnsm_bench.baselines.remote import RemoteMethod

        return RemoteMethod(environment, key, options)
    return make_here(key, options)


def make_here(key: str, options: Mapping[str, Any]) -> Method:
    """A method that runs in this interpreter, which has its package.

    Parameters
    ----------
    key : str
        Of a baseline with an adapter.
    options : mapping
        Options of the method.

    Returns
    -------
    Method
    """
    module, _, factory = find(key).adapter.partition(":")
    adapter = importlib.import_module(f"tabnsm_bench.baselines.{module}")
    method: Method = getattr(adapter, factory)(**options)
    return method


def find(key: str) -> BaselineInfo:
    """The baseline of a key.

    Parameters
    ----------
    key : str
        As in `BASELINES`.

    Returns
    -------
    BaselineInfo

    Raises
    ------
    InvalidOptionError
        If there is none; the message has the nearest ones.
    """
    if key in BASELINES:
        return BASELINES[key]
    near = difflib.get_close_matches(key, [*TABNSM_METHODS, *BASELINES], n=3)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise InvalidOptionError(
        f"method must be one of those that `tabnsm bench baselines` shows, got {key!r}.{hint}"
    )
