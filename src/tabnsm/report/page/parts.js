"use strict";
// What the sections of report.js are made of: elements, charts and tables. Text goes in as text,
// never as markup, so that no name of a column can do anything.
const SVG = "http://www.w3.org/2000/svg";
let charts = [];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}
function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function number(value, digits) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1000 && size < 1e9) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(2);
  return String(Number(value.toPrecision(digits || 4)));
}
const signed = (value) => (value < 0 ? "−" : "+") + number(Math.abs(value), 3);
const percent = (value, digits) => (value === null ? "–" : (100 * value).toFixed(digits ?? 1) + " %");
const count = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");
const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

function section(id, title, ...children) {
  const made = element("section", { id, "aria-labelledby": id + "-title" },
    element("h2", { id: id + "-title" }, title), ...children);
  document.getElementById("main").append(made);
  document.getElementById("nav").append(element("li", {}, element("a", { href: "#" + id }, title)));
  return made;
}
const paragraph = (text, kind) => element("p", kind ? { class: kind } : {}, text);

// A figure that is drawn again when its width changes; `label` is what a screen reader says.
function figure(label, draw, caption) {
  const place = element("div", {});
  const made = element("figure", {}, place);
  if (caption) made.append(element("figcaption", {}, caption));
  charts.push(() => {
    const width = Math.max(280, Math.min(place.clientWidth || 640, 760));
    if (place.dataset.width === String(width)) return;
    place.dataset.width = String(width);
    const drawn = draw(width);
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", label);
    place.replaceChildren(drawn);
  });
  return made;
}
function canvas(width, height) {
  return shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
}
function ticks(low, high, most) {
  if (!(high > low)) return [low];
  const raw = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}
// Digits that tell neighbouring ticks apart.
function digits(values) {
  if (values.length < 2) return 3;
  const most = Math.max(...values.map(Math.abs));
  return Math.max(3, Math.ceil(Math.log10(most / Math.abs(values[1] - values[0]))) + 1);
}
function axes(svg, box, x, y, xTicks, yTicks, xName, yName) {
  for (const value of yTicks) {
    svg.append(shape("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
    svg.append(shape("text", { x: box.left - 6, y: y(value) + 4, "text-anchor": "end", class: "soft" }, number(value, digits(yTicks))));
  }
  for (const value of xTicks) {
    svg.append(shape("text", { x: x(value), y: box.bottom + 16, "text-anchor": "middle", class: "soft" }, number(value, digits(xTicks))));
  }
  svg.append(shape("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  svg.append(shape("text", { x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" }, xName));
  svg.append(shape("text", { x: box.left - 6, y: box.top - 8, "text-anchor": "start" }, yName));
}
const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

// Tables: `columns` have a name, a value for sorting, a text, and perhaps a class.
function table(caption, columns, rows, options) {
  const settings = { sortable: false, free: false, ...options };
  const body = element("tbody", {});
  const head = element("tr", {});
  let sorted = { place: -1, up: true };
  const fill = (shown) => body.replaceChildren(...shown.map((row) => {
    const line = element("tr", row.kind ? { class: row.kind } : {});
    columns.forEach((column, place) => {
      const kind = [column.numeric ? "n" : "", column.kind || "", column.warn && column.warn(row) ? "warn" : ""].join(" ").trim();
      const text = column.text(row);
      const cell = place === 0 ? element("th", { scope: "row" }, text) : element("td", {}, text);
      if (kind) cell.className = kind;
      if (place === 0) cell.style.fontWeight = "inherit";
      line.append(cell);
    });
    return line;
  }));
  columns.forEach((column, place) => {
    const cell = element("th", { scope: "col" });
    if (column.numeric) cell.className = "n";
    if (!settings.sortable) cell.append(column.name);
    else {
      const button = element("button", { type: "button" }, column.name);
      button.addEventListener("click", () => {
        sorted = { place, up: sorted.place === place ? !sorted.up : !column.numeric };
        for (const other of head.children) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", sorted.up ? "ascending" : "descending");
        rows = [...rows].sort((a, b) => {
          const [one, two] = [column.value(a), column.value(b)];
          const order = typeof one === "string" ? one.localeCompare(two) : (one ?? -Infinity) - (two ?? -Infinity);
          return sorted.up ? order : -order;
        });
        settings.refill ? settings.refill() : fill(rows);
      });
      cell.append(button);
    }
    head.append(cell);
  });
  fill(rows);
  const made = element("table", {}, element("caption", {}, caption), element("thead", {}, head), body);
  const place = element("div", { class: (settings.free ? "scroll free" : "scroll") + (rows.length > 50 ? " long" : ""), tabindex: "0", role: "region", "aria-label": caption }, made);
  return { place, body, fill, rows: () => rows };
}
const plain = (name, get, options) => ({ name, value: get, text: (row) => String(get(row) ?? "–"), ...options });
const figures = (name, get, show) => ({ name, value: get, text: (row) => (show || number)(get(row)), numeric: true });

// A field that leaves the rows of a table that have all of its words.
function finder(id, label, noun, made, textOf) {
  const input = element("input", { type: "search", id, autocomplete: "off" });
  const said = element("p", { class: "soft", role: "status", "aria-live": "polite" });
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = made.rows().filter((row) => words.every((word) => textOf(row).includes(word)));
    made.fill(found);
    said.textContent = `${found.length} of ${count(made.rows().length, noun)}`;
  };
  input.addEventListener("input", filter);
  filter();
  return { place: element("div", { class: "tools" }, element("label", { for: id }, label, input), said), filter };
}
