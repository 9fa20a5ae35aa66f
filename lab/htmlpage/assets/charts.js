// The panels above a run's stints: GPUs in use, jobs that run, jobs that wait.

const panels = [
  { title: "GPUs in use, by size of job", height: 104, draw: drawUse },
  { title: "running jobs", height: 58, draw: (...a) => drawCount(RUNNING, ...a) },
  { title: "waiting jobs", height: 58, draw: (...a) => drawCount(QUEUE, ...a) },
];
const panelGap = 24;

// drawUse stacks the GPUs held by jobs of each size; what is down hangs from the top.
function drawUse(pen, theme, run, x, range, y0, y1) {
  const [a, b] = range, top = data.gpus || 1, s = run.series;
  const y = (v) => y1 - (v / top) * (y1 - y0);
  yAxis(pen, theme, x(a), x(b), y0, y1, top, count, true);
  pen.clip(x(a), y0 - 1, x(b) - x(a), y1 - y0 + 2);
  const base = new Float64Array(s.values[0].length);
  let before = null;
  for (let c = 0; c < data.sizes.length; c++) {
    const column = s.values[SIZES + c];
    if (!sizesSeen(run)[c]) continue;
    for (let i = 0; i < base.length; i++) base[i] += column[i];
    const line = steppedLine(run, (i) => base[i], x, y, a, b);
    const area = line.slice();
    if (before) for (let i = before.length - 2; i >= 0; i -= 2) area.push(before[i], before[i + 1]);
    else area.push(line[line.length - 2], y1, line[0], y1);
    pen.area(area, sizeColour(theme, c));
    before = line;
  }
  band(pen, run, USED, x, y, a, b, theme.ink);
  pen.line(steppedLine(run, (i) => s.values[USED][i], x, y, a, b), theme.ink, 0.8);
  if (s.values[DOWN].some((v) => v > 0)) {
    const line = steppedLine(run, (i) => top - s.values[DOWN][i], x, y, a, b);
    if (line.length) pen.area([...line, line[line.length - 2], y0, line[0], y0], theme.down, 0.35);
  }
  pen.unclip();
}

// sizesSeen says which classes of jobs a run has.
function sizesSeen(run) {
  if (!run.seen) run.seen = data.sizes.map((_, c) => run.series.values[SIZES + c].some((v) => v > 0));
  return run.seen;
}

function drawCount(variable, pen, theme, run, x, range, y0, y1) {
  const [a, b] = range, top = topOf([run], variable) * 1.05, s = run.series;
  const y = (v) => y1 - (v / top) * (y1 - y0), colour = runColour(theme, run.index);
  yAxis(pen, theme, x(a), x(b), y0, y1, top);
  pen.clip(x(a), y0 - 1, x(b) - x(a), y1 - y0 + 2);
  const line = steppedLine(run, (i) => s.values[variable][i], x, y, a, b);
  if (line.length) pen.area([...line, line[line.length - 2], y1, line[0], y1], colour, 0.22);
  band(pen, run, variable, x, y, a, b, colour);
  pen.line(line, colour, 1.3);
  pen.unclip();
}
