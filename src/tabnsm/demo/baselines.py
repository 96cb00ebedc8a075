"""What TabNSM is compared with: boosting and ridge regression, each given a fair chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# HistGradientBoosting takes at most 255 categories per column.
MAX_CATEGORIES = 254
# Rows that a string must occur in to have a one-hot column of its own.
MIN_ROWS = 20


def make_boosting(X: pd.DataFrame) -> Any:
    """scikit-learn's boosting, with the most frequent strings of each column as categories."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    known = {name: X[name].value_counts().index[:MAX_CATEGORIES] for name in _strings(X)}

    def categorise(table: pd.DataFrame) -> pd.DataFrame:
        kept = {name: table[name].where(table[name].isin(known[name])) for name in known}
        types = {name: pd.CategoricalDtype(values) for name, values in known.items()}
        return table.assign(**kept).astype(types)

    return make_pipeline(
        FunctionTransformer(categorise), HistGradientBoostingRegressor(random_state=0)
    )


def make_ridge(X: pd.DataFrame) -> Any:
    """Ridge regression on standardised numbers and one-hot strings, its penalty by validation."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    strings = _strings(X)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=MIN_ROWS, sparse_output=False
    )
    return make_pipeline(
        make_column_transformer((one_hot, strings), remainder=numbers),
        RidgeCV(alphas=np.logspace(-2, 4, 13)),
    )


def _strings(X: pd.DataFrame) -> list[str]:
    return [str(name) for name in X.columns if X[name].dtype.kind not in "ifb"]
