// The page's data, as the simulation wrote it, and what is derived from it.

const data = JSON.parse(document.getElementById("data").textContent);
const shades = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const [USED, QUEUE, RUNNING, DOWN, SIZES] = [0, 1, 2, 3, 4];
const endings = ["finished", "preempted", "its node failed", "migrated", "resized", "the run ended"];
const beginnings = ["first start", "started again", "migrated", "resized"];
const [FINISHED, PREEMPTED, FAILED, MOVED, SIZED] = [0, 1, 2, 3, 4];

const span = Math.max(1, data.end || 0);

// unpack turns the columns of a run's stints into arrays that are quick to draw from.
function unpack(run) {
  const s = run.stints;
  if (!s) return null;
  const n = s.job.length;
  const out = {
    n, job: s.job, start: new Float64Array(n), end: new Float64Array(n), began: new Uint8Array(n), ended: new Uint8Array(n),
    from: new Uint32Array(n + 1), gpu: s.gpu, count: s.n, off: s.off, milli: s.milli, firstStart: new Map(), held: new Map(), of: new Map(),
  };
  let t = 0, at = 0;
  for (let i = 0; i < n; i++) {
    t += s.start[i];
    out.start[i] = t;
    out.end[i] = t + s.length[i];
    const k = shades.indexOf(s.kind[i]);
    out.began[i] = Math.floor(k / endings.length);
    out.ended[i] = k % endings.length;
    out.from[i] = at;
    at += s.spans[i];
    const j = s.job[i];
    if (!out.firstStart.has(j)) out.firstStart.set(j, t);
    out.held.set(j, (out.held.get(j) || 0) + s.length[i]);
    if (!out.of.has(j)) out.of.set(j, []);
    out.of.get(j).push(i);
  }
  out.from[n] = at;
  return out;
}

// gang is the number of GPUs of stint i.
function gang(stints, i) {
  let n = 0;
  for (let k = stints.from[i]; k < stints.from[i + 1]; k++) n += stints.count[k];
  return n;
}

const runs = data.runs.map((r, i) => ({ ...r, index: i, stints: unpack(r) }));

// lastUpTo is the index of the last of the sorted list that is not after t, -1 if all are.
function lastUpTo(list, t) {
  let lo = 0, hi = list.length;
  while (lo < hi) {
    const m = (lo + hi) >> 1;
    if (list[m] <= t) lo = m + 1; else hi = m;
  }
  return lo - 1;
}

// valueAt is a variable of a run at a time: its mean in the bucket, and least and most there.
function valueAt(run, variable, t) {
  const s = run.series;
  if (!s || t < run.from || t > run.to) return null;
  const i = s.at ? lastUpTo(s.at, t) : Math.min(s.values[0].length - 1, Math.floor((t - s.from) / s.width));
  if (i < 0 || i >= s.values[variable].length) return null;
  const mean = s.values[variable][i];
  return s.at || variable >= SIZES ? { mean, low: mean, top: mean } : { mean, low: s.low[variable][i], top: s.top[variable][i] };
}

// topOf is the largest value of a variable over runs, at least 1.
function topOf(list, variable) {
  let top = 1;
  for (const r of list) {
    if (!r.series) continue;
    const column = r.series.at ? r.series.values[variable] : r.series.top[variable];
    for (const v of column) if (v > top) top = v;
  }
  return top;
}

// eachPart calls f(from, to, index) for each part of a run's series that touches [a, b].
function eachPart(run, a, b, f) {
  const s = run.series;
  const n = s.values[0].length;
  if (s.at) {
    for (let i = Math.max(0, lastUpTo(s.at, a)); i < n && s.at[i] <= b; i++) f(s.at[i], i + 1 < n ? s.at[i + 1] : run.to, i);
    return;
  }
  for (let i = Math.max(0, Math.floor((a - s.from) / s.width)); i < n && s.from + i * s.width <= b; i++) {
    f(s.from + i * s.width, Math.min(run.to, s.from + (i + 1) * s.width), i);
  }
}

// nodeOf is the number of the node that a GPU lies on.
function nodeOf(g) {
  if (!data.node0) return -1;
  let lo = 0, hi = data.node0.length;
  while (lo < hi) {
    const m = (lo + hi) >> 1;
    if (data.node0[m] <= g) lo = m + 1; else hi = m;
  }
  return lo - 1;
}

// What jobs can be coloured by: each gives a key for a job, or a value on a scale.
const colourings = [["job", "job"]];
if (data.jobs) {
  for (const [key, label] of [["user", "user"], ["vc", "virtual cluster"], ["model", "model"]]) if (data.jobs[key] && data.jobs[key].names.length > 1) colourings.push([key, label]);
}
colourings.push(["size", "GPUs asked for"], ["wait", "wait for first start"]);

// ranks gives the names of a column a colour by the GPU-time that their jobs ask for; the first
// twelve have one of their own.
const rankCache = {};
function ranks(key) {
  if (rankCache[key]) return rankCache[key];
  const names = data.jobs[key], weight = new Float64Array(names.names.length);
  names.of.forEach((n, j) => { weight[n] += data.jobs.work[j] * data.jobs.gpus[j]; });
  const order = [...weight.keys()].sort((a, b) => weight[b] - weight[a] || a - b);
  const rank = new Int32Array(order.length).fill(-1);
  order.slice(0, 12).forEach((n, i) => { rank[n] = i; });
  return (rankCache[key] = { rank, top: order.slice(0, 12).map((n) => names.names[n] || "not stated"), more: Math.max(0, order.length - 12) });
}

// waitScale maps a wait to [0, 1] on a logarithmic scale from 1 s to the longest wait of all runs.
let longestWait = 1000;
for (const r of runs) if (r.stints) for (const [j, t] of r.stints.firstStart) longestWait = Math.max(longestWait, t - data.jobs.submit[j]);
function waitScale(ms) { return Math.log1p(Math.max(0, ms) / 1000) / Math.log1p(longestWait / 1000); }

function sizeClass(gpus, milli) {
  if (milli < 1000) return 0;
  return Math.min(data.sizes.length - 1, 1 + Math.ceil(Math.log2(Math.max(1, gpus))));
}

// colourOf returns a function from stint to colour.
function colourOf(stints, by, theme, themeName) {
  const jobs = data.jobs;
  if (by === "wait") {
    return (i) => scaleColour(themeName, waitScale(stints.firstStart.get(stints.job[i]) - jobs.submit[stints.job[i]]));
  }
  if (by === "size") {
    return (i) => sizeColour(theme, sizeClass(jobs.gpus[stints.job[i]], jobs.milli ? jobs.milli[stints.job[i]] : 1000));
  }
  if (by === "job") {
    return (i) => { // neighbours in the trace lie far apart on the circle of hues
      const j = stints.job[i];
      return `hsl(${Math.round((j * 137.508) % 360)},${38 + (j % 3) * 7}%,${theme.lightness[j % 2]}%)`;
    };
  }
  const r = ranks(by);
  return (i) => {
    const k = r.rank[jobs[by].of[stints.job[i]]];
    return k < 0 ? theme.other : theme.categories[k];
  };
}

// paintOf is the colour of every stint, kept until another colouring is asked for.
function paintOf(stints, by, theme, themeName) {
  const key = by + " " + themeName;
  if (stints.painted !== key) {
    const colour = colourOf(stints, by, theme, themeName);
    stints.paint = stints.job.map((_, i) => colour(i));
    stints.painted = key;
  }
  return stints.paint;
}

function sizeColour(theme, c) { return theme.ramp[Math.min(theme.ramp.length - 1, c)]; }
