"""Write the tables of the pages on performance and draw their pictures from the records.

    python bench/speed/report.py [--results FOLDER] [--pages FILE ...]

The pages are bench/docs/performance.md, for users, and performance-notebook.md, for developers. A
table is between ``<!-- table: NAME -->`` and ``<!-- end -->``, the link to a picture between
``<!-- picture: NAME -->`` and the same end; all other lines are written by hand and are not
changed. Pictures go into the folder named like the first page.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import format_value
from pictures import draw_all
from run import BENCHMARKS

from tabnsm.container import atomic_write
from tabnsm_bench.main_runs import Result
from tabnsm_bench.naming import display_name
from tabnsm_bench.protocol import RunSpec
from tabnsm_bench.store import load_results

ROOT = Path(__file__).resolve().parents[1]
MADE = re.compile(r"(<!-- (table|picture): (\w+) -->\n).*?(<!-- end -->)", re.S)
CAPTIONS = {
    "operator": "Time of sparse and dense attention over the number of features",
    "scaling": "Cost of a step over the features, and of an epoch over the rows",
    "models": "Rows per second in training and prediction",
    "end_to_end": "Validation RMSE over the seconds of training",
}
NOT_MEASURED = "Not measured yet: `make bench`.\n"
PAGES = [ROOT / "docs" / name for name in ("performance.md", "performance-notebook.md")]
# Both forms in which a figure names the method that TabNSM is compared with.
COMPARED = re.compile(r"(?:TabNSM's )?(.*?)(?: against ([^,]+)|, times (\w+)'s)(.*)")
# What a user would take in place of TabNSM; other figures are about parts of it.
PEERS = ("CatBoost", "LightGBM", "TabM", "FT-Transformer", "MLP 512-512")
# Runs of one split without limits: what to choose when the default takes too long.
CHOICES = {
    "nyc_air_quality": ("tabnsm-default", "tabnsm-fast", "realmlp", "catboost", "lightgbm"),
    "ames_housing": (
        *("tabnsm-default", "tabnsm-default+n_ensemble=1", "realmlp", "catboost", "lightgbm"),
    ),
}
FIRST_SPLIT = 42

Records = Mapping[str, Mapping[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "speed")
    parser.add_argument("--pages", type=Path, nargs="+", default=PAGES)
    arguments = parser.parse_args()
    records, folder = read_records(arguments.results), arguments.pages[0].with_suffix("")
    pictures = draw_all(records)
    folder.mkdir(exist_ok=True)
    for name, picture in pictures.items():
        content = io.BytesIO()
        # No version in the file: equal records give an equal picture.
        picture.savefig(content, format="png", metadata={"Software": None})
        atomic_write(folder / f"{name}.png", content.getvalue())
    for path in arguments.pages:
        page = fill(path.read_text(), records, folder.name, pictures)
        atomic_write(path, page.encode())
        print(f"{path}: {len(records)} benchmarks, {len(pictures)} pictures")


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Records of `run.py` by name, in the order in which it measures them."""
    paths = {name: folder / f"{name}.json" for name in BENCHMARKS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def fill(page: str, records: Records, folder: str, pictures: Collection[str]) -> str:
    """The page with every table and every link to a picture regenerated."""

    def make(match: re.Match[str]) -> str:
        begin, kind, name, end = match.groups()
        if kind == "table":
            return begin + table(name, records) + end
        link = f"![{CAPTIONS[name]}]({folder}/{name}.png)\n" if name in pictures else ""
        return begin + link + end

    return MADE.sub(make, page)


def table(name: str, records: Records) -> str:
    """Markdown of one table: "peers", "choices", "figures", "machine", or rows of a benchmark."""
    special = {"peers": peers_table, "figures": figures_table, "machine": machine_table}
    if name == "choices":
        return choices_table(load_results(ROOT / "results"))
    if name in special:
        return special[name](records) if records else NOT_MEASURED
    if name not in records:
        return NOT_MEASURED
    rows = records[name]["result"]["rows"]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    header = [key.replace("_mb", "_MB").replace("_", " ") for key in keys]
    return markdown(header, [[cell(key, row.get(key)) for key in keys] for row in rows])


def peers_table(records: Records) -> str:
    """Every ratio between TabNSM and a method that a user would take instead."""
    rows = [
        (
            *(peer, what, format_value(entry["value"], "")),
            "times as long" if what.startswith("time") else "times as fast",
        )
        for entry in all_figures(records)
        for peer, what in [compared_with(entry["what"])]
        if peer in PEERS
    ]
    rows.sort(key=lambda row: PEERS.index(row[0]))
    return markdown(
        ["compared with", "what", "TabNSM"],
        [[peer, what, f"{ratio} {unit}"] for peer, what, ratio, unit in rows],
    )


def compared_with(what: str) -> tuple[str, str]:
    """The peer of a figure and what is compared; an empty peer if the figure has none.

    >>> compared_with("training rows/s against TabM, D = 400, batch 64")
    ('TabM', 'training rows/s, D = 400, batch 64')
    >>> compared_with("TabNSM's time to validation RMSE 2.62 on cpu_small, times CatBoost's")
    ('CatBoost', 'time to validation RMSE 2.62 on cpu_small')
    >>> compared_with("one row, module, D = 400, median")
    ('', 'one row, module, D = 400, median')
    """
    match = COMPARED.fullmatch(what)
    if match is None:
        return "", what
    begin, against, times, end = match.groups()
    return against or times, begin + end


def choices_table(results: Sequence[Result]) -> str:
    """Accuracy, time and memory of TabNSM's cheaper forms, beside peers, on the first split."""
    runs = {}
    for result in results:
        spec = RunSpec.from_dict(result["spec"])
        # A run with any limit has other settings than this.
        if spec == RunSpec(spec.method, spec.dataset, split=FIRST_SPLIT, encoding="default"):
            runs[spec.dataset, spec.method] = result
    return markdown(
        ["table", "method", "test RMSE", "seconds to fit", "peak MB"],
        [
            [
                dataset,
                display_name(method),
                cell("rmse", run["metrics"]["test"]["rmse"]),
                cell("fit_seconds", run["fit_seconds"]),
                cell("peak_mb", run["peak_memory_mb"]),
            ]
            for dataset, methods in CHOICES.items()
            for method in methods
            if (run := runs.get((dataset, method))) is not None
        ],
    )


def figures_table(records: Records) -> str:
    """Every figure of all benchmarks."""
    return markdown(
        ["what", "measured"],
        [
            [entry["what"], format_value(entry["value"], entry["unit"])]
            for entry in all_figures(records)
        ],
    )


def all_figures(records: Records) -> list[dict[str, Any]]:
    """Figures of all benchmarks."""
    return [entry for record in records.values() for entry in record["result"]["figures"]]


def machine_table(records: Records) -> str:
    """Where and with what each benchmark ran; one line for those that agree."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, record in records.items():
        versions, allocator = record["versions"], record["allocator"]
        settings = " ".join(f"{k}={v}" for k, v in allocator["settings"].items())
        where = (
            f"{record['cpu']}, {record['n_threads']} threads",
            record["kernel"],
            f"{allocator['libc']}, {settings or 'default settings'}",
            f"{versions['torch']}",
            record["measured_at"][:10],
        )
        groups.setdefault(where, []).append(name)
    header = ["machine", "kernel", "allocator", "torch", "date", "benchmarks"]
    names = list(records)
    return markdown(
        header,
        [
            [*where, "all" if group == names else ", ".join(group)]
            for where, group in groups.items()
        ],
    )


def cell(key: str, value: Any) -> str:
    """A number with three significant digits, or the text itself."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if key.endswith("share"):
        return f"{100 * value:.1f} %"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A pipe table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    main()
