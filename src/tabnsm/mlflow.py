"""A flavour of MLflow around the safe file: log, save, load and serve models without pickle.

`save_model` writes the model's own safetensors file, and a few lines of Python ("models from
code") that let ``mlflow models serve`` and ``mlflow.pyfunc.load_model`` predict with it. Needs the
extra "mlflow".
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabnsm._version import __version__
from tabnsm.errors import MissingExtraError, ModelFileError
from tabnsm.estimator import TabNSMRegressor

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow warns of the types of its own classes
        import mlflow
        import pandas as pd  # for MLflow, which reads the types of `predict`
        from mlflow.models import Model, ModelSignature
        from mlflow.pyfunc import PythonModel
        from mlflow.types import ColSpec, Schema
        from mlflow.types.schema import AnyType
except ImportError as error:
    raise MissingExtraError("mlflow", "Models of MLflow") from error

if TYPE_CHECKING:
    from mlflow.models.model import ModelInfo

    from tabnsm.fitted import FittedRegressor
    from tabnsm.text import TextEncoder

FLAVOR_NAME = "tabnsm"
_FILE = "model.safetensors"
_CODE = '''"""Loaded by MLflow; see tabnsm.mlflow."""

from mlflow.models import set_model

from tabnsm.mlflow import PredictingModel

set_model(PredictingModel())
'''


class PredictingModel(PythonModel):  # type: ignore[misc]
    """What MLflow calls to predict."""

    def load_context(self, context: Any) -> None:
        """Read the model file."""
        self.model = TabNSMRegressor.load(context.artifacts[FLAVOR_NAME])

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> Any:
        """Predictions as `TabNSMRegressor.predict` gives them; several targets as a DataFrame."""
        prediction = self.model.predict(model_input)
        if prediction.ndim == 1:
            return prediction
        return pd.DataFrame(prediction, columns=list(self.model.target_.labels))


def save_model(
    model: FittedRegressor,
    path: str | Path,
    *,
    input_example: pd.DataFrame | None = None,
    signature: Any = None,
    pip_requirements: list[str] | None = None,
    metadata: dict[str, Any] | None = None,
    keep_rows: bool = False,
    mlflow_model: Model | None = None,
) -> None:
    """Write a fitted model as a folder that MLflow can load and serve.

    Parameters
    ----------
    model : TabNSMRegressor
        Fitted.
    path : str or Path
        The folder; must not exist.
    input_example : DataFrame or None, default None
        Some rows, which MLflow keeps to show how to call the model.
    signature : mlflow.models.ModelSignature or None, default None
        Columns and types that MLflow checks before it predicts. None is the names of the columns
        of the fit, if they have any; what may be in them is for the model to say.
    pip_requirements : list of str or None, default None
        What an environment for the model needs; None is this version of tabnsm with its extras.
    metadata : dict or None, default None
        Further facts to keep with the model.
    keep_rows : bool, default False
        Whether the model has the encoded rows of the fit by which `refit` keeps what it has
        learned, as for `TabNSMRegressor.save`; a registry may be open to others.
    mlflow_model : mlflow.models.Model or None, default None
        For MLflow itself, which passes it when a model is logged.
    """
    described = mlflow_model if mlflow_model is not None else Model()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # The signature is the model's own, and needs no example to be right.
        warnings.filterwarnings("ignore", ".*An input example was not provided")
        file, code = Path(folder) / _FILE, Path(folder) / "predicting_model.py"
        model.save(file, keep_rows=keep_rows)
        code.write_text(_CODE)
        described.add_flavor(FLAVOR_NAME, data=f"artifacts/{_FILE}", tabnsm_version=__version__)
        mlflow.pyfunc.save_model(
            path=str(path),
            python_model=str(code),
            artifacts={FLAVOR_NAME: str(file)},
            input_example=input_example,
            signature=_signature(model) if signature is None else signature,
            pip_requirements=pip_requirements or _requirements(model),
            metadata=metadata,
            mlflow_model=described,
        )


def log_model(
    model: FittedRegressor,
    name: str = "model",
    *,
    run_id: str | None = None,
    registered_model_name: str | None = None,
    **options: Any,
) -> ModelInfo:
    """Log a fitted model to MLflow.

    Parameters
    ----------
    model : TabNSMRegressor
        Fitted.
    name : str, default "model"
    run_id : str or None, default None
        Run that it belongs to; None is the active one, if any.
    registered_model_name : str or None, default None
        Name under which it is also registered.
    **options
        As for `save_model`.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its `model_uri` is for `load_model` and ``mlflow models serve``.
    """
    info: ModelInfo = Model.log(
        artifact_path=None,
        name=name,
        flavor=sys.modules[__name__],
        run_id=run_id,
        registered_model_name=registered_model_name,
        model=model,
        **options,
    )
    return info


def load_model(
    model_uri: str | Path,
    *,
    device: str = "auto",
    text_encoder: str | TextEncoder | None = None,
) -> TabNSMRegressor:
    """Load a model that was logged or saved.

    Parameters
    ----------
    model_uri : str or Path
        A folder, or an address of MLflow such as "models:/price/1" or "runs:/.../model".
    device, text_encoder
        As for `TabNSMRegressor.load`.

    Returns
    -------
    TabNSMRegressor
        Predicts bit for bit as the model that was logged.
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=str(model_uri)))
    flavor = Model.load(str(folder)).flavors.get(FLAVOR_NAME)
    if flavor is None:
        raise ModelFileError(
            f"{model_uri} must be a model that tabnsm.mlflow has logged, but MLflow knows no "
            f"flavour {FLAVOR_NAME!r} of it. Load it with mlflow.pyfunc.load_model."
        )
    return TabNSMRegressor.load(folder / flavor["data"], device=device, text_encoder=text_encoder)


def _signature(model: FittedRegressor) -> ModelSignature | None:
    """Names of columns and targets; columns that were left out of the fit may be missing."""
    if not hasattr(model, "feature_names_in_"):
        return None
    columns = [
        ColSpec(AnyType(), row.name, required=row.kind != "drop")
        for row in model.describe_columns()
    ]
    targets = model.target_.names
    numbers = [ColSpec("double", name) for name in targets or (None,)]
    return ModelSignature(inputs=Schema(columns), outputs=Schema(numbers))


def _requirements(model: FittedRegressor) -> list[str]:
    """The version of tabnsm in use, with the extras that the model needs."""
    has_text = any(row.kind == "text" for row in model.describe_columns())
    return [f"tabnsm[{'mlflow,text' if has_text else 'mlflow'}]=={__version__}"]
