// The replay of a log of decisions (docs/guides/dashboard.md): who held which GPU, who waits, and at each decision how the agent weighs its
// options beside what a rival would do.

// What gantt expects of its page: the cluster and its jobs, and how stints end.
const shades = "";
const [FINISHED, PREEMPTED, FAILED, MOVED, SIZED, CUT] = [0, 1, 2, 3, 4, 5];
let data = { gpus: 1, jobs: { id: [] } };

// paintOf is the colour of every stint: that of its job.
function paintOf(stints, by, theme) { return stints.job.map((j) => jobColour(theme, j)); }

// jobColour: neighbours in the log lie far apart on the circle of hues.
function jobColour(theme, j) { return `hsl(${Math.round((j * 137.508) % 360)},${38 + (j % 3) * 7}%,${theme.lightness[j % 2]}%)`; }

// readLog makes a replay of the text of a log. The server has checked it; a log that was written by another program is checked
// when it is opened.
function readLog(text) {
  const log = { head: null, jobs: [], index: new Map(), events: [], decisions: [], from: Infinity, to: -Infinity };
  for (const row of text.split("\n")) {
    if (!row.trim()) continue;
    const l = JSON.parse(row);
    if (!log.head) { log.head = l; continue; }
    if (l.decision !== undefined) {
      l.after = log.events.length; // what the policy knew
      log.decisions.push(l);
    } else if (l.event !== undefined) {
      l.line = log.events.length;
      log.events.push(l);
    } else {
      log.index.set(l.job, log.jobs.length);
      log.jobs.push(l);
      continue;
    }
    log.from = Math.min(log.from, l.t_s);
    log.to = Math.max(log.to, l.t_s);
  }
  if (!log.head) throw new Error("the log is empty");
  if (!(log.to >= log.from)) log.from = log.to = 0;
  if (log.decisions.length) log.start = Math.min(log.decisions[0].t_s, log.to);
  else log.start = log.from;
  lanesOf(log);
  differ(log);
  return log;
}

// lanesOf fills data, and log.stints in the form of gantt: times are milliseconds since the first event.
function lanesOf(log) {
  const head = log.head, node0 = [];
  let gpus = 0;
  for (const n of head.nodes || []) { node0.push(gpus); gpus += n; }
  if (head.pool) gpus = head.pool;
  data = { gpus, nodes: node0.length, node0: head.pool ? null : node0, pool: head.pool, names: head.names, jobs: { id: log.jobs.map((j) => j.job), milli: null } };
  const ms = (t) => (t - log.from) * 1000;
  const list = [], open = new Map(), lanes = new Int8Array(gpus), fill = new Float64Array(gpus);
  const begin = (e, j) => {
    const spans = [], job = log.jobs[j], milli = job.milli || 1000;
    let held = e.gpus || [];
    if (head.pool) { // lanes for this drawing: the lowest free ones
      held = [];
      for (let g = 0; g < gpus && held.length < (e.n ?? job.gpus); g++) if (!lanes[g]) { lanes[g] = 1; held.push(g); }
    }
    const sorted = [...held].sort((a, b) => a - b);
    for (const g of sorted) {
      const last = spans[spans.length - 1], off = milli < 1000 ? fill[g] : 0;
      if (milli < 1000) fill[g] += milli;
      if (last && milli === 1000 && last.gpu + last.n === g) last.n++;
      else spans.push({ gpu: g, n: 1, off, milli });
    }
    const s = { job: j, start: ms(e.t_s), end: ms(log.to), ended: CUT, spans, held: sorted, first: e.line, last: Infinity };
    open.set(e.job, s);
    list.push(s);
  };
  const end = (e, how) => {
    const s = open.get(e.job);
    if (!s) return;
    open.delete(e.job);
    s.end = ms(e.t_s);
    s.ended = how;
    s.last = e.line;
    for (const g of s.held) { if (head.pool) lanes[g] = 0; else if (s.spans[0].milli < 1000) fill[g] -= s.spans[0].milli; }
  };
  for (const e of log.events) {
    const j = log.index.get(e.job);
    switch (e.event) {
      case "start": begin(e, j); break;
      case "finish": end(e, FINISHED); break;
      case "preempt": end(e, PREEMPTED); break;
      case "fail": end(e, FAILED); break;
      case "migrate": end(e, MOVED); begin(e, j); break;
      case "resize": end(e, SIZED); begin(e, j); break;
    }
  }
  list.sort((a, b) => a.start - b.start || a.first - b.first);
  const s = { n: list.length, job: [], start: [], end: [], ended: [], from: [0], gpu: [], count: [], off: [], milli: [], list };
  for (const x of list) {
    s.job.push(x.job);
    s.start.push(x.start);
    s.end.push(x.end);
    s.ended.push(x.ended);
    for (const p of x.spans) { s.gpu.push(p.gpu); s.count.push(p.n); s.off.push(p.off); s.milli.push(p.milli); }
    s.from.push(s.gpu.length);
  }
  if (!s.milli.some((m) => m < 1000)) s.off = s.milli = null;
  log.stints = s;
}

// differ says of every decision how far the agent is from its rival: the share of its probability, or of the range of its values,
// that lies between its choice and the rival's.
function differ(log) {
  const values = log.head.scores === "value";
  for (const d of log.decisions) {
    d.differs = d.rival !== undefined && d.rival !== d.chosen;
    d.gap = 0;
    if (!d.differs) continue;
    const a = d.options[d.chosen].score, b = d.options[d.rival].score;
    if (a === undefined || b === undefined) { d.gap = 1; continue; }
    if (!values) { d.gap = Math.max(0, 1 - b); continue; }
    const legal = d.options.filter((o) => o.score !== undefined).map((o) => o.score), range = Math.max(...legal) - Math.min(...legal);
    d.gap = range > 0 ? (a - b) / range : 0;
  }
  log.apart = log.decisions.filter((d) => d.differs).sort((a, b) => b.gap - a.gap || a.decision - b.decision);
}

// stateAt is what the policy sees at a decision: who runs and who waits.
function stateAt(log, d) {
  const running = [], waiting = new Map();
  for (const s of log.stints.list) if (s.first < d.after && s.last >= d.after) running.push(s);
  for (let i = 0; i < d.after; i++) {
    const e = log.events[i];
    if (e.event === "submit" || e.event === "preempt" || e.event === "fail") waiting.set(e.job, e.t_s);
    else if (e.event === "start" || e.event === "drop" || e.event === "finish") waiting.delete(e.job);
  }
  return { running, waiting };
}

// scoreText prints a score: a probability as a share, a value as a number.
function scoreText(log, v) {
  if (v === undefined) return "–";
  if (log.head.scores !== "probability") return number(v);
  const p = 100 * v;
  return (p >= 10 || p === 0 ? Math.round(p) : p >= 1 ? p.toFixed(1) : p >= 0.01 ? p.toFixed(2) : "< 0.01") + " %";
}

// nodeName is what a node is called.
function nodeName(log, i) { return (log.head.names || [])[i] ?? "node " + i; }

// clockText is the time of day at which t_s was t, where the log says when it was 0.
function clockText(log, t) {
  const d = new Date(Date.parse(log.head.zero) + 1000 * t);
  return isNaN(d) ? "" : d.toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

// doing says what an option does.
function doing(o) {
  if (o.do === "wait") return "waits";
  if (!o.job) return "takes " + o.do;
  return (o.do === "start" ? "starts" : o.do === "stop" ? "stops" : o.do) + " job " + o.job;
}

function would(o) {
  if (o.do === "wait") return "wait";
  return (o.job ? o.do + " job " + o.job : "take " + o.do);
}

// brief prints seconds in one unit.
function brief(s) {
  for (const [name, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (s >= size) return trim(s / size, s >= 10 * size ? 0 : 1) + " " + name;
  return Math.round(s) + " s";
}

// Replay is the page of a log.
class Replay {
  constructor(log, shown) {
    Object.assign(this, { log, at: 0, playing: 0, shown });
    this.view = { x: [0, Math.max(1, (log.to - log.from) * 1000)], y: [0, data.gpus], mode: "bars", colour: "job" };
    this.follows = true;
    this.rivalName = (log.head.rival || "").replace(/@slots$/, "").toUpperCase() || "the rival";
    this.make();
    this.go(0);
  }
  get decision() { return this.log.decisions[this.at]; }
  get end() { return Math.max(1, (this.log.to - this.log.from) * 1000); }

  // follow shows the time of the decisions around this one: some logs have most of theirs in an hour of a week.
  follow() {
    const ds = this.log.decisions, at = (i) => (ds[Math.max(0, Math.min(ds.length - 1, i))].t_s - this.log.from) * 1000;
    let a = at(this.at - 12), b = at(this.at + 12);
    const least = Math.min(this.end, 600000), middle = this.now;
    if (b - a < least) { a = middle - least / 2; b = middle + least / 2; }
    const size = Math.min(this.end, (b - a) * 1.16), from = Math.max(0, Math.min(this.end - size, a - (b - a) * 0.08));
    this.view.x = [from, from + size];
  }

  make() {
    const log = this.log, n = log.decisions.length;
    const button = (label, title, act, extra = {}) => make("button", { type: "button", title, "aria-label": title, onclick: act, ...extra }, label);
    this.slider = make("input", { type: "range", min: 1, max: Math.max(1, n), value: 1, "aria-label": "Decision", oninput: (e) => this.go(Number(e.target.value) - 1) });
    this.playButton = button("▶ play", "Play or stop (space)", () => this.play());
    this.said = make("p", { class: "said", role: "status", "aria-live": "polite" });
    this.counter = make("output", { class: "range" });
    this.deck = make("div", { class: "deck" },
      make("div", { class: "row" },
        button("|◀", "First decision (Home)", () => this.go(0)), button("◀", "Back (left arrow)", () => this.go(this.at - 1)),
        button("▶", "Forward (right arrow)", () => this.go(this.at + 1)), button("▶|", "Last decision (End)", () => this.go(n - 1)),
        this.playButton, this.slider, this.counter,
        log.apart.length ? button("◂ differs", "Previous decision at which they differ (p)", () => this.next(-1)) : null,
        log.apart.length ? button("differs ▸", "Next decision at which they differ (n)", () => this.next(1)) : null),
      this.said);
    this.lanes = new Figure("lanes", "Who held which GPU over time, up to this decision and after it", () => this.laneHeight() + 62, (pen, theme, width, name) => this.drawLanes(pen, theme, width, name));
    this.strip = new Figure("differences", "How far the agent is from its rival at each decision", () => 86, (pen, theme, width) => this.drawStrip(pen, theme, width));
    this.cluster = new Figure("cluster", "The cluster at this decision", () => this.clusterHeight(), (pen, theme, width) => this.drawCluster(pen, theme, width));
    this.options = make("div", {});
    this.queue = make("p", { class: "told" });
    this.notes = make("ul", { class: "notes", "aria-label": "What was done" });
    this.jumps = make("div", { class: "jumps", role: "group", "aria-label": "Largest differences" });
    const zoom = (f) => () => this.zoom(f);
    const tools = make("span", { class: "buttons", role: "group", "aria-label": "Zoom" }, button("−", "Zoom out (-)", zoom(1.6)), button("+", "Zoom in (+)", zoom(1 / 1.6)),
      button("all", "The whole log (0)", () => this.whole()),
      (this.followButton = button("follow", "Show the decisions around this one (f)", () => { this.follows = true; this.go(this.at); }, { "aria-pressed": "true" })));
    this.root = make("div", {}, this.deck,
      make("div", { class: "stage" },
        make("div", {},
          make("figure", { class: "plot" }, make("figcaption", {}, make("span", {}, data.pool ? "Jobs, on lanes given for this drawing" : "Jobs, by node and GPU"), tools), this.lanes.box),
          !log.head.rival ? null : make("figure", { class: "plot strip" }, make("figcaption", {}, make("span", {}, "Where agent and " + this.rivalName + " differ")), this.strip.box),
          make("p", { class: "hint told" }, make("kbd", {}, "←"), " ", make("kbd", {}, "→"), " step, ", make("kbd", {}, "n"), " ", make("kbd", {}, "p"), " next and previous difference, ", make("kbd", {}, "space"),
            " play, ", make("kbd", {}, "+"), " ", make("kbd", {}, "−"), " ", make("kbd", {}, "0"), " ", make("kbd", {}, "f"), " zoom and follow. A click on the figures goes to the nearest decision.")),
        make("div", {},
          make("figure", {}, make("figcaption", {}, make("span", {}, "The decision"), this.queue), this.notes, this.options),
          make("figure", {}, make("figcaption", {}, make("span", {}, "The cluster now")), this.cluster.box),
          log.apart.length ? make("figure", {}, make("figcaption", {}, make("span", {}, "Largest differences")), this.jumps) : null)));
    for (const f of [this.lanes, this.strip, this.cluster]) figures.push(f);
    this.lanes.canvas.tabIndex = 0;
    this.lanes.canvas.addEventListener("click", (e) => this.nearest(this.timeAt(e)));
    this.lanes.canvas.addEventListener("pointermove", (e) => this.hover(e));
    this.lanes.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    this.lanes.canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.shiftKey) return; // the page scrolls
      e.preventDefault();
      this.zoom(Math.pow(1.002, e.deltaY), this.timeAt(e));
    }, { passive: false });
    this.strip.canvas.addEventListener("click", (e) => {
      const box = this.strip.canvas.getBoundingClientRect(), k = (e.clientX - box.left - margin.left) / (box.width - margin.left - margin.right);
      this.go(Math.round(k * n - 0.5));
    });
    for (const d of log.apart.slice(0, 12)) {
      this.jumps.append(make("button", { type: "button", "data-at": d.decision - 1, "aria-pressed": "false", onclick: () => this.go(d.decision - 1) }, "#" + d.decision));
    }
    this.key = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) && e.target !== this.slider) return;
      if (e.target === this.slider && /^Arrow|Home|End/.test(e.key)) return;
      const act = {
        ArrowLeft: () => this.go(this.at - 1), ArrowRight: () => this.go(this.at + 1), Home: () => this.go(0), End: () => this.go(n - 1),
        n: () => this.next(1), p: () => this.next(-1), "+": () => this.zoom(1 / 1.6), "=": () => this.zoom(1 / 1.6), "-": () => this.zoom(1.6),
        "0": () => this.whole(), f: () => { this.follows = true; this.go(this.at); }, " ": e.target.tagName === "BUTTON" ? null : () => this.play(),
      }[e.key];
      if (!act) return;
      e.preventDefault();
      act();
    };
    document.addEventListener("keydown", this.key);
  }

  close() {
    document.removeEventListener("keydown", this.key);
    clearInterval(this.playing);
  }

  go(i) {
    const n = this.log.decisions.length;
    if (!n) return this.draw();
    this.at = Math.max(0, Math.min(n - 1, i));
    if (this.at === n - 1 && this.playing) this.play();
    const t = this.now, [a, b] = this.view.x;
    if (this.follows) this.follow();
    else if (t < a || t > b) { // the view follows
      const size = b - a, from = Math.max(0, Math.min(this.end - size, t - size / 3));
      this.view.x = [from, from + size];
    }
    this.show();
    this.draw();
    this.shown(this.at);
  }
  get now() { return this.decision ? (this.decision.t_s - this.log.from) * 1000 : 0; }

  next(by) {
    for (let i = this.at + by; i >= 0 && i < this.log.decisions.length; i += by) if (this.log.decisions[i].differs) return this.go(i);
  }
  nearest(t) {
    let best = 0, least = Infinity;
    this.log.decisions.forEach((d, i) => {
      const away = Math.abs((d.t_s - this.log.from) * 1000 - t);
      if (away < least) { least = away; best = i; }
    });
    this.go(best);
  }
  play() {
    if (this.playing) { clearInterval(this.playing); this.playing = 0; } else {
      if (this.at === this.log.decisions.length - 1) this.go(0);
      this.playing = setInterval(() => this.go(this.at + 1), 350);
    }
    this.playButton.textContent = this.playing ? "■ stop" : "▶ play";
  }
  whole() {
    this.follows = false;
    this.view.x = [0, this.end];
    this.draw();
  }
  zoom(factor, about = this.now) {
    this.follows = false;
    this.view.x = zoomed(this.view.x, about, factor, this.end, Math.min(this.end, 1000));
    this.draw();
  }
  timeAt(e) { return xScale(this.view.x, this.lanes.canvas.clientWidth).invert(e.clientX - this.lanes.canvas.getBoundingClientRect().left); }
  draw() { this.followButton.setAttribute("aria-pressed", String(this.follows)); this.lanes.later(); this.strip.later(); this.cluster.later(); }

  // show writes what stands beside the figures.
  show() {
    const { log } = this, d = this.decision, theme = themes[themeName()], name = this.rivalName;
    const a = d.options[d.chosen], state = stateAt(log, d), when = duration(Math.round((d.t_s - log.start) * 1000));
    this.slider.value = this.at + 1;
    this.slider.setAttribute("aria-valuetext", `decision ${d.decision} of ${log.decisions.length}`);
    this.counter.textContent = `${grouped(d.decision)} of ${grouped(log.decisions.length)}, ${clockText(log, d.t_s) || "after " + when}`;
    this.notes.replaceChildren(...(d.notes || []).map((t) => make("li", {}, t)));
    this.notes.hidden = !this.notes.children.length;
    const words = [make("b", {}, "The agent " + doing(a)), a.score !== undefined ? ` (${log.head.scores} ${scoreText(log, a.score)})` : ""];
    if (d.rival === undefined) words.push(".");
    else if (d.rival === d.chosen) words.push(`, and so would ${name}.`);
    else {
      const b = d.options[d.rival];
      words.push("; ", make("b", {}, `${name} would ${would(b)}`), b.score !== undefined ? `, to which the agent gives ${scoreText(log, b.score)}.` : ".");
    }
    this.said.replaceChildren(...words);
    const scored = d.options.map((o) => o.score).filter((v) => v !== undefined), low = Math.min(...scored), high = Math.max(...scored);
    const length = (v) => (log.head.scores === "probability" ? v : high > low ? (v - low) / (high - low) : 1);
    const rows = d.options.map((o, i) => {
      const job = o.job !== undefined ? log.jobs[log.index.get(o.job)] : null, since = job ? state.waiting.get(o.job) : undefined;
      const what = make("th", { scope: "row" });
      if (job) {
        const dot = make("span", { class: "dot" });
        dot.style.background = jobColour(theme, log.index.get(o.job));
        what.append(dot, (o.do === "start" ? "" : o.do + " ") + o.job);
      } else what.append(o.do);
      if (i === d.chosen) what.append(make("span", { class: "badge agent" }, "agent"));
      if (i === d.rival) what.append(make("span", { class: "badge rival" }, name));
      const bar = make("span", { class: "bar" });
      if (o.score !== undefined) bar.style.width = `calc(${(100 * length(o.score)).toFixed(1)}% - 6px)`;
      const text = (s) => (s === undefined ? "–" : brief(s));
      return make("tr", { class: (i === d.chosen ? "agent" : "") + (o.illegal ? " off" : "") }, what,
        make("td", {}, job ? (job.milli ? String((job.gpus * job.milli) / 1000) : String(job.gpus)) : ""), make("td", {}, job ? text(since === undefined ? undefined : d.t_s - job.submit_s) : ""),
        make("td", {}, job ? text(o.estimate_s ?? job.estimate_s) : ""),
        make("td", { class: "score" }, o.score !== undefined ? bar : null, make("span", {}, o.illegal ? (o.do === "start" ? "does not fit" : "not now") : scoreText(log, o.score))));
    });
    const head = (label, more = {}) => make("th", { scope: "col", ...more }, label);
    const cols = make("colgroup", {}, make("col", { class: "what" }), make("col", { class: "g" }), make("col", { class: "s" }), make("col", { class: "s" }), make("col", { class: "score" }));
    this.options.replaceChildren(make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Options" }, make("table", { class: "options" }, cols,
      make("thead", {}, make("tr", {}, head("job"), head("GPUs"), head("waited"), head("estimate"), head(log.head.scores || "score"))), make("tbody", {}, ...rows))));
    const seen = new Set(d.options.filter((o) => o.do === "start").map((o) => o.job)), more = seen.size ? d.waiting - seen.size : 0;
    this.queue.textContent = `${plural(d.waiting, "job")} waiting` + (more > 0 ? `, ${count(more)} of them beyond what the agent sees` : "");
    for (const b of this.jumps.children) b.setAttribute("aria-pressed", String(Number(b.dataset.at) === this.at));
    document.documentElement.dataset.decision = d.decision;
  }

  laneHeight() { return mapHeight({ stints: this.log.stints }); }

  drawLanes(pen, theme, width, name) {
    const h = this.laneHeight(), x = xScale(this.view.x, width), x0 = margin.left, x1 = width - margin.right, y0 = 10, y1 = y0 + h, { y: [g0, g1] } = this.view;
    const y = (g) => y0 + ((g - g0) / (g1 - g0)) * (y1 - y0);
    pen.rect(x0, y0, x1 - x0, h, theme.empty);
    timeGrid(pen, theme, x, this.view.x, y0, y1, false);
    ganttRows(pen, theme, { stints: this.log.stints }, y, g0, g1, x0, x1, h);
    pen.clip(x0, y0, x1 - x0, h);
    this.lanes.canvas.dataset.bars = drawBars(pen, theme, { stints: this.log.stints }, this.view, x, y, y0, y1, name);
    const now = x(this.now);
    if (this.decision && now < x1) pen.rect(Math.max(x0, now), y0, x1 - Math.max(x0, now), h, theme.paper, 0.66);
    if (this.decision) pen.line([now, y0, now, y1], theme.ink, 1.6);
    pen.unclip();
    pen.frame(x0, y0, x1 - x0, h, theme.axis);
    if (this.decision && now >= x0 && now <= x1) pen.area([now, y1, now - 5, y1 + 8, now + 5, y1 + 8], theme.ink);
    const origin = (this.log.start - this.log.from) * 1000, shifted = (t) => x(t + origin);
    timeGrid(pen, theme, Object.assign(shifted, {}), [this.view.x[0] - origin, this.view.x[1] - origin], y1 + 8, y1 + 8, true);
    pen.text("time since the first decision", (x0 + x1) / 2, y1 + 46, theme.soft, { align: "center" });
  }

  drawStrip(pen, theme, width) {
    const n = this.log.decisions.length, x0 = margin.left, x1 = width - margin.right, y0 = 8, y1 = 58, each = (x1 - x0) / Math.max(1, n);
    const values = this.log.head.scores === "value";
    pen.rect(x0, y0, x1 - x0, y1 - y0, theme.empty);
    pen.text("100 %", x0 - 6, y0 + 8, theme.soft, { align: "right" });
    pen.text("0", x0 - 6, y1 + 3, theme.soft, { align: "right" });
    this.log.decisions.forEach((d, i) => {
      if (!d.differs) return;
      const h = Math.max(2, d.gap * (y1 - y0));
      pen.rect(x0 + i * each, y1 - h, Math.max(1, each - (each > 3 ? 1 : 0)), h, theme.series[1]);
    });
    pen.line([x0, y1, x1, y1], theme.axis);
    const at = x0 + (this.at + 0.5) * each;
    pen.line([at, y0 - 4, at, y1 + 4], theme.ink, 1.6);
    const told = values ? "share of the range of values that the agent would lose by the rival's choice" : "probability that the agent does not give to the rival's choice, where it chooses another";
    pen.text(pen.measure(told) < x1 - x0 ? told : "by decision", (x0 + x1) / 2, y1 + 22, theme.soft, { align: "center" });
  }

  // The cluster: a box for each node with its GPUs, or a row of lanes.
  boxes(width) {
    const nodes = data.node0 ? data.node0.map((g, i) => [g, (data.node0[i + 1] ?? data.gpus) - g]) : [[0, data.gpus]];
    const most = Math.max(...nodes.map((n) => n[1]), 1), cell = data.gpus > 512 ? 7 : data.gpus > 128 ? 11 : 16, perRow = Math.min(most, Math.max(1, Math.floor((width - 16) / (cell + 2))), data.node0 ? 8 : 32);
    const rows = Math.ceil(most / perRow), w = perRow * (cell + 2) + 10, label = data.node0 ? 14 : 0, h = rows * (cell + 2) + 8 + label, across = Math.max(1, Math.floor((width + 6) / (w + 6)));
    return { nodes, cell, perRow, w, h, label, across, height: Math.ceil(nodes.length / across) * (h + 6) };
  }
  clusterHeight() { return Math.min(900, this.boxes(this.cluster.box.clientWidth || 400).height + 4); }
  drawCluster(pen, theme, width) {
    const b = this.boxes(width), holder = new Array(data.gpus).fill(-1);
    if (this.decision) for (const s of stateAt(this.log, this.decision).running) for (const g of s.held) holder[g] = s.job;
    let busy = 0;
    b.nodes.forEach(([from, n], i) => {
      const px = (i % b.across) * (b.w + 6), py = Math.floor(i / b.across) * (b.h + 6) + 2;
      pen.frame(px + 0.5, py + 0.5, b.w - 1, b.h - 1, theme.grid);
      if (b.label) pen.text(nodeName(this.log, i), px + 5, py + 12, theme.soft, { size: 10 });
      for (let k = 0; k < n; k++) {
        const j = holder[from + k], cx = px + 6 + (k % b.perRow) * (b.cell + 2), cy = py + 5 + b.label + Math.floor(k / b.perRow) * (b.cell + 2);
        if (j >= 0) busy++;
        pen.rect(cx, cy, b.cell, b.cell, j < 0 ? theme.empty : jobColour(theme, j));
        if (j < 0) pen.frame(cx + 0.5, cy + 0.5, b.cell - 1, b.cell - 1, theme.grid);
      }
    });
    this.cluster.canvas.setAttribute("aria-label", `The cluster at this decision: ${busy} of ${data.gpus} GPUs in use`);
    this.cluster.canvas.dataset.busy = busy;
  }

  hover(e) {
    const box = this.lanes.canvas.getBoundingClientRect(), x = xScale(this.view.x, box.width), t = x.invert(e.clientX - box.left), g = ((e.clientY - box.top - 10) / this.laneHeight()) * data.gpus;
    const i = g >= 0 && g < data.gpus ? stintAt({ stints: this.log.stints }, t, g, 1.5 / x.perMs) : -1;
    if (i < 0) { tip.hidden = true; return; }
    const s = this.log.stints.list[i], job = this.log.jobs[s.job], since = (ms) => duration(Math.round(ms - (this.log.start - this.log.from) * 1000));
    const endings = ["finished", "preempted", "its node failed", "migrated", "resized", "the log ends"];
    showTip(e, "job " + job.job, [["GPUs", String(s.held.length)], ["on them", `${since(s.start)} to ${since(s.end)} (${duration(Math.round(s.end - s.start))})`], ["then", endings[s.ended]],
      ["waited", duration(Math.round(s.start + (this.log.from - job.submit_s) * 1000))], job.user ? ["user", job.user] : null, job.model ? ["model", job.model] : null]);
  }
}
