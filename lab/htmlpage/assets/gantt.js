// Who held which GPU when: a bar for each stint, or a map of node × time.

const rowLimit = 64; // clusters of so many GPUs have a label for each

// mapHeight is how high the drawing of a run is.
function mapHeight(run) {
  if (!run.stints && !run.heat) return 0;
  const high = run.stints ? data.gpus * (data.gpus <= rowLimit ? 12 : 4) : run.heat.rows.length * 13;
  return Math.round(Math.min(620, Math.max(120, high)));
}

// shown says how a run is drawn: "bars", "map" or "" for not at all.
function shown(run, view) {
  if (view.mode === "map" && run.heat) return "map";
  if (run.stints) return "bars";
  return run.heat ? "map" : "";
}

// ganttRows are the labels and lines of the vertical axis within GPUs [g0, g1]: nodes, or GPUs where they have room.
function ganttRows(pen, theme, run, y, g0, g1, x0, x1, room) {
  const each = room / (g1 - g0);
  if (data.pool) {
    const step = numberStep(28 / each);
    for (let g = Math.ceil(g0 / step) * step; g <= g1; g += step) {
      pen.line([x0, y(g), x1, y(g)], theme.grid);
      if (g < data.gpus) pen.text("lane " + g, x0 - 6, y(g) + Math.min(each, 14) / 2 + 4, theme.soft, { align: "right" });
    }
    return;
  }
  const start = data.node0 || run.heat.gpu0.slice(0, -1), perRow = data.node0 ? 1 : run.heat.nodes;
  const step = numberStep((16 * (g1 - g0)) / room / (data.gpus / Math.max(1, data.nodes))); // nodes from label to label
  let last = -Infinity;
  start.forEach((g, i) => {
    const end = i + 1 < start.length ? start[i + 1] : data.gpus;
    if (end <= g0 || g >= g1 || end === g) return;
    const top = Math.max(y(g), y(g0)), bottom = Math.min(y(end), y(g1)), gpuRows = data.node0 && each >= 9 && end - g > 1;
    if (bottom - top >= 3) pen.line([x0 - (gpuRows ? 68 : 4), y(Math.max(g, g0)), x1, y(Math.max(g, g0))], theme.grid);
    if (gpuRows) {
      pen.text(data.names?.[i] ?? "node " + i, x0 - 26, (top + bottom) / 2 + 4, theme.soft, { align: "right" });
      for (let k = Math.ceil(Math.max(g, g0)); k < Math.min(end, g1); k++) {
        const py = y(k) + each / 2 + 3;
        if (py - 9 >= top && py <= bottom) pen.text("." + (k - g), x0 - 6, py, theme.soft, { align: "right", size: 9 });
      }
    } else if ((i * perRow) % step === 0 && (top + bottom) / 2 - last >= 13) {
      pen.text(data.names?.[i * perRow] ?? "node " + i * perRow, x0 - 6, (top + bottom) / 2 + 4, theme.soft, { align: "right" });
      last = (top + bottom) / 2;
    }
  });
}

// drawBars draws the stints that view shows. It returns how many.
function drawBars(pen, theme, run, view, x, y, y0, y1, themeName) {
  const s = run.stints, [a, b] = view.x, [g0, g1] = view.y, each = (y1 - y0) / (g1 - g0);
  const paint = paintOf(s, view.colour, theme, themeName), gap = each >= 5 ? 1 : each >= 2.5 ? 0.4 : 0;
  let drawn = 0;
  for (let i = 0; i < s.n; i++) {
    if (s.start[i] > b) break; // in order of start
    if (s.end[i] < a) continue;
    let fill = null;
    const px = Math.max(x(s.start[i]), x(a) - 4), right = Math.min(x(s.end[i]), x(b) + 4), w = Math.max(right - px, 0.7);
    let widest = null;
    for (let k = s.from[i]; k < s.from[i + 1]; k++) {
      const top = s.gpu[k] + (s.off ? s.off[k] / 1000 : 0), h = s.milli && s.milli[k] < 1000 ? s.milli[k] / 1000 : s.count[k];
      if (top + h <= g0 || top >= g1) continue;
      if (!fill) { fill = paint[i]; drawn++; }
      const py = y(top), ph = Math.max(h * each - gap, 0.5), pw = w > 3 ? w - 0.6 : w;
      pen.rect(px, py, pw, ph, fill);
      if (w > 7 && ph > 2.5) endMark(pen, theme, s.ended[i], px + pw, py, ph);
      if (!widest || ph > widest[1]) widest = [py, ph];
    }
    if (fill && widest && right - px > 30 && widest[1] >= 9) barLabel(pen, theme, data.jobs.id[s.job[i]], px, right, widest, fill);
  }
  return drawn;
}

// endMark marks the end of a stint after which its job was not done.
function endMark(pen, theme, how, x, y, h) {
  const colour = how === PREEMPTED ? theme.marks.preempt : how === FAILED ? theme.marks.fail : how === MOVED || how === SIZED ? theme.marks.move : null;
  if (colour) pen.rect(x - 2, y, 2, h, colour);
}

// barLabel writes a job's name in its bar where it has room.
function barLabel(pen, theme, id, x0, x1, [y, h], fill) {
  const size = Math.min(11, Math.max(8, h - 2));
  const label = id.length > 24 ? id.slice(0, 23) + "…" : id;
  const left = Math.max(x0, margin.left) + 4;
  if (pen.measure(label, size) + 6 > x1 - left) return;
  pen.text(label, left, y + h / 2 + size * 0.36, bright(fill) ? theme.labelDark : theme.label, { size });
}

// bright says whether dark text reads better on a colour than white does.
const brightness = {}, prism = document.createElement("canvas").getContext("2d");
function bright(colour) {
  if (colour in brightness) return brightness[colour];
  prism.fillStyle = colour;
  const hex = prism.fillStyle; // #rrggbb
  const [r, g, b] = [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16) / 255);
  return (brightness[colour] = 0.299 * r + 0.587 * g + 0.114 * b > 0.6);
}

// drawMap draws how busy each row of nodes was in each part of time.
function drawMap(pen, theme, run, view, x, y) {
  const h = run.heat, [a, b] = view.x, [g0, g1] = view.y;
  h.rows.forEach((row, r) => {
    if (h.gpu0[r + 1] <= g0 || h.gpu0[r] >= g1 || h.gpu0[r + 1] === h.gpu0[r]) return;
    const py = y(h.gpu0[r]), ph = y(h.gpu0[r + 1]) - py;
    const from = Math.max(0, Math.floor((a - h.from) / h.width)), to = Math.min(row.length, Math.ceil((b - h.from) / h.width));
    for (let i = from; i < to;) {
      let k = i + 1;
      while (k < to && row[k] === row[i]) k++;
      const v = shades.indexOf(row[i]), end = Math.min(run.to, h.from + k * h.width);
      if (v > 0) pen.rect(x(h.from + i * h.width), py, x(end) - x(h.from + i * h.width) + 0.4, ph + 0.4, rampColour(theme, v / 63));
      i = k;
    }
  });
}

// mapRamp are the shades of shares; the last ones of the ramp are too heavy for large parts.
function mapRamp(theme) { return theme.ramp.slice(0, -2); }
function rampColour(theme, share) {
  const ramp = mapRamp(theme);
  return ramp[Math.min(ramp.length - 1, Math.floor(share * ramp.length))];
}

// drawDowns marks the nodes that were down.
function drawDowns(pen, theme, run, view, x, y) {
  const d = run.downs;
  if (!d) return;
  for (let i = 0; i < d.node.length; i++) {
    if (d.to[i] < view.x[0] || d.from[i] > view.x[1] || d.gpu0[i] >= view.y[1] || d.gpu0[i] + d.gpus[i] <= view.y[0]) continue;
    const px = x(Math.max(d.from[i], view.x[0])), right = Math.max(px + 1, x(Math.min(d.to[i], view.x[1])));
    const py = y(d.gpu0[i]), h = y(d.gpu0[i] + d.gpus[i]) - py;
    pen.rect(px, py, right - px, h, theme.down, 0.22);
    pen.rect(px, py, 1, h, theme.down);
    if (right - px < 6 || h < 6) continue;
    pen.clip(px, py, right - px, h);
    for (let k = px - h; k < right; k += 7) pen.line([k, py + h, k + h, py], theme.down, 0.8);
    pen.unclip();
  }
}

// stintAt is the stint drawn at a time and a GPU (with its fraction), -1 for none; slack is how much time a pixel is.
function stintAt(run, t, g, slack) {
  const s = run.stints;
  let best = -1;
  for (let i = 0; i < s.n && s.start[i] <= t + slack; i++) {
    if (s.end[i] < t - slack) continue;
    for (let k = s.from[i]; k < s.from[i + 1]; k++) {
      const top = s.gpu[k] + (s.off ? s.off[k] / 1000 : 0), h = s.milli && s.milli[k] < 1000 ? s.milli[k] / 1000 : s.count[k];
      if (g < top || g >= top + h) continue;
      if (s.start[i] <= t && t < s.end[i]) return i;
      best = i;
    }
  }
  return best;
}
