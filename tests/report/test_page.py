"""The page in a real Chromium: everything is drawn, and can be used."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tabnsm import TabNSMRegressor
from tests.report.conftest import two_targets

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--virtual-time-budget=4000",
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: make browser"),
]

# Uses the page as somebody with a keyboard would, and leaves what it found in the page.
SCRIPT = """
<script>
const found = {};
found.ready = document.documentElement.dataset.ready;
found.sections = [...document.querySelectorAll("main section")].map((s) => s.id);
found.links = [...document.querySelectorAll("nav a")].every((a) => document.querySelector(a.hash));
found.figures = document.querySelectorAll("figure svg[role=img][aria-label]").length;
found.unnamed = [...document.querySelectorAll("button, input")].filter(
  (e) => !(e.textContent || e.getAttribute("aria-label") || e.labels && e.labels.length)).length;
found.captions = [...document.querySelectorAll("table")].every((t) => t.caption && t.tHead);
found.images = document.querySelectorAll("img").length;
found.wide = document.documentElement.scrollWidth > innerWidth + 1;
const lines = () => [...document.querySelectorAll("#rows tbody tr")];
const search = document.getElementById("search");
found.all = lines().length;
search.value = "oslo"; search.dispatchEvent(new Event("input"));
found.some = lines().length;
found.said = document.querySelector("#rows [role=status]").textContent;
search.value = ""; search.dispatchEvent(new Event("input"));
const columns = document.getElementById("find-column");
columns.value = "x numeric"; columns.dispatchEvent(new Event("input"));
document.querySelectorAll("#data thead button")[2].click();
found.columns = [...document.querySelectorAll("#data tbody th")].map((c) => c.textContent);
const button = document.querySelector("#rows tbody button");
button.focus(); found.focused = document.activeElement === button;
button.click();
found.expanded = button.getAttribute("aria-expanded");
found.waterfall = document.querySelectorAll("tr.waterfall svg rect").length;
button.click();
found.closed = document.querySelectorAll("tr.waterfall").length;
const residual = document.querySelectorAll("#rows thead button")[3];
residual.click();
found.sorted = residual.parentElement.getAttribute("aria-sort");
found.residuals = lines().map((l) => Number(l.cells[3].textContent.replace("−", "-")));
found.colour = getComputedStyle(document.body).backgroundColor;
document.body.append(Object.assign(document.createElement("pre"),
  { id: "found", textContent: JSON.stringify(found) }));
</script>
"""

# Chooses the second target, as the arrow keys on the choice do.
CHOOSE = """
<script>
const menu = document.getElementById("target");
const seen = { choices: [...menu.options].map((o) => o.textContent), titles: [], rows: [],
  sections: [], label: menu.labels[0].firstChild.textContent };
const look = () => {
  seen.titles.push(document.getElementById("title").textContent);
  seen.rows.push(document.querySelectorAll("#rows tbody tr").length);
  const parts = [...document.querySelectorAll("main section, nav a")];
  seen.sections.push(parts.map((part) => part.id || part.hash));
};
look();
menu.focus(); menu.value = "1"; menu.dispatchEvent(new Event("change"));
look();
seen.bold = document.querySelector("#summary tr.first th").textContent;
seen.focused = document.activeElement === menu;
seen.charts = document.querySelectorAll("figure svg[role=img]").length;
document.body.append(Object.assign(document.createElement("pre"),
  { id: "found", textContent: JSON.stringify(seen) }));
</script>
"""


def chromium(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)


@pytest.fixture(scope="module")
def page(
    model: TabNSMRegressor,
    rows: tuple[pd.DataFrame, pd.Series],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    model.report(rows[0][200:], rows[1][200:], path)
    used = path.read_text().replace("</body>", SCRIPT + "</body>")
    (path.parent / "used.html").write_text(used)
    return path


def use(page: Path, tmp_path: Path, *options: str) -> dict[str, Any]:
    used = page.parent / "used.html"
    result = chromium(tmp_path, *options, "--dump-dom", used.as_uri())
    return read_found(result)


def read_found(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    left = re.search(r'<pre id="found">(.*?)</pre>', result.stdout, re.S)
    assert left is not None, result.stdout[-2000:] + result.stderr
    found: dict[str, Any] = json.loads(html.unescape(left[1]))
    return found


@pytest.mark.parametrize("width", [500, 1400])
def test_the_page_can_be_used(page: Path, tmp_path: Path, width: int) -> None:
    found = use(page, tmp_path, f"--window-size={width},1000")
    assert found["ready"] == "true"
    assert {"summary", "comparison", "predictions", "residuals", "importances", "rows", "data",
            "training", "options"} <= set(found["sections"])  # fmt: skip
    assert found["links"]
    assert found["figures"] >= 10
    assert found["unnamed"] == 0
    assert found["captions"]
    assert found["images"] == 0  # a value that looks like markup is text
    assert not found["wide"]
    assert found["all"] == 60
    assert 0 < found["some"] < 60
    assert found["said"] == f"{found['some']} of 60 rows"
    assert sorted(found["columns"]) == ["x0", "x1", "x2", "x3"]  # sorting keeps the search
    assert found["columns"][0] == "x0"
    assert found["focused"]
    assert found["expanded"] == "true"
    assert found["waterfall"] >= 3
    assert found["closed"] == 0
    assert found["sorted"] == "descending"
    assert found["residuals"] == sorted(found["residuals"], reverse=True)


def test_one_of_several_targets_is_chosen(
    several: TabNSMRegressor, rows: tuple[pd.DataFrame, pd.Series], tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    several.report(rows[0][200:], two_targets(*rows)[200:], path)
    assert "<title>price, area: TabNSM report</title>" in path.read_text()
    path.write_text(path.read_text().replace("</body>", CHOOSE + "</body>"))
    found = read_found(chromium(tmp_path, "--dump-dom", path.as_uri()))
    assert found["choices"] == ["price", "area"]
    assert found["label"] == "Target"
    assert found["titles"] == ["TabNSM report: price", "TabNSM report: area"]
    assert found["rows"] == [60, 45]
    assert found["sections"][0] == found["sections"][1]
    assert found["bold"] == "area"
    assert found["focused"]
    assert found["charts"] >= 10


def test_dark_is_dark(page: Path, tmp_path: Path) -> None:
    light = use(page, tmp_path)["colour"]
    dark = use(page, tmp_path, "--blink-settings=preferredColorScheme=0")["colour"]
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(18, 22, 27)")


def test_it_prints(page: Path, tmp_path: Path) -> None:
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'r.pdf'}", page.as_uri())
    pdf = (tmp_path / "r.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2
