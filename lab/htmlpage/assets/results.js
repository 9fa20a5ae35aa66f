// The figures of results: curves over training beside the values of others, and differences with their intervals.

const chartHeight = 330;

// niceStep is 1, 2 or 5 times a power of ten, at least so large.
function niceStep(least) {
  const p = Math.pow(10, Math.floor(Math.log10(least)));
  for (const m of [1, 2, 5]) if (m * p >= least * (1 - 1e-9)) return m * p;
  return 10 * p;
}

// number prints a value with four digits.
function number(v) {
  const a = Math.abs(v);
  const s = a >= 1000 ? grouped(Math.round(a)) : String(Number(a.toPrecision(4)));
  return (v < 0 ? "−" : "") + s;
}

// valueOf prints a value of a chart.
function valueOf(chart, v) { return chart.seconds ? duration(Math.round(v * 1000)) : number(v); }

// chartScale decides what the axis of values shows: all curves, and levels from the nearest on as long as they leave the curves
// an eighth of the height. Curves that hardly change are not stretched over the height: what is drawn would be noise.
function chartScale(chart) {
  if (chart.scale) return chart.scale;
  const ys = [];
  for (const c of chart.curves) { // by steps: a spread list of 100,000 numbers is too long for a call
    for (const part of c.band ? [c.y, c.band.low, c.band.top] : [c.y]) for (const v of part) ys.push(v);
  }
  if (!ys.length) ys.push(...chart.levels.map((l) => l.value));
  let lo = Infinity, hi = -Infinity;
  for (const v of ys) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
  const log = chart.log && lo > 0 && hi / lo > 3, f = log ? Math.log : (v) => v;
  const least = log ? Math.log(1.2) : 0.05 * Math.max(Math.abs(lo), Math.abs(hi)) || 1;
  const room = 8 * Math.max(f(hi) - f(lo), least), a = f(lo), b = f(hi);
  const distance = (l) => (log && l.value <= 0 ? Infinity : Math.max(0, a - f(l.value), f(l.value) - b));
  const on = [], off = [];
  for (const l of [...chart.levels].sort((p, q) => distance(p) - distance(q))) {
    const from = Math.min(lo, l.value), to = Math.max(hi, l.value);
    if (distance(l) === Infinity || f(to) - f(from) > room) { off.push(l); continue; }
    on.push(l);
    lo = from;
    hi = to;
  }
  let bottom = f(lo), top = f(hi);
  const short = (log ? least : Math.max(least, 0.05 * Math.max(Math.abs(lo), Math.abs(hi)))) - (top - bottom);
  if (short > 0) {
    bottom -= short / 2;
    top += short / 2;
    if (!log && lo >= 0 && bottom < 0) { // nothing is below 0
      top -= bottom;
      bottom = 0;
    }
  }
  const pad = 0.06 * (top - bottom);
  return (chart.scale = { log, f, bottom: bottom - pad, top: top + pad, on, off });
}

// timeMarks are times that people say, in seconds.
const timeMarks = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, ...[1, 2, 3, 4, 6, 8, 10, 12, 16].map((h) => h * 3600),
  ...[1, 1.5, 2, 3, 4, 5, 7, 10, 14, 20, 30, 50, 100, 200, 500, 1000].map((d) => d * 86400)];

// timeTicksOf are readable times from bottom to top with labels that differ, in seconds: in two units where they are whole numbers
// of the smaller one, else as "4.515 h".
function timeTicksOf(bottom, top, most) {
  const size = Math.max(Math.abs(bottom), Math.abs(top)), [unit, name, least] = size >= 3600 ? [3600, "h", size >= 86400 ? 3600 : 60] : size >= 60 ? [60, "min", 1] : [1, "s", 0];
  const out = [];
  let step = timeStep(((top - bottom) * 1000) / most) / 1000, label = (v) => duration(Math.round(v * 1000));
  if (step < least) {
    const share = niceStep((top - bottom) / most / unit), decimals = Math.max(0, Math.ceil(-Math.log10(share) - 1e-9));
    step = share * unit;
    label = (v) => trim(v / unit, decimals).replace("-", "−") + " " + name;
  }
  for (let i = Math.ceil(bottom / step - 1e-9); i * step <= top + 1e-9 * step; i++) out.push({ at: i * step, label: label(i * step) });
  return out;
}

// valueTicks are values of the axis with their labels, at most about so many.
function valueTicks(chart, scale, most) {
  const { log, bottom, top } = scale, labelled = (list) => list.map((v) => ({ at: v, label: valueOf(chart, v) }));
  if (!log) {
    if (chart.seconds) return timeTicksOf(bottom, top, most);
    const step = niceStep((top - bottom) / most), out = [];
    for (let i = Math.ceil(bottom / step - 1e-9); i * step <= top + 1e-9 * step; i++) out.push(i * step);
    return labelled(out);
  }
  const lo = Math.exp(bottom), hi = Math.exp(top);
  let marks = timeMarks;
  if (!chart.seconds) {
    marks = [];
    for (let p = Math.pow(10, Math.floor(Math.log10(lo))); p <= hi; p *= 10) marks.push(p, 2 * p, 5 * p);
  }
  marks = marks.filter((v) => v >= lo && v <= hi);
  const out = [];
  for (const m of marks) if (!out.length || Math.log(m) - Math.log(out[out.length - 1]) >= (0.8 * (top - bottom)) / most) out.push(m);
  return labelled(out);
}

// fitted is a name and its value in a width: the name gives way.
function fitted(pen, name, value, width) {
  if (pen.measure(`${name}  ${value}`, 11) <= width) return `${name}  ${value}`;
  let n = name.length;
  while (n > 1 && pen.measure(`${name.slice(0, n)}…  ${value}`, 11) > width) n--;
  return `${name.slice(0, n)}…  ${value}`;
}

// apart moves the labels of levels so that they do not touch, in the order of their heights.
function apart(labels, y0, y1, gap) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 0; i < labels.length; i++) labels[i].at = Math.max(labels[i].y, i ? labels[i - 1].at + gap : y0);
  for (let i = labels.length - 1, most = y1; i >= 0; i--, most = labels[i + 1].at - gap) labels[i].at = Math.min(labels[i].at, most);
  return labels;
}

// chartFrame is where a chart's curves stand in a drawing of a width.
function chartFrame(chart, pen, width) {
  const { on } = chartScale(chart);
  const labels = on.map((l) => fitted(pen, l.name, valueOf(chart, l.value), width * 0.4 - 14));
  const room = labels.length ? Math.max(...labels.map((s) => pen.measure(s, 11))) + 14 : 28;
  let end = 1;
  for (const c of chart.curves) if (c.x.length) end = Math.max(end, c.x[c.x.length - 1]);
  const [from, to] = chart.range || [0, end];
  const x0 = 76, x1 = Math.max(x0 + 60, width - room), y0 = 14, y1 = (chart.height || chartHeight) - 42;
  return {
    x0, x1, y0, y1, from, to, end, labels, x: (v) => x0 + ((v - from) / (to - from)) * (x1 - x0),
    invert: (px) => from + ((px - x0) / (x1 - x0)) * (to - from),
  };
}

function drawChart(chart, pen, theme, width) {
  const scale = chartScale(chart), { x0, x1, y0, y1, from, to, x, labels } = chartFrame(chart, pen, width);
  const y = (v) => y1 - ((scale.f(v) - scale.bottom) / (scale.top - scale.bottom)) * (y1 - y0);
  for (const { at, label } of valueTicks(chart, scale, (y1 - y0) / 34)) {
    pen.line([x0, y(at), x1, y(at)], theme.grid);
    pen.text(label, x0 - 10, y(at) + 3.5, theme.soft, { align: "right" });
  }
  const step = numberStep((to - from) / Math.max(1, (x1 - x0) / 95));
  for (let v = Math.ceil(from / step - 1e-9) * step; v <= to * (1 + 1e-9); v += step) {
    pen.line([x(v), y0, x(v), y1], theme.grid);
    pen.line([x(v), y1, x(v), y1 + 4], theme.axis);
    pen.text(grouped(v), x(v), y1 + 17, theme.soft, { align: "center" });
  }
  pen.line([x0, y0, x0, y1], theme.axis);
  pen.line([x0, y1, x1, y1], theme.axis);
  pen.text(chart.x, (x0 + x1) / 2, y1 + 35, theme.soft, { align: "center" });
  for (const l of apart(scale.on.map((l, i) => ({ y: y(l.value), text: labels[i] })), y0 + 4, y1, 13)) {
    pen.line([x0, l.y, x1, l.y], theme.soft, 1.2, [6, 4]);
    pen.line([x1, l.y, x1 + 6, l.at], theme.axis);
    pen.text(l.text, x1 + 9, l.at + 3.5, theme.ink);
  }
  if (chart.range) pen.clip(x0, y0 - 8, x1 - x0, y1 - y0 + 16);
  chart.curves.forEach((c, k) => {
    const i = c.colour ?? k, colour = runColour(theme, i), points = [];
    if (c.band) {
      const outline = [];
      c.x.forEach((v, k) => outline.push(x(v), y(c.band.top[k])));
      for (let k = c.x.length - 1; k >= 0; k--) outline.push(x(c.x[k]), y(c.band.low[k]));
      pen.area(outline, colour, 0.16);
    }
    c.x.forEach((v, k) => points.push(x(v), y(c.y[k])));
    pen.line(points, colour, 1.8, runDash(i));
    if (c.x.length <= 60) for (let k = 0; k < points.length; k += 2) pen.rect(points[k] - 2, points[k + 1] - 2, 4, 4, colour);
    if (c.best >= 0) {
      const px = points[2 * c.best], py = points[2 * c.best + 1], r = 6;
      pen.area([px, py - r, px + r, py, px, py + r, px - r, py], colour);
      pen.frame(px - r - 2, py - r - 2, 2 * r + 4, 2 * r + 4, theme.ink);
    }
  });
  if (chart.range) pen.unclip();
}

// chartTip tells the values at the point that is nearest to the pointer.
function chartTip(chart, figure, event) {
  const box = figure.canvas.getBoundingClientRect(), frame = chartFrame(chart, figure.ruler(), box.width);
  const at = frame.invert(event.clientX - box.left);
  let best = null;
  for (const c of chart.curves) for (const v of c.x) if (best === null || Math.abs(v - at) < Math.abs(best - at)) best = v;
  if (best === null) return;
  const rows = chart.curves.flatMap((c) => {
    const k = c.x.indexOf(best);
    return k < 0 ? [] : [[c.name, valueOf(chart, c.y[k]) + (k === c.best ? ", the best" : "")]];
  });
  showTip(event, `${grouped(best)} ${chart.x}`, rows);
}

// Differences.

const forestRow = 24;
function forestHeight(forest) { return forest.rows.length * forestRow + 58; }

// forestRange is what the axis shows: all intervals, but of one that is far longer than the others only a part.
function forestRange(forest) {
  const sizes = forest.rows.map((r) => Math.max(...r.at.map(Math.abs))).sort((a, b) => a - b);
  const most = 4 * (sizes[Math.floor(sizes.length / 2)] || 1), cut = (v) => Math.min(most, Math.max(-most, v));
  const lo = Math.min(0, ...forest.rows.map((r) => cut(r.at[1]))), hi = Math.max(0, ...forest.rows.map((r) => cut(r.at[2])));
  const pad = 0.05 * (hi - lo || 1);
  return [lo - pad, hi + pad];
}

function drawForest(forest, pen, theme, width) {
  const size = width < 560 ? 11 : 12;
  const names = Math.min(width * 0.34, Math.max(60, ...forest.rows.map((r) => pen.measure(r.name, size))) + 12);
  const texts = Math.min(width - names - 80, Math.max(...forest.rows.map((r) => pen.measure(r.text, size))) + 12);
  const [lo, hi] = forestRange(forest), x0 = names, x1 = Math.max(x0 + 80, width - texts), y0 = 8, y1 = y0 + forest.rows.length * forestRow + 4;
  const x = (v) => x0 + ((Math.min(hi, Math.max(lo, v)) - lo) / (hi - lo)) * (x1 - x0);
  const step = niceStep((hi - lo) / Math.max(3, (x1 - x0) / 70));
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi; i++) {
    const v = i * step;
    pen.line([x(v), y0, x(v), y1], theme.grid);
    pen.text((v > 0 ? "+" : "") + number(Number(v.toPrecision(10))), x(v), y1 + 16, theme.soft, { align: "center" });
  }
  pen.line([x(0), y0, x(0), y1], theme.ink, 1.4);
  pen.line([x0, y1, x1, y1], theme.axis);
  pen.text(forest.x, (x0 + x1) / 2, y1 + 36, theme.soft, { align: "center" });
  forest.rows.forEach((r, i) => {
    const [value, low, high] = r.at, y = y0 + (i + 0.5) * forestRow, colour = forestColour(forest, theme, r);
    pen.text(r.name, names - 12, y + 4, theme.ink, { align: "right", size });
    pen.line([x(low), y, x(high), y], colour, 2.2);
    for (const [end, towards] of [[low, 1], [high, -1]]) {
      const px = x(end);
      if (towards > 0 ? end > hi : end < lo) continue; // all of it is beyond the other end
      if (end < lo || end > hi) pen.area([px, y, px + 7 * towards, y - 5, px + 7 * towards, y + 5], colour); // it goes on
      else pen.line([px, y - 4, px, y + 4], colour, 2.2);
    }
    if (value >= lo && value <= hi) pen.rect(x(value) - 4, y - 4, 8, 8, colour);
    pen.text(r.text, x1 + 10, y + 4, theme.ink, { size });
  });
}

// forestColour tells better, worse, and what cannot be told apart from no difference.
function forestColour(forest, theme, row) {
  const [, low, high] = row.at;
  if (low <= 0 && high >= 0) return theme.axis;
  return (high < 0) === forest.lower ? theme.series[2] : theme.series[1];
}
