"""Models in MLflow: logged, loaded and served by MLflow itself, in processes of their own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tabnsm import MissingExtraError, TabNSMRegressor
from tabnsm.callbacks import MLflowLog

pytest.importorskip("mlflow", reason='MLflow is not installed: pip install "tabnsm[mlflow]"')


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "size": rng.normal(size=90),
            "age": rng.normal(size=90),
            "kind": rng.choice(["flat", "house"], 90),
        }
    )


LOG = """
import json, sys
from pathlib import Path
import mlflow, numpy as np, pandas as pd
import tabnsm.mlflow
from tabnsm import TabNSMRegressor
from tabnsm.callbacks import MLflowLog
from tests.test_mlflow import table

X = table()
y = X["size"] * X["age"] + (X["kind"] == "flat")
options = dict(preset="fast", max_epochs=2, random_state=0)

# A fit of its own run, and one that fails: both leave no active run.
log = MLflowLog(run_name="alone")
model = TabNSMRegressor(**options).fit(X, y, callbacks=[log])
expected = model.predict(X)
assert mlflow.active_run() is None
run = mlflow.get_run(log.run_id)
assert run.info.status == "FINISHED" and run.info.run_name == "alone"
assert run.data.params["preset"] == "fast" and run.data.params["max_epochs"] == "2"
assert run.data.metrics["validation_rmse"] == model.validation_rmse_
client = mlflow.MlflowClient()
curve = client.get_metric_history(log.run_id, "network_1/validation_rmse")
assert [(m.step, m.value) for m in curve] == [(r.epoch, r.validation_rmse) for r in model.history_]
assert Path(client.download_artifacts(log.run_id, "card.md")).read_text() == model.card()
(output,) = run.outputs.model_outputs
logged = tabnsm.mlflow.load_model(f"models:/{output.model_id}")
assert (logged.predict(X) == expected).all() and logged.replay_ is None
tabnsm.mlflow.save_model(model, "with-rows", keep_rows=True)
assert tabnsm.mlflow.load_model("with-rows").replay_ is not None

class Fails:
    def on_epoch(self, network, history):
        raise LookupError

failed = MLflowLog()
try:
    TabNSMRegressor(**options).fit(X, y, callbacks=[failed, Fails()])
except LookupError:
    assert mlflow.active_run() is None
    assert mlflow.get_run(failed.run_id).info.status == "RUNNING"
else:
    raise AssertionError

# In a run of the user, which stays active.
with mlflow.start_run() as active:
    inside = MLflowLog(log_model=False)
    TabNSMRegressor(**options).fit(X, y, callbacks=[inside])
    assert inside.run_id == active.info.run_id == mlflow.active_run().info.run_id
    info = tabnsm.mlflow.log_model(model, input_example=X.head(2), registered_model_name="price")
assert not mlflow.get_run(inside.run_id).outputs.model_outputs[1:]
assert info.signature.inputs.input_names() == ["size", "age", "kind"]
for uri in (info.model_uri, "models:/price/1", f"runs:/{active.info.run_id}/model"):
    assert (tabnsm.mlflow.load_model(uri).predict(X) == expected).all()
    assert (mlflow.pyfunc.load_model(uri).predict(X) == expected).all()

# Several targets, by their names.
both = pd.DataFrame({"price": y, "rent": -y + X["age"]})
several = TabNSMRegressor(**options).fit(X, both)
tabnsm.mlflow.save_model(several, "several")
found = mlflow.pyfunc.load_model("several").predict(X)
assert list(found) == ["price", "rent"] and (found.to_numpy() == several.predict(X)).all()

# Another model is refused.
try:
    import mlflow.pyfunc
    Path("other.py").write_text(
        "import mlflow\\nfrom mlflow.pyfunc import PythonModel\\n"
        "class Other(PythonModel):\\n"
        "    def predict(self, model_input: list[str]): return model_input\\n"
        "mlflow.models.set_model(Other())\\n"
    )
    mlflow.pyfunc.save_model("other", python_model="other.py")
    tabnsm.mlflow.load_model("other")
except tabnsm.ModelFileError as error:
    assert "must be a model that tabnsm.mlflow has logged" in str(error)
else:
    raise AssertionError

tabnsm.mlflow.save_model(model, "saved")
np.save("expected.npy", expected)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which models were logged and saved; MLflow itself raises many warnings."""
    folder = tmp_path_factory.mktemp("mlflow")
    root = Path(__file__).resolve().parents[1]
    paths = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOG],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_models_are_logged_and_loaded_to_the_bit(folder: Path) -> None:
    assert (folder / "expected.npy").exists()  # all asserts of the script hold


@pytest.mark.slow
def test_nothing_is_pickled(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib", ".pt")] == []
    names = {path.name for path in (folder / "saved").rglob("*") if path.is_file()}
    assert {"MLmodel", "model.safetensors", "predicting_model.py"} <= names
    assert TabNSMRegressor.load(folder / "saved" / "artifacts" / "model.safetensors")


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def post(address: str, content: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(content).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_mlflow_serves_the_model(folder: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "--model-uri", "saved"]
    command += ["--env-manager", "local", "--host", "127.0.0.1", "--port", str(port)]
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(paths), "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "server.log").open("w") as output:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            assert server.poll() is None, (folder / "server.log").read_text()
            try:
                with urllib.request.urlopen(f"{address}/ping", timeout=5) as answer:
                    assert answer.status == 200
                break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        content = json.loads(table().to_json(orient="split", index=False, double_precision=15))
        found = post(f"{address}/invocations", {"dataframe_split": content})["predictions"]
        rows = [{"kind": "flat", "size": None, "age": 0.5}]  # missing, in another order
        other = post(f"{address}/invocations", {"dataframe_records": rows})["predictions"]
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            post(f"{address}/invocations", {"dataframe_records": [{"kind": "flat"}]})
        message = json.load(refused.value)
    finally:
        os.killpg(server.pid, 9)  # MLflow runs the server in a process of its own
        server.wait()
    assert "missing inputs" in message["message"]
    np.testing.assert_allclose(found, np.load(folder / "expected.npy"), rtol=1e-6)
    model = TabNSMRegressor.load(folder / "saved" / "artifacts" / "model.safetensors")
    frame = pd.DataFrame({"size": [np.nan], "age": [0.5], "kind": ["flat"]})
    np.testing.assert_allclose(other, model.predict(frame), rtol=1e-6)


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[mlflow\]"'):
        MLflowLog()
    monkeypatch.delitem(sys.modules, "tabnsm.mlflow", raising=False)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[mlflow\]"'):
        import tabnsm.mlflow  # noqa: F401
