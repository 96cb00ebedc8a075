"""Folders of models as on the Hugging Face Hub, and uploads to one on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tabnsm import MissingExtraError, ModelFileError, TabNSMRegressor
from tabnsm.hub import hub_model
from tests.hub_server import COMMIT, local_hub

X = np.random.default_rng(0).normal(size=(80, 3))


@pytest.fixture(scope="module")
def model() -> TabNSMRegressor:
    return TabNSMRegressor(preset="fast", max_epochs=2, random_state=0).fit(X, X[:, 0] * X[:, 1])


def test_a_folder_keeps_the_bits(model: TabNSMRegressor, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "houses"
    model.save_pretrained(folder)
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "README.md"}
    for source in (folder, str(folder)):
        same = TabNSMRegressor.from_pretrained(source)
        np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_the_hub_reads_the_card(model: TabNSMRegressor, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    model.save_pretrained(tmp_path / "houses")
    card = ModelCard.load(tmp_path / "houses" / "README.md")
    assert card.data.library_name == "tabnsm"
    assert card.data.pipeline_tag == "tabular-regression"
    assert "tabular-regression" in card.data.tags
    assert model.card() in card.content
    assert 'from_pretrained("houses")' in card.text


def test_a_card_that_was_edited_stays(model: TabNSMRegressor, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    model.save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_what_would_be_uploaded(model: TabNSMRegressor, tmp_path: Path) -> None:
    hub_model(model, "user/houses").save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"model.safetensors", "README.md"}
    assert 'from_pretrained("user/houses")' in (tmp_path / "README.md").read_text()
    same = TabNSMRegressor.from_pretrained(tmp_path)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


PUSH_AND_LOAD = """
import sys
import numpy as np
from tabnsm import TabNSMRegressor

model = TabNSMRegressor.load(sys.argv[1])
print(model.push_to_hub("user/houses", commit_message="First"))
same = TabNSMRegressor.from_pretrained("user/houses")
assert same.replay_ is None, "rows of the fit were uploaded"
np.save(sys.argv[2], same.predict(np.load(sys.argv[3])))
"""


@pytest.mark.slow
def test_a_model_is_uploaded_and_downloaded_again(model: TabNSMRegressor, tmp_path: Path) -> None:
    """The real client of Hugging Face over a socket; its address is read when it is imported."""
    model.save(tmp_path / "m.safetensors")
    np.save(tmp_path / "X.npy", X)
    files = [str(tmp_path / name) for name in ("m.safetensors", "found.npy", "X.npy")]
    command = [sys.executable, "-c", PUSH_AND_LOAD, *files]
    # Xet, the Hub's newer storage, has a service of its own: uploads go by LFS, as without hf_xet.
    own = {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_DISABLE_XET": "1"}
    with local_hub(token="right") as hub:
        own |= {"HF_ENDPOINT": hub.address}
        done = subprocess.run(
            command, env=os.environ | own | {"HF_TOKEN": "right"}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == f"{hub.address}/user/houses/commit/{COMMIT}"
        files_there = hub.repositories["user/houses"]
        assert set(files_there) == {"model.safetensors", "README.md"}
        assert b"tabular-regression" in files_there["README.md"]
        np.testing.assert_array_equal(np.load(tmp_path / "found.npy"), model.predict(X))
        refused = subprocess.run(
            command, env=os.environ | own | {"HF_TOKEN": "wrong"}, capture_output=True, text=True
        )
    assert refused.returncode != 0
    assert "Invalid username or password" in refused.stderr


def test_a_repository_in_the_cache_of_the_hub(model: TabNSMRegressor, tmp_path: Path) -> None:
    repository = tmp_path / "models--user--houses"
    commit = "0" * 40
    model.save_pretrained(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    same = TabNSMRegressor.from_pretrained("user/houses", cache_dir=tmp_path, local_files_only=True)
    np.testing.assert_array_equal(same.predict(X), model.predict(X))


def test_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFileError, match=r"must have the file model\.safetensors"):
        TabNSMRegressor.from_pretrained(tmp_path)
    for wrong in (tmp_path / "missing", str(tmp_path / "missing"), "./missing"):
        with pytest.raises(ModelFileError, match="needs a folder that is there"):
            TabNSMRegressor.from_pretrained(wrong)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r'pip install "tabnsm\[huggingface\]"'):
        TabNSMRegressor.from_pretrained("user/houses")


def test_a_file_is_no_folder(model: TabNSMRegressor, tmp_path: Path) -> None:
    file = tmp_path / "houses"
    file.write_text("a note")
    with pytest.raises(ValueError, match=r"must be a folder, got the file .*houses"):
        model.save_pretrained(file)
    assert file.read_text() == "a note"


def test_a_model_that_is_not_fitted(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        TabNSMRegressor().save_pretrained(tmp_path / "houses")
    with pytest.raises(NotFittedError):
        TabNSMRegressor().push_to_hub("user/houses")
    assert not (tmp_path / "houses").exists()


def test_cloning_is_scikit_learns_own(model: TabNSMRegressor) -> None:
    assert clone(model).get_params() == model.get_params()
