"""TabNSMRegressor: its options."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from tabnsm.fitting import TrainableRegressor

if TYPE_CHECKING:
    from tabnsm.text import TextEncoder


class TabNSMRegressor(TrainableRegressor):
    """Regression on wide, mixed tables with the neural sparse mixer.

    Takes a DataFrame (pandas, polars, pyarrow), a dict of columns, an array or a sparse matrix,
    with numbers, categories, dates and free text, missing values included. An option that is None
    takes the preset's value. Start with `preset` and `time_limit`; the others, in groups:

    - **Time and accuracy**: `n_ensemble` to `precision`.
    - **Columns**: `column_kinds` to `clip_outliers`; of text, `text_encoder` to `text_cache`.
    - **Target**: `target_transform` to `clip_predictions`.
    - **Validation, resuming and running**: `validation_fraction` to `verbose`.
    - **The paper's method**, for studies: the loss, `loss` to `normalize_grid`; RISE, `max_boost`
      to `rise_sampling`; the network, `d_token` to `head_width`.

    Parameters
    ----------
    preset : {"default", "best", "paper", "fast"}, default "default"
        "best" adds trees, "paper" follows the paper's equations, "fast" trades accuracy for time.
    n_ensemble : int, "auto" or None, default None
        Networks that are trained and predict together: "auto", which is 3 for up to 4 million
        encoded values to train on, and 1 for more; paper: 1; fast: 1.
    max_epochs : int or None, default None
        Most passes over the training rows: 200; paper: 100; fast: 30.
    batch_size : int or "auto", default "auto"
        Rows per step; "auto" aims at 32 steps per epoch, with 16 to 256 rows each, in sixteens.
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
    patience : int, "auto" or None, default None
        Epochs without a better validation score before training stops: "auto", half as many as
        there were up to the best one, from 5 to 16; paper: 16; fast: 6.
    scheduler_patience : int or None, default None
        Epochs without a better one before the learning rate is halved: 5; fast: 2.
    time_limit : float or None, default None
        Seconds from the call of `fit`, after which the best epoch so far is kept; of several
        networks, those that cannot be finished by then are left out, but for the first. Text that
        would take more than half of it to embed is left out with a warning.
    precision : {"auto", "float32", "bfloat16"}, default "auto"
        Of training; "auto" is bfloat16 on a GPU that has it. Prediction is float32.
    column_kinds : dict of str to str or None, default None
        Kind of a column by name, where it should not be found by itself: "numeric",
        "category", "code", "text", "date" or "drop".
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
        Whether numbers are limited to the training range and a tenth: True; paper: False.
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
    target_means : bool or None, default None
        Whether values with few rows each, as of identifiers, get their cross-fitted mean target,
        and days what they add to it in other years, where that helps: True; paper: False.
    select_text : bool or None, default None
        Whether text that says nothing beyond the other columns is left out, and text that says
        much gets a feature with the direction that says most, cross-fitted: True; paper: False.
    text_precision : {"float32", "int8"}, default "float32"
        Of the text encoder; "int8" is faster and rounds.
    text_cache : bool, default True
        Whether embeddings of texts are kept on disk.
    target_transform : {"auto", "none"} or None, default None
        "auto" learns and validates a heavy-tailed target, of which one row in a thousand carries
        over half the squared deviation, as its asinh: "auto"; paper: "none".
    linear_residual : bool or None, default None
        Whether networks learn the residual of a linear fit: True; paper: False. The fit is made
        before training and used where it explains 99 % of the squared deviation of at least 20
        validation rows, and does not overfit the training rows.
    clip_predictions : bool or None, default None
        Whether predictions of the networks are limited to the range of the training targets and
        a tenth: True; paper: False.
    validation_fraction : float, default 0.1
        Rows to validate on when `fit` gets no validation rows.
    warm_start : bool, default False
        Whether a second `fit` goes on from the weights of the last one, with the same columns.
    checkpoint_dir : str, Path or None, default None
        Folder for the state of training after every epoch, for ``fit(..., resume=True)``; one
        fit at a time can use it.
    device : str, default "auto"
        "auto" is a GPU where there is one (untested for lack of one), else the CPU.
    n_jobs : int or None, default None
        Networks to train side by side: 1 is none, -1 one per core, -2 all cores but one. None is
        the number of ``joblib.parallel_config``, else one per torch thread where that saves time.
        Same bits in any case. Not saved with the model.
    random_state : int, RandomState or None, default None
        Same number, same bits on a CPU, whatever the number of threads.
    verbose : int, default 0
        0 is silent, 1 or True shows a bar, 2 a line per epoch. Not saved with the model.
    loss : {"auto", "blend", "mse", "mae", "log_cosh"} or None, default None
        A plain loss, or Huber and GridLoss blended as below. "auto" blends, but takes "mse" for at
        most 12 distinct values, and for mostly noise if scored by RMSE: "auto"; paper: "blend".
    huber_weight : float, default 0.5
        Share of the Huber loss in the objective; the rest is GridLoss.
    n_grid_cells : int, default 100
        Cells of GridLoss.
    temperature : float or None, default None
        Softness of GridLoss: 0.02 of the range; paper: 1.0 standard deviations.
    normalize_grid : bool or None, default None
        Whether GridLoss is in target units and not in index units: True; paper: False.
    max_boost : float, default 2.0
        RISE: how much more often the hardest bin is drawn; 1 switches RISE off.
    refresh_every : int, default 5
        RISE: epochs between two looks at the rows' losses.
    rise_sampling : {"systematic", "multinomial"} or None, default None
        RISE: how rows are drawn: "systematic"; paper: "multinomial".
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
    n_token_pools : int or None, default None
        Numbers that the head sees of each feature's token: 8, 512 in all; paper: 0, so that it
        sees the one that the interaction makes alone.
    head_width : int, "auto" or None, default None
        Inner width of the regression head, twice as much for several targets: "auto", which is 64
        for up to 150 rows to train on, else 128 for up to 100 features, else 256; paper: 256.

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
    target_ : TargetModel
        From targets to standardised ones, or residuals of a linear fit, and back.
    target_names_ : ndarray of str
        Names of the targets, when `y` was a DataFrame or a dict of columns.
    history_ : History
        One record per epoch, the best epoch and why training stopped; of the first network.
    histories_ : tuple of History
        The same of every network; the last also says if `time_limit` or Ctrl-C left others out.
    n_iter_ : int
        Epochs of the network that was trained longest.
    validation_rmse_ : float
        RMSE of the predictions on the validation rows; of several targets, the mean in standard
        deviations of each.
    best_score_ : float
        The `eval_metric` of these predictions, in the same units; lower is better.
    blend_ : Blend or None
        Of ``preset="best"``, what predicts beside the networks; ``blend_.weights`` has all shares.
    calibration_ : Calibration or None
        What intervals and quantiles are made from; None in models of earlier files.
    replay_ : ReplayRows or None
        Rows of the fit for `refit`; None in models of earlier files and of those without rows.
    feature_importances_ : ndarray of shape (n_columns,)
        How much values of a column from other rows change predictions, squared; adds up to 1.
    options_ : Options
        What the options came to for these rows, such as the number of networks.

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
        preset: Literal["default", "best", "paper", "fast"] = "default",
        n_ensemble: int | Literal["auto"] | None = None,
        max_epochs: int | None = None,
        batch_size: int | Literal["auto"] = "auto",
        learning_rate: float = 2e-3,
        weight_decay: float = 1e-2,
        ema_decay: float | None = None,
        eval_metric: Literal["rmse", "mae"] = "rmse",
        patience: int | Literal["auto"] | None = None,
        scheduler_patience: int | None = None,
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
        target_means: bool | None = None,
        select_text: bool | None = None,
        text_precision: Literal["float32", "int8"] = "float32",
        text_cache: bool = True,
        target_transform: Literal["auto", "none"] | None = None,
        linear_residual: bool | None = None,
        clip_predictions: bool | None = None,
        validation_fraction: float = 0.1,
        warm_start: bool = False,
        checkpoint_dir: str | Path | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        loss: Literal["auto", "blend", "mse", "mae", "log_cosh"] | None = None,
        huber_weight: float = 0.5,
        n_grid_cells: int = 100,
        temperature: float | None = None,
        normalize_grid: bool | None = None,
        max_boost: float = 2.0,
        refresh_every: int = 5,
        rise_sampling: Literal["systematic", "multinomial"] | None = None,
        d_token: int | None = None,
        n_heads: int = 4,
        attention: Literal["sparse", "full", "mamba"] = "sparse",
        window_size: int = 6,
        compress_block_size: int = 10,
        selection_block_size: int = 10,
        n_selected_blocks: int = 3,
        max_exact_features: int = 512,
        gates: Literal["head", "feature"] | None = None,
        mixer: bool = True,
        n_token_pools: int | None = None,
        head_width: int | Literal["auto"] | None = None,
    ) -> None:
        self.preset = preset
        self.n_ensemble = n_ensemble
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.ema_decay = ema_decay
        self.eval_metric = eval_metric
        self.patience = patience
        self.scheduler_patience = scheduler_patience
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
        self.target_means = target_means
        self.select_text = select_text
        self.text_precision = text_precision
        self.text_cache = text_cache
        self.target_transform = target_transform
        self.linear_residual = linear_residual
        self.clip_predictions = clip_predictions
        self.validation_fraction = validation_fraction
        self.warm_start = warm_start
        self.checkpoint_dir = checkpoint_dir
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.loss = loss
        self.huber_weight = huber_weight
        self.n_grid_cells = n_grid_cells
        self.temperature = temperature
        self.normalize_grid = normalize_grid
        self.max_boost = max_boost
        self.refresh_every = refresh_every
        self.rise_sampling = rise_sampling
        self.d_token = d_token
        self.n_heads = n_heads
        self.attention = attention
        self.window_size = window_size
        self.compress_block_size = compress_block_size
        self.selection_block_size = selection_block_size
        self.n_selected_blocks = n_selected_blocks
        self.max_exact_features = max_exact_features
        self.gates = gates
        self.mixer = mixer
        self.n_token_pools = n_token_pools
        self.head_width = head_width
