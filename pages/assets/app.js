// The pages: runs and their comparison, a run, a sweep, an experiment, a replay. The address after # says which.

const darkMedia = window.matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement, bar = document.getElementById("bar"), page = document.getElementById("page");
const figures = []; // of the page that is shown

// Theme: what the reader chose, or else what the system asks for.
function chosenTheme() { try { return localStorage.getItem("clustergym-theme"); } catch { return null; } }
function themeName() { return root.dataset.theme || (darkMedia.matches ? "dark" : "light"); }
if (["light", "dark"].includes(chosenTheme())) root.dataset.theme = chosenTheme();
function recolour() {
  const theme = themes[themeName()];
  for (const [e, fill] of legends) e.replaceChildren(...fill(theme));
  for (const f of figures) f.now();
  if (here.recolour) here.recolour();
}
function switchTheme() {
  const next = themeName() === "dark" ? "light" : "dark";
  root.dataset.theme = next;
  try { localStorage.setItem("clustergym-theme", next); } catch { /* a browser that keeps nothing */ }
  themeButton.textContent = next === "dark" ? "☀" : "☾";
  recolour();
}
const themeButton = make("button", { type: "button", title: "Light or dark", "aria-label": "Switch between light and dark", onclick: switchTheme }, themeName() === "dark" ? "☀" : "☾");
const liveMark = make("span", { class: "live", role: "status", "data-state": "idle" }, "");
const crumbs = make("nav", { class: "crumbs", "aria-label": "Where this is" });
bar.append(make("div", { class: "inside" }, make("a", { class: "brand", href: "#/" }, make("i", { "aria-hidden": "true" }), make("span", {}, "ClusterGym")), crumbs, liveMark, themeButton));
function mark(state, text) {
  liveMark.dataset.state = state;
  liveMark.textContent = text;
  if (state === "on") for (const e of page.querySelectorAll(".note.away")) e.remove();
}

// Away says that the server does not answer.
class Away extends Error {}

// get fetches a path; the error is the sentence that the server says.
async function get(path, signal) {
  const r = await fetch(path, { signal }).catch((err) => { throw err.name === "AbortError" ? err : new Away("The server does not answer; the page goes on when it does."); });
  if (r.status === 401) location.reload(); // the cookie has ended: the server shows its form
  if (!r.ok) throw new Error((await r.text()).trim() || `the server answers ${r.status}`);
  return r;
}
async function ask(path, signal) { return (await get(path, signal)).json(); }

const streams = new Set(); // that are not closed

// Stream follows lines of runs. A connection that is lost goes on after the last line that came: ids are numbers of lines. heads
// name the files that the lines so far are of.
class Stream {
  constructor(ids, after, heads, take, again) {
    Object.assign(this, { ids, have: after.slice(), heads, take, again, closed: false });
    streams.add(this);
    this.open();
  }
  open() {
    clearTimeout(this.timer);
    if (this.closed || document.hidden || this.source && this.source.readyState !== EventSource.CLOSED) return;
    const q = this.ids.map((id) => "run=" + id).join("&");
    this.source = new EventSource(`events?${q}&after=${this.have.join(",")}&of=${this.heads.join(",")}`);
    this.source.addEventListener("open", () => mark("on", "live"));
    this.source.addEventListener("line", (e) => {
      const d = JSON.parse(e.data);
      if (d.n <= this.have[d.run]) return;
      if (d.n !== this.have[d.run] + 1) return this.restart(); // never, unless a file was changed by hand
      this.have[d.run] = d.n;
      this.take(d.run, d.n, d.line);
    });
    this.source.addEventListener("again", () => this.restart());
    this.source.addEventListener("error", () => {
      mark("off", "reconnecting …");
      if (this.source.readyState !== EventSource.CLOSED || this.closed) return; // the browser tries again
      this.timer = setTimeout(() => this.restart(), 1500); // the server refuses: who asks again hears why
    });
  }
  restart() {
    this.close();
    this.again();
  }
  pause() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
  }
  close() {
    this.closed = true;
    streams.delete(this);
    this.pause();
  }
}

// Browsers keep at most six connections to a server, over all tabs: those that nobody sees give theirs back, and go on later.
document.addEventListener("visibilitychange", () => { for (const s of streams) if (document.hidden) s.pause(); else s.open(); });
window.addEventListener("pagehide", () => { for (const s of streams) s.pause(); });
window.addEventListener("pageshow", (e) => { if (e.persisted) for (const s of streams) s.open(); });

// follow tells about changes of the list.
function follow(take) {
  let source = null, timer = 0, closed = false;
  const pause = () => { clearTimeout(timer); if (source) source.close(); };
  const open = () => {
    clearTimeout(timer);
    if (closed || document.hidden || source && source.readyState !== EventSource.CLOSED) return;
    source = new EventSource("events?list=1");
    source.addEventListener("open", () => mark("on", "live"));
    source.addEventListener("list", (e) => take(JSON.parse(e.data)));
    source.addEventListener("error", () => {
      mark("off", "reconnecting …");
      if (source.readyState !== EventSource.CLOSED || closed) return;
      timer = setTimeout(open, 1500);
      get("api/list").catch(() => {}); // where the cookie has ended, that goes to the form
    });
  };
  const f = { open, pause, close() { closed = true; streams.delete(f); pause(); } };
  streams.add(f);
  open();
  return f;
}

// flat calls f for every number of a line, by the keys that lead to it, as the server names curves.
function flat(line, f, prefix = "") {
  for (const [k, v] of Object.entries(line)) {
    if (typeof v === "number") f(prefix + k, v);
    else if (v && typeof v === "object" && !Array.isArray(v)) flat(v, f, prefix + k + "/");
  }
}

// validationOf is the value of a validation, in the metric of best.json.
function validationOf(e) { return e.return_mean ?? e.score ?? e.jct_s; }

const points = 600; // of a curve, at most twice as many while lines come

// Plot is a figure of one key over training, for one or several runs.
class Plot {
  constructor(set, key, title, o = {}) {
    Object.assign(this, { set, key });
    this.chart = { name: key, x: "steps of training", curves: [], levels: [], seconds: o.seconds, log: o.log, lower: o.lower, height: o.height || 220, range: null };
    this.figure = new Figure(key, title, () => this.chart.height, (pen, theme, width) => this.draw(pen, theme, width));
    figures.push(this.figure);
    const c = this.figure.canvas;
    c.chart = this.chart;
    c.dataset.key = key;
    c.tabIndex = 0;
    this.cross = make("div", { class: "cross", hidden: true });
    this.brush = make("div", { class: "brush", hidden: true });
    this.figure.box.append(this.cross, this.brush);
    this.box = make("figure", { class: "plot" }, make("figcaption", {}, make("span", {}, title, o.unit ? make("span", { class: "hush" }, " " + o.unit) : null), this.figure.saveButton()), this.figure.box);
    this.listen(c);
  }
  draw(pen, theme, width) {
    this.chart.scale = null;
    const some = this.chart.curves.some((c) => c.x.length);
    this.figure.canvas.dataset.points = this.chart.curves.reduce((n, c) => n + c.x.length, 0);
    if (!some) {
      pen.text("nothing yet", width / 2, this.chart.height / 2, theme.soft, { align: "center" });
      return;
    }
    drawChart(this.chart, pen, theme, width);
  }
  frame() { return chartFrame(this.chart, this.figure.ruler(), this.figure.canvas.clientWidth); }
  listen(c) {
    let from = null;
    const at = (e) => e.clientX - c.getBoundingClientRect().left;
    c.addEventListener("pointerdown", (e) => {
      if (e.button || e.pointerType === "touch") return;
      from = at(e);
      try { c.setPointerCapture(e.pointerId); } catch { /* a pointer that is gone */ }
    });
    c.addEventListener("pointermove", (e) => {
      if (!this.chart.curves.some((u) => u.x.length)) return;
      this.chart.scale = this.chart.scale || chartScale(this.chart);
      chartTip(this.chart, this.figure, e);
      this.cross.hidden = false;
      this.cross.style.left = at(e) + "px";
      this.cross.style.height = this.chart.height - 42 + "px";
      if (from === null) return;
      this.brush.hidden = Math.abs(at(e) - from) < 5;
      this.brush.style.left = Math.min(from, at(e)) + "px";
      this.brush.style.width = Math.abs(at(e) - from) + "px";
    });
    const end = (e) => {
      const a = from;
      from = null;
      this.brush.hidden = true;
      if (a === null || e.type !== "pointerup" || Math.abs(at(e) - a) < 5) return;
      const f = this.frame();
      this.set.zoom([a, at(e)].map((px) => Math.max(f.from, Math.min(f.to, f.invert(px)))).sort((p, q) => p - q));
    };
    c.addEventListener("pointerup", end);
    c.addEventListener("pointercancel", end);
    c.addEventListener("pointerleave", () => { tip.hidden = true; this.cross.hidden = true; });
    c.addEventListener("dblclick", () => this.set.zoom(null));
    c.addEventListener("keydown", (e) => {
      const f = this.frame(), size = f.to - f.from, mid = (f.from + f.to) / 2, most = this.set.end();
      const within = (a, b) => this.set.zoom(b - a >= most ? null : [Math.max(0, Math.min(most - (b - a), a)), Math.max(b - a, Math.min(most, b))]);
      const act = {
        "+": () => within(mid - size / 3.2, mid + size / 3.2), "=": () => within(mid - size / 3.2, mid + size / 3.2), "-": () => within(mid - size * 0.8, mid + size * 0.8),
        ArrowLeft: () => within(f.from - size / 5, f.to - size / 5), ArrowRight: () => within(f.from + size / 5, f.to + size / 5), "0": () => this.set.zoom(null), Escape: () => this.set.zoom(null),
      }[e.key];
      if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      act();
    });
  }
}

// PlotSet is the plots of a page: they share runs, range of steps and stream.
class PlotSet {
  constructor(runs, changed) {
    Object.assign(this, { runs, changed, plots: [], range: null, all: [], abort: new AbortController() });
    this.resetButton = make("button", { type: "button", hidden: true, onclick: () => this.zoom(null) }, "all steps");
  }
  add(key, title, o) {
    const p = new Plot(this, key, title, o);
    this.plots.push(p);
    return p;
  }
  end() { return Math.max(1, ...this.all.map((r) => r.end || 0)); }
  query() {
    const q = new URLSearchParams({ n: String(points) });
    for (const r of this.runs) q.append("id", r.id);
    for (const p of this.plots) q.append("key", p.key);
    if (this.range) { q.set("from", this.range[0]); q.set("to", this.range[1]); }
    return "api/curves?" + q;
  }
  // load fetches curves; the stream begins after the lines that they hold.
  async load() {
    const turn = (this.turn = (this.turn || 0) + 1), late = (this.late = []);
    const got = await ask(this.query(), this.abort.signal).catch((err) => {
      if (turn === this.turn) {
        this.late = null;
        if (err.name !== "AbortError" && !this.stream) this.again(3000); // a run that is gone may come back
      }
      throw err;
    });
    if (turn !== this.turn) return;
    this.late = null;
    for (const e of page.querySelectorAll(".note.fault.passing")) e.remove();
    this.take(got);
    for (const [i, n, line] of late) if (n > got[i].lines) this.line(i, n, line); // they came while the answer was on its way
    if (!this.stream) this.connect(got);
    else this.stream.have.forEach((n, i) => { this.stream.have[i] = Math.max(n, got[i].lines); });
  }
  connect(got) {
    this.stream = new Stream(this.runs.map((r) => r.id), got.map((c) => c.lines), got.map((c) => c.head), (i, n, line) => this.line(i, n, line), () => {
      this.stream = null;
      this.all = [];
      this.load().then(() => this.changed && this.changed()).catch(fault);
    });
  }
  take(got) {
    this.all = got.map((c, i) => ({ ...this.all[i], lines: c.lines, end: Math.max((this.all[i] || {}).end || 0, c.step) }));
    for (const p of this.plots) {
      p.chart.range = this.range;
      p.chart.curves = got.map((c, i) => {
        const b = c.curves[p.key] || { x: [], y: [] };
        return { name: this.runs[i].name, colour: this.runs[i].colour ?? i, x: b.x, y: b.y, band: b.low ? { low: b.low, top: b.top } : null, best: -1 };
      });
      if (p.after) p.after();
      p.figure.later();
    }
  }
  // line adds a new line to the curves; ones that become long are fetched again.
  line(i, n, line) {
    if (this.late) this.late.push([i, n, line]);
    const run = this.all[i] || (this.all[i] = {});
    run.lines = n;
    if (!line || typeof line.step !== "number") return;
    run.end = Math.max(run.end || 0, line.step);
    const put = (key, v) => {
      for (const p of this.plots) {
        if (p.key !== key) continue;
        const c = p.chart.curves[i];
        if (!c || this.range && line.step > this.range[1]) continue;
        if (c.x.length && line.step < c.x[c.x.length - 1]) continue;
        c.x.push(line.step);
        c.y.push(v);
        if (c.band) { c.band.low.push(v); c.band.top.push(v); }
        if (p.after) p.after();
        p.figure.later();
        if (c.x.length > 2 * points) this.again();
      }
    };
    if (line.eval) put("validation", validationOf(line.eval));
    else flat(line, put);
    if (this.changed) this.changed();
  }
  again(wait = 150) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load().catch(fault), wait);
  }
  zoom(range) {
    if (range && range[1] - range[0] < 1e-9) return;
    this.range = range;
    this.resetButton.hidden = !range;
    for (const p of this.plots) { p.chart.range = range; p.figure.later(); }
    this.again();
  }
  close() {
    this.abort.abort();
    clearTimeout(this.timer);
    if (this.stream) this.stream.close();
  }
}

// fault shows a sentence on top of the page.
function fault(err) {
  if (err && err.name === "AbortError") return;
  if (err instanceof TypeError || err instanceof ReferenceError) console.error(err); // a fault of this program
  const text = String(err.message || err), old = page.querySelector(".note.fault.passing");
  if (old && old.textContent === text) return;
  if (old) old.remove();
  page.prepend(make("p", { class: "note fault passing" + (err instanceof Away ? " away" : ""), role: "alert" }, text));
}

function pill(state) { return make("span", { class: "pill " + state }, { coming: "not begun", running: "running", silent: "silent", done: "done", failed: "failed" }[state] || state); }
function meter(share, label) {
  const s = make("span", {});
  s.style.width = (100 * Math.min(1, Math.max(0, share))).toFixed(1) + "%";
  return make("div", { class: "meter", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * share), "aria-label": label }, s);
}
function tile(name, value, more) { return make("div", { class: "tile" }, make("dt", {}, name), make("dd", {}, value, more ? make("small", {}, more) : null)); }
function shorter(text) { return text.length > 28 ? text.slice(0, 27) + "…" : text; }
function seconds(s) { return duration(Math.round(s) * 1000); }
function named(metric) { return /^validation\/jct_s/.test(metric || "") ? "mean JCT" : (metric || "").replace(/^validation\//, "").replace(/ (geometric )?mean$/, "").replace(/_s$/, "").replaceAll("_", " "); }
function timely(metric) { return /_s( |$)/.test(metric || ""); }
function scoreOf(metric, v) { return timely(metric) ? duration(Math.round(v * 1000)) : number(v); }

// Pages. Each returns what closes it.

let here = { close() {} };
async function route() {
  const [path, query] = location.hash.slice(1).split("?"), parts = path.split("/").filter(Boolean), q = new URLSearchParams(query || "");
  if (here.same && here.same(parts, q)) return;
  here.close();
  figures.length = legends.length = 0;
  tip.hidden = true;
  here = { close() {} };
  root.dataset.state = "loading";
  mark("idle", "");
  page.replaceChildren(make("p", { class: "empty" }, "…"));
  const mine = here;
  try {
    const list = await ask("api/list");
    if (mine !== here) return;
    let [kind, id] = parts;
    if (!kind && list.entries.length === 1 && !list.worker && !list.queue) { kind = list.entries[0].kind; id = list.entries[0].id; }
    const entry = list.entries.find((e) => e.id === id), made = { run: runPage, replay: replayPage, log: replayPage, sweep: sweepPage, experiment: experimentPage }[kind];
    if (kind && kind !== "runs" && (!made || !entry)) throw new Error("There is no such page here; it may have been moved or removed.");
    crumb(list, entry, kind);
    const next = made ? await made(entry, q, list) : await runsPage(list, q);
    if (mine !== here) return next.close();
    here = next;
    recolour();
    if (root.dataset.state === "loading") root.dataset.state = "ready";
  } catch (err) {
    if (mine !== here) return;
    page.replaceChildren();
    fault(err);
    if (err instanceof Away) { const t = setTimeout(route, 1500); here = { close() { clearTimeout(t); } }; }
    root.dataset.state = "fault";
  }
}

function crumb(list, entry, kind) {
  const several = list.entries.length > 1 || list.worker || list.queue, parts = [];
  if (several) parts.push(entry ? make("a", { href: "#/" }, list.title) : make("b", {}, list.title));
  if (entry) {
    const name = entry.name.split("/").pop();
    parts.push(kind === "replay" && entry.kind === "run" ? make("a", { href: "#/run/" + entry.id }, name) : make("b", {}, name));
    if (kind === "replay" && entry.kind === "run") parts.push(make("b", {}, "replay"));
  }
  if (!parts.length) parts.push(make("b", {}, list.title));
  crumbs.replaceChildren(...parts.flatMap((p, i) => (i ? [" / ", p] : [p])));
  document.title = (entry ? entry.name + " – " : list.title + " – ") + "ClusterGym";
}

const lossNames = { approx_kl: "KL to the policy before", clip_fraction: "Share that is clipped", grad_norm: "Norm of the gradient", q_mean: "Mean value", epsilon: "Exploration (epsilon)", td_error: "TD error" };
// titleOf is a key as the title of its figure.
function titleOf(key) { const words = key.replaceAll("_", " ").replace("/", ": "); return lossNames[key] || words[0].toUpperCase() + words.slice(1); }
const minor = /^train\/(epochs|n_updates|clip_range|imitation\/|ppo\/|reward_scale)/;

// playerName names a checkpoint of a run for people. Step 0 of a run that imitates is no untrained agent: it has learned from play.
function playerName(name, d) {
  const cut = /^(.*)@(\d+)$/.exec(name || "");
  return cut ? `${cut[1]} ${stepName(Number(cut[2]), d)}` : name;
}
function stepName(step, d) {
  if (step) return "at step " + grouped(step);
  const teacher = ((d.config || []).find(([k]) => k === "train.imitate") || ["", ""])[1].replace(/^"|"$/g, "");
  return teacher ? `after imitating ${teacher}` : "before its first step";
}

// runPage is the page of a run.
async function runPage(entry) {
  let d = await ask("api/run?id=" + entry.id), standing = null, timer = 0, closed = false;
  const title = make("h1", {}), progress = make("div", {}), tiles = make("dl", { class: "tiles" }), events = make("div", {}), test = make("div", {}), forest = make("div", {}), config = make("div", {});
  const set = new PlotSet([{ id: entry.id, name: entry.name.split("/").pop(), colour: 0 }], () => { if (!timer) timer = setTimeout(refresh, 700); });
  const head = () => {
    title.replaceChildren(d.name, pill(d.state));
    const share = d.steps ? d.step / d.steps : 0;
    progress.replaceChildren(meter(share, "Steps of training"));
    tiles.replaceChildren(...[
      tile("steps", grouped(d.step), `of ${grouped(d.steps)}, ${Math.floor(100 * share)} %`),
      d.left_s !== undefined ? tile("time left", seconds(d.left_s), "at the present rate") : tile("trained for", d.wall_s !== undefined ? seconds(d.wall_s) : "–", d.state === "silent" ? `silent for ${seconds(d.seen_s)}` : d.state === "done" ? "all steps are done" : null),
      tile("steps per second", d.rate ? grouped(Math.round(d.rate)) : "–", null),
      tile("return", d.return !== undefined ? number(d.return) : "–", "mean of the last episodes"),
      d.best !== undefined ? tile("best validation", scoreOf(d.metric, d.best), `${named(d.metric)} ${stepName(d.best_step, d)}`) : tile("best validation", "–", "none yet"),
    ]);
    const shown = d.events.slice().reverse(), words = (e) => e.text + (e.value !== undefined ? ": " + scoreOf(d.metric, e.value) : "") + (e.kind === "best" ? ", the best so far" : "");
    const list = events.querySelector("ol") || make("ol", { class: "events", tabindex: 0, "aria-label": "Events, the last first" }), at = list.scrollTop;
    list.replaceChildren(...shown.map((e) => make("li", { class: e.kind }, make("time", {}, grouped(e.step)), make("span", {}, words(e)))));
    if (!shown.length) events.replaceChildren(make("p", { class: "told" }, "Nothing yet."));
    else if (!list.isConnected) events.replaceChildren(list);
    list.scrollTop = at;
    const rows = d.config || [];
    const filter = make("input", { type: "search", placeholder: "filter keys", "aria-label": "Filter keys", value: config.filter || "", oninput: (e) => { config.filter = e.target.value; settings.replaceChildren(...pairs()); } });
    const pairs = () => rows.filter(([k, v]) => !config.filter || (k + "=" + v).toLowerCase().includes(config.filter.toLowerCase())).map(([k, v]) => make("div", {}, make("dt", {}, k), make("dd", {}, v)));
    const settings = make("dl", { class: "config" }, ...pairs());
    if (!config.childNodes.length) config.append(make("div", { class: "bars" }, filter), settings);
    testTable();
  };
  const testTable = () => {
    if (!d.test || test.childNodes.length) return;
    const t = d.test, time = (v) => duration(Math.round(v * 1000)), value = (v) => t.seconds ? time(v) : String(Number(v.toPrecision(4)));
    const cells = (p) => t.streams ? [value(p.mean), p.low === null ? "–" : p.high === null ? `above ${value(p.low)}` : `${value(p.low)} to ${value(p.high)}`] : [time(p.mean), time(p.iqm), `${time(p.low)} to ${time(p.high)}`];
    const header = t.streams ? ["policy", t.title, "95 % interval"] : ["policy", "mean JCT", "IQM", "95 % interval of the IQM"];
    const sheet = table({ title: "", header, text: t.streams ? "Means over the counted jobs." : "IQM: mean of the middle half of the windows.",
      rows: t.policies.map((p, i) => [i ? p.name : playerName(p.name, d), ...(p.mean === null ? header.slice(1).map(() => "–") : cells(p))]) });
    sheet.querySelector("h2").remove();
    const name = t.policies[0] && t.policies[0].name, paired = (t.paired || []).filter((p) => p.metric === t.metric && p.a === name && p.difference_percent !== null);
    const [title, small] = t.streams ? ["Test streams", t.streams] : ["Test windows", `${t.windows} windows`];
    test.append(make("h2", {}, title, make("small", {}, small + " that nothing was chosen on")), make("div", { class: "grid two" }, paired.length ? forestOf(paired, playerName(name, d), !t.higher, t.windows, "test") : null, sheet));
  };
  const valid = set.add("validation", "Validation: " + (d.validation_title || "no validation yet"), { seconds: d.seconds, log: d.lower, lower: d.lower, height: 330 });
  valid.after = () => {
    const c = valid.chart.curves[0];
    if (c) { // the best so far
      c.best = -1;
      c.y.forEach((v, i) => { if (c.best < 0 || (d.lower ? v < c.y[c.best] : v >= c.y[c.best])) c.best = i; });
    }
    if (standing) valid.chart.levels = standing.policies.slice(1).map((p) => ({ name: p.name, value: p.value }));
  };
  set.add("return_mean", "Return of training episodes", { height: 330 });
  const main = make("div", { class: "grid two" }, valid.box, set.plots[1].box), small = make("div", { class: "grid" }), others = make("div", { class: "grid" });
  const place = () => {
    const have = new Set(set.plots.map((p) => p.key));
    let some = false;
    const put = (to, key, name) => {
      if (have.has(key) || !(d.keys || []).includes(key)) return;
      to.append(set.add(key, name).box);
      some = true;
    };
    put(small, "timing/steps_per_s", "Steps per second");
    put(small, "length_mean", "Length of episodes");
    for (const k of d.keys || []) if (k.startsWith("train/") && !minor.test(k)) put(small, k, titleOf(k.slice(6)));
    for (const k of d.keys || []) if (minor.test(k)) put(others, k, titleOf(k.slice(6)));
    for (const k of d.keys || []) if (k.startsWith("info/")) put(others, k, titleOf(k.slice(5)) + " of training episodes");
    rest.hidden = !others.childNodes.length;
    return some;
  };
  const rest = make("details", { hidden: true }, make("summary", {}, "More curves"), others);
  rest.addEventListener("toggle", () => { for (const f of figures) f.later(); });
  const compare = make("button", { type: "button", onclick: () => judge() }, "Compare with rules");
  const judge = async () => {
    compare.disabled = true;
    compare.textContent = "The rules play the validation windows …";
    try {
      standing = await ask("api/standings?id=" + entry.id, set.abort.signal);
      valid.after();
      valid.figure.later();
      forest.replaceChildren(forestOf(standing.paired, playerName(standing.policies[0].name, d), standing.lower, standing.windows, "validation"));
      compare.remove();
      recolour();
    } catch (err) {
      if (closed) return;
      compare.disabled = false;
      compare.textContent = "Compare with rules";
      forest.replaceChildren(make("p", { class: "note fault" }, String(err.message)));
    }
  };
  const replay = d.replay ? make("a", { class: "button", href: "#/replay/" + entry.id }, "Replay decisions") : make("span", { class: "told" }, d.no_replay || "");
  const refresh = async () => {
    timer = 0;
    if (closed) return;
    try {
      d = await ask("api/run?id=" + entry.id, set.abort.signal);
      if (d.replay && replay.tagName !== "A") replay.replaceWith(make("a", { class: "button", href: "#/replay/" + entry.id }, "Replay decisions"));
      head();
      valid.chart.lower = d.lower;
      valid.chart.seconds = d.seconds;
      if (place()) await set.load();
    } catch (err) { fault(err); }
  };
  head();
  place();
  page.replaceChildren(title, make("p", { class: "told" }, [d.agent, d.env].filter(Boolean).join(" in ")), progress, tiles, make("div", { class: "bars" }, replay, d.replay ? compare : null, set.resetButton),
    d.fault ? make("p", { class: "note fault" }, d.fault) : "", make("h2", {}, "Learning"), main, forest, test, make("h2", {}, "Losses and rates"), small, rest,
    make("p", { class: "hint" }, "Drag over a figure to see a range of steps in more detail; a double click or Escape shows all. Keys on a figure: + − arrows 0."),
    make("h2", {}, "Events"), events, make("details", {}, make("summary", {}, "Configuration"), config));
  await set.load().catch(fault);
  const clock = setInterval(() => { if (d.state === "running" && !timer) refresh(); }, 10000);
  return { close() { closed = true; clearTimeout(timer); clearInterval(clock); set.close(); } };
}

// forestOf draws paired differences of a policy against others.
function forestOf(paired, name, lower, windows, part) {
  const at = (p) => p.ci95 ? [p.difference_percent, p.ci95[0], p.ci95[1] ?? p.difference_percent] : Array(3).fill(p.difference_percent);
  const f = { name: "differences-" + part, x: "difference in %", lower, rows: paired.map((p) => ({
    name: p.b, at: at(p), text: `${p.difference_percent > 0 ? "+" : p.difference_percent < 0 ? "−" : ""}${Math.abs(p.difference_percent).toFixed(1)} %, ${windows ? `${p.wins} of ${windows}` : p.verdict}`,
  })) };
  const figure = new Figure(f.name, `${name} against each rule: ${f.rows.map((r) => r.name + " " + r.text).join("; ")}`, () => forestHeight(f), (pen, theme, width) => drawForest(f, pen, theme, width));
  figures.push(figure);
  figure.later();
  return make("figure", {}, make("figcaption", {}, make("span", {}, `${name} against each rule, ${part} ${windows ? "windows" : "streams"}`), figure.saveButton()), figure.box,
    legend((theme) => [swatch(theme.series[2], "better"), swatch(theme.series[1], "worse"), swatch(theme.axis, "the interval holds 0")]),
    make("p", { class: "told" }, windows ? "Paired difference of the sums over the same windows with its 95 % bootstrap interval, and in how many windows the agent is better." : "Paired difference on the same streams of jobs with its 95 % interval; ahead and behind hold at 5 % for all rules together (Holm)."));
}

// runsPage lists what there is, and lays the curves of the chosen runs over each other.
async function runsPage(list, q) {
  let set = null, chosen = new Set((q.get("runs") || "").split(",").filter(Boolean)), metric = q.get("key") || "", sortBy = "name", down = false, closed = false;
  const filters = new Map(), body = make("tbody", {}), plots = make("div", {}), others = make("div", {}), filterBar = make("div", { class: "bars" }), curvesHead = make("div", { class: "bars" });
  if (list.entries.some((e) => e.kind === "run")) list = await ask("api/list?params=1");
  let runs = list.entries.filter((e) => e.kind === "run");
  const params = new Map(runs.map((r) => [r.id, r.params || {}]));
  if (!chosen.size) for (const r of runs.slice(0, 6)) chosen.add(r.id);
  const colourOf = new Map();
  const colours = () => {
    const ids = [...chosen];
    for (const id of [...colourOf.keys()]) if (!chosen.has(id)) colourOf.delete(id);
    const used = new Set(colourOf.values());
    for (const id of ids) {
      if (colourOf.has(id)) continue;
      let c = 0;
      while (used.has(c)) c++;
      used.add(c);
      colourOf.set(id, c);
    }
  };
  // settings are the keys that count for a run: not those of other agents.
  const sections = ["ppo", "ddqn", "maml", "improper"];
  const settings = (r) => Object.fromEntries(Object.entries(params.get(r.id) || {}).filter(([k]) => !sections.includes(k.split(".")[0]) || k.split(".")[0] === r.agent));
  // differing are the keys in which runs differ, without those that only name them.
  const differing = () => {
    const keys = new Map(), has = new Map();
    for (const r of runs) {
      for (const [k, v] of Object.entries(settings(r))) {
        if (!keys.has(k)) { keys.set(k, new Set()); has.set(k, 0); }
        keys.get(k).add(v);
        has.set(k, has.get(k) + 1);
      }
    }
    const agents = (k) => runs.filter((r) => !sections.includes(k.split(".")[0]) || r.agent === k.split(".")[0]).length;
    const rank = (k, vs) => (k === "agent" ? 0 : k === "env.id" ? 1 : k === "seed" ? 2 : has.get(k) < agents(k) ? 5 : [...vs].some((v) => v.length > 24) ? 4 : 3);
    return [...keys].filter(([k, vs]) => k !== "name" && (vs.size > 1 || has.get(k) < agents(k))).map(([k, vs]) => [k, [...vs].sort((a, b) => a - b || (a < b ? -1 : 1))])
      .sort((a, b) => rank(a[0], a[1]) - rank(b[0], b[1]) || (a[0] < b[0] ? -1 : 1));
  };
  let keys = differing(), tally = null;
  const passes = (r) => [...filters].every(([k, v]) => !v || settings(r)[k] === v);
  const filterRow = () => {
    filterBar.replaceChildren(...keys.slice(0, 12).map(([k, vs]) => make("label", {}, k + " ", make("select", { onchange: (e) => { filters.set(k, e.target.value); pick(runs.filter(passes).slice(0, 12).map((r) => r.id)); } },
      make("option", { value: "" }, "any"), ...vs.slice(0, 60).map((v) => make("option", { value: v, selected: filters.get(k) === v }, shorter(v)))))),
    keys.length ? make("button", { type: "button", onclick: () => { filters.clear(); filterRow(); pick(runs.slice(0, 6).map((r) => r.id)); } }, "clear") : "");
  };
  const value = (r, key) => ({ name: r.name, state: r.state, step: r.steps ? r.step / r.steps : 0, return: r.return ?? -Infinity, best: r.best ?? Infinity, rate: r.rate ?? 0 }[key] ?? ((v) => (v === undefined ? "" : isNaN(v) ? v : Number(v)))(settings(r)[key]));
  const header = make("tr", {});
  const heads = () => header.replaceChildren(...[["name", "run"], ["state", "state"], ["step", "progress", "n"], ["return", "return", "n"], ["best", "best validation", "n"], ["rate", "steps/s", "n"], ...keys.slice(0, 8).map(([k]) => [k, k])].map(([k, label, c]) =>
    make("th", { scope: "col", class: c, "aria-sort": sortBy === k ? (down ? "descending" : "ascending") : null }, make("button", { type: "button", class: "sort", onclick: () => { down = sortBy === k && !down; sortBy = k; heads(); rows(); } }, label, sortBy === k ? (down ? " ▾" : " ▴") : ""))));
  // A row stays the same element as long as its run is there: who presses a key or a button in it must not lose it to an update.
  const rowOf = new Map();
  const newRow = (r) => {
    const dot = make("span", { class: "dot" }), box = make("input", { type: "checkbox", "aria-label": "Show " + r.name, onchange: () => { const ids = new Set(chosen); if (box.checked) ids.add(r.id); else ids.delete(r.id); pick([...ids]); } });
    const cells = [make("td", {}), ...Array.from({ length: 4 }, () => make("td", { class: "n" }))], tr = make("tr", {}, make("th", { scope: "row" }, make("label", {}, box, dot, make("a", { href: "#/run/" + r.id }, r.name))), ...cells);
    return { tr, dot, box, cells, own: [] };
  };
  const rows = () => {
    const theme = themes[themeName()], now = runs.filter(passes).sort((a, b) => { const x = value(a, sortBy), y = value(b, sortBy); return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
    for (const id of [...rowOf.keys()]) if (!runs.some((r) => r.id === id)) rowOf.delete(id);
    const trs = now.map((r) => {
      if (!rowOf.has(r.id)) rowOf.set(r.id, newRow(r));
      const { tr, dot, box, cells, own } = rowOf.get(r.id), texts = [null, `${r.steps ? Math.floor((100 * r.step) / r.steps) : 0} % of ${grouped(r.steps)}` + (r.left_s !== undefined ? `, ${seconds(r.left_s)} left` : ""),
        r.return !== undefined ? number(r.return) : "–", r.best !== undefined ? scoreOf(r.metric, r.best) : "–", r.rate ? grouped(Math.round(r.rate)) : "–"];
      dot.style.background = chosen.has(r.id) ? runColour(theme, colourOf.get(r.id) || 0) : "";
      box.checked = chosen.has(r.id);
      cells.forEach((c, i) => { if (i && c.textContent !== texts[i]) c.textContent = texts[i]; });
      const state = r.fault ? "failed" : r.state;
      if (cells[0].dataset.state !== state) { cells[0].dataset.state = state; cells[0].replaceChildren(pill(state)); }
      const wanted = keys.slice(0, 8).map(([k]) => settings(r)[k]);
      if (own.join("\n") !== wanted.join("\n") || own.length !== wanted.length) {
        for (const e of tr.querySelectorAll("td.own")) e.remove();
        tr.append(...wanted.map((v) => make("td", { class: "own", title: v }, shorter(v ?? "–"))));
        own.splice(0, own.length, ...wanted);
      }
      return tr;
    });
    if (trs.length !== body.children.length || trs.some((tr, i) => body.children[i] !== tr)) body.replaceChildren(...trs);
  };
  const address = () => history.replaceState(null, "", "#/runs?runs=" + [...chosen].join(",") + (metric ? "&key=" + metric : ""));
  const pick = async (ids) => {
    chosen = new Set(ids.slice(0, 64));
    colours();
    rows();
    if (runs.length) address();
    await draw().catch(fault);
  };
  const names = (r) => r.name;
  const draw = async () => {
    if (set) set.close();
    set = null;
    figures.length = legends.length = 0;
    const picked = runs.filter((r) => chosen.has(r.id));
    if (!picked.length) { plots.replaceChildren(runs.length ? make("p", { class: "empty" }, "Choose runs in the table.") : ""); curvesHead.replaceChildren(); return; }
    const mine = (set = new PlotSet(picked.map((r) => ({ id: r.id, name: names(r), colour: colourOf.get(r.id) })), null));
    const first = picked.find((r) => r.metric), one = picked.every((r) => !r.metric || r.metric === first.metric);
    const boxes = [];
    if (first && one) boxes.push(mine.add("validation", "Validation: " + named(first.metric), { seconds: timely(first.metric), log: first.lower, lower: first.lower, height: 330 }));
    boxes.push(mine.add("return_mean", "Return of training episodes", { height: 330 }));
    if (metric && !["validation", "return_mean"].includes(metric)) boxes.push(mine.add(metric, titleOf(metric.replace(/^train\//, "")), { height: 330 }));
    for (const p of boxes.filter((b) => b.key === "validation")) p.after = () => {
      for (const c of p.chart.curves) { c.best = -1; c.y.forEach((v, i) => { if (c.best < 0 || (first.lower ? v < c.y[c.best] : v >= c.y[c.best])) c.best = i; }); }
    };
    plots.replaceChildren(legend((theme) => picked.map((r) => swatch(runColour(theme, colourOf.get(r.id)), r.name, Math.floor(colourOf.get(r.id) / theme.series.length) % 4))), make("div", { class: "grid two" }, ...boxes.map((b) => b.box)));
    const more = await ask("api/run?id=" + picked[0].id, mine.abort.signal).catch(() => ({ keys: [] }));
    if (mine !== set) return;
    const options = (more.keys || []).filter((k) => !["validation", "return_mean", "episodes", "updates"].includes(k));
    curvesHead.replaceChildren(make("label", {}, "also show ", make("select", { onchange: (e) => { metric = e.target.value; address(); draw().catch(fault); } }, make("option", { value: "" }, "nothing more"), ...options.map((k) => make("option", { value: k, selected: k === metric }, k)))), mine.resetButton,
      first && !one ? make("span", { class: "told" }, "Their validations count different metrics and are not drawn together.") : "");
    if (legends.length) recolour();
    await mine.load();
  };
  const otherList = (entries) => {
    const list = entries.filter((e) => e.kind !== "run");
    const title = { sweep: "Sweep", experiment: "Experiment", log: "Log of decisions" };
    others.replaceChildren(...(list.length ? [make("h2", {}, "Also here"), make("ul", {}, ...list.map((e) => make("li", {}, make("a", { href: `#/${e.kind}/${e.id}` }, e.name), " ", make("span", { class: "told" }, title[e.kind]))))] : []));
  };
  otherList(list.entries);
  heads();
  colours();
  rows();
  filterRow();
  const works = make("div", {}), filtering = make("details", { class: "filters", open: window.innerWidth > 640 }, make("summary", {}, "Choose by settings"), filterBar);
  const about = runs.length ? [keys.length ? filtering : "", make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Runs" }, make("table", { class: "runs" }, make("thead", {}, header), body)), make("h2", {}, "Curves"), curvesHead, plots] :
    list.entries.length ? [] : [make("p", { class: "empty" }, list.worker ? "No training is in work here." : "Nothing has begun yet; this page fills by itself.")];
  page.replaceChildren(make("h1", {}, list.title, runs.length ? (tally = make("span", { class: "pill" }, plural(runs.length, "run"))) : null), works, list.whole ? "" : make("p", { class: "note" }, "There are more runs than a page can list; open one of the folders alone to see them."), others, ...about);
  if (runs.length) await draw().catch(fault);
  const news = follow(async (l) => {
    if (closed) return;
    const before = runs.map((r) => r.id).join();
    const now = l.entries.filter((e) => e.kind === "run");
    if (now.map((r) => r.id).join() !== before || !runs.length && l.entries.length !== list.entries.length) {
      if (!runs.length) return route(); // the first: the page is another one
      const all = await ask("api/list?params=1").catch(() => null);
      if (!all || closed) return;
      for (const e of all.entries) if (e.params) params.set(e.id, e.params);
      const fresh = now.filter((r) => !runs.some((o) => o.id === r.id)).map((r) => r.id);
      runs = now;
      keys = differing();
      heads();
      filterRow();
      otherList(l.entries);
      if (fresh.length && chosen.size < 6) return pick([...chosen, ...fresh].slice(0, 6));
    }
    runs = now;
    if (tally) tally.textContent = plural(runs.length, "run");
    rows();
  });
  const tell = async () => {
    const [w, queue] = await Promise.all([list.worker ? ask("api/worker").catch(() => null) : null, list.queue ? ask("api/queue").catch(() => null) : null]);
    if (closed) return;
    if (w) works.replaceChildren(...workerBox(w));
    else if (queue) queueBox(works, queue);
  };
  await tell();
  const clock = list.worker || list.queue ? setInterval(tell, 2000) : 0;
  return {
    close() { closed = true; clearInterval(clock); news.close(); if (set) set.close(); }, recolour: rows,
    same(parts) { return !parts.length && runs.length > 0 && parts[0] === "runs"; },
  };
}

function tiles(rows) { return make("dl", { class: "tiles" }, ...rows.map((r) => tile(...r))); }

// workerBox is what a worker does.
function workerBox(w) {
  return [tiles([["worker", w.name], ["works for", w.url], ["in work", `${w.tasks.length} of ${w.slots}`], ["done", grouped(w.done)], ["failed", grouped(w.failed)]]),
    w.tasks.length ? make("p", { class: "told" }, "In work: " + w.tasks.join(", ")) : ""];
}

// queueBox shows who works on what in the queue of a command.
function queueBox(box, s) {
  const all = s.done + s.failed + s.working + s.waiting, ns = (t) => duration(Math.round(t / 1e9) * 1000), rows = [];
  const row = (who, task, many) => rows.push(make("tr", {}, make("th", { scope: "row" }, who), make("td", {}, many), make("td", {}, task ? task.name : "–"), make("td", {}, task && task.all > 0 ? meter(task.done / task.all, task.name) : "", task && task.all > 0 ? ` ${Math.floor(100 * Math.min(1, task.done / task.all))} %` : task ? "–" : ""),
    make("td", { class: "n" }, task ? ns(task.for_ns) : ""), make("td", { class: "n" }, task ? String(task.try) : "")));
  const worker = (name, many, tasks) => (tasks.length ? tasks : [null]).forEach((t, i) => row(i ? "" : name, t, i ? "" : many));
  if (s.own.length) worker("this machine", `${s.own.length} in work`, s.own);
  for (const w of s.workers) worker(w.name, make("span", {}, `${w.tasks.length} of ${plural(w.slots, "slot")}, ${grouped(w.done)} done `, w.silent_ns ? make("span", { class: "pill silent" }, "silent for " + ns(w.silent_ns)) : ""), w.tasks);
  const table = (label, heads, body) => make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": label }, make("table", { class: "runs" }, make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col", class: /^(for|try|ago)$/.test(h) ? "n" : "" }, h)))), make("tbody", {}, ...body)));
  const at = [...box.querySelectorAll(".wide")].map((e) => e.scrollLeft);
  box.replaceChildren(meter(all ? s.done / all : 0, "Tasks"), tiles([["tasks done", grouped(s.done), `of ${grouped(all)}` + (s.equal ? `, ${plural(s.equal, "result")} came twice and equal` : "")], ["in work", grouped(s.working), `${grouped(s.here)} on this machine`], ["waiting", grouped(s.waiting)], ["workers", grouped(s.workers.length)], ["failed", grouped(s.failed), s.differ ? `${plural(s.differ, "task")} with two results that DIFFER` : null]]),
    make("h2", {}, "Who works on what", make("small", {}, "queue " + s.job)), rows.length ? table("Who works on what", ["worker", "slots and results", "task", "how far", "for", "try"], rows) : make("p", { class: "told" }, "Nobody works now."),
    ...(s.lost.length ? [make("h2", {}, "Workers that were lost"), table("Workers that were lost", ["worker", "why", "its tasks went to others", "ago"], s.lost.map((l) => make("tr", {}, make("th", { scope: "row" }, l.name), make("td", {}, l.why), make("td", {}, l.tasks.join(", ") || "it had none"), make("td", { class: "n" }, ns(l.ago_ns)))))] : []));
  [...box.querySelectorAll(".wide")].forEach((e, i) => { e.scrollLeft = at[i] || 0; });
}

// sweepPage is the page of a sweep.
async function sweepPage(entry) {
  let closed = false;
  const box = make("div", {});
  page.replaceChildren(make("h1", {}, entry.name, make("span", { class: "pill" }, "sweep")), box);
  const figure = new Figure("trials", "Scores of trials by rung", () => 330, (pen, theme, width) => draw(pen, theme, width));
  let s = null;
  const lastOf = () => {
    const last = new Map();
    for (const l of s.lines) if (!last.has(l.trial) || last.get(l.trial).rung <= l.rung) last.set(l.trial, l);
    return [...last.values()].sort((a, b) => b.rung - a.rung || (a.score === null) - (b.score === null) || (s.higher ? b.score - a.score : a.score - b.score));
  };
  const draw = (pen, theme, width) => {
    const trials = new Map();
    for (const l of s.lines) if (l.score !== null) { if (!trials.has(l.trial)) trials.set(l.trial, []); trials.get(l.trial).push(l); }
    const best = lastOf()[0];
    const chart = { x: "steps of training", height: 330, seconds: timely(s.metric), log: !s.higher, levels: [], curves: [...trials].sort(([a], [b]) => (best.trial === a) - (best.trial === b)).map(([t, ls]) => ({ name: "trial " + t, colour: best && best.trial === t ? 1 : 0, x: ls.map((l) => l.steps), y: ls.map((l) => l.score), best: -1 })) };
    if (!chart.curves.length) { pen.text("no trial has ended yet", width / 2, 160, theme.soft, { align: "center" }); return; }
    figure.canvas.chart = chart;
    drawChart(chart, pen, theme, width);
  };
  figures.push(figure);
  figure.canvas.addEventListener("pointermove", (e) => { const c = figure.canvas.chart; if (c) chartTip(c, figure, e); });
  figure.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  const tell = async () => {
    const next = await ask("api/sweep?id=" + entry.id);
    if (closed || s && JSON.stringify(next) === JSON.stringify(s)) return;
    s = next;
    const rows = lastOf(), best = rows[0], tried = new Set(s.lines.map((l) => l.trial)).size;
    const head = ["trial", "steps", named(s.metric) || "score", ...s.space];
    box.replaceChildren(meter(s.lines.length / s.all, "Results"), make("dl", { class: "tiles" }, tile("trials", grouped(tried), `of ${grouped(s.trials)}, ${plural(s.seeds, "seed")} each`), tile("results on rungs", grouped(s.lines.length), `of ${grouped(s.all)}`), tile("rungs", s.rungs.map((r) => grouped(r)).join(", "), "steps"),
      tile("best", best && best.score !== null ? scoreOf(s.metric, best.score) : "–", best ? `trial ${best.trial} after ${grouped(best.steps)} steps` : null)),
    make("h2", {}, "Trials"), make("div", { class: "grid two" }, make("figure", { class: "plot" }, make("figcaption", {}, make("span", {}, "Score by rung"), figure.saveButton()), figure.box, legend((theme) => [swatch(theme.series[0], "trials", 0), swatch(theme.series[1], "the best", 0)])),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Trials" }, make("table", { class: "runs" }, make("thead", {}, make("tr", {}, ...head.map((h, i) => make("th", { scope: "col", class: i ? "n" : "" }, h)))),
        make("tbody", {}, ...rows.map((l) => make("tr", {}, make("th", { scope: "row" }, s.runs[l.trial] ? make("a", { href: "#/run/" + s.runs[l.trial] }, "trial " + l.trial) : "trial " + l.trial), make("td", { class: "n" }, grouped(l.steps)), make("td", { class: "n" }, l.error ? pill("failed") : scoreOf(s.metric, l.score)),
          ...s.space.map((k) => make("td", { class: "n" }, typeof l.set[k] === "number" ? String(Number(l.set[k].toPrecision(4))) : String(l.set[k] ?? "–")))))))))
    );
    recolour();
    figure.later();
  };
  await tell();
  mark("on", "live");
  const clock = setInterval(() => tell().then(() => mark("on", "live"), () => mark("off", "reconnecting …")), 2000);
  return { close() { closed = true; clearInterval(clock); } };
}

// experimentPage is the page of an experiment.
async function experimentPage(entry) {
  let closed = false, was = "";
  const box = make("div", {});
  const tell = async () => {
    const x = await ask("api/experiment?id=" + entry.id);
    if (closed || JSON.stringify(x) === was) return;
    was = JSON.stringify(x);
    const done = x.cells.filter((c) => c.done).length;
    page.replaceChildren(make("h1", {}, x.title, make("span", { class: "pill" }, `${done} of ${x.cells.length} cells`)), box);
    box.replaceChildren(meter(x.cells.length ? done / x.cells.length : 0, "Cells"), make("dl", { class: "facts" }, ...x.facts.map(([k, v]) => make("div", {}, make("dt", {}, k), make("dd", {}, v)))),
      make("h2", {}, "Cells"), make("div", { class: "cells", role: "img", "aria-label": `${done} of ${x.cells.length} cells are done` }, ...x.cells.map((c) => make("i", { class: c.done ? "done" : "", title: c.key + (c.done ? `, ${seconds(c.wall_s || 0)}` : ", waits") }))),
      ...x.sheets.map((t) => {
        const s = table(t);
        for (const r of s.querySelectorAll("tr")) [...r.children].slice(0, t.left).forEach((c) => c.classList.add("left"));
        for (const c of s.querySelectorAll("td.left, th.left")) c.style.textAlign = "left";
        return s;
      }), x.sheets.length ? "" : make("p", { class: "empty" }, "No cell is done yet; the tables come with them."));
  };
  await tell();
  mark("on", "live");
  const clock = setInterval(() => tell().then(() => mark("on", "live"), () => mark("off", "reconnecting …")), 3000);
  return { close() { closed = true; clearInterval(clock); } };
}

// replayPage is the replay of a window, or of a log.
async function replayPage(entry, q) {
  const isLog = entry.kind === "log", box = make("div", {}), controls = make("div", { class: "bars" }), h1 = make("h1", {}, entry.name);
  let window_ = Number(q.get("window") || 1), part = q.get("part") || "validation", replay = null, first = Number(q.get("at") || 1), closed = false, shownHash = "";
  page.replaceChildren(h1, controls, box);
  const run = isLog ? {} : await ask("api/run?id=" + entry.id);
  const address = (at) => {
    const a = [isLog ? null : `window=${window_}`, part !== "validation" ? "part=" + part : null, `at=${at + 1}`].filter(Boolean).join("&");
    shownHash = `#/${isLog ? "log" : "replay"}/${entry.id}?${a}`;
    history.replaceState(null, "", shownHash);
  };
  const abort = new AbortController(), newest = make("button", { type: "button", class: "main", hidden: true, onclick: () => renew(true) }, "new decisions: go to the latest");
  let stream = null, timer = 0, cost = 0;
  const busy = () => replay && (replay.playing || replay.at < replay.log.decisions.length - 1);
  // fresh notices that a log has grown. Who stands at its end sees what is new; who reads elsewhere is told.
  const fresh = () => {
    if (busy()) newest.hidden = false;
    else if (!timer) timer = setTimeout(() => renew(true), Math.max(1000, 10 * cost));
  };
  const renew = (last) => {
    clearTimeout(timer);
    timer = 0;
    load(last).catch((err) => { fault(err); if (isLog && !closed) timer = setTimeout(() => renew(last), 3000); });
  };
  const load = async (last) => {
    const begun = performance.now(), old = isLog ? replay : null, focused = old && old.root.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    if (!old) {
      if (replay) replay.close();
      replay = null;
      figures.length = 0;
      box.replaceChildren(make("p", { class: "empty", role: "status" }, isLog ? "The log is read …" : "The checkpoint plays the window …"));
      root.dataset.state = "loading";
    }
    const r = await get("api/replay?id=" + entry.id + (isLog ? "" : `&window=${window_ - 1}&part=${part}`), abort.signal), text = await r.text();
    if (closed) return;
    for (const e of page.querySelectorAll(".note.fault.passing")) e.remove();
    const windows = Number(r.headers.get("Clustergym-Windows") || 0), log = readLog(text);
    h1.replaceChildren((log.head.title || entry.name).replace(/^.*@\d+(?=, )/, (name) => (isLog ? name : playerName(name, run))));
    newest.hidden = true;
    controls.replaceChildren(...(isLog ? [] : [
      make("label", {}, "window ", make("select", { onchange: (e) => { window_ = Number(e.target.value); first = 1; show(); } }, ...Array.from({ length: Math.max(windows, window_) }, (_, i) => make("option", { value: i + 1, selected: i + 1 === window_ }, String(i + 1))))),
      make("label", {}, "of ", make("select", { onchange: (e) => { part = e.target.value; window_ = first = 1; show(); } }, ...["validation", "test"].map((p) => make("option", { value: p, selected: p === part }, p)))),
    ]), make("button", { type: "button", onclick: () => save(text) }, "Save the log"),
    make("span", { class: "told" }, plural(log.decisions.length, "decision") + (log.head.rival ? `, ${log.apart.length} of them not as ${log.head.rival.replace(/@slots$/, "").toUpperCase()} would` : ", beside no rule")), newest);
    if (isLog && !stream) stream = new Stream([entry.id], [Number(r.headers.get("Clustergym-Lines") || text.split("\n").length - 1)], [""], fresh, () => { stream = null; renew(!busy()); });
    if (old) old.close();
    figures.length = 0;
    if (!log.decisions.length) { replay = null; box.replaceChildren(make("p", { class: "empty" }, "Nothing was decided in this log.")); root.dataset.state = "ready"; return; }
    replay = new Replay(log, address);
    box.replaceChildren(replay.root);
    if (old && !old.follows) { replay.follows = false; replay.view.x = old.view.x; }
    replay.go(last ? log.decisions.length - 1 : old ? old.at : first - 1);
    if (focused) { const e = replay.root.querySelector(`[aria-label="${CSS.escape(focused)}"]`); if (e) e.focus(); }
    for (const f of figures) f.now();
    cost = performance.now() - begun;
    root.dataset.state = "ready";
    if (here.recolour) recolour();
  };
  const save = (text) => {
    const url = URL.createObjectURL(new Blob([text], { type: "application/jsonl" }));
    make("a", { href: url, download: (entry.name + (isLog ? "" : `-window-${window_}`)).replace(/[^A-Za-z0-9+._-]+/g, "-").replace(/\.jsonl$/, "") + ".jsonl" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  const show = () => load(false).catch((err) => {
    if (closed || err.name === "AbortError") return;
    fault(err);
    box.replaceChildren();
    root.dataset.state = "fault";
  });
  await show();
  return { close() { closed = true; abort.abort(); clearTimeout(timer); if (stream) stream.close(); if (replay) replay.close(); }, recolour() { if (replay) replay.show(); }, same() { return location.hash === shownHash; } };
}

document.body.append(tip);
window.addEventListener("hashchange", route);
darkMedia.addEventListener("change", () => { themeButton.textContent = themeName() === "dark" ? "☀" : "☾"; recolour(); });
route();
