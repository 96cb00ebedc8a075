"""Predicts from a folder of `tabnsm export`: tabnsm_reader.py FOLDER FILE [DELIMITER [DECIMAL]]."""

import csv
import json
import re
import sys
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from onnxruntime import InferenceSession

VERSION, TOKENS_PER_RUN, ROUNDING, CPU = 2, 4096, 1e-9, ["CPUExecutionProvider"]
COMMA = r"[+\-\u2212]?(\d*|\d{1,3}([.'\u2019 \xa0\u2009\u202f])\d{3}(\2\d{3})*),\d+([eE][+-]?\d+)?"
Entry = dict[str, Any]


class ExportedModel:
    """A model as it was exported; it predicts what the fitted model does."""

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        self.facts: Entry = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        if self.facts["version"] != VERSION:
            raise ValueError(f"version must be {VERSION}, got {self.facts['version']}.")
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            self.arrays = dict(arrays)
        self.networks = {p.name: InferenceSession(p, providers=CPU) for p in folder.glob("*.onnx")}
        if self.facts["text"]:
            from tokenizers import Tokenizer

            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def predict(self, table: dict[str, Any]) -> np.ndarray:
        """Predict the rows of a dict of columns: (n,), or (n, t) of several targets."""
        prediction = self._predict(table)[-1]
        return prediction[:, 0] if prediction.shape[1] == 1 else prediction

    def predict_quantiles(self, table: dict[str, Any], levels: list[float]) -> np.ndarray:
        """Quantiles of the rows: (n, q), or (n, t, q) of several targets."""
        if not self.facts["quantiles"]:
            raise ValueError("This model was exported without a calibration for quantiles.")
        x, standard, prediction = self._predict(table)
        difficulty = self._run("difficulty.onnx", np.hstack([x, standard]))  # (n, t)
        found = np.empty((*prediction.shape, len(levels)))
        for k, entry in enumerate(self.facts["quantiles"]):
            scores, below, above = (self.arrays[name] for name in entry["arrays"])
            point, n = prediction[:, k], len(below)
            wide = entry["unit"] * (difficulty[:, k].clip(0).astype(float) + entry["even_share"])
            for j, level in enumerate(levels):
                upper = scores[1 + np.searchsorted(below, level * (n + 1) - ROUNDING)]
                lower = scores[n - np.searchsorted(above, (1 - level) * (n + 1) - ROUNDING)]
                score = upper if level > 0.5 else lower if level < 0.5 else (lower + upper) / 2
                if not np.isfinite(score):
                    raise ValueError(f"{n} calibration rows cannot give the quantile {level}.")
                low, high = np.minimum(point, entry["low"]), np.maximum(point, entry["high"])
                found[:, k, j] = np.clip(point + wide * score, low, high)
        return found[:, 0] if found.shape[1] == 1 else found

    def encode(self, table: dict[str, Any]) -> np.ndarray:
        """Features of the rows of a dict of columns, (n, D)."""
        if absent := [name for name in self.facts["needs"] if name not in table]:
            raise ValueError(f"A table must have the columns of the fit, got none named {absent}.")
        columns = {name: self._plain(table[name]) for name in self.facts["needs"]}
        n_rows, *others = {len(values) for values in columns.values()}
        if others:
            raise ValueError(f"Columns must have one length, got {[n_rows, *others]}.")
        x = np.zeros((n_rows, len(self.facts["features"])), dtype=np.float32)
        for entry in self.facts["columns"]:
            self._write(entry, columns[entry["name"]], x)
        for part in self.facts["target_means"]:
            pairs = [(self.arrays[values], x[:, feature]) for feature, values in part["look_up"]]
            at = tuple(np.searchsorted(v, row).clip(max=len(v) - 1) for v, row in pairs)
            known = np.all([v[k] == row for (v, row), k in zip(pairs, at, strict=True)], axis=0)
            x[:, part["at"]] = known * self.arrays[part["means"]][at]
        for group in self.facts["text"]:
            parts = [[self._written(value) or "" for value in columns[k]] for k in group["columns"]]
            self._write_text(group, [" ".join(row) for row in zip(*parts, strict=True)], x)
        return x

    def read_csv(self, path: Any, delimiter: str = ",", decimal: str = "") -> dict[str, list[Any]]:
        """Columns of a UTF-8 file with a header; `decimal` is "," if the delimiter is ";"."""
        with open(path, newline="", encoding="utf-8-sig") as stream:
            lines = [row for row in csv.reader(stream, delimiter=delimiter) if row]
        if (odd := [row for row in lines if len(row) != len(lines[0])][:1]) or not lines:
            raise ValueError(f"{path} must have a header and as many cells per row, got {odd}.")
        numeric = {e["name"]: e for e in self.facts["columns"] if e["kind"] == "numeric"}
        table, is_comma = {}, (decimal or {";": ","}.get(delimiter)) == ","
        for name, *cells in zip(*lines, strict=True):
            entry = numeric.get(name, {"decimal": ""})
            table[name] = [self._cell(c, is_comma and entry["decimal"] != ",") for c in cells]
            given = [cell for cell in table[name] if cell is not None and name in numeric]
            bad = [cell for cell in given if self._read_numeric(cell, entry) is None]
            if 2 * len(bad) > len(given):
                raise ValueError(f"{name!r} needs numbers, got {bad[0]!r}. Set delimiter, decimal.")
        return table

    def _cell(self, cell: str, is_comma: bool) -> str | None:  # 1.234,5 as 1234.5
        if is_comma and re.fullmatch(COMMA, cell.strip(), re.ASCII):
            cell = re.sub(r"[^\d,eE+\-\u2212]", "", cell).replace(",", ".").replace("\u2212", "-")
        return None if cell.strip() in self.facts["missing_cells"] else cell

    def _run(self, name: str, x: np.ndarray) -> np.ndarray:
        run, size = self.networks[name].run, self.facts["rows_per_run"]
        rows = x if len(x) else np.zeros_like(x, shape=(1, x.shape[1]))  # none would be an error
        parts = [rows[k : k + size] for k in range(0, len(rows), size)]
        return np.concatenate([run(None, {"features": part})[0] for part in parts])[: len(x)]

    def _predict(self, table: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = self.encode(table)
        standard = np.mean([self._run(name, x) for name in self.facts["networks"]], axis=0)
        prediction = self.facts["network_weight"] * self._in_units("targets", standard, x)  # (n, t)
        others: Any = self._run("members.onnx", x).T if self.facts["members"] else []  # trees
        for member, found in zip(self.facts["members"], others, strict=True):
            prediction += member["weight"] * self._in_units(member["on"], found[:, None], x)
        return x, standard, prediction

    def _in_units(self, which: str, standard: np.ndarray, x: np.ndarray) -> np.ndarray:
        prediction = np.empty(standard.shape)
        for k, entry in enumerate(self.facts[which]):
            prediction[:, k] = self._unscale(standard[:, k], entry["scale"])
            if entry["linear"] is not None:
                total = x.astype(np.float64) @ self.arrays[entry["linear"]["slopes"]]
                for feature, first, size in self.facts["categories"]:
                    codes = x[:, feature].astype(np.int64).clip(0, size - 1)
                    total += self.arrays[entry["linear"]["code_values"]][first + codes]
                prediction[:, k] += self._unscale(total, entry["linear"]["scale"])
        return prediction

    def _unscale(self, standard: np.ndarray, scale: Entry) -> np.ndarray:
        values = np.clip(standard.astype(np.float64), *(scale["limits"] or (-np.inf, np.inf)))
        values = values * scale["scale"] + scale["mean"]
        if (asinh := scale["asinh"]) is not None:
            values = np.sinh(np.clip(values, asinh["lowest"], asinh["highest"]))
            values = values * asinh["unit"] + asinh["median"]
        return np.asarray(np.nan_to_num(values / scale["pre_scale"]))

    def _write_text(self, group: Entry, texts: list[str], x: np.ndarray) -> None:
        distinct, index = self._distinct(texts)
        tokens = [found.ids for found in self.tokenizer.encode_batch(distinct)]
        lengths = np.array([len(ids) for ids in tokens])
        center, scale = self.arrays[group["center"]], self.arrays[group["scale"]]
        features = np.empty((len(distinct), len(scale)), dtype=np.float32)
        for length in np.unique(lengths):  # texts of one length go together, without padding
            alike, size = np.flatnonzero(lengths == length), max(1, TOKENS_PER_RUN // int(length))
            for part in np.split(alike, range(size, len(alike), size)):
                ids = np.array([tokens[k] for k in part], dtype=np.int64)
                found = self.networks["text.onnx"].run(None, {"tokens": ids})[0].astype(float)
                features[part] = (found - center) @ self.arrays[group["directions"]] / scale
        x[:, group["at"] : group["at"] + len(scale)] = features[index]

    def _write(self, entry: Entry, values: list[Any], x: np.ndarray) -> None:
        (distinct, index), width = self._distinct(values), entry["width"]
        rows = [getattr(self, f"_read_{entry['kind']}")(value, entry) for value in distinct]
        filled = [[np.nan] * width if row is None else row[:width] for row in rows]
        block = np.array(filled, dtype=np.float64).reshape(len(rows), width)
        if entry["statistics"] is not None:
            pre_scale, center, scale, low, high, below, above = np.array(entry["statistics"])
            with np.errstate(over="ignore", invalid="ignore"):
                standard = np.clip((block * pre_scale - center) / scale, low, high)
            ends = np.where(block > 0, above, below)  # where a value is infinite
            block = np.nan_to_num(np.where(np.isinf(block), ends, standard), nan=0.0)
        x[:, entry["at"] : entry["at"] + width] = block[index]
        if entry["missing_at"] is not None:
            x[:, entry["missing_at"]] = np.array([row is None for row in rows], dtype=bool)[index]

    def _plain(self, values: Any) -> list[Any]:  # None where one is missing
        if getattr(getattr(values, "dtype", None), "kind", "") == "M":
            values = np.asarray(values).astype("datetime64[us]")
        plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
        return [None if type(v).__name__ in ("NAType", "NaTType") or v != v else v for v in plain]

    def _distinct(self, values: list[Any]) -> tuple[list[Any], np.ndarray]:
        place = {value: k for k, value in enumerate(dict.fromkeys(values))}
        return list(place), np.array([place[value] for value in values], dtype=np.int64)

    def _written(self, value: Any) -> str | None:  # as categories and texts have it
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = float(value)
            return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)
        if isinstance(value, date):
            return self._utc(value).isoformat().removesuffix("T00:00:00")
        return str(value) if value is not None and str(value).strip() else None

    def _utc(self, value: date) -> datetime:
        moment = value if isinstance(value, datetime) else datetime.combine(value, time())
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)

    def _read_category(self, value: Any, entry: Entry) -> list[float] | None:
        text = self._written(value)
        return [entry["missing"]] if text is None else [entry["codes"].get(text, entry["unseen"])]

    def _read_code(self, value: Any, entry: Entry) -> list[float]:
        return [c.get((self._written(value) or "")[k : k + 1], 0) for k, c in entry["places"]]

    def _read_numeric(self, value: Any, entry: Entry) -> list[float] | None:
        if isinstance(value, str):
            ways = (self._read_float, self._read_pattern)[:: 1 if entry["decimal"] == "." else -1]
            value = next((found for way in ways if (found := way(value, entry)) is not None), None)
        value = np.nan if value is None else float(value)  # a TypeError if it is a date
        return [value] if np.isfinite(value) or np.isinf(value) * entry["takes_infinite"] else None

    def _read_float(self, text: str, entry: Entry) -> float | None:
        with suppress(ValueError):
            return float(text if "_" not in text else "_")
        return {"true": 1.0, "false": 0.0}.get(text.strip().lower())

    def _read_pattern(self, text: str, entry: Entry) -> float | None:  # $1,234.50, (12), 45 %
        for odd, plain in self.facts["replacements"]:
            text = re.sub(odd, plain, text)
        if (match := re.search(entry["pattern"], text.strip(), re.ASCII)) is None:
            return None
        opened, signs = match["open"] + match["opens"], match["sign"] + match["inner"]
        if bool(opened) != bool(match["close"]) or len(opened + signs) > 1:
            return None
        digits = match["number"].replace(entry["thousands"] or "\0", "")
        return float(digits.replace(entry["decimal"], ".")) * (-1 if opened or signs == "-" else 1)

    def _read_date(self, value: Any, entry: Entry) -> list[float] | None:
        if isinstance(value, str):
            value = next(filter(None, (self._moment(value, p) for p in entry["patterns"])), None)
        if value is None:
            return None
        moment = self._utc(value)
        parts = {name: getattr(moment, name, 0) for name in entry["parts"]}  # year, month, hour ...
        parts["days"] = (int(np.datetime64(moment, "us").astype("i8")) - entry["origin"]) / 86.4e9
        parts["weekday"], parts["day_of_year"] = moment.weekday(), moment.timetuple().tm_yday
        return [parts[name] for name in entry["parts"]]

    def _moment(self, text: str, pattern: str) -> datetime | None:
        if (match := re.fullmatch(pattern, text.strip(), re.ASCII)) is None:
            return None
        part = match.groupdict("")
        year, hour, zone, half = int(part["Y"]), int(part["H"] or 0), part["z"], part["p"].lower()
        year += 0 if len(part["Y"]) == 4 else 1900 if year >= 69 else 2000
        hour = hour if not half else hour % 12 + 12 * (half == "pm") if 1 <= hour <= 12 else 99
        ahead = int(zone[:3]) * 60 + int(zone[0] + zone[-2:]) if zone[:1] in ("+", "-") else 0
        month = self.facts["months"].get(part["b"].lower(), 0) if "b" in part else int(part["m"])
        clock = hour, int(part["M"] or 0), int(part["S"] or 0), int(f"{part['f']:0<7}"[1:7])
        with suppress(ValueError, OverflowError):
            return datetime(year, month, int(part.get("d", 1)), *clock) - timedelta(minutes=ahead)
        return None


if __name__ == "__main__":
    model = ExportedModel(sys.argv[1] if sys.argv[2:] else sys.exit(__doc__))
    found = model.predict(model.read_csv(*sys.argv[2:5]))
    print(",".join(entry["name"] for entry in model.facts["targets"]))
    np.savetxt(sys.stdout, found.reshape(len(found), -1), "%.17g", ",")
