// Every part that the page is made of, in each of its states, one section for each.

import { make, setFlag, svg } from "../../web/js/lib/dom.mjs";
import {
  bar,
  checkbox,
  chipButton,
  dropdown,
  fileButton,
  rangeInput,
  setRange,
  smallButton,
  tabs,
} from "../../web/js/widgets/controls.mjs";
import { copying } from "../../web/js/widgets/copy.mjs";
import { HeatTable } from "../../web/js/widgets/heat_table.mjs";
import { LineChart } from "../../web/js/widgets/line_chart.mjs";
import { menu } from "../../web/js/widgets/menu.mjs";
import { Popover } from "../../web/js/widgets/popover.mjs";
import { Roving } from "../../web/js/widgets/roving.mjs";
import { Stamp } from "../../web/js/widgets/stamp.mjs";
import { makeCell, makeRow, makeTable, makeTitle } from "../../web/js/widgets/table.mjs";
import { TableView } from "../../web/js/widgets/table_view.mjs";

const kit = document.getElementById("kit");
document.body.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);

/** @param {string} name @param {...(Node | string)} parts */
function section(name, ...parts) {
  kit?.append(make("section", { class: "hs-panel", "aria-label": name }, make("h2", {}, name), ...parts));
}

/** @param {typeof smallButton} button */
const inEveryState = (button) => [
  button("rest"),
  button("pressed", null, { "aria-pressed": "true" }),
  button("disabled", null, { disabled: true }),
];

section("buttons", make("p", { class: "hs-controls" }, ...inEveryState(smallButton)));
section("chips", make("p", { class: "hs-chips" }, ...inEveryState(chipButton)));

const chosen = tabs("Tabs", { first: "First", second: "Second" }, (key) => chosen.show(key));
chosen.show("first");
section("tabs", chosen.element);

const file = fileButton("A text", ".txt", async (given) => (file.button.textContent = await given.text()));
const named = (/** @type {string} */ words, /** @type {Node} */ field) => make("label", {}, `${words} `, field);
section(
  "fields",
  make(
    "p",
    { class: "hs-controls" },
    named(
      "list",
      dropdown("List", { one: "One", two: "Two" }, () => {}),
    ),
    named(
      "check box",
      checkbox(() => {}),
    ),
    file.button,
    file.field,
  ),
);

const ranges = [0, 0.5, 1].map((value) =>
  rangeInput({ min: 0, max: 1, step: 0.01, value, "aria-label": `At ${value}` }),
);
const moved = rangeInput({ min: 0, max: 4, step: 1, value: 0, "aria-label": "Set by code" });
setRange(moved, 6, { max: 8 });
section(
  "sliders",
  ...ranges,
  moved,
  rangeInput({ min: 0, max: 100, value: 50, disabled: true, "aria-label": "Disabled" }),
);

const rows = [
  ["a name", "0.25", makeCell(bar(0.25, "hs-amount"), { class: "hs-bar-cell" })],
  makeRow(["a row with a class", "0.75", makeCell(bar(0.75, "hs-amount"), { class: "hs-bar-cell" })], {
    class: "hs-is-open",
  }),
];
const titles = ["title", makeTitle("sorted", { "aria-sort": "descending" }), ""];
const contents = { caption: "A caption", titles, rows };
section(
  "tables",
  make("div", { class: "hs-head-list" }, makeTable(contents)),
  makeTable({ name: "Without titles", rows: [["name", 1]] }),
);

const hidden = makeTable({ rows: [["shown", "only when asked for"]] });
const view = new TableView("Show as a table", () => {}, hidden);
section("a picture’s table", view.toggle, view.element);

const grid = make("div", { role: "group", "aria-label": "Grid" });
grid.append(...Array.from({ length: 7 }, (_, i) => smallButton(`cell ${i}`)));
grid.style.cssText = "display: grid; grid-template-columns: repeat(3, 1fr)";
new Roving(grid, () => [...grid.querySelectorAll("button")], { columns: () => 3 }).update();
section("one stop of Tab", grid);

const heat = new HeatTable({ name: "Numbers", choose: (row, column) => (heat.axes.textContent = `${row}, ${column}`) });
heat.show({
  rows: ["a", "b"],
  columns: ["c", "d"],
  values: [
    [0.5, -1],
    [0, null],
  ],
});
section("numbers", heat.element);

const action = make("span", {}, "nothing yet");
section(
  "a menu",
  menu(
    "Save",
    "Save",
    ["PNG", "SVG"].map((kind) => [kind, () => (action.textContent = kind)]),
  ).element,
  " ",
  action,
);

const opener = smallButton("Open");
const panel = make("div", { hidden: true }, smallButton("Inside"));
const anchor = make("div", {}, opener, panel);
new Popover(anchor, opener, (isOpen) => (panel.hidden = !isOpen));
section("a popover", anchor, smallButton("After it"));

const copier = smallButton("Copy");
const copied = copying(copier);
copier.addEventListener("click", () => void copied.copy("what was copied"));
section("copying", copier, copied.said, " ", make("textarea", { "aria-label": "Paste here" }));

const stamps = [0, 0.5, null].map((error) => {
  const stamp = new Stamp("two ways");
  stamp.show(error);
  return stamp.element;
});
section("stamps", ...stamps);

const frame = { left: 40, right: 10, top: 10, bottom: 20 };
const chart = new LineChart({ size: [600, 160], frame, x: [0, 3], y: [0, 2] });
chart.grid("ht-grid");
chart.level(1.5, "ht-level");
chart.line(
  [
    [0, 0],
    [1, 2],
    [3, 1],
  ],
  "ht-line",
);
chart.line([], "ht-line"); // of which nothing is known yet
const picture = svg("svg", { viewBox: chart.box, role: "img", "aria-label": "Chart" }, ...chart.parts);
section("a line chart", make("div", { class: "ht-page" }, picture)); // with the colours of Train

setFlag(document.body, "data-ready", true);
