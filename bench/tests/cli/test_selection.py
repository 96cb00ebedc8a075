from __future__ import annotations

import pytest

from bench.tests.made_results import done
from tabnsm.errors import InvalidOptionError
from tabnsm_bench.baselines.catalog import BASELINES
from tabnsm_bench.cli.selection import choose_datasets, choose_names, expand_methods
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.scores import collect_scores


def test_all_is_every_method_that_can_run_and_the_others_are_named() -> None:
    methods, left_out = expand_methods("-m", "all")
    assert methods[:3] == ["tabnsm-default", "tabnsm-paper", "linear-regression"]
    ready = [key for key, info in BASELINES.items() if not info.reason]
    assert methods[2:] == ready
    assert len(left_out) == len(BASELINES) - len(ready)
    assert any(line.startswith("tabebm is left out. ") for line in left_out)


def test_a_family_by_the_beginning_of_its_name() -> None:
    trees = ["random-forest", "catboost", "lightgbm", "xgboost", "extratrees"]
    assert expand_methods("-m", "family:tree") == (trees, [])
    assert expand_methods("-m", "catboost,family:Tree-based,ridge")[0] == [
        "catboost", "random-forest", "lightgbm", "xgboost", "extratrees", "ridge"
    ]  # fmt: skip
    for family in ("", "wood"):
        with pytest.raises(InvalidOptionError, match=f"Tree-based, .* got '{family}'"):
            expand_methods("-m", f"family:{family}")


def test_datasets_by_label_key_and_abbreviation() -> None:
    table = collect_scores(
        [
            done(RunSpec("ridge", "cpu_small"), 2.0),
            done(RunSpec("ridge", "nyc_air_quality"), 2.0),
            done(RunSpec("ridge", "blog_feedback", max_rows=5000), 2.0),
            done(RunSpec("ridge", "sales", target="price, net"), 2.0),
        ]
    )
    assert choose_datasets(None, table) is None
    assert choose_datasets("AQ,CP", table) == ["nyc_air_quality", "cpu_small"]
    assert choose_datasets("cpu_small,CP", table) == ["cpu_small"]
    assert choose_datasets("blog_feedback", table) == ["blog_feedback, 5000 rows"]
    assert choose_datasets("blog_feedback,5000 rows, CP", table) == [
        "blog_feedback, 5000 rows",
        "cpu_small",
    ]
    assert choose_datasets("sales, target price, net", table) == ["sales, target price, net"]
    with pytest.raises(InvalidOptionError, match="got 'SA'"):
        table.select(datasets=choose_datasets("CP,SA", table))


def test_names_without_commas_are_split_at_commas() -> None:
    assert choose_names("b, a,,b", ["a", "b"]) == ["b", "a"]
