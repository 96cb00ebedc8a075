"""Attributions of rows: against Captum, by hand, and on tables whose foreground is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import InvalidOptionError, TabNSMRegressor
from tabnsm.attribution import Explanation
from tabnsm.attribution.rows import input_columns, token_attributions
from tabnsm.functional.blocks import n_blocks
from tabnsm.nn import TabNSM
from tabnsm.tables import Table
from tests.fakes import FakeTextEncoder

pytestmark = pytest.mark.usefixtures("one_network")


def quick(**options: Any) -> TabNSMRegressor:
    small = {"max_epochs": 2, "d_token": 8, "head_width": 16, "random_state": 0}
    return TabNSMRegressor(**(small | options))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Every kind of column: two texts, an empty one, holes, a category, dates, numbers."""
    rng = np.random.default_rng(0)
    n = 90
    words = np.array([f"word{k}" for k in range(40)])
    table = pd.DataFrame(
        {
            "title": [" ".join(rng.choice(words, 3)) for _ in range(n)],
            "area": rng.normal(size=n),
            "empty": [None] * n,
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "notes": [" ".join(rng.choice(words, 5)) for _ in range(n)],
            "sold": pd.date_range("2024-01-01", periods=n, freq="3D"),
        }
    )
    table.loc[::7, "area"] = np.nan
    return table.assign(**{f"x{k}": rng.normal(size=n) for k in range(8)})


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame) -> TabNSMRegressor:
    y = frame["x0"] - 2 * frame["x3"] + (frame["city"] == "Oslo")
    options = {"text_columns": "joined", "n_text_features": 0, "text_cache": False}
    return quick(text_encoder=FakeTextEncoder(d_text=24), **options).fit(frame, y)


@pytest.fixture(scope="module")
def explanation(model: TabNSMRegressor, frame: pd.DataFrame) -> Explanation:
    return model.explain(frame, method="gradient")


def test_equal_to_captum(
    model: TabNSMRegressor, frame: pd.DataFrame, explanation: Explanation
) -> None:
    from captum.attr import LayerGradientXActivation

    encoded = model.encoder_.transform(Table.from_native(frame))
    x = encoded.gather(torch.arange(encoded.n_rows))
    captum = LayerGradientXActivation(model.model_, model.model_.tokenizer).attribute(x)
    expected = captum.detach().sum(dim=-1).numpy()
    np.testing.assert_allclose(explanation.feature_contributions, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("baseline", ["zero", "average"])
def test_a_linear_readout_by_hand(baseline: Any) -> None:
    """Without attention, mixing and a curved head the attribution is known in closed form."""

    class Pass(torch.nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return torch.zeros_like(tokens)

    class Dot(torch.nn.Module):
        def forward(self, features: torch.Tensor) -> torch.Tensor:
            return features @ torch.tensor([[1.0], [-2.0], [0.5]])

    network = TabNSM(3, d_token=8, mixer=False, n_token_pools=0, category_sizes=[0, 0, 4])
    network.interaction.attention = Pass()
    network.head = Dot()  # type: ignore[assignment]
    x = torch.tensor([[0.3, -1.0, 2.0], [2.0, 0.0, 0.0]])
    tokens = network.tokenizer(x).detach()
    if baseline == "average":
        tokens = tokens - network.tokenizer.bias.detach()
    # Y = w2 U + Z + w3 X with U = w1 X and Z = U: three tokens' worth at the start.
    expected = 3 * tokens.mean(dim=-1) * torch.tensor([1.0, -2.0, 0.5])
    _, attribution = token_attributions(network, x, baseline)
    torch.testing.assert_close(attribution, expected)
    if baseline == "average":
        assert attribution[1, 1] == attribution[1, 2] == 0  # a mean number, an unseen category


def test_gradients_are_those_of_finite_differences(model: TabNSMRegressor) -> None:
    network = model.model_.double()
    try:
        x = torch.randn(3, network.n_features, generator=torch.Generator().manual_seed(0)).double()
        x[:, network.tokenizer.categorical] = 1.0
        tokens = network.tokenizer(x).detach()
        _, attribution = token_attributions(network, x)
        step = 1e-6
        for feature in (0, 5, network.n_features - 1):
            moved = tokens.clone()
            moved[:, feature] *= 1 + step
            change = network.from_tokens(moved) - network.from_tokens(tokens)  # (3, 1)
            torch.testing.assert_close(
                (change[:, 0] / step).detach(), attribution[:, feature], rtol=1e-3, atol=1e-6
            )
    finally:
        network.float()


def test_columns_add_up_their_features(explanation: Explanation) -> None:
    """Texts share an entry at the place of the first; what was dropped has none."""
    numbers = [f"x{k}" for k in range(8)]
    assert list(explanation.columns) == ["title + notes", "area", "city", "sold", *numbers]
    features = dict(
        zip(explanation.encoded_names, explanation.feature_contributions.T, strict=True)
    )
    columns = dict(zip(explanation.columns, explanation.contributions.T, strict=True))
    parts = {
        "title + notes": [f"text_{k}" for k in range(24)],
        "area": ["area", "area_missing"],
        "city": ["city"],
        "sold": [name for name in features if name.startswith("sold_")],
        "x7": ["x7"],
    }
    for name, own in parts.items():
        expected = sum(features[feature].astype(float) for feature in own)
        np.testing.assert_allclose(columns[name], expected, atol=1e-5)
    assert len(parts["sold"]) > 1


def test_normalised_within_each_row(explanation: Explanation, frame: pd.DataFrame) -> None:
    attributions = explanation.attributions
    assert attributions.shape == (len(frame), 12)
    assert attributions.min() >= 0
    np.testing.assert_array_equal(attributions.max(axis=1), 1)
    np.testing.assert_array_equal(
        attributions.argmax(axis=1), np.abs(explanation.contributions).argmax(axis=1)
    )
    assert explanation.importance.sum() == pytest.approx(1)


def test_a_row_does_not_depend_on_its_neighbours(
    model: TabNSMRegressor, frame: pd.DataFrame, explanation: Explanation
) -> None:
    order = np.random.default_rng(1).permutation(len(frame))
    shuffled = model.explain(frame.iloc[order], method="gradient")
    single = model.explain(frame.iloc[[17]], method="gradient")
    for other, rows in ((shuffled, order), (single, [17])):
        np.testing.assert_array_equal(other.predictions, explanation.predictions[rows])
        np.testing.assert_array_equal(other.selected_blocks, explanation.selected_blocks[rows])
        np.testing.assert_allclose(
            other.feature_contributions,
            explanation.feature_contributions[rows],
            rtol=1e-5,
            atol=1e-6,
        )


def test_predictions_are_those_of_predict(
    model: TabNSMRegressor, frame: pd.DataFrame, explanation: Explanation
) -> None:
    np.testing.assert_allclose(explanation.predictions, model.predict(frame), rtol=1e-5)


def test_weights_and_mode_are_left_alone(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    before = {name: tensor.clone() for name, tensor in model.model_.state_dict().items()}
    gradients = [parameter.grad for parameter in model.model_.parameters()]
    with torch.no_grad():
        model.explain(frame[:5])
    assert not model.model_.training
    for name, tensor in model.model_.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
    assert [parameter.grad for parameter in model.model_.parameters()] == gradients


def test_selected_blocks_are_the_models(
    model: TabNSMRegressor, frame: pd.DataFrame, explanation: Explanation
) -> None:
    encoded = model.encoder_.transform(Table.from_native(frame))
    chosen = model.model_.selected_blocks(encoded.gather(torch.arange(4)))  # (4, H, D, m)
    blocks = explanation.selected_blocks
    assert blocks is not None
    assert blocks.shape == (len(frame), n_blocks(encoded.n_features, 10))
    for row in range(4):
        for block in range(blocks.shape[1]):
            share = (chosen[row] == block).any(dim=-1).double().mean().item()
            assert blocks[row, block] == pytest.approx(share)
    np.testing.assert_allclose(blocks.sum(axis=1), chosen.shape[-1], rtol=1e-6)
    foreground = explanation.foreground
    assert foreground is not None
    place = explanation.encoded_names.index("city")
    column = explanation.columns.index("city")
    np.testing.assert_allclose(foreground[:, column], blocks[:, place // 10])


@pytest.mark.parametrize("attention", ["full", "mamba"])
def test_other_operators_have_no_blocks(attention: str, frame: pd.DataFrame) -> None:
    numbers = frame[[f"x{k}" for k in range(8)]]
    fitted = quick(attention=attention).fit(numbers, numbers["x0"] * numbers["x1"])
    explanation = fitted.explain(numbers)
    assert explanation.selected_blocks is None
    assert explanation.foreground is None
    assert explanation.attributions.shape == numbers.shape


def test_saved_and_loaded_explains_the_same(
    model: TabNSMRegressor, frame: pd.DataFrame, explanation: Explanation, tmp_path: Any
) -> None:
    model.save(tmp_path / "m.safetensors")
    encoder = FakeTextEncoder(d_text=24)
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors", text_encoder=encoder)
    np.testing.assert_array_equal(
        loaded.explain(frame, method="gradient").contributions, explanation.contributions
    )


def test_an_unknown_baseline(model: TabNSMRegressor, frame: pd.DataFrame) -> None:
    with pytest.raises(InvalidOptionError, match=r"baseline must be one of .* got 'mean'"):
        model.explain(frame, baseline="mean")  # type: ignore[arg-type]


def test_one_text_column_keeps_its_name(frame: pd.DataFrame) -> None:
    fitted = quick(text_encoder=FakeTextEncoder(d_text=6), text_cache=False).fit(
        frame[["notes", "x0"]], frame["x0"] * frame["x1"]
    )
    names, column_of_feature = input_columns(fitted.encoder_)
    assert names == ("notes", "x0")
    assert column_of_feature.tolist() == [1, 0, 0, 0, 0, 0, 0]


def test_texts_that_are_embedded_by_themselves_have_entries_of_their_own(
    frame: pd.DataFrame,
) -> None:
    options = {"text_columns": "separate", "text_cache": False}
    fitted = quick(text_encoder=FakeTextEncoder(d_text=6), **options).fit(
        frame[["title", "x0", "notes"]], frame["x0"] * frame["x1"]
    )
    explanation = fitted.explain(frame)
    assert explanation.columns == ("title", "x0", "notes")
    names = [explanation.encoded_names[k] for k in np.flatnonzero(explanation.column_of_feature)]
    assert names[0] == "x0"
    assert all(name.startswith("notes_text_") for name in names[1:])


GROUP, N_GROUPS, N_COLUMNS = 3, 3, 18


def regimes(n_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """A category says which three columns make the target; which these are is returned."""
    layout = np.random.default_rng(7)
    groups = layout.permutation(N_COLUMNS)[: GROUP * N_GROUPS].reshape(N_GROUPS, GROUP)
    weights = layout.uniform(0.5, 1.5, groups.shape)
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, N_COLUMNS))
    regime = rng.integers(N_GROUPS, size=n_rows)
    y = (np.take_along_axis(x, groups[regime], axis=1) * weights[regime]).sum(axis=1)
    truth = np.zeros(x.shape, dtype=bool)
    np.put_along_axis(truth, groups[regime], True, axis=1)
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(N_COLUMNS)])
    return frame.assign(regime=np.array(["a", "b", "c"])[regime]), y, truth


@pytest.mark.slow
def test_the_true_foreground_is_found() -> None:
    """No ranking that is the same for all rows can exceed 1/3: the foreground moves by row."""
    X, y, _ = regimes(1500, seed=0)
    X_new, y_new, truth = regimes(300, seed=1)
    fitted = TabNSMRegressor(
        random_state=0, max_epochs=14, d_token=16, head_width=64, batch_size=32
    ).fit(X, y)
    assert fitted.score(X_new, y_new) > 0.9
    precision = {}
    for baseline in ("zero", "average"):
        explained = fitted.explain(X_new, method="gradient", baseline=baseline)  # type: ignore[arg-type]
        at = [explained.columns.index(f"x{k}") for k in range(N_COLUMNS)]
        top = np.argsort(-explained.attributions[:, at], axis=1)[:, :GROUP]
        precision[baseline] = np.take_along_axis(truth, top, axis=1).mean()
    assert precision["zero"] > 0.6
    assert precision["average"] > 0.7
