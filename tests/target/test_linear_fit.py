import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

from tabnsm import TabNSMRegressor
from tabnsm.cli import main
from tabnsm.columns import EncodedTable, TableEncoder
from tabnsm.columns.config import EncoderConfig
from tabnsm.columns.encoded import TextFeatures
from tabnsm.tables import Table
from tabnsm.target import LinearFit

OPTIONS = {"max_epochs": 8, "d_token": 8, "n_ensemble": 1, "random_state": 0}


def mixed_rows(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    town = rng.choice(["Bern", "Chur", "Genf"], n_rows)
    numbers = rng.normal(size=(n_rows, 3))
    table = pd.DataFrame(numbers, columns=list("abc")).assign(town=town)
    worth = pd.Series(town).map({"Bern": 10.0, "Chur": -7.0, "Genf": 2.0}).to_numpy()
    return table, 5 + 3 * numbers[:, 0] - numbers[:, 1] + worth


def test_it_is_least_squares_over_numbers_codes_and_text():
    rng = np.random.default_rng(0)
    numbers, codes = rng.normal(size=(300, 2)), rng.integers(0, 4, 300)
    values, index = rng.normal(size=(20, 3)), rng.integers(0, 20, 300)
    dense = torch.tensor(np.column_stack([numbers[:, 0], codes, numbers[:, 1]]).astype(np.float32))
    text = TextFeatures(torch.tensor(values, dtype=torch.float32), torch.tensor(index))
    table = EncodedTable(dense, (text,))
    target = 0.3 * rng.normal(size=300) + numbers[:, 0] + codes
    weight = rng.uniform(0.1, 3, 300)
    linear = LinearFit.fit(table, target, weight, [0, 4, 0, 0, 0, 0])
    matrix = np.column_stack([numbers, np.eye(4)[codes], values[index]])
    expected = LinearRegression().fit(matrix, target, weight).predict(matrix)
    np.testing.assert_allclose(linear.predict(table), expected, atol=1e-3)
    # Features add up to the whole, and rows do not depend on each other.
    standard = linear.contributions(table.gather(torch.arange(300))).sum(dim=1).numpy()
    np.testing.assert_array_equal(linear.scaler.inverse(standard), linear.predict(table))
    alone = linear.predict(table.take(torch.tensor([7])))
    assert alone[0] == linear.predict(table)[7]


@pytest.mark.parametrize("with_weight", [False, True])
def test_columns_need_not_be_centred(with_weight):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    x[:, 1] = x[:, 1] > 1  # as an indicator
    weight = np.exp(x[:, 0]) if with_weight else None
    target = 5 + 3 * x[:, 0] + 10 * x[:, 1]
    table = EncodedTable(torch.tensor(x, dtype=torch.float32))
    linear = LinearFit.fit(table, target, weight, [0, 0])
    np.testing.assert_allclose(linear.predict(table), target, atol=1e-2)


def test_what_is_far_from_linear_is_given_up_soon():
    x = torch.linspace(-1, 1, 200)[:, None]
    assert LinearFit.fit(EncodedTable(x), (x[:, 0] ** 2).double().numpy(), None, [0]) is None


def test_duplicate_columns_and_an_unseen_code():
    x = np.linspace(-1, 1, 100)
    codes = np.where(x > 0, 1.0, 2.0)
    dense = torch.tensor(np.column_stack([x, x, np.zeros(100), codes]).astype(np.float32))
    linear = LinearFit.fit(EncodedTable(dense), 4 * x, None, [0, 0, 0, 3])
    np.testing.assert_allclose(linear.predict(EncodedTable(dense)), 4 * x, atol=1e-4)
    strange = dense[:1].clone()
    strange[0, 3] = 0.0
    assert linear.contributions(strange)[0, 3] == 0.0


@pytest.mark.slow
def test_a_linear_target_is_all_but_exact(tmp_path, capsys):
    X, y = mixed_rows(400)
    new, truth = mixed_rows(200, seed=1)
    model = TabNSMRegressor(**OPTIONS).fit(X, y)
    assert model.target_.has_linear_fit
    prediction = model.predict(new)
    assert np.abs(prediction - truth).max() < 0.05
    plain = TabNSMRegressor(**OPTIONS, linear_residual=False).fit(X, y)
    assert not plain.target_.has_linear_fit
    assert np.abs(plain.predict(new) - truth).max() > 0.5
    assert model.validation_rmse_ < 0.05 < plain.validation_rmse_

    model.save(tmp_path / "model.safetensors")
    restored = TabNSMRegressor.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(restored.predict(new), prediction)
    np.testing.assert_array_equal(restored.predict(new.iloc[5:6]), prediction[5:6])
    assert main(["info", str(tmp_path / "model.safetensors")]) == 0
    assert "linear fit: networks predict its residual" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("baseline", ["zero", "average"])
def test_explanations_hold_the_linear_fit(baseline):
    X, y = mixed_rows(400)
    model = TabNSMRegressor(**OPTIONS).fit(X, y)
    explanation = model.explain(X, method="gradient", baseline=baseline)
    np.testing.assert_array_equal(explanation.predictions, model.predict(X))
    share = np.abs(explanation.contributions).mean(axis=0)
    assert np.argsort(-share).tolist() == [3, 0, 1, 2]  # town, a, b, c
    slope = np.polyfit(X["a"], explanation.contributions[:, 0], 1)[0]
    assert slope == pytest.approx(3 / y.std(), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("with_spike", [False, True])
def test_explanations_weigh_the_residual_in_units_of_the_target(with_spike):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y = 15 * (X[:, 0] + X[:, 2]) + np.abs(X[:, 1])  # 3 % is residual: the second column
    if with_spike:
        y[0] += 200.0  # a transformed target, in which units differ
    options = OPTIONS | {"max_epochs": 30}
    model = TabNSMRegressor(**options).fit(X, y, X_val=X[500:], y_val=y[500:])
    assert (model.target_.has_linear_fit, model.target_.is_transformed) == (True, with_spike)
    share = np.abs(model.explain(X, method="gradient", baseline="average").contributions).mean(
        axis=0
    )
    expected = np.array([15, 1]) * np.abs(X[:, :2]).mean(axis=0)
    np.testing.assert_allclose(share[1] / share[0], expected[1] / expected[0], rtol=0.5)


@pytest.mark.slow
def test_nonlinear_targets_and_small_tables_get_no_linear_fit():
    X, y = mixed_rows(400)
    assert not TabNSMRegressor(**OPTIONS).fit(X, np.exp(y / 3)).target_.has_linear_fit
    assert (
        not TabNSMRegressor(**OPTIONS).fit(X[:60], y[:60]).target_.has_linear_fit
    )  # 6 to validate on
    assert not TabNSMRegressor(**OPTIONS, preset="paper").fit(X, y).target_.has_linear_fit


@pytest.mark.slow
@pytest.mark.parametrize(("rows_each", "is_used"), [(2, False), (6, True)])
def test_a_linear_fit_that_overfits_is_not_used(rows_each, is_used):
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(400), rows_each + 1)  # one of each to validate on
    y = rng.normal(size=400)[code] + 0.05 * rng.normal(size=len(code))
    X = pd.DataFrame({"code": np.char.add("c", code.astype(str)), "x": rng.normal(size=len(code))})
    known = np.arange(len(code)) % (rows_each + 1) > 0
    options = OPTIONS | {"max_epochs": 1, "column_kinds": {"code": "category"}}
    model = TabNSMRegressor(**options).fit(X[known], y[known], X_val=X[~known], y_val=y[~known])
    assert model.target_.has_linear_fit is is_used


@pytest.mark.slow
def test_noise_beyond_any_scale_gets_no_linear_fit():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(400, 3)), rng.uniform(-1, 1, 400)
    for y, weight in [
        (1e307 * noise, None),
        (noise, np.full(400, 1e308)),
        (1e200 * noise, np.full(400, 1e150)),
    ]:
        assert not TabNSMRegressor(**OPTIONS).fit(X, y, weight).target_.has_linear_fit


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-250, 1e250])
def test_targets_of_any_size(scale):
    X, y = mixed_rows(400)
    model = TabNSMRegressor(**OPTIONS).fit(X, y * scale)
    assert model.target_.has_linear_fit
    assert np.abs(model.predict(X) / scale - y).max() < 0.05


def test_rows_of_an_encoder_with_missing_values():
    X, y = mixed_rows(100)
    encoder = TableEncoder(EncoderConfig())
    encoded = encoder.fit_transform(Table.from_native(X))
    linear = LinearFit.fit(encoded, y, None, encoder.category_sizes)
    np.testing.assert_allclose(linear.predict(encoded), y, atol=1e-2)
    missing = X.assign(town=None, a=np.nan)
    assert np.isfinite(linear.predict(encoder.transform(Table.from_native(missing)))).all()
