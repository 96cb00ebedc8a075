"""Arithmetic of large fits on a cluster, from what was measured here.

    python bench/scripts/scaling_plan.py

Reads bench/results/distributed/epochs.json and kills.json, bench/results/speed/text.json and
bench/results/studies/out_of_core.json, and writes docs/scaling_cluster.md within seconds.
"""

import json
import math
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "scaling_cluster.md"
N_ROWS, N_COLUMNS, N_EPOCHS = 10**9, 500, 30
CORES_PER_NODE, DOLLARS_PER_CORE_HOUR, GIGABIT = 32, 0.04, 25
LATENCY = 50e-6


class CostModel:
    """Seconds of an epoch: work of the rows, of the steps, and of what processes send each other.

    `row` seconds per row and feature of one core; `step` seconds of a step whatever its rows;
    `exchange` seconds that a core takes to send all gradients once. Processes beyond the cores
    share them, so that min(processes, cores) do the work of all. A ring of p processes sends the
    gradients 2 (p - 1) times in all.
    """

    def __init__(self, found):
        self.found = found
        self.n_train = round(0.9 * found["n_rows"])
        self.seconds = {
            (row["n_processes"], row["batch_size"]): row["epoch_seconds"] for row in found["epochs"]
        }
        small, large = sorted({batch for _, batch in self.seconds})
        steps = [math.ceil(self.n_train / batch) for batch in (small, large)]
        one = [self.seconds[1, batch] for batch in (small, large)]
        self.step = max((one[0] - one[1]) / (steps[0] - steps[1]), 0.0)
        work = [seconds - n * self.step for seconds, n in zip(one, steps, strict=True)]
        self.row = sum(work) / len(work) / self.n_train / found["n_columns"]
        self.exchange = 0.0
        # Of two processes, by the many small steps.
        rest = self.seconds[2, small] - self.epoch(2, small)
        self.exchange = max(rest * self.cores(2) / 2 / steps[0], 0.0)

    def cores(self, n_processes):
        return min(n_processes, self.found["n_cores"])

    def epoch(self, n_processes, batch):
        """Predicted time here."""
        work = self.n_train * self.found["n_columns"] * self.row
        sent = 2 * (n_processes - 1) * self.exchange
        each = n_processes * self.step + sent
        return (work + math.ceil(self.n_train / batch) * each) / self.cores(n_processes)

    def checks(self):
        for key, measured in sorted(self.seconds.items()):
            yield key, measured, self.epoch(*key)


def n_weights(n_columns):
    import dataclasses

    from tabnsm.nn import TabNSM
    from tabnsm.options import resolve_options

    options = resolve_options({"preset": "fast"})
    model = TabNSM(n_columns, **dataclasses.asdict(options.architecture))
    return sum(parameter.numel() for parameter in model.parameters())


def encoding_hours(core, workers):
    """Of 1 billion rows; the passes over the columns and the workers' own are twice the work."""
    found = core["compare"]
    per_second = found["n_rows"] * found["n_features"] / found["encode_seconds_disk"]
    return 2 * N_ROWS * N_COLUMNS / per_second / workers / 3600


def plan(model, core, n_nodes):
    """Hours and dollars of 1 billion rows on so many nodes."""
    workers = n_nodes * CORES_PER_NODE
    batch = 64 * workers
    n_steps = math.ceil(0.9 * N_ROWS / batch)
    sent = 4 * n_weights(N_COLUMNS)
    # A ring sends twice the bytes through each node's line, which its workers share.
    exchange = 2 * sent * 8 / (GIGABIT * 1e9) + LATENCY * math.log2(workers)
    work = 0.9 * N_ROWS * N_COLUMNS * model.row / workers
    epoch = work + n_steps * (model.step + exchange)
    encoding = encoding_hours(core, workers)
    hours = encoding + N_EPOCHS * epoch / 3600
    return {
        "encoding": encoding,
        "workers": workers,
        "batch": batch,
        "steps": n_steps,
        "share": n_steps * exchange / epoch,
        "hours": hours,
        "dollars": hours * workers * DOLLARS_PER_CORE_HOUR,
        "memory": 0.9 * N_ROWS * (4 * N_COLUMNS + 8 + 8) / n_nodes / 1e9,
    }


def ray_lines(found):
    """What the start of a cluster and fits on it take."""
    ray = found["ray"]
    if ray is None:
        return ["Not measured yet.\n"]
    rows = [
        ("networks", "local_seconds", "one network as a task"),
        ("rows", "local_seconds", "rows by Ray Train, from memory"),
        ("files", "local_files_seconds", "rows by Ray Train, which the worker reads and encodes"),
    ]
    lines = [
        f"A fit of {found['n_rows']:,} rows, {found['n_columns']} columns and 3 epochs with "
        f"`num_workers=1`, on a cluster on this machine whose start takes "
        f"{ray['start_seconds']:.1f} s:\n",
        "| fit | without Ray, s | first on the cluster, s | second, s | overhead, s |",
        "|---|---|---|---|---|",
    ]
    for name, local, text in rows:
        first, second = ray[f"ray_{name}_seconds"]
        more = second - ray[local]
        lines.append(f"| {text} | {ray[local]:.1f} | {first:.1f} | {second:.1f} | {more:.1f} |")
    return [*lines, ""]


def page(model, kills, core, texts_per_second):
    found = model.found
    lines = [
        "---\norphan: true\n---\n",
        "# Arithmetic of a cluster\n",
        "Written by `bench/scripts/scaling_plan.py` from measurements on a machine of "
        f"{found['n_cores']} cores whose load average was {found['load_before']} before them; what "
        "follows the figures of Ray is arithmetic, not a measurement.\n",
        "## The model of cost, and its error\n",
        f"An epoch of {found['n_rows']:,} rows and {found['n_columns']} columns (preset `fast`) "
        "with rows side by side. The model has three constants, from the runs with 1 process and "
        f"one with 2: {model.row * 1e9:.0f} ns per row and feature, {model.step * 1e3:.2f} ms per "
        f"step, {model.exchange * 1e3:.2f} ms of a core to send gradients of "
        f"{found['epochs'][0]['all_reduce_bytes'] / 1e6:.2f} MB once, which a ring of p processes "
        "does 2 (p - 1) times. Processes beyond the cores share them. The constants come from 1 "
        "and 2 processes; the form of the last term was chosen after a look at an earlier run "
        "with 4, so that its rows are no test of the form unless they are measured anew.\n",
        "| processes | batch | measured, s | model, s | error | validation RMSE |",
        "|---|---|---|---|---|---|",
    ]
    rmse = {(r["n_processes"], r["batch_size"]): r["validation_rmse"] for r in found["epochs"]}
    for (n, batch), measured, predicted in model.checks():
        error = predicted / measured - 1
        lines.append(
            f"| {n} | {batch} | {measured:.2f} | {predicted:.2f} | {error:+.0%} | "
            f"{rmse[n, batch]:.4f} |"
        )
    lines += [
        "",
        f"{1 / model.row / found['n_columns']:,.0f} rows of {found['n_columns']} columns per "
        "second and core. On a machine with other work these figures are rough. The network's "
        "share below is bytes over the nominal speed of the line, and no measurement.\n",
        "## What Ray adds\n",
        *ray_lines(found),
        "After a kill (12 epochs of 20,000 rows, 2 workers, 3 nodes on one machine that did other "
        "work as well), seconds until the next epoch was stored:\n",
        "| killed | seconds | |",
        "|---|---|---|",
    ]
    said = {
        "worker": "goes on by itself",
        "node": "goes on by itself",
        "head": "the call ends with an error; time of the same call on a new cluster",
    }
    lines += [
        f"| {run['kill']} | {run['recovery_seconds']:.0f} | {said[run['kill']]} |"
        for run in kills["runs"]
        if run["kill"] in said
    ]
    sent = 4 * n_weights(N_COLUMNS)
    terabytes = N_ROWS * 4 * N_COLUMNS / 1e12
    lines += [
        "",
        f"## {N_ROWS:,} rows of {N_COLUMNS} columns\n",
        f"Encoded rows: {4 * N_COLUMNS:,} bytes each, {terabytes:.1f} TB on the disks of all "
        "workers, twice while they are encoded. Gradients: "
        f"{sent / 1e6:.1f} MB a step. {N_EPOCHS} epochs of preset `fast`, 64 rows per worker and "
        f"step, nodes of {CORES_PER_NODE} cores with {GIGABIT} Gbit/s at "
        f"{DOLLARS_PER_CORE_HOUR} dollars per core and hour:\n",
        "| nodes | workers | batch | steps per epoch | hours | of encoding | network's share | "
        "dollars | GB of disk per node |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for n_nodes in (8, 32, 128):
        p = plan(model, core, n_nodes)
        lines.append(
            f"| {n_nodes} | {p['workers']} | {p['batch']:,} | {p['steps']:,} | {p['hours']:,.0f} | "
            f"{p['encoding']:.1f} | {p['share']:.0%} | {p['dollars']:,.0f} | {p['memory']:,.0f} |"
        )
    seconds = 1e6 / texts_per_second
    core_hours = 100 * seconds / 3600
    lines += [
        "",
        "What breaks first: the memory of one task, which reads a whole column of "
        f"{8 * N_ROWS / 1e9:.0f} GB to find its statistics as one machine does, and that of the "
        "calling process, which has targets and row numbers, "
        f"{24 * N_ROWS / 1e9:.0f} GB. Then the batch: with thousands of workers it is "
        "far larger than any that was tried here, and the accuracy of such steps is not "
        "measured. At the end the calling process predicts the validation rows by itself, so that "
        "`validation_fraction` must be small.\n",
        "## 100 million distinct texts\n",
        f"A core embeds a million texts of 62 characters in {seconds:,.0f} s; 100 million take "
        f"{core_hours:,.0f} core hours, {core_hours * DOLLARS_PER_CORE_HOUR:,.0f} dollars, and "
        "154 GB of vectors before they are projected. Text is embedded by one task "
        f"alone: on a machine of {CORES_PER_NODE} cores that is "
        f"{core_hours / CORES_PER_NODE:,.0f} hours. "
        "That breaks before anything else where tables have this much text.",
    ]
    return "\n".join(lines) + "\n"


def main():
    found = json.loads((RESULTS / "distributed" / "epochs.json").read_text())
    kills = json.loads((RESULTS / "distributed" / "kills.json").read_text())
    text = json.loads((RESULTS / "speed" / "text.json").read_text())
    core = json.loads((RESULTS / "studies" / "out_of_core.json").read_text())
    PAGE.write_text(page(CostModel(found), kills, core, texts_per_second(text)))


def texts_per_second(text):
    """Of one core."""
    rows = {row["encoder"]: row["strings_per_second"] for row in text["result"]["rows"]}
    return rows["tabnsm, float32"] / text["result"]["settings"]["n_threads"]


if __name__ == "__main__":
    main()
