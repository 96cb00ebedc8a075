"""Write the tables of bench/docs/performance.md and draw its pictures from the records.

    python bench/speed/report.py [--results FOLDER] [--page FILE]

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``, the link to a picture between
``<!-- picture: NAME -->`` and the same end; all other lines of the page are written by hand and
stay as they are. Pictures go into the folder named like the page.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from measure import format_goal, format_value, is_reached
from pictures import draw_all
from run import BENCHMARKS

from tabnsm.container import atomic_write

ROOT = Path(__file__).resolve().parents[1]
MADE = re.compile(r"(<!-- (table|picture): (\w+) -->\n).*?(<!-- end -->)", re.S)
CAPTIONS = {
    "goals": "Every figure with a goal, over that goal",
    "operator": "Time of the operator over the number of features",
    "scaling": "Cost of a step over the features, and of an epoch over the rows",
    "models": "Rows per second in training and prediction",
    "end_to_end": "Validation RMSE over the seconds of training",
}
NOT_MEASURED = "Not measured yet: `make bench`.\n"

Records = Mapping[str, Mapping[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "speed")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "performance.md")
    arguments = parser.parse_args()
    records, folder = read_records(arguments.results), arguments.page.with_suffix("")
    pictures = draw_all(records)
    folder.mkdir(exist_ok=True)
    for name, picture in pictures.items():
        content = io.BytesIO()
        # No version in the file: equal records give an equal picture.
        picture.savefig(content, format="png", metadata={"Software": None})
        atomic_write(folder / f"{name}.png", content.getvalue())
    page = fill(arguments.page.read_text(), records, folder.name, pictures)
    atomic_write(arguments.page, page.encode())
    print(f"{arguments.page}: {len(records)} benchmarks, {len(pictures)} pictures")


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Records of `run.py` by name, in the order in which it measures them."""
    paths = {name: folder / f"{name}.json" for name in BENCHMARKS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def fill(page: str, records: Records, folder: str, pictures: Collection[str]) -> str:
    """The page with every table and every link to a picture made anew."""

    def make(match: re.Match[str]) -> str:
        begin, kind, name, end = match.groups()
        if kind == "table":
            return begin + table(name, records) + end
        link = f"![{CAPTIONS[name]}]({folder}/{name}.png)\n" if name in pictures else ""
        return begin + link + end

    return MADE.sub(make, page)


def table(name: str, records: Records) -> str:
    """Markdown of one table: "goals", "figures", "machine", or the rows of a benchmark."""
    special = {"goals": goals_table, "figures": figures_table, "machine": machine_table}
    if name in special:
        return special[name](records) if records else NOT_MEASURED
    if name not in records:
        return NOT_MEASURED
    rows = records[name]["result"]["rows"]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    header = [key.replace("_mb", "_MB").replace("_", " ") for key in keys]
    return markdown(header, [[cell(key, row.get(key)) for key in keys] for row in rows])


def goals_table(records: Records) -> str:
    """Every figure that has a goal."""
    return markdown(
        ["what", "goal", "measured", "reached"],
        [
            [
                entry["what"],
                format_goal(entry),
                format_value(entry["value"], entry["unit"]),
                "yes" if is_reached(entry) else "**no**",
            ]
            for entry in all_figures(records)
            if is_reached(entry) is not None
        ],
    )


def figures_table(records: Records) -> str:
    """Every figure that has none."""
    return markdown(
        ["what", "measured"],
        [
            [entry["what"], format_value(entry["value"], entry["unit"])]
            for entry in all_figures(records)
            if is_reached(entry) is None
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
    """A number with three digits that count, or the text itself."""
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
