// The interactive figure: samples over any two columns, coloured by a third. No library, no network.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("points").textContent);
  const canvas = document.getElementById("scatter");
  const tip = document.getElementById("tip");
  const reading = document.getElementById("reading");
  const pen = canvas.getContext("2d");
  const selects = ["x", "y", "c"].map((axis) => document.getElementById("axis-" + axis));
  const RADIUS = 3, REACH = 14, MARGIN = { left: 58, right: 64, top: 14, bottom: 46 };
  let chosen = -1; // index of the selected sample
  let places = []; // position of each sample on the canvas

  // --- columns -------------------------------------------------------------------------------------------------------
  // Initially the first mode over the given coordinates; the colour may be none.
  selects.forEach((select, which) => {
    data.names.forEach((name, column) => select.add(new Option(name, column)));
    if (which === 2) select.add(new Option("none", -1));
    select.value = [...data.panels[0], 0][which];
    select.addEventListener("change", () => draw());
  });
  const column = (which) => Number(selects[which].value);

  function quantile(values, q) {
    const sorted = Float64Array.from(values).sort();
    return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(q * (sorted.length - 1))))];
  }

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

  const text = (value) => String(Number(value.toPrecision(4)));

  // --- colours -------------------------------------------------------------------------------------------------------
  const theme = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function mix(a, b, share) {
    const part = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
    return "rgb(" + [1, 3, 5].map((at) => Math.round(part(a, at) * (1 - share) + part(b, at) * share)).join(",") + ")";
  }

  // Modes are signed: zero has the middle colour. Other columns run from their low to their high values.
  function colours(which) {
    const values = data.values[which];
    const [cold, mid, warm] = ["--cold", "--mid", "--warm"].map(theme);
    let low = quantile(values, 0.01), high = quantile(values, 0.99);
    if (which < data.modes) { high = Math.max(-low, high) || 1; low = -high; }
    const shade = (value) => {
      const at = high > low ? Math.min(1, Math.max(-1, (2 * (value - low)) / (high - low) - 1)) : 0;
      return at < 0 ? mix(mid, cold, -at) : mix(mid, warm, at);
    };
    return { low, high, shade };
  }

  // --- drawing -------------------------------------------------------------------------------------------------------
  function draw() {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    const [x, y, c] = [0, 1, 2].map(column);
    const frame = {
      left: MARGIN.left, right: box.width - MARGIN.right, top: MARGIN.top, bottom: box.height - MARGIN.bottom,
    };
    const across = extent(data.values[x]), up = extent(data.values[y]);
    const toX = (value) => frame.left + ((value - across[0]) / (across[1] - across[0])) * (frame.right - frame.left);
    const toY = (value) => frame.bottom - ((value - up[0]) / (up[1] - up[0])) * (frame.bottom - frame.top);
    drawAxes(frame, across, up, toX, toY, data.names[x], data.names[y]);
    const none = c < 0, strength = none ? data.values[x] : data.values[c];
    const scale = none ? { low: 0, high: 0, shade: () => theme("--accent") } : colours(c);
    places = data.rows.map((_, i) => [toX(data.values[x][i]), toY(data.values[y][i])]);
    // Draw large values last, because the rare samples that define a mode would be hidden by the others.
    const middle = (scale.low + scale.high) / 2;
    const order = [...places.keys()].sort((i, j) => Math.abs(strength[i] - middle) - Math.abs(strength[j] - middle));
    for (const i of order) {
      pen.fillStyle = scale.shade(strength[i]);
      pen.beginPath();
      pen.arc(places[i][0], places[i][1], RADIUS, 0, 2 * Math.PI);
      pen.fill();
    }
    if (!none) drawScale(frame, scale, data.names[c], box.width);
    if (chosen >= 0) {
      pen.strokeStyle = theme("--text");
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(places[chosen][0], places[chosen][1], RADIUS + 4, 0, 2 * Math.PI);
      pen.stroke();
    }
    canvas.setAttribute(
      "aria-label",
      `Scatter of ${data.rows.length} samples: ${data.names[x]} across, ${data.names[y]} up, coloured by ${none ? "nothing" : data.names[c]}.`
    );
    placeTip(box);
  }

  function drawAxes(frame, across, up, toX, toY, nameX, nameY) {
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.strokeStyle = theme("--line");
    pen.fillStyle = theme("--muted");
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of ticks(across, Math.max(4, (frame.right - frame.left) / 80))) {
      line(toX(value), frame.top, toX(value), frame.bottom);
      pen.fillText(text(value), toX(value), frame.bottom + 6);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of ticks(up, (frame.bottom - frame.top) / 60)) {
      line(frame.left, toY(value), frame.right, toY(value));
      pen.fillText(text(value), frame.left - 6, toY(value));
    }
    pen.fillStyle = theme("--text");
    pen.textAlign = "center";
    pen.fillText(nameX, (frame.left + frame.right) / 2, frame.bottom + 32, frame.right - frame.left);
    pen.save();
    pen.translate(12, (frame.top + frame.bottom) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(nameY, 0, 0, frame.bottom - frame.top);
    pen.restore();
  }

  function line(x0, y0, x1, y1) {
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
  }

  function drawScale(frame, scale, name, width) {
    const left = frame.right + 12, height = frame.bottom - frame.top - 20;
    for (let k = 0; k < height; k++) {
      pen.fillStyle = scale.shade(scale.high - ((scale.high - scale.low) * k) / height);
      pen.fillRect(left, frame.top + 20 + k, 10, 1.5);
    }
    pen.fillStyle = theme("--muted");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    const labels = [scale.high, (scale.high + scale.low) / 2, scale.low];
    labels.forEach((value, k) => {
      pen.fillText(String(Number(value.toPrecision(2))), left + 14, frame.top + 20 + (height * k) / 2, width - left - 16);
    });
    pen.textAlign = "right";
    pen.fillText(name, width - 4, frame.top + 6, width - frame.right + 40);
  }

  // --- reading one sample --------------------------------------------------------------------------------------------
  function describe(i) {
    const shown = [...new Set([0, 1, 2].map(column).concat([...Array(data.modes).keys()]))].filter((k) => k >= 0);
    return [`sample ${data.rows[i]}`, ...shown.map((k) => `${data.names[k]} = ${text(data.values[k][i])}`)];
  }

  function choose(i) {
    if (i === chosen) return;
    chosen = i;
    reading.textContent = i < 0 ? "No sample chosen." : describe(i).join(", ");
    draw();
  }

  function placeTip(box) {
    tip.hidden = chosen < 0;
    if (chosen < 0) return;
    tip.textContent = describe(chosen).join("\n");
    const [x, y] = places[chosen];
    const left = x + 14 + tip.offsetWidth > box.width ? x - 14 - tip.offsetWidth : x + 14;
    tip.style.left = Math.max(2, left) + "px";
    tip.style.top = Math.max(2, Math.min(y - 10, box.height - tip.offsetHeight - 2)) + "px";
  }

  function nearest(event) {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, distance = REACH ** 2;
    places.forEach(([px, py], i) => {
      const d = (px - x) ** 2 + (py - y) ** 2;
      if (d < distance) { best = i; distance = d; }
    });
    return best;
  }

  // Select the next sample along an axis, in the order of values.
  function step(which, direction) {
    const values = data.values[column(which)];
    const order = [...values.keys()].sort((i, j) => values[i] - values[j] || i - j);
    const at = chosen < 0 ? (direction > 0 ? -1 : order.length) : order.indexOf(chosen);
    choose(order[Math.min(order.length - 1, Math.max(0, at + direction))]);
  }

  canvas.addEventListener("pointermove", (event) => choose(nearest(event)));
  canvas.addEventListener("pointerdown", (event) => choose(nearest(event)));
  canvas.addEventListener("pointerleave", () => choose(-1));
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 1], ArrowDown: [1, -1] }[event.key];
    if (move) step(...move);
    else if (event.key === "Escape") choose(-1);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(() => draw()).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
})();
