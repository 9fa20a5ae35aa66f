// Axes and what is common to figures.

const margin = { left: 76, right: 14 };

// xScale maps times of the range to the width between the margins.
function xScale(range, width) {
  const k = (width - margin.left - margin.right) / (range[1] - range[0]);
  const f = (t) => margin.left + (t - range[0]) * k;
  f.invert = (x) => range[0] + (x - margin.left) / k;
  f.perMs = k;
  return f;
}

// timeGrid draws vertical lines from y0 to y1 and, where asked for, the labels below.
function timeGrid(pen, theme, x, range, y0, y1, labels) {
  const right = x(range[1]);
  for (const t of timeTicks(range[0], range[1], (right - margin.left) / 95)) {
    const px = x(t.at);
    pen.line([px, y0, px, y1], theme.grid);
    if (!labels) continue;
    pen.line([px, y1, px, y1 + 4], theme.axis);
    const half = pen.measure(t.label) / 2;
    if (px + half <= right + margin.right) pen.text(t.label, Math.max(px, half + 2), y1 + 17, theme.soft, { align: "center" });
  }
}

// yAxis draws an axis from 0 to top with its lines; full says that top itself has a label.
function yAxis(pen, theme, x0, x1, y0, y1, top, format = count, full = false) {
  const ticks = numberTicks(top, Math.max(2, (y1 - y0) / 26));
  if (full) { // the whole, in place of the tick that it would touch
    while (ticks.length > 1 && (top - ticks[ticks.length - 1]) / top < 18 / (y1 - y0)) ticks.pop();
    ticks.push(top);
  }
  for (const v of ticks) {
    const y = y1 - (v / top) * (y1 - y0);
    pen.line([x0, y, x1, y], theme.grid);
    pen.text(format(v), x0 - 6, y + 3.5, theme.soft, { align: "right" });
  }
  pen.line([x0, y0, x0, y1], theme.axis);
  pen.line([x0, y1, x1, y1], theme.axis);
}

// runColour and runDash tell runs apart: colours first, then dashes.
function runColour(theme, i) { return theme.series[i % theme.series.length]; }
function runDash(i) { return [[], [6, 3], [2, 2], [8, 3, 2, 3]][Math.floor(i / themes.light.series.length) % 4]; }

// steppedLine is the outline of a variable between a and b as a flat list of points.
function steppedLine(run, pick, x, y, a, b) {
  const points = [];
  eachPart(run, a, b, (from, to, i) => {
    const py = y(pick(i));
    points.push(x(Math.max(a, from)), py, x(Math.min(b, to)), py);
  });
  return points;
}
