#!/usr/bin/env bash
# Build sdist and wheel, install the wheel in an empty environment outside the checkout, and
# fit, save, load and predict there, from Python and from the command line. Then the same for
# tabnsm-bench, which that environment must not have had before.
set -euo pipefail
python=$(realpath -s "${1:-python3}")
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {  # build SOURCE NAME: sdist and wheel of SOURCE into dist-NAME
    "$python" -m build --outdir "$work/dist-$2" "$1" > "$work/build.log" 2>&1 \
        || { cat "$work/build.log" >&2; exit 1; }
}
install() {
    "$work/env/bin/python" -m pip install --quiet --disable-pip-version-check \
        --constraint "$root/constraints.txt" "$@"
}

build "$root" library
tar -tzf "$work"/dist-library/*.tar.gz > "$work/sdist.txt"
grep -q 'kernels/sparse_attention\.c$' "$work/sdist.txt" \
    || { echo "the sdist lacks the kernel's source" >&2; exit 1; }
"$python" -m zipfile -l "$work"/dist-library/*.whl > "$work/wheel.txt"
! grep -E '(^|/)bench|tabnsm_bench' "$work/wheel.txt" \
    || { echo "the library's wheel holds evaluation code" >&2; exit 1; }
"$python" -m venv "$work/env"
install "$work"/dist-library/*.whl

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
env/bin/tabnsm report cli.safetensors table.csv --out report.html --quiet
grep -q 'TabNSM report' report.html
echo "wheel: the command line works"

code=0
env/bin/tabnsm bench run --methods ridge > hint.txt 2>&1 || code=$?
[ "$code" -eq 2 ] && [ "$(wc -l < hint.txt)" -eq 1 ] && grep -q 'pip install tabnsm-bench' hint.txt \
    || { echo "tabnsm bench must name its pip line, got exit code $code:" >&2; cat hint.txt >&2; exit 1; }
build "$root/bench" bench
install "$work"/dist-bench/*.whl
env/bin/tabnsm bench baselines > baselines.txt
grep -q '^ *catboost .* ready' baselines.txt \
    || { echo "tabnsm-bench must bring its baselines:" >&2; cat baselines.txt >&2; exit 1; }
env/bin/tabnsm bench statistics --paper > statistics.txt
echo "wheel: tabnsm bench is refused without tabnsm-bench, and works with it"
