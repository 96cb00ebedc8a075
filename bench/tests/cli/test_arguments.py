from __future__ import annotations

from pathlib import Path

import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.cli.arguments import check_methods, dataset_key, numbers, split_names
from tabnsm_bench.protocol import RunSpec


def test_ranges_and_numbers_mix_and_count_once() -> None:
    assert numbers("--seeds", "3,0-2, 1") == [3, 0, 1, 2]
    assert split_names("") == []


@pytest.mark.parametrize("text", ["1,x", "-1", "3-1", "1.5", "0-"])
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="--seeds must be whole numbers, as in 0,1,2"):
        numbers("--seeds", text)


def test_a_dataset_needs_a_target_and_the_folder(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a,y\n1,2\n")
    with pytest.raises(InvalidOptionError, match="--target must be given"):
        dataset_key("--dataset", "sales", tmp_path, None)
    assert dataset_key("--dataset", "sales", tmp_path, "y") == "sales"
    with pytest.raises(InvalidOptionError, match=f"--dataset .* Add: --data-dir {tmp_path}$"):
        dataset_key("--dataset", str(tmp_path / "sales.csv"), tmp_path.parent, "y")


def test_a_method_that_cannot_run_names_the_remedy() -> None:
    with pytest.raises(InvalidOptionError, match="TABNSM_METHOD_TABEBM=module:factory"):
        check_methods([RunSpec("tabebm", "sales")])
