"""TabNSMRegressor: validate, encode, train, predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tabnsm.attribution import explain_rows
from tabnsm.columns import TableEncoder
from tabnsm.columns.checks import warn_about_columns
from tabnsm.ensemble_training import EnsembleTraining
from tabnsm.errors import InvalidOptionError, warn
from tabnsm.model_file import load_model, save_model
from tabnsm.nn.config import is_integer, require
from tabnsm.nn.ensemble import Ensemble, join_networks
from tabnsm.nn.model import TabNSM
from tabnsm.preprocessing import TargetScaler
from tabnsm.presets import Options, resolve_options
from tabnsm.tables import Table
from tabnsm.torch_state import usual_torch
from tabnsm.training.budget import TimeBudget
from tabnsm.training.checkpoint import locked_folder
from tabnsm.training.history import History
from tabnsm.training.loop import TrainingData, predict_rows
from tabnsm.training.memory import check_memory
from tabnsm.training.progress import TrainingProgress
from tabnsm.training.rows import split_rows, subtract_linear_fit, usable_rows, validation_rows
from tabnsm.training.split import row_labels, validation_mask

if TYPE_CHECKING:
    import pandas as pd

    from tabnsm.attribution import Explanation
    from tabnsm.columns import ColumnReport
    from tabnsm.preprocessing import LinearFit
    from tabnsm.text import TextEncoder


class TabNSMRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression on wide, mixed tables with the neural sparse mixer.

    Takes a DataFrame (pandas, polars, pyarrow) or an array with numbers, categories, dates and
    free text, missing values included. An option that is None takes the preset's value.

    Parameters
    ----------
    preset : {"default", "paper", "fast"}, default "default"
        "paper" follows the paper's equations, "fast" trades accuracy for time.
    d_token : int or None, default None
        Width of a feature's token: 32; paper: 64; fast: 16.
    n_heads : int, default 4
        Heads of the attention; `d_token` is a multiple of it.
    attention : {"sparse", "full", "mamba"}, default "sparse"
        Operator over the features; the last two are the paper's ablation.
    window_size : int, default 6
        Features on either side that every feature attends to.
    compress_block_size : int, default 10
        Features that one compressed key stands for.
    compress_stride : int or None, default None
        Distance of the compressed blocks' starts; None is the block size.
    selection_block_size : int, default 10
        Features in a block that can be selected.
    n_selected_blocks : int, default 3
        Blocks that a feature attends to at full resolution.
    max_exact_features : int, default 512
        Features up to which every compressed block is a key of its own. In wider tables
        neighbouring blocks share one, so that there are no more keys than at this width and
        time and memory grow linearly with the features.
    gates : {"head", "feature"} or None, default None
        Whether each head weighs the branches by itself: "head"; paper: "feature".
    mixer : bool, default True
        Whether Feature-Token Mixing follows the attention.
    mixer_chunk_size : int, default 64
        Features that are mixed with each other.
    n_token_pools : int or None, default None
        Numbers that the head sees of each feature's token: 8, 512 in all; paper: 0, so that it
        sees the one that the interaction makes alone.
    head_width : int, default 256
        Inner width of the regression head.
    loss : {"auto", "blend", "mse", "mae", "log_cosh"} or None, default None
        A plain loss, or Huber and GridLoss blended as below: "auto", but for targets of at most
        12 distinct values, where it is "mse" unless the blend is changed; paper: "blend".
    huber_weight : float, default 0.5
        Share of the Huber loss in the objective; the rest is GridLoss.
    huber_delta : float, default 1.0
        Where Huber turns from squared to absolute, in standard deviations of the target.
    n_grid_cells : int, default 100
        Cells of GridLoss.
    temperature : float or None, default None
        Softness of GridLoss: 0.02 of the range; paper: 1.0 standard deviations.
    normalize_grid : bool or None, default None
        Whether GridLoss is in target units and not in index units: True; paper: False.
    target_transform : {"auto", "none"} or None, default None
        "auto" learns and validates a heavy-tailed target, of which one row in a thousand carries
        over half the squared deviation, as its asinh: "auto"; paper: "none".
    linear_residual : bool or None, default None
        Whether networks learn the residual of a linear fit: True; paper: False. The fit is made
        before training and used where it explains 99 % of the squared deviation of at least 20
        validation rows, and does not overfit the training rows.
    n_difficulty_bins : int, default 5
        RISE: bins of training rows by their loss.
    max_boost : float, default 2.0
        RISE: how much more often the hardest bin is drawn; 1 switches RISE off.
    refresh_every : int, default 5
        RISE: epochs between two looks at the rows' losses.
    rise_sampling : {"systematic", "multinomial"} or None, default None
        RISE: how rows are drawn: "systematic"; paper: "multinomial".
    n_ensemble : int, "auto" or None, default None
        Networks that are trained and predict together: "auto", which is 8 for up to 62,500
        encoded values to train on, 4 for 250,000, 1 for over 4 million; paper: 1; fast: 1.
    max_epochs : int or None, default None
        Most passes over the training rows: 100; fast: 30.
    batch_size : int or "auto", default "auto"
        Rows per step; "auto" aims at 32 steps per epoch, with 16 to 256 rows each.
    learning_rate : float, default 2e-3
        Of AdamW, halved when validation stalls.
    weight_decay : float, default 1e-2
        Of AdamW, for matrices.
    ema_decay : float or None, default None
        How much of the running average of the weights a step keeps; the average validates
        and predicts: 0.995; paper: 0.0, the weights themselves.
    eval_metric : {"rmse", "mae"}, default "rmse"
        What validation watches: it chooses the best epoch, stops training and halves the learning
        rate; on the transformed scale where `target_transform` transforms the target.
    patience : int or None, default None
        Epochs without a better validation score before training stops: 16; fast: 6.
    scheduler_patience : int or None, default None
        Epochs without a better one before the learning rate is halved: 5; fast: 2.
    gradient_clip : float, default 1.0
        Largest norm of the gradient.
    time_limit : float or None, default None
        Seconds from the call of `fit`, after which the best epoch so far is kept; of several
        networks, those that cannot be finished by then are left out, but for the first. Text that
        would take more than half of it to embed is left out with a warning.
    precision : {"auto", "float32", "bfloat16"}, default "auto"
        Of training; "auto" is bfloat16 on a GPU that has it. Prediction is float32.
    column_kinds : dict of str to str or None, default None
        Kind of a column by name, where it should not be found by itself: "numeric",
        "category", "text", "date" or "drop".
    date_encoding : {"calendar", "text"} or None, default None
        Dates as calendar parts and elapsed days, or as strings: "calendar"; paper: "text".
    category_encoding : {"embedding", "code"} or None, default None
        A learned vector per category, or its number: "embedding"; paper: "code".
    repeated_strings : {"category", "text"} or None, default None
        What ten or more different strings are that occur ten times each on average:
        "category"; paper: "text".
    n_bins : int or None, default None
        Bins of the piecewise-linear encoding of a number, between quantiles of the training rows:
        at most 16, and up to four times as many where values repeat, as codes do; paper: 0, which
        is one linear piece.
    missing_indicators : bool or None, default None
        Whether a 0/1 feature says where a number was missing: True; paper: False.
    clip_outliers : bool or None, default None
        Whether numbers, and predictions of the networks, are limited to the training range and
        a tenth: True; paper: False.
    text_encoder : str or TextEncoder, default "minilm"
        Encoder of text columns: "minilm", a local path, the name of a sentence-transformers
        model on this machine, or an object with the `TextEncoder` methods.
    text_columns : {"joined", "separate"} or None, default None
        Whether each text column is embedded by itself: "separate"; paper: "joined", the text
        of a row as one string. Separate ones are less work where values repeat, and can be told
        apart in explanations.
    n_text_features : int or None, default None
        Most features of all text together, the directions in which embeddings differ most: 64;
        paper: 0, which is all dimensions of the encoder.
    text_precision : {"float32", "int8"}, default "float32"
        Of the text encoder; "int8" is faster and rounds.
    text_cache : bool, default True
        Whether embeddings of texts are kept on disk.
    validation_fraction : float, default 0.1
        Rows to validate on when `fit` gets no validation rows.
    checkpoint_dir : str, Path or None, default None
        Folder for the state of training after every epoch, for ``fit(..., resume=True)``; one
        fit at a time can use it.
    device : str, default "auto"
        "auto" is a GPU where there is one (untested for lack of one), else the CPU.
    random_state : int, RandomState or None, default None
        Same number, same bits on a CPU, whatever the number of threads.
    verbose : int, default 0
        0 is silent, 1 or True shows a bar, 2 a line per epoch. Not saved with the model.

    Attributes
    ----------
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, when they had any.
    model_ : tabnsm.nn.TabNSM or tabnsm.nn.Ensemble
        The torch module with the weights of the best epoch; several networks as an ensemble.
    encoder_ : TableEncoder
        From tables to encoded features.
    scaler_ : TargetScaler
        From targets, or what the linear part leaves of them, to standardised ones and back.
    linear_fit_ : LinearFit or None
        The linear fit whose residual the networks predict, if there is one.
    history_ : History
        One record per epoch, the best epoch and why training stopped; of the first network.
    histories_ : tuple of History
        The same of every network; the last one also says if `time_limit` or Ctrl-C left others
        out.
    n_iter_ : int
        Epochs of the network that was trained longest.
    validation_rmse_ : float
        RMSE of the predictions on the validation rows.
    best_score_ : float
        The `eval_metric` of the predictions on the validation rows, in the target's units; lower
        is better.
    options_ : Options
        What the options came to after the preset.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = TabNSMRegressor(max_epochs=5, random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> model.predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self,
        *,
        preset: Literal["default", "paper", "fast"] = "default",
        d_token: int | None = None,
        n_heads: int = 4,
        attention: Literal["sparse", "full", "mamba"] = "sparse",
        window_size: int = 6,
        compress_block_size: int = 10,
        compress_stride: int | None = None,
        selection_block_size: int = 10,
        n_selected_blocks: int = 3,
        max_exact_features: int = 512,
        gates: Literal["head", "feature"] | None = None,
        mixer: bool = True,
        mixer_chunk_size: int = 64,
        n_token_pools: int | None = None,
        head_width: int = 256,
        loss: Literal["auto", "blend", "mse", "mae", "log_cosh"] | None = None,
        huber_weight: float = 0.5,
        huber_delta: float = 1.0,
        n_grid_cells: int = 100,
        temperature: float | None = None,
        normalize_grid: bool | None = None,
        target_transform: Literal["auto", "none"] | None = None,
        linear_residual: bool | None = None,
        n_difficulty_bins: int = 5,
        max_boost: float = 2.0,
        refresh_every: int = 5,
        rise_sampling: Literal["systematic", "multinomial"] | None = None,
        n_ensemble: int | Literal["auto"] | None = None,
        max_epochs: int | None = None,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-2,
        ema_decay: float | None = None,
        eval_metric: Literal["rmse", "mae"] = "rmse",
        patience: int | None = None,
        scheduler_patience: int | None = None,
        gradient_clip: float = 1.0,
        time_limit: float | None = None,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        column_kinds: Mapping[str, str] | None = None,
        date_encoding: Literal["calendar", "text"] | None = None,
        category_encoding: Literal["embedding", "code"] | None = None,
        repeated_strings: Literal["category", "text"] | None = None,
        n_bins: int | None = None,
        missing_indicators: bool | None = None,
        clip_outliers: bool | None = None,
        text_encoder: str | TextEncoder = "minilm",
        text_columns: Literal["joined", "separate"] | None = None,
        n_text_features: int | None = None,
        text_precision: Literal["float32", "int8"] = "float32",
        text_cache: bool = True,
        validation_fraction: float = 0.1,
        checkpoint_dir: str | Path | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.preset = preset
        self.d_token = d_token
        self.n_heads = n_heads
        self.attention = attention
        self.window_size = window_size
        self.compress_block_size = compress_block_size
        self.compress_stride = compress_stride
        self.selection_block_size = selection_block_size
        self.n_selected_blocks = n_selected_blocks
        self.max_exact_features = max_exact_features
        self.gates = gates
        self.mixer = mixer
        self.mixer_chunk_size = mixer_chunk_size
        self.n_token_pools = n_token_pools
        self.head_width = head_width
        self.loss = loss
        self.huber_weight = huber_weight
        self.huber_delta = huber_delta
        self.n_grid_cells = n_grid_cells
        self.temperature = temperature
        self.normalize_grid = normalize_grid
        self.target_transform = target_transform
        self.linear_residual = linear_residual
        self.n_difficulty_bins = n_difficulty_bins
        self.max_boost = max_boost
        self.refresh_every = refresh_every
        self.rise_sampling = rise_sampling
        self.n_ensemble = n_ensemble
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.ema_decay = ema_decay
        self.eval_metric = eval_metric
        self.patience = patience
        self.scheduler_patience = scheduler_patience
        self.gradient_clip = gradient_clip
        self.time_limit = time_limit
        self.precision = precision
        self.column_kinds = column_kinds
        self.date_encoding = date_encoding
        self.category_encoding = category_encoding
        self.repeated_strings = repeated_strings
        self.n_bins = n_bins
        self.missing_indicators = missing_indicators
        self.clip_outliers = clip_outliers
        self.text_encoder = text_encoder
        self.text_columns = text_columns
        self.n_text_features = n_text_features
        self.text_precision = text_precision
        self.text_cache = text_cache
        self.validation_fraction = validation_fraction
        self.checkpoint_dir = checkpoint_dir
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @usual_torch()
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        validation_groups: Any = None,
        validation_time: Any = None,
        resume: bool = False,
    ) -> TabNSMRegressor:
        """Train on a table.

        Rows without a target, and rows of weight zero, are left out before anything else.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        sample_weight : array-like of shape (n_rows,) or None
            Weights in the loss and in the validation score.
        X_val, y_val : as `X` and `y`, or None
            Rows to validate on; else a part of `X` is held out.
        validation_groups : array-like of shape (n_rows,) or None
            Hold out whole groups of rows.
        validation_time : array-like of shape (n_rows,) or None
            Hold out the latest rows.
        resume : bool, default False
            Continue the run whose state is in `checkpoint_dir`, if there is one.

        Returns
        -------
        TabNSMRegressor
            Itself.
        """
        options = resolve_options(self.get_params(deep=False))
        budget = TimeBudget(options.training.time_limit)
        self._check_fit_options(X_val, y_val, validation_groups, validation_time, resume)
        device = _resolve_device(self.device)
        with locked_folder(self.checkpoint_dir):
            table, target, weight, kept = usable_rows(X, y, sample_weight)
            check_memory(options.architecture, options.training, table.n_rows)
            given = None if X_val is None else validation_rows(X_val, y_val, table)
            seed = int(check_random_state(self.random_state).randint(2**31))
            generator = torch.Generator().manual_seed(seed)
            held_out = np.zeros(table.n_rows, dtype=bool)
            if given is None:
                groups, times = (
                    None if values is None else row_labels(values, len(kept), name)[kept]
                    for name, values in (
                        ("validation_groups", validation_groups),
                        ("validation_time", validation_time),
                    )
                )
                held_out = validation_mask(
                    table.n_rows, self.validation_fraction, generator, groups, times
                )
            encoder, data = _encode(table, target, weight, held_out, given, options, budget)
            linear = None
            if options.objective.linear_residual and budget.seconds_left() > 0:
                data, linear = subtract_linear_fit(data, encoder.category_sizes)
            options = replace(options, objective=options.objective.for_target(data.train_target))
            scaler = TargetScaler.fit(
                data.train_target,
                data.train_weight,
                transform=options.objective.target_transform == "auto",
                limit=options.encoder.clip_outliers,
            )
            training = EnsembleTraining(encoder, options, data, scaler, device, seed, budget)
            with TrainingProgress(
                self.verbose, options.training.max_epochs, training.n_networks
            ) as progress:
                training.train(generator, self.checkpoint_dir, resume, progress)
            scores = training.evaluate()

        self.n_features_in_ = table.n_columns
        if table.has_names:
            self.feature_names_in_ = np.array(table.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.model_: TabNSM | Ensemble = join_networks(training.models)
        self.encoder_: TableEncoder = encoder
        self.scaler_: TargetScaler = scaler
        self.linear_fit_: LinearFit | None = linear
        self.histories_: tuple[History, ...] = tuple(training.histories)
        self.validation_rmse_: float = scores.rmse
        self.best_score_: float = getattr(scores, options.training.eval_metric)
        self.options_: Options = options
        for message in training.messages:
            warn(message)  # not before there is a model: a second Ctrl-C would make it untrue
        return self

    @property
    def history_(self) -> History:
        """One record per epoch of the first network, its best epoch and why training stopped."""
        return self.histories_[0]

    @property
    def n_iter_(self) -> int:
        """Epochs of the network that was trained longest."""
        return max(len(history) for history in self.histories_)

    def training_history(self) -> pd.DataFrame:
        """Every epoch of every network as a pandas DataFrame.

        Returns
        -------
        DataFrame
            The columns of ``history_.to_frame()``, after `network`, counted from 1.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        check_is_fitted(self, "model_")
        frames = [history.to_frame() for history in self.histories_]
        import pandas as pd

        numbers = range(1, len(frames) + 1)
        together = pd.concat(frames, keys=numbers, names=["network"])
        return together.reset_index("network").reset_index(drop=True)

    def plot_history(self, path: str | Path | None = None) -> Any:
        """Draw how training went: validation, loss and learning rate of every network.

        Parameters
        ----------
        path : str, Path or None, default None
            File to write, such as "history.png"; None writes none.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        from tabnsm.plotting import plot_histories

        check_is_fitted(self, "model_")
        return plot_histories(self.histories_, path)

    @usual_torch()
    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of every row.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            With the columns of `fit`; order does not matter when they have names, further
            columns are ignored.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
        """
        check_is_fitted(self, "model_")
        encoded = self.encoder_.transform(Table.from_native(X, min_rows=0))
        device = next(self.model_.parameters()).device
        prediction = self.scaler_.inverse(predict_rows(self.model_, encoded, device))
        if self.linear_fit_ is not None:
            prediction += self.linear_fit_.predict(encoded)
        return prediction

    @usual_torch()
    def explain(self, X: Any, *, baseline: Literal["zero", "average"] = "zero") -> Explanation:
        """Attribute the prediction of every row to the input columns.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            As for `predict`.
        baseline : {"zero", "average"}, default "zero"
            "zero" is the paper's attribution, the gradient times the token; "average" counts
            only how far a token is from that of a mean number or an unseen category.

        Returns
        -------
        Explanation
            Attributions in [0, 1] per row and column, and the foreground blocks of each row.
        """
        check_is_fitted(self, "model_")
        encoded = self.encoder_.transform(Table.from_native(X, min_rows=0))
        return explain_rows(
            self.model_, self.encoder_, self.scaler_, encoded, baseline, self.linear_fit_
        )

    def describe_columns(self) -> ColumnReport:
        """What was understood of each column: kind, features, missing values, and notes."""
        check_is_fitted(self, "model_")
        return self.encoder_.describe()

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one safetensors file; no pickle, whole or not at all.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self, "model_")
        save_model(self, path)

    @classmethod
    @usual_torch()
    def load(
        cls,
        path: str | Path,
        *,
        device: str = "auto",
        text_encoder: str | TextEncoder | None = None,
    ) -> TabNSMRegressor:
        """Read a model written by `save`.

        Parameters
        ----------
        path : str or Path
        device : str, default "auto"
        text_encoder : str, TextEncoder or None
            Needed where the model was fitted with an encoder object, or where its encoder now
            lies elsewhere.

        Returns
        -------
        TabNSMRegressor
            Predicts bit for bit as the saved one did.
        """
        return load_model(cls, path, _resolve_device(device), text_encoder)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        return tags

    def _check_fit_options(
        self, X_val: Any, y_val: Any, groups: Any, time: Any, resume: bool
    ) -> None:
        if (X_val is None) != (y_val is None):
            given = "X_val" if y_val is None else "y_val"
            raise InvalidOptionError(f"X_val and y_val must be given together, got only {given}.")
        ways = {"X_val": X_val, "validation_groups": groups, "validation_time": time}
        given_ways = [name for name, value in ways.items() if value is not None]
        if len(given_ways) > 1:
            raise InvalidOptionError(
                f"Only one way to validate can be used, got {' and '.join(given_ways)}."
            )
        fraction: object = self.validation_fraction
        if not (isinstance(fraction, Real) and 0 < float(fraction) < 1):
            raise InvalidOptionError(
                f"validation_fraction must be > 0 and < 1, got {self.validation_fraction!r}. "
                "Pass X_val and y_val to validate on rows of your own."
            )
        is_level = isinstance(self.verbose, (bool, np.bool_)) or is_integer(self.verbose, 0)
        require(is_level, "verbose must be an integer >= 0", self.verbose)
        if resume and self.checkpoint_dir is None:
            raise InvalidOptionError(
                "resume=True needs checkpoint_dir, got None. Set it to the folder of the run."
            )


def _encode(
    table: Table,
    target: np.ndarray,
    weight: np.ndarray | None,
    held_out: np.ndarray,
    given: tuple[Table, np.ndarray] | None,
    options: Options,
    budget: TimeBudget,
) -> tuple[TableEncoder, TrainingData]:
    """Encode the rows to train and to validate on, with all that is learned from the former."""
    fit_rows = np.flatnonzero(~held_out)
    encoder = TableEncoder(options.encoder)
    # The user's own validation rows have texts, too, which must be embedded afterwards.
    share = 1.0 if given is None else table.n_rows / (table.n_rows + given[0].n_rows)
    limited = options.training.time_limit is not None
    with table.keep_columns():
        encoded = encoder.fit_transform(
            table, fit_rows, (lambda: share * budget.seconds_left()) if limited else None
        )
        check_memory(
            options.architecture,
            options.training,
            len(fit_rows),
            encoder.n_features,
            encoder.category_sizes,
            encoder.bins,
        )
        for message in warn_about_columns(table, encoder, target, fit_rows):
            warn(message)
    if given is None:
        return encoder, split_rows(encoded, target, weight, held_out)
    validation = encoder.transform(given[0])
    return encoder, TrainingData(encoded, target, weight, validation, given[1], None)


def _resolve_device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except (AssertionError, RuntimeError, TypeError) as error:
        raise InvalidOptionError(
            'device must be "auto" or a torch device that this machine has, such as "cpu" or '
            f'"cuda:0", got {device!r} ({error}).'
        ) from error
