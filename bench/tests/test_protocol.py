from __future__ import annotations

from dataclasses import fields

import pytest

from tabnsm.errors import InvalidOptionError
from tabnsm_bench.protocol import RunSpec


def test_only_what_departs_from_the_default_is_in_the_name() -> None:
    plain = RunSpec("ridge", "cpu_small")
    assert plain.path("r").as_posix() == "r/ridge/cpu_small/paper-42-0.json"
    cut = RunSpec("ridge", "cpu_small", 3, 7, time_limit=60.0, feature_fraction=0.25)
    assert cut.path("r").name == "paper-7-3-time_limit=60-feature_fraction=0.25.json"


def test_each_field_changes_the_path() -> None:
    changed = {
        "method": "lasso",
        "dataset": "other",
        "seed": 1,
        "split": 1,
        "encoding": "default",
        "target": "y",
        "time_limit": 5.0,
        "max_rows": 100,
        "feature_fraction": 0.5,
        "sample_fraction": 0.5,
        "max_epochs": 3,
        "cpu_limit": 60.0,
    }
    assert changed.keys() == {field.name for field in fields(RunSpec)}
    base = {"method": "ridge", "dataset": "cpu_small"}
    specs = [RunSpec(**base | {name: value}) for name, value in changed.items()]
    assert len({spec.path("r") for spec in [RunSpec(**base), *specs]}) == len(changed) + 1
    for spec in specs:
        assert RunSpec.from_dict(spec.to_dict()) == spec


def test_targets_that_differ_in_odd_characters_have_their_own_files() -> None:
    names = {RunSpec("m", "d", target=t).path("r").name for t in ("a/b", "a b", "a_b", "a:b")}
    assert len(names) == 4
    assert not any(set(name) & set('/:\\?*"<>|') for name in names)


@pytest.mark.parametrize(
    ("method", "encoding"),
    [
        ("tabnsm-paper", "paper"),
        ("tabnsm-paper+attention=full", "paper"),
        ("tabnsm-default", "default"),
        ("tabnsm-fast", "default"),
    ],
)
def test_tabnsm_has_the_encoding_of_its_preset(method: str, encoding: str) -> None:
    assert {RunSpec(method, "d", encoding=e).encoding for e in ("paper", "default")} == {encoding}


def test_options_are_read_as_json_or_strings() -> None:
    spec = RunSpec("tabnsm-default+attention=full+huber_weight=0.5+mixer=False+limit=null", "d")
    assert spec.method_key == "tabnsm-default"
    assert spec.method_options == {
        "attention": "full",
        "huber_weight": 0.5,
        "mixer": False,
        "limit": None,
    }


@pytest.mark.parametrize("method", ["ridge+alpha", "ridge+=2", "ridge+"])
def test_options_without_name_or_value_are_refused(method: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"KEY\+OPTION=VALUE"):
        RunSpec(method, "d").method_options  # noqa: B018


@pytest.mark.parametrize(
    "bad",
    [
        {"method": ""},
        {"method": "../x"},
        {"dataset": "a/b"},
        {"dataset": ".hidden"},
        {"encoding": "fast"},
        {"feature_fraction": 0.0},
        {"sample_fraction": 1.5},
        {"time_limit": 0.0},
        {"max_rows": -1},
        {"max_epochs": 0},
        {"seed": -1},
        {"split": 2**32},
    ],
)
def test_bad_values_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(bad))):
        RunSpec(**{"method": "ridge", "dataset": "d"} | bad)  # type: ignore[arg-type]
