// Numbers and times for people. Times are milliseconds.

const units = [["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000], ["ms", 1]];

// duration prints a time with its two largest units that matter: "1 d 3 h", "12.5 s".
function duration(ms) {
  const sign = ms < 0 ? "−" : "";
  ms = Math.abs(ms);
  if (ms === 0) return "0 s";
  if (ms < 1000) return sign + (ms === Math.round(ms) ? ms : ms.toPrecision(2)) + " ms";
  if (ms < 60000) return sign + trim(ms / 1000, 3) + " s";
  const i = units.findIndex((u) => ms >= u[1]);
  let big = Math.floor(ms / units[i][1]);
  let small = Math.round((ms - big * units[i][1]) / units[i + 1][1]);
  if (small * units[i + 1][1] === units[i][1]) { big++; small = 0; }
  return sign + grouped(big) + " " + units[i][0] + (small ? " " + small + " " + units[i + 1][0] : "");
}

// exact prints a time with all of its units.
function exact(ms) {
  let rest = Math.abs(ms);
  const parts = [];
  for (const [name, size] of units.slice(0, 3)) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n) parts.push(grouped(n) + " " + name);
  }
  if (rest || !parts.length) parts.push(trim(rest / 1000, 3) + " s");
  return (ms < 0 ? "−" : "") + parts.join(" ");
}

// trim prints x with at most so many decimals.
function trim(x, decimals) { return String(Number(x.toFixed(decimals))); }

// grouped prints a whole number in groups of three digits.
function grouped(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f"); }

// count prints a number of jobs or GPUs.
function count(x) { return x === Math.round(x) ? grouped(x) : trim(x, x < 10 ? 2 : 1); }

// plural is n with its noun.
function plural(n, noun) { return count(n) + " " + noun + (n === 1 ? "" : "s"); }

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * 1000), ...[1, 2, 5, 10, 15, 30].map((n) => n * 60000),
  ...[1, 2, 3, 6, 12].map((n) => n * 3600000)];

// timeStep is a readable distance of ticks, at least so long.
function timeStep(least) {
  for (const s of steps) if (s >= least) return s;
  return numberStep(least / 86400000) * 86400000;
}

// numberStep is 1, 2 or 5 times a power of ten, at least so large and at least 1.
function numberStep(least) {
  if (least <= 1) return 1;
  const p = Math.pow(10, Math.floor(Math.log10(least)));
  for (const m of [1, 2, 5, 10]) if (m * p >= least * (1 - 1e-9)) return m * p;
  return 10 * p;
}

// timeTicks are the ticks between a and b, at most about so many.
function timeTicks(a, b, most) {
  const step = timeStep((b - a) / Math.max(1, most));
  const ticks = [];
  for (let i = Math.ceil(a / step - 1e-9); i * step <= b + step * 1e-9; i++) ticks.push(i * step);
  return ticks.map((t) => ({ at: t, label: tickLabel(t) }));
}

// tickLabel is short and exact.
function tickLabel(t) { return t === 0 ? "0" : Math.abs(t) < 1000 ? t + " ms" : exact(t); }

// numberTicks are those of an axis from 0 to top.
function numberTicks(top, most) {
  const step = numberStep(top / Math.max(1, most));
  const ticks = [];
  for (let v = 0; v <= top * (1 + 1e-9); v += step) ticks.push(v);
  return ticks;
}
