"""A fitted model in many threads and processes keeps its bits, and searches share the cores."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.prediction import eval_mode


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(600, 5)), columns=list("abcde"))
    frame["kind"] = rng.choice(["x", "y", "z"], 600)
    frame.loc[::7, "a"] = np.nan
    return frame


@pytest.fixture(scope="module")
def model(table: pd.DataFrame) -> TabNSMRegressor:
    y = table["b"] * table["c"] + (table["kind"] == "x")
    options: dict[str, Any] = {"preset": "fast", "max_epochs": 1, "random_state": 0}
    return TabNSMRegressor(n_ensemble=2, n_jobs=1, **options).fit(table, y)


def test_no_call_changes_the_mode_of_the_networks(
    model: TabNSMRegressor, table: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(part.training for part in model.model_.modules())
    monkeypatch.setattr(torch.nn.Module, "train", None)  # also what `eval` calls
    model.predict(table)
    model.explain(table.head(20))
    model.explain(table.head(20), method="gradient")


def test_parts_that_were_in_training_go_back_to_it() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).eval())
    with eval_mode(model):
        assert not any(part.training for part in model.modules())
    assert [part.training for part in model.modules()] == [True, True, False]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_threads_get_the_bits_of_one(
    model: TabNSMRegressor, table: pd.DataFrame, dtype: torch.dtype
) -> None:
    calls: list[tuple[Callable[[Any], Any], Any]] = [
        (model.predict, table),
        (model.predict, table.head(1)),
        (model.predict, table.tail(300)),
        (lambda rows: model.explain(rows).contributions, table.head(30)),
        (lambda rows: model.explain(rows, method="gradient").contributions, table.tail(40)),
    ]
    expected = [call(rows) for call, rows in calls]
    wrong: list[Any] = []
    start = threading.Barrier(10)

    def work(k: int) -> None:
        start.wait()
        for turn in range(k, k + 5):
            call, rows = calls[turn % 5]
            try:
                if not np.array_equal(call(rows), expected[turn % 5]):
                    wrong.append(turn)
            except Exception as error:
                wrong.append(error)

    n_threads, interval = torch.get_num_threads(), sys.getswitchinterval()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(10)]
    try:
        sys.setswitchinterval(1e-5)
        torch.set_num_threads(2)
        torch.set_default_dtype(dtype)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert torch.get_default_dtype() == dtype
        assert torch.get_num_threads() == 2
    finally:
        sys.setswitchinterval(interval)
        torch.set_num_threads(n_threads)
        torch.set_default_dtype(torch.float32)
    assert wrong == []


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, *(lambda m, p=p: p.loads(p.dumps(m)) for p in (pickle, cloudpickle))],
    ids=["deepcopy", "pickle", "cloudpickle"],
)
def test_copies_keep_the_bits(
    model: TabNSMRegressor, table: pd.DataFrame, copied: Callable[[Any], Any]
) -> None:
    same = copied(model)
    assert next(same.model_.parameters()) is not next(model.model_.parameters())
    np.testing.assert_array_equal(same.predict(table), model.predict(table))
    expected = model.explain(table.head(9)).contributions
    np.testing.assert_array_equal(same.explain(table.head(9)).contributions, expected)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_jobs_of_joblib_keep_the_bits(
    model: TabNSMRegressor, table: pd.DataFrame, backend: str
) -> None:
    parts = [table.head(100), table.tail(500)]
    found = joblib.Parallel(2, backend=backend)(joblib.delayed(model.predict)(x) for x in parts)
    np.testing.assert_array_equal(np.concatenate(found), model.predict(table))


# A forked process is tested in test_threads.py, where no other thread is around.
@pytest.mark.slow
def test_a_spawned_process_keeps_the_bits(model: TabNSMRegressor, table: pd.DataFrame) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(model.predict, (table,))
    np.testing.assert_array_equal(found, model.predict(table))


SEARCH = """
import json, os, sys
from pathlib import Path
import joblib, numpy as np, torch
from sklearn.model_selection import GridSearchCV, cross_val_score
from tabnsm import TabNSMRegressor
from tabnsm.threads import thread_count

class Count:
    def on_epoch(self, network, history):
        children = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                children += int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid()
            except (FileNotFoundError, ProcessLookupError):
                pass
        found = {"threads": thread_count(), "torch": torch.get_num_threads(), "children": children}
        with open(f"{sys.argv[1] if len(sys.argv) > 1 else '.'}/counts", "a") as file:
            file.write(json.dumps(found | {"process": os.getpid(), "network": network}) + "\\n")

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(90, 4))
    y = X[:, 0] * X[:, 1]
    model = TabNSMRegressor(n_ensemble=2, max_epochs=2, d_token=8, random_state=0, n_jobs=-1)
    before = torch.get_num_threads()
    with joblib.parallel_config(backend=sys.argv[2]):
        search = GridSearchCV(model, {"learning_rate": [1e-3, 2e-3]}, cv=2, n_jobs=2, refit=False)
        search.fit(X, y, callbacks=[Count()])
    print(json.dumps({"cores": joblib.cpu_count(), "process": os.getpid(), "before": before,
                      "after": torch.get_num_threads()}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_search_in_two_jobs_uses_no_more_than_the_cores(tmp_path: Path, backend: str) -> None:
    (tmp_path / "search.py").write_text(SEARCH)
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "search.py", ".", backend],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    counts = [json.loads(line) for line in (tmp_path / "counts").read_text().splitlines()]
    assert len(counts) == 2 * 2 * 2 * 2  # candidates, folds, networks, epochs
    share = max(facts["cores"] // 2, 1) if backend == "loky" else 1
    processes = {each["process"] for each in counts}
    if backend == "loky":
        assert facts["process"] not in processes
        # Workers of a fit have one thread each, so that both together are its share.
        assert all(each["threads"] * (1 + each["children"]) <= share for each in counts)
    else:
        assert processes == {facts["process"]}
        assert {each["threads"] for each in counts} == {1}
        assert {each["children"] for each in counts} == {0}
    assert {each["torch"] for each in counts} == {1}
    assert facts["before"] == facts["after"]
