#!/usr/bin/env bash
# Build sdist and wheel, install the wheel in an empty environment outside the checkout, and
# fit, save, load and predict there, from Python and from the command line.
set -euo pipefail
python=$(realpath -s "${1:-python3}")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m build --outdir "$work/dist" "$root" > "$work/build.log" 2>&1 \
    || { cat "$work/build.log" >&2; exit 1; }
tar -tzf "$work"/dist/*.tar.gz > "$work/sdist.txt"
grep -q 'kernels/sparse_attention\.c$' "$work/sdist.txt" \
    || { echo "the sdist lacks the kernel's source" >&2; exit 1; }
"$python" -m venv "$work/env"
"$work/env/bin/python" -m pip install --quiet --disable-pip-version-check \
    --constraint "$root/constraints.txt" "$work"/dist/*.whl

cd "$work"
cat > use.py <<'PYTHON'
import shutil

import numpy as np

import tabnsm
from tabnsm import TabNSMRegressor, kernels

assert "site-packages" in tabnsm.__file__, tabnsm.__file__
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
y = X[:, 0] * X[:, 1] + X[:, 2]
model = TabNSMRegressor(max_epochs=5, random_state=0).fit(X, y)
model.save("model.safetensors")
again = TabNSMRegressor.load("model.safetensors")
assert (again.predict(X) == model.predict(X)).all()
with open("table.csv", "w") as file:
    file.write("a,b,c,d,price\n")
    for row, value in zip(X, y):
        file.write(",".join(f"{v:.6f}" for v in [*row, value]) + "\n")
assert kernels.available() != "none" or not shutil.which("cc"), "the wheel has no kernel"
print(f"wheel: fit, save, load and predict work; kernel: {kernels.available()}")
PYTHON
env/bin/python use.py
env/bin/tabnsm fit table.csv --target price --out cli.safetensors --epochs 3 --quiet
env/bin/tabnsm predict cli.safetensors table.csv --out predictions.csv --quiet
test "$(wc -l < predictions.csv)" -eq 301
echo "wheel: the command line works"
