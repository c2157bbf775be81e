// Linked figures of samples, and files to download. No library, no network.
"use strict";

// --- files -----------------------------------------------------------------------------------------------------------
function download(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveButton(label, description, action) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "save";
  button.textContent = label;
  button.setAttribute("aria-label", description);
  button.addEventListener("click", action);
  return button;
}

const stem = document.title.split(" – ")[0].replace(/\.\w+$/, "").replace(/[^\w.-]+/g, "_").slice(0, 40) || "report";

// A stored figure has the colours of the light page, because it has a white background elsewhere.
document.querySelectorAll("figure").forEach((figure, number) => {
  const picture = figure.querySelector("svg");
  if (!picture) return;
  const name = picture.getAttribute("aria-label");
  (figure.querySelector("figcaption") || figure).prepend(saveButton("SVG", `Download: ${name}`, () => {
    const light = { "var(--panel)": "#ffffff", "var(--line)": "#dde1e6", "var(--muted)": "#5a6470", currentColor: "#000000" };
    let text = new XMLSerializer().serializeToString(picture);
    for (const [meaning, colour] of Object.entries(light)) text = text.replaceAll(meaning, colour);
    download(`${stem}_figure${number + 1}.svg`, text, "image/svg+xml");
  }));
});

// --- linked figures --------------------------------------------------------------------------------------------------
(() => {
  const source = document.getElementById("points");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const get = (id) => document.getElementById(id);
  const [colour, pick, tip, reading] = ["colour", "pick", "tip", "reading"].map(get);
  const RADIUS = 3, REACH = 14, MARGIN = { left: 58, right: 12, top: 12, bottom: 46 }, ROWS = 200, SHOWN = 8;
  const STATES = ["#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f"];
  const SEQUENCE = ["#3b528b", "#21918c", "#5ec962", "#d8d219"];
  const NONE = -1, STATE = -2;
  const count = data.rows.length;
  const panels = [];
  let chosen = NONE; // index of the sample under the pointer
  let selected = new Set(); // indices of the selected samples
  let where = null; // selected region: {columns, ranges}
  let active = null; // panel that was used last

  const text = (value) => String(Number(value.toPrecision(4)));
  const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
    const margin = (high - low || Math.abs(high) || 1) * 0.04;
    return [low - margin, high + margin];
  }

  function ticks([low, high], most) {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(k * step);
    return found;
  }

  // --- colours -------------------------------------------------------------------------------------------------------
  function mix(a, b, share) {
    const part = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
    return "rgb(" + [1, 3, 5].map((at) => Math.round(part(a, at) * (1 - share) + part(b, at) * share)).join(",") + ")";
  }

  function between(colours, share) {
    const at = Math.min(1, Math.max(0, share)) * (colours.length - 1), k = Math.min(colours.length - 2, Math.floor(at));
    return mix(colours[k], colours[k + 1], at - k);
  }

  // Modes are signed: zero has the middle colour, and each sign its own range. Colours span 98 % of the values.
  function scale(which) {
    const sorted = Float64Array.from(data.values[which]).sort();
    let low = sorted[Math.floor(0.01 * (count - 1))], high = sorted[Math.ceil(0.99 * (count - 1))];
    const signed = which < data.modes;
    if (signed) { high = Math.max(high, 1e-9); low = Math.min(low, -1e-9); }
    const colours = signed ? ["--cold", "--mid", "--warm"].map(theme) : SEQUENCE;
    const share = (value) => signed ? 0.5 + value / (2 * (value < 0 ? -low : high)) : high > low ? (value - low) / (high - low) : 0.5;
    const shade = (value) => between(colours, share(value));
    return { low, high, shade, colours };
  }

  let paint = []; // colour of each sample
  let order = []; // samples in the order of drawing

  function recolour() {
    const which = Number(colour.value), legend = get("legend");
    legend.replaceChildren();
    const add = (style, words) => {
      const sign = document.createElement("span"), label = document.createElement("span");
      Object.assign(sign.style, style);
      label.textContent = words;
      legend.append(sign, label);
    };
    order = [...data.rows.keys()];
    if (which === STATE) {
      paint = data.states.map((state) => STATES[state % STATES.length]);
      [...new Set(data.states)].sort((a, b) => a - b).forEach((state) => {
        add({ background: STATES[state % STATES.length] }, `state ${state + 1}`);
      });
    } else if (which === NONE) {
      paint = Array(count).fill(theme("--accent"));
    } else {
      const { low, high, shade, colours } = scale(which), values = data.values[which], middle = which < data.modes ? 0 : (low + high) / 2;
      paint = values.map(shade);
      // Draw large values last, because the rare samples that define a mode would be hidden by the others.
      order.sort((i, j) => Math.abs(values[i] - middle) - Math.abs(values[j] - middle));
      add({ background: `linear-gradient(90deg, ${colours.join(",")})`, width: "8rem" },
        `${data.names[which]}, ${Number(low.toPrecision(2))} to ${Number(high.toPrecision(2))}`);
    }
    panels.forEach((panel) => panel.draw());
  }

  // --- one figure ----------------------------------------------------------------------------------------------------
  class Panel {
    constructor(start, number) {
      this.canvas = get(`panel${number}`);
      this.pen = this.canvas.getContext("2d");
      this.view = null; // ranges of both axes; null for all samples
      this.brush = null; // corners in pixels
      this.selects = ["x", "y"].map((axis, which) => {
        const select = get(`panel${number}-${axis}`);
        data.names.forEach((name, column) => select.add(new Option(name, column)));
        select.value = start[which];
        select.addEventListener("change", () => { this.view = null; this.draw(); });
        return select;
      });
      const canvas = this.canvas;
      canvas.addEventListener("pointerdown", (event) => this.press(event));
      canvas.addEventListener("pointermove", (event) => this.move(event));
      canvas.addEventListener("pointerup", (event) => this.release(event));
      canvas.addEventListener("pointercancel", () => { this.from = null; this.brush = null; this.draw(); });
      canvas.addEventListener("pointerleave", () => choose(NONE));
      canvas.addEventListener("dblclick", () => this.whole());
      canvas.addEventListener("focus", () => { active = this; });
      canvas.addEventListener("keydown", (event) => this.key(event));
      canvas.addEventListener("wheel", (event) => {
        if (document.activeElement !== canvas && !event.ctrlKey) return; // the page scrolls
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 0.8 : 1.25, ...this.at(event));
      }, { passive: false });
      canvas.parentElement.nextElementSibling.append(saveButton("PNG", `Download figure ${number + 1} of samples`, () =>
        canvas.toBlob((blob) => download(`${stem}_samples${number + 1}.png`, blob))));
      new ResizeObserver(() => this.draw()).observe(canvas);
    }

    get columns() { return this.selects.map((select) => Number(select.value)); }

    get ranges() { return this.view || this.columns.map((column) => extent(data.values[column])); }

    get frame() {
      const box = this.canvas.getBoundingClientRect();
      return { left: MARGIN.left, right: box.width - MARGIN.right, top: MARGIN.top, bottom: box.height - MARGIN.bottom };
    }

    at(event) {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    }

    // Values at a place of the canvas, in pixels.
    value(px, py) {
      const f = this.frame, [x, y] = this.ranges;
      return [x[0] + ((px - f.left) / (f.right - f.left)) * (x[1] - x[0]), y[0] + ((f.bottom - py) / (f.bottom - f.top)) * (y[1] - y[0])];
    }

    draw() {
      const { canvas, pen } = this, box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      if (!box.width || !paint.length) return;
      canvas.width = Math.round(box.width * ratio);
      canvas.height = Math.round(box.height * ratio);
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      const f = this.frame, [x, y] = this.columns, [across, up] = this.ranges;
      const toX = (value) => f.left + ((value - across[0]) / (across[1] - across[0])) * (f.right - f.left);
      const toY = (value) => f.bottom - ((value - up[0]) / (up[1] - up[0])) * (f.bottom - f.top);
      this.axes(f, across, up, toX, toY);
      this.places = data.rows.map((_, i) => [toX(data.values[x][i]), toY(data.values[y][i])]);
      pen.save();
      pen.beginPath();
      pen.rect(f.left, f.top, f.right - f.left, f.bottom - f.top);
      pen.clip();
      const radius = x === data.time || y === data.time ? 1.6 : RADIUS;
      const dots = (which, alpha) => {
        pen.globalAlpha = alpha;
        for (const i of which) {
          pen.fillStyle = paint[i];
          pen.beginPath();
          pen.arc(...this.places[i], radius, 0, 2 * Math.PI);
          pen.fill();
        }
      };
      if (selected.size) {
        dots(order.filter((i) => !selected.has(i)), 0.12);
        dots(order.filter((i) => selected.has(i)), 1);
      } else dots(order, 1);
      pen.globalAlpha = 1;
      if (chosen !== NONE) {
        pen.strokeStyle = theme("--text");
        pen.lineWidth = 2;
        pen.beginPath();
        pen.arc(...this.places[chosen], RADIUS + 4, 0, 2 * Math.PI);
        pen.stroke();
      }
      if (this.brush) {
        const [[a, b], [c, d]] = this.brush;
        pen.strokeStyle = theme("--accent");
        pen.lineWidth = 1.5;
        pen.strokeRect(Math.min(a, c), Math.min(b, d), Math.abs(a - c), Math.abs(b - d));
      }
      pen.restore();
      const marked = selected.size ? `, ${selected.size} selected` : "";
      canvas.setAttribute("aria-label", `${count} samples${marked}: ${data.names[x]} across, ${data.names[y]} up, `
        + `coloured by ${colour.selectedOptions[0].textContent}.`);
    }

    axes(f, across, up, toX, toY) {
      const { pen } = this;
      const line = (...ends) => { pen.beginPath(); pen.moveTo(ends[0], ends[1]); pen.lineTo(ends[2], ends[3]); pen.stroke(); };
      pen.font = "12px system-ui, sans-serif";
      pen.lineWidth = 1;
      pen.strokeStyle = theme("--line");
      pen.fillStyle = theme("--muted");
      pen.textAlign = "center";
      pen.textBaseline = "top";
      for (const value of ticks(across, Math.max(3, (f.right - f.left) / 80))) {
        line(toX(value), f.top, toX(value), f.bottom);
        pen.fillText(text(value), toX(value), f.bottom + 6);
      }
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      for (const value of ticks(up, Math.max(2, (f.bottom - f.top) / 50))) {
        line(f.left, toY(value), f.right, toY(value));
        pen.fillText(text(value), f.left - 6, toY(value));
      }
      pen.fillStyle = theme("--text");
      pen.textAlign = "center";
      pen.fillText(data.names[this.columns[0]], (f.left + f.right) / 2, f.bottom + 32, f.right - f.left);
      pen.save();
      pen.translate(12, (f.top + f.bottom) / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText(data.names[this.columns[1]], 0, 0, f.bottom - f.top);
      pen.restore();
    }

    nearest([x, y]) {
      let best = NONE, distance = REACH ** 2;
      this.places.forEach(([px, py], i) => {
        const d = (px - x) ** 2 + (py - y) ** 2;
        if (d < distance) { best = i; distance = d; }
      });
      return best;
    }

    press(event) {
      if (event.button) return;
      active = this;
      this.from = this.at(event);
      this.before = this.ranges;
      this.canvas.setPointerCapture(event.pointerId);
    }

    move(event) {
      const place = this.at(event);
      if (!this.from) { choose(this.nearest(place), this); return; }
      if (!this.brush && Math.hypot(place[0] - this.from[0], place[1] - this.from[1]) < 4) return;
      choose(NONE);
      if (get("drag-move").checked) {
        this.brush = null;
        this.view = null;
        this.view = this.before.map((range) => [...range]);
        const [a, b] = this.value(...this.from), [c, d] = this.value(...place);
        this.view = this.before.map((range, axis) => range.map((end) => end + [a - c, b - d][axis]));
        this.moved = true;
      } else this.brush = [this.from, place];
      this.draw();
    }

    release(event) {
      if (!this.from) return;
      const [from, brush, moved] = [this.from, this.brush, this.moved];
      this.from = this.brush = null;
      this.moved = false;
      if (moved) return;
      if (!brush) { choose(this.nearest(from), this); if (event.pointerType === "mouse") select([], null); return; }
      const [low, high] = [this.value(...brush[0]), this.value(...brush[1])];
      const ranges = [0, 1].map((axis) => [Math.min(low[axis], high[axis]), Math.max(low[axis], high[axis])]);
      const [x, y] = this.columns.map((column) => data.values[column]);
      const inside = (value, [a, b]) => value >= a && value <= b;
      const found = [...data.rows.keys()].filter((i) => inside(x[i], ranges[0]) && inside(y[i], ranges[1]));
      select(event.shiftKey ? [...selected, ...found] : found, event.shiftKey ? null : { columns: this.columns, ranges });
    }

    zoom(factor, px, py) {
      const f = this.frame, at = this.value(px ?? (f.left + f.right) / 2, py ?? (f.top + f.bottom) / 2);
      this.view = this.ranges.map((range, axis) => range.map((end) => at[axis] + (end - at[axis]) * factor));
      this.draw();
    }

    whole() { this.view = null; this.draw(); }

    // Choose the next sample along an axis, in the order of values.
    step(axis, direction, extend) {
      const values = data.values[this.columns[axis]];
      const sorted = [...values.keys()].sort((i, j) => values[i] - values[j] || i - j);
      const at = chosen === NONE ? (direction > 0 ? -1 : count) : sorted.indexOf(chosen);
      choose(sorted[Math.min(count - 1, Math.max(0, at + direction))], this);
      if (extend) select([...selected, chosen], null);
    }

    key(event) {
      const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1] }[event.key];
      if (move) this.step(...move, event.shiftKey);
      else if (event.key === "Enter" && chosen !== NONE) {
        select(selected.has(chosen) ? [...selected].filter((i) => i !== chosen) : [...selected, chosen], null);
      } else if (event.key === "Escape") { choose(NONE); select([], null); }
      else if (event.key === "+") this.zoom(0.8);
      else if (event.key === "-") this.zoom(1.25);
      else if (event.key === "0") this.whole();
      else return;
      event.preventDefault();
    }
  }

  // --- one sample ----------------------------------------------------------------------------------------------------
  function describe(i, panel) {
    const columns = [...new Set([...panel.columns, Number(colour.value), ...Array(data.modes).keys()])].filter((k) => k >= 0);
    const state = data.states ? [`state ${data.states[i] + 1}`] : [];
    return [`sample ${data.rows[i]}`, ...columns.map((k) => `${data.names[k]} = ${text(data.values[k][i])}`), ...state];
  }

  function choose(i, panel) {
    if (i === chosen) return;
    chosen = i;
    reading.textContent = i === NONE ? "" : describe(i, panel).join(", ");
    panels.forEach((each) => each.draw());
    tip.hidden = i === NONE;
    if (i === NONE) return;
    tip.textContent = describe(i, panel).join("\n");
    const plot = panel.canvas.parentElement, [x, y] = panel.places[i];
    plot.append(tip);
    const left = x + 14 + tip.offsetWidth > plot.clientWidth ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = Math.max(2, left) + "px";
    tip.style.top = Math.max(2, Math.min(y - 10, plot.clientHeight - tip.offsetHeight - 2)) + "px";
  }

  // --- selected samples ----------------------------------------------------------------------------------------------
  const heads = () => ["row", ...(data.states ? ["state"] : []), ...data.names];
  const cells = (i) => [data.rows[i], ...(data.states ? [data.states[i] + 1] : []), ...data.values.map((column) => column[i])];

  function select(found, region) {
    selected = new Set(found);
    where = region;
    if (!region) pick.value = data.states && pick.dataset.own ? pick.value : "";
    delete pick.dataset.own;
    const rows = [...selected].sort((a, b) => data.rows[a] - data.rows[b]);
    get("selected").hidden = !rows.length;
    get("count").textContent = rows.length ? `${rows.length} of ${count} samples selected.` : "No sample selected.";
    const line = (tag, values) => {
      const row = document.createElement("tr");
      for (const value of values) row.append(Object.assign(document.createElement(tag), { textContent: value }));
      return row;
    };
    const most = SHOWN + (data.states ? 2 : 1);
    get("selected-head").replaceChildren(line("th", heads().slice(0, most)));
    get("selected-rows").replaceChildren(...rows.slice(0, ROWS).map((i) => line("td", cells(i).slice(0, most))));
    get("program").textContent = region ? program(region) : "";
    get("program").hidden = !get("program").textContent;
    panels.forEach((panel) => panel.draw());
  }

  // Python that selects all rows of the data in a region, not only the rows of this page.
  function program({ columns, ranges }) {
    const names = columns.map((column) => column < data.modes ? `modes[:, ${column}]`
      : column in data.inputs ? `X[:, ${data.inputs[column]}]` : null);
    if (names.includes(null)) return "";
    const parts = names.flatMap((name, axis) => [`(${name} >= ${text(ranges[axis][0])})`, `(${name} <= ${text(ranges[axis][1])})`]);
    return `modes = model.transform(X)\nrows = np.flatnonzero(\n    ${parts.join("\n    & ")}\n)`;
  }

  const quoted = (value) => /[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value;
  get("save-rows").addEventListener("click", () => {
    const rows = [...selected].sort((a, b) => data.rows[a] - data.rows[b]);
    const lines = [heads(), ...rows.map(cells)].map((line) => line.map(quoted).join(","));
    download(`${stem}_selected.csv`, lines.join("\n") + "\n", "text/csv");
  });
  get("clear").addEventListener("click", () => select([], null));
  get("closer").addEventListener("click", () => (active || panels[0]).zoom(0.8));
  get("wider").addEventListener("click", () => (active || panels[0]).zoom(1.25));
  get("whole").addEventListener("click", () => panels.forEach((panel) => panel.whole()));

  // --- start ---------------------------------------------------------------------------------------------------------
  if (data.states) {
    colour.add(new Option("state", STATE));
    pick.add(new Option("nothing", ""));
    [...new Set(data.states)].sort((a, b) => a - b).forEach((state) => pick.add(new Option(`state ${state + 1}`, state)));
    pick.addEventListener("change", () => {
      const state = pick.value;
      pick.dataset.own = 1;
      select(state === "" ? [] : [...data.rows.keys()].filter((i) => data.states[i] === Number(state)), null);
    });
  } else pick.parentElement.hidden = true;
  data.names.forEach((name, column) => colour.add(new Option(name, column)));
  colour.add(new Option("nothing", NONE));
  colour.value = data.states ? STATE : 0;
  colour.addEventListener("change", recolour);
  data.panels.forEach((start, number) => panels.push(new Panel(start, number)));
  recolour();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  for (const kind of ["before", "after"]) {
    window.addEventListener(`${kind}print`, () => {
      document.documentElement.classList.toggle("paper", kind === "before");
      recolour();
    });
  }
})();
