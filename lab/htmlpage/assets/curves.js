// The figures that compare runs: distributions of completion times, and queues.

const curveHeight = 300;

// drawJCT draws for every run the share of jobs that were complete within a time, on a logarithmic axis.
function drawJCT(pen, theme, width) {
  const y0 = 14, y1 = curveHeight - 42, x0 = 46, x1 = width - 16;
  let least = Infinity, most = 0;
  for (const r of runs) for (const t of r.jct.at) if (t > 0) { least = Math.min(least, t); most = Math.max(most, t); }
  if (!most) {
    pen.text("No job has finished.", x0, (y0 + y1) / 2, theme.soft);
    return;
  }
  const marks = [1, 10, 100, 1000, 10000, 60000, 600000, 3600000, 21600000, 86400000, 864000000, 8640000000, 86400000000];
  const lo = Math.log(Math.max(1, least) * 0.9), hi = Math.log(Math.max(most, least * 2) * 1.1);
  const x = (t) => x0 + ((Math.log(Math.max(t, Math.exp(lo))) - lo) / (hi - lo)) * (x1 - x0);
  yAxis(pen, theme, x0, x1, y0, y1, 100, (v) => v + " %");
  let last = -Infinity;
  for (const m of marks) {
    if (Math.log(m) < lo || Math.log(m) > hi) continue;
    const px = x(m), label = tickLabel(m), half = pen.measure(label) / 2;
    pen.line([px, y0, px, y1], theme.grid);
    pen.line([px, y1, px, y1 + 4], theme.axis);
    if (px - half < last + 8 || px + half > width) continue;
    pen.text(label, px, y1 + 17, theme.soft, { align: "center" });
    last = px + half;
  }
  pen.text("completion time (finish − submit), logarithmic", (x0 + x1) / 2, y1 + 35, theme.soft, { align: "center" });
  runs.forEach((r, i) => {
    const points = [];
    let share = 0;
    r.jct.at.forEach((t, k) => {
      // Where every job is a point the curve is a staircase; a sample of many is joined by lines.
      if (!points.length) points.push(x(t), y1);
      else if (r.jct.jobs === r.jct.at.length) points.push(x(t), y1 - share * (y1 - y0));
      share = r.jct.share[k];
      points.push(x(t), y1 - share * (y1 - y0));
    });
    if (points.length) points.push(x1, y1 - share * (y1 - y0));
    pen.line(points, runColour(theme, i), 1.8, runDash(i));
  });
}

// drawQueues draws the queue of every run over time.
function drawQueues(pen, theme, width) {
  const y0 = 14, y1 = curveHeight - 42, top = topOf(runs, QUEUE) * 1.04;
  const range = [0, span], x = xScale(range, width), x1 = width - margin.right;
  timeGrid(pen, theme, x, range, y0, y1, true);
  yAxis(pen, theme, margin.left, x1, y0, y1, top);
  pen.text("time since the first submit", (margin.left + x1) / 2, y1 + 35, theme.soft, { align: "center" });
  const y = (v) => y1 - (v / top) * (y1 - y0);
  runs.forEach((r, i) => {
    if (!r.series) return;
    band(pen, r, QUEUE, x, y, 0, span, runColour(theme, i));
    pen.line(steppedLine(r, (k) => r.series.values[QUEUE][k], x, y, 0, span), runColour(theme, i), 1.4, runDash(i));
  });
}

// band shades what lies between least and most of each bucket.
function band(pen, run, variable, x, y, a, b, colour) {
  if (run.series.at) return;
  const up = steppedLine(run, (k) => run.series.top[variable][k], x, y, a, b);
  const low = steppedLine(run, (k) => run.series.low[variable][k], x, y, a, b);
  for (let i = low.length - 2; i >= 0; i -= 2) up.push(low[i], low[i + 1]);
  pen.area(up, colour, 0.18);
}
