// The sections of the page, made from the JSON that it holds, out of the parts of parts.js.
const whole = JSON.parse(document.getElementById("data").textContent);
const targets = whole.targets || [whole];
let data = null; // what is shown: the parts of one target, and those that all share

function summary() {
  const { rows, metrics } = data;
  document.getElementById("title").textContent = "TabNSM report: " + data.target;
  const named = targets.length > 1 ? ` The model predicts ${count(targets.length, "target")}; this page shows one at a time.` : "";
  const lacking = rows.given - rows.known;
  const known = lacking ? `${count(lacking, "row")} of ${rows.given.toLocaleString("en")} ${lacking === 1 ? "has" : "have"} no value of it. ` : "";
  const sampled = rows.used < rows.known ? `${count(rows.used, "row")} were drawn at random from ${rows.known.toLocaleString("en")}; all figures are of these.` : `All ${count(rows.used, "row")}${lacking ? " that have one" : ""} were used.`;
  document.getElementById("about").textContent = `A fitted model on rows with known values of ${data.target}. ${known}${sampled}${named}`;
  const tiles = [["RMSE", number(metrics.rmse)], ["Mean absolute error", number(metrics.mae)], ["R²", number(metrics.r2, 3)], ["Spearman", number(metrics.spearman, 3)], ["Within one of 20 bins", percent(metrics.within_one_bin)]];
  const list = element("dl", { class: "tiles" }, ...tiles.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  const best = data.comparison.methods[0];
  const verdict = data.comparison.methods.length > 1 ? paragraph(`Lowest RMSE of the compared methods: ${best.name}, ${number(best.metrics.rmse)}. See the comparison for what each was trained on.`) : null;
  section("summary", "Summary", list, verdict, targets.length > 1 ? overview() : null);
}

// All targets beside each other, each with its best rival.
function overview() {
  const rows = targets.map((part) => {
    const rival = part.comparison.methods.find((method) => method.name !== "TabNSM");
    return { ...part, rival, kind: part.target === data.target ? "first" : "" };
  });
  const metric = (key) => (row) => row.metrics[key];
  return table("All targets; the one that is shown is bold", [
    plain("Target", (row) => row.target, { kind: "name" }), figures("Rows", (row) => row.rows.used), figures("RMSE", metric("rmse")),
    figures("MAE", metric("mae")), figures("R²", metric("r2"), (v) => number(v, 3)),
    figures("RMSE of the best other method", (row) => row.rival && row.rival.metrics.rmse), plain("Best other method", (row) => row.rival && row.rival.name),
  ], rows, { free: true }).place;
}

function choice() {
  if (targets.length === 1) return;
  const select = element("select", { id: "target" }, ...targets.map((part, k) => element("option", { value: k }, part.target)));
  select.addEventListener("change", () => show(Number(select.value)));
  document.getElementById("choice").append(element("label", { for: "target" }, "Target", select));
}

function comparison() {
  const rows = data.comparison.methods.map((row) => ({ ...row, kind: row.name === "TabNSM" ? "first" : "" }));
  const metric = (key, digits) => (row) => row.metrics[key];
  const made = table("Methods on the same rows, the lowest RMSE first", [
    plain("Method", (row) => row.name), figures("RMSE", metric("rmse")), figures("MAE", metric("mae")),
    figures("R²", metric("r2"), (v) => number(v, 3)), figures("Spearman", metric("spearman"), (v) => number(v, 3)),
    figures("Within one of 20 bins", metric("within_one_bin"), percent),
  ], rows, { free: true });
  section("comparison", "Comparison", made.place, paragraph(data.comparison.note, "soft"));
}

function dataSection() {
  const changed = data.data.filter((row) => row.is_large);
  const made = table(`${count(data.data.length, "column")} as understood`, [
    plain("Column", (row) => row.name, { kind: "name" }), plain("Kind", (row) => row.kind),
    figures("Importance", (row) => row.importance, (v) => percent(v)),
    figures("Missing, training", (row) => row.missing, (v) => percent(v)), figures("Missing, here", (row) => row.missing_now, (v) => percent(v)),
    figures("Distinct, training", (row) => row.distinct), plain("Difference from training", (row) => row.drift, { warn: (row) => row.is_large }),
    figures("Features", (row) => row.features), plain("Note", (row) => row.note),
  ], data.data, { sortable: true, refill: () => find.filter() });
  const find = finder("find-column", "Search columns, kinds and notes", "column", made, (row) => `${row.name} ${row.kind} ${row.note} ${row.drift}`.toLowerCase());
  const found = changed.length ? `${count(changed.length, "column")} differ${changed.length === 1 ? "s" : ""} clearly from the training rows: ${changed.slice(0, 8).map((row) => row.name).join(", ")}${changed.length > 8 ? ", …" : ""}.` : "No column differs clearly from the training rows.";
  section("data", "Data", paragraph(found, changed.length ? "warn" : ""),
    paragraph("A mean is compared in standard deviations (sd) of the training rows; values of a category are counted that training did not have. Frequencies of known categories and texts are not compared.", "soft"), find.place, made.place);
}

function training() {
  const { networks, metric, seconds, best_score } = data.training;
  const n = Math.max(...networks.map((network) => network.scores.length));
  const draw = (pick, name) => (width) => {
    const height = 260, svg = canvas(width, height);
    const box = { left: 58, right: width - 12, top: 28, bottom: height - 42 };
    const all = networks.flatMap(pick).filter((value) => value !== null);
    const low = Math.min(...all), sorted = [...all].sort((a, b) => a - b);
    const high = Math.max(sorted[Math.floor(0.97 * (sorted.length - 1))], low + 1e-9 * Math.abs(low) + 1e-30);
    const x = scale(1, Math.max(n, 2), box.left, box.right), y = scale(low, high, box.bottom, box.top);
    axes(svg, box, x, (v) => y(v), ticks(1, n, 6).filter(Number.isInteger), ticks(low, high, 5), "epoch", name);
    networks.forEach((network, k) => {
      const colour = `var(--n${(k % 8) + 1})`, points = pick(network);
      const line = points.map((value, e) => `${x(e + 1)},${y(Math.min(value ?? high, high))}`).join(" ");
      svg.append(shape("polyline", { points: line, fill: "none", stroke: colour, "stroke-width": 1.6 }));
      svg.append(shape("circle", { cx: x(network.best_epoch), cy: y(Math.min(points[network.best_epoch - 1], high)), r: 4.5, fill: colour }));
    });
    return svg;
  };
  const made = table("Networks", [
    { name: "Network", value: (row) => row.k, text: (row) => String(row.k) }, figures("Epochs", (row) => row.scores.length), figures("Best epoch", (row) => row.best_epoch),
    figures("Validation " + metric, (row) => row.scores[row.best_epoch - 1]), figures("Seconds", (row) => row.seconds, (v) => v.toFixed(1)), plain("Stopped", (row) => row.stop_reason),
  ], networks.map((network, k) => ({ ...network, k: k + 1 })), { free: true });
  section("training", "Training",
    paragraph(`${count(networks.length, "network")}, ${number(seconds, 3)} s of training. Together they reach a validation ${metric} of ${number(best_score)}. A dot is the epoch that was kept.`),
    element("div", { class: "cols" },
      figure(`Validation ${metric} of each network by epoch; the table below has the best`, draw((network) => network.scores, "validation " + metric)),
      figure("Training loss of each network by epoch", draw((network) => network.losses, "training loss"))),
    made.place);
}

function predictions() {
  const { truth, prediction, n_rows } = data.scatter;
  const shown = truth.length < n_rows ? `${truth.length.toLocaleString("en")} of ${count(n_rows, "row")}, drawn at random` : count(n_rows, "row");
  const draw = (width) => {
    const size = Math.min(width, 460), svg = canvas(size, size);
    const box = { left: 62, right: size - 12, top: 28, bottom: size - 44 };
    const all = truth.concat(prediction), low = Math.min(...all), high = Math.max(...all);
    const x = scale(low, high, box.left, box.right), y = scale(low, high, box.bottom, box.top);
    axes(svg, box, x, y, ticks(low, high, 4), ticks(low, high, 5), "true " + short(data.target, 24), "predicted");
    svg.append(shape("line", { x1: x(low), y1: y(low), x2: x(high), y2: y(high), stroke: "var(--orange)", "stroke-width": 1.5 }));
    const path = truth.map((value, k) => `M${x(value).toFixed(1)} ${y(prediction[k]).toFixed(1)}h0`).join("");
    svg.append(shape("path", { d: path, stroke: "var(--blue)", "stroke-width": 4, "stroke-linecap": "round", "stroke-opacity": truth.length > 400 ? 0.35 : 0.6, fill: "none" }));
    return svg;
  };
  const { counts, edges, same, within_one } = data.calibration;
  const most = Math.max(...counts.flat());
  const heat = (width) => {
    const size = Math.min(width, 460), svg = canvas(size, size);
    const box = { left: 62, right: size - 12, top: 28, bottom: size - 44 };
    const low = edges[0], high = edges[edges.length - 1];
    const x = scale(low, high, box.left, box.right), y = scale(low, high, box.bottom, box.top);
    const step = (box.right - box.left) / counts.length, tall = (box.bottom - box.top) / counts.length;
    counts.forEach((line, t) => line.forEach((n, p) => {
      if (!n) return;
      const cell = shape("rect", { x: box.left + t * step, y: box.bottom - (p + 1) * tall, width: step - 0.6, height: tall - 0.6, fill: "var(--blue)", "fill-opacity": 0.12 + 0.88 * Math.sqrt(n / most) });
      cell.append(shape("title", {}, `true ${number(edges[t], 3)} to ${number(edges[t + 1], 3)}, predicted ${number(edges[p], 3)} to ${number(edges[p + 1], 3)}: ${count(n, "row")}`));
      svg.append(cell);
    }));
    axes(svg, box, x, y, high > low ? ticks(low, high, 4) : [low], high > low ? ticks(low, high, 5) : [low], "bin of the true value", "bin of the prediction");
    return svg;
  };
  const bins = table("Rows by bin of the true value", [
    plain("True value", (row) => row.name), figures("Rows", (row) => row.n), figures("Same bin", (row) => row.same, percent), figures("Within one bin", (row) => row.near, percent),
  ], counts.map((line, t) => {
    const n = line.reduce((a, b) => a + b, 0), near = (line[t - 1] || 0) + line[t] + (line[t + 1] || 0);
    return { name: `${number(edges[t], 3)} to ${number(edges[t + 1], 3)}`, n, same: n ? line[t] / n : null, near: n ? near / n : null };
  }));
  section("predictions", "Predictions", element("div", { class: "cols" },
    element("div", {}, element("h3", {}, "Predicted against true"), figure(`Predictions against true values of ${shown}. R² is ${number(data.metrics.r2, 3)}.`, draw, `${shown}; on the line, a prediction is exact`)),
    element("div", {}, element("h3", {}, "Ordinal calibration in 20 bins"),
      figure(`Rows by bin of the true value and of the prediction. ${percent(same)} are in the same bin, ${percent(within_one)} within one.`, heat, `${percent(same)} of the rows are predicted in the bin of their true value, ${percent(within_one)} at most one bin away; a stronger colour is more rows`))),
    element("details", {}, element("summary", {}, "The bins as a table"), bins.place));
}

function residuals() {
  const parts = data.residuals.map(({ name, groups }, place) => {
    const title = place ? name : "Decile of the prediction";
    const draw = (width) => {
      const line = 26, height = 40 + line * groups.length, svg = canvas(width, height);
      const left = Math.min(170, width * 0.4), right = width - 64;
      const most = Math.max(...groups.map((group) => Math.abs(group.mean) + 2 * group.se), 1e-30);
      const x = scale(-most, most, left, right);
      svg.append(shape("text", { x: left, y: 14, class: "soft" }, "mean residual ± 2 se"));
      svg.append(shape("text", { x: width - 2, y: 14, "text-anchor": "end", class: "soft" }, "RMSE"));
      svg.append(shape("line", { class: "axis", x1: x(0), x2: x(0), y1: 20, y2: height - 16 }));
      groups.forEach((group, k) => {
        const y = 34 + line * k;
        svg.append(shape("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(group.label, Math.floor(left / 7))));
        svg.append(shape("line", { x1: x(group.mean - 2 * group.se), x2: x(group.mean + 2 * group.se), y1: y, y2: y, stroke: "var(--blue)", "stroke-width": 2 }));
        svg.append(shape("circle", { cx: x(group.mean), cy: y, r: 4, fill: "var(--blue)" }));
        svg.append(shape("text", { x: width - 2, y: y + 4, "text-anchor": "end" }, number(group.rmse, 3)));
      });
      return svg;
    };
    const made = table("Residuals by " + title, [plain("Group", (row) => row.label), figures("Rows", (row) => row.n), figures("Mean residual", (row) => row.mean, signed), figures("RMSE", (row) => row.rmse)], groups);
    return element("div", {}, element("h3", {}, title), figure(`Mean residual and RMSE by ${title}; the table below has the numbers`, draw), element("details", {}, element("summary", {}, "As a table"), made.place));
  });
  section("residuals", "Residuals", paragraph("A residual is the true value minus the prediction: above zero, predictions are too low. Groups are deciles, or the most frequent values, of the prediction and of the most important columns."), element("div", { class: "cols" }, ...parts));
}

function coverage() {
  if (!data.coverage) return;
  const thirds = ["Low", "Middle", "High"], widths = ["Narrow", "Medium", "Wide"];
  const made = table("Share of the true values inside the intervals", [
    plain("Confidence level", (row) => percent(row.level, 0)), figures("Inside", (row) => row.coverage, percent), figures("Mean width", (row) => row.mean_width),
    ...widths.map((name, k) => figures(`${name} intervals`, (row) => row.by_width[k], percent)),
    ...thirds.map((name, k) => figures(`${name} predictions`, (row) => row.by_prediction[k], percent)),
  ], data.coverage, { free: true });
  section("coverage", "Coverage of intervals", paragraph("A share below its confidence level means that intervals are too narrow on these rows. Intervals are calibrated overall, on rows like those that the fit held out; the thirds of the rows by width and by prediction show where they are too narrow or too wide."), made.place);
}

function bars(rows, width, label) {
  const line = 24, svg = canvas(width, 8 + line * rows.length), left = Math.min(210, width * 0.42);
  const most = Math.max(...rows.map((row) => row.value), 1e-30), x = scale(0, most, left, width - 64);
  rows.forEach((row, k) => {
    const y = 4 + line * k;
    svg.append(shape("text", { x: left - 8, y: y + 16, "text-anchor": "end" }, short(row.name, Math.floor(left / 7))));
    svg.append(shape("rect", { x: left, y: y + 3, width: Math.max(0.5, x(row.value) - left), height: line - 7, fill: "var(--blue)" }));
    svg.append(shape("text", { x: x(row.value) + 5, y: y + 16 }, label(row.value)));
  });
  return svg;
}
function importances() {
  const rows = data.data.map((row) => ({ name: row.name, value: row.importance })).sort((a, b) => b.value - a.value);
  const top = rows.slice(0, 20), rest = rows.slice(20).reduce((sum, row) => sum + row.value, 0);
  const caption = rows.length > 20 ? `The first 20 of ${count(rows.length, "column")}; the others have ${percent(rest)} together. The table of the data can be sorted by importance.` : "All columns.";
  section("importances", "Importances", paragraph("How much values of a column from other rows change the predictions, squared, as a share of all columns."),
    figure("Importances: " + top.slice(0, 10).map((row) => `${row.name} ${percent(row.value)}`).join(", "), (width) => bars(top, width, (v) => percent(v)), caption));
}

function waterfall(row) {
  return (width) => {
    const names = data.table.columns, steps = row.parts.map(([c, value, part]) => [`${names[c]} = ${value}`, part]);
    if (row.n_rest) steps.push([count(row.n_rest, "other column"), row.rest]);
    const line = 24, height = 56 + line * steps.length, svg = canvas(width, height), left = Math.min(260, width * 0.46);
    const whose = data.table.network_share < 1 ? " of the networks" : "";
    let at = data.table.base;
    const edges = [at];
    for (const [, part] of [...steps].reverse()) edges.push((at += part));
    const low = Math.min(...edges), high = Math.max(...edges);
    const x = scale(low, high, left + 62, width - 62), base = x(data.table.base);
    svg.append(shape("line", { class: "axis", x1: base, x2: base, y1: 16, y2: height - 34, "stroke-dasharray": "3 3" }));
    [...steps].reverse().forEach(([name, part], k) => {
      const y = 16 + line * (steps.length - 1 - k), from = x(edges[k]), to = x(edges[k + 1]);
      svg.append(shape("text", { x: left - 6, y: y + 15, "text-anchor": "end" }, short(name, Math.floor(left / 6.8))));
      svg.append(shape("rect", { x: Math.min(from, to), y: y + 3, width: Math.max(1, Math.abs(to - from)), height: line - 7, fill: part < 0 ? "var(--blue)" : "var(--orange)" }));
      svg.append(shape("text", part < 0 ? { x: Math.min(from, to) - 4, y: y + 15, "text-anchor": "end" } : { x: Math.max(from, to) + 4, y: y + 15 }, signed(part)));
    });
    svg.append(shape("text", { x: width / 2, y: height - 10, "text-anchor": "middle" }, `from the base value ${number(data.table.base)} to the prediction${whose} ${number(row.explained)}`));
    return svg;
  };
}
function rowsSection() {
  const { rows, columns, n_largest } = data.table;
  const texts = new Map(rows.map((row) => [row, [row.row, ...row.parts.map(([c, value]) => `${columns[c]} = ${value}`)].join(" | ").toLowerCase()]));
  const strongest = (row) => row.parts.slice(0, 3).map(([c, value, part]) => `${columns[c]} = ${value} (${signed(part)})`).join("; ");
  const made = table("Rows; the button of a row shows its waterfall", [
    { name: "Row", value: (row) => row.row, text: (row) => toggle(row), numeric: true }, figures("True", (row) => row.truth), figures("Predicted", (row) => row.prediction),
    figures("Residual", (row) => row.truth - row.prediction, signed), { name: "Strongest contributions", value: strongest, text: strongest, kind: "name" },
  ], rows, { sortable: true, refill: () => find.filter() });
  const find = finder("search", "Search values and columns", "row", made, (row) => texts.get(row));
  function toggle(row) {
    const button = element("button", { type: "button", "aria-expanded": "false", "aria-label": `Row ${row.row}: waterfall` }, String(row.row));
    button.addEventListener("click", () => {
      const line = button.closest("tr"), open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      if (open) return line.nextElementSibling.remove();
      const all = row.parts.map(([c, value, part]) => `${columns[c]} = ${value}: ${signed(part)}`).join("; ");
      const shown = figure(`Row ${row.row}, base value ${number(data.table.base)}, prediction ${number(row.explained)}. ${all}${row.n_rest ? `; ${count(row.n_rest, "other column")}: ${signed(row.rest)}` : ""}`, waterfall(row));
      const cell = element("td", { colspan: "5" }, shown);
      line.after(element("tr", { class: "waterfall" }, cell));
      charts[charts.length - 1]();
    });
    return button;
  }
  const some = rows.length < data.rows.used ? `${count(rows.length, "row")} of ${data.rows.used.toLocaleString("en")}: the ${n_largest} with the largest errors, and others drawn at random. ` : "";
  section("rows", "Rows", paragraph(some + "Numbers are those of the given table, from 0. Contributions lead from a base value to the prediction" + (data.table.network_share < 1 ? ` of the networks, which have ${percent(data.table.network_share, 0)} of the weight in a prediction.` : ".")),
    find.place, made.place);
}

function options() {
  const { changed, used, versions } = data.options;
  const first = changed.length ? changed : [["none", "all are the default"]];
  section("options", "Options and versions", element("div", { class: "cols" },
    table("Options that differ from the default", [plain("Option", (row) => row[0]), plain("Value", (row) => row[1])], first, { free: true }).place,
    table("Versions when the report was made", [plain("Package", (row) => row[0]), plain("Version", (row) => row[1])], versions, { free: true }).place),
  element("details", {}, element("summary", {}, "All options that were used"),
    table("All options that were used", [plain("Option", (row) => row[1]), plain("Value", (row) => row[2], { kind: "name" }), plain("Part", (row) => row[0])], used).place));
}

const drawAll = () => charts.forEach((draw) => draw());
function show(place) {
  data = { ...whole, ...targets[place] };
  if (data.importances) data.data = whole.data.map((row, k) => ({ ...row, importance: data.importances[k] }));
  charts = [];
  for (const id of ["main", "nav"]) document.getElementById(id).replaceChildren();
  for (const make of [summary, comparison, predictions, residuals, coverage, importances, rowsSection, dataSection, training, options]) make();
  drawAll();
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", drawAll);
}

choice();
show(0);
document.getElementById("foot").textContent = `Made by tabnsm ${data.version}. This page loads nothing from elsewhere.`;
new ResizeObserver(drawAll).observe(document.getElementById("main"));
document.documentElement.dataset.ready = "true";
