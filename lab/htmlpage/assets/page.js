// The page: what stands on it, and what the reader can do.

const darkMedia = window.matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const themeName = () => (darkMedia.matches && !printing ? "dark" : "light");

// view is what the timelines show; all runs share it, so that they can be compared.
const view = { x: [0, data.focus || span], y: [0, data.gpus || 1], colour: "job", mode: "bars", run: 0 };
const bigCluster = (data.gpus || 0) > 1024;
if (bigCluster) view.mode = "map";
let hovered = { run: -1, job: -1 };

function readAddress() {
  const q = new URLSearchParams(location.hash.slice(1));
  const pair = (k, most) => {
    const [a, b] = (q.get(k) || "").split(",").map(Number);
    return b > a && a >= 0 && b <= most ? [a, b] : null;
  };
  view.x = pair("x", span) || view.x;
  view.y = pair("y", data.gpus || 1) || view.y;
  if (colourings.some((c) => c[0] === q.get("colour"))) view.colour = q.get("colour");
  if (["bars", "map"].includes(q.get("view"))) view.mode = q.get("view");
  const run = Number(q.get("run") ?? NaN);
  if (Number.isInteger(run) && run >= -1 && run < runs.length) view.run = run;
}

let addressTimer = 0;
function writeAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => {
    const q = [`run=${view.run}`, `colour=${view.colour}`, `view=${view.mode}`];
    if (view.x[0] > 0 || view.x[1] < span) q.push("x=" + view.x.map((v) => Math.round(v * 1000) / 1000).join(","));
    if (view.y[0] > 0 || view.y[1] < data.gpus) q.push("y=" + view.y.map((v) => Math.round(v * 1000) / 1000).join(","));
    try { history.replaceState(null, "", "#" + q.join("&")); } catch { /* a frame without an address */ }
  }, 250);
}

const figures = [], timelines = [];

// layout says where the parts of a timeline stand.
function layout(run) {
  let y = 18;
  const rows = panels.map((p) => {
    const row = { y0: y, y1: y + p.height };
    y += p.height + panelGap;
    return row;
  });
  const h = mapHeight(run), gantt = h ? { y0: y, y1: y + h } : null;
  if (gantt) y += h + panelGap;
  return { rows, gantt, bottom: y - panelGap, height: y - panelGap + 40 };
}

function drawTimeline(run, canvas, pen, theme, width, name) {
  const l = layout(run), x = xScale(view.x, width), x0 = margin.left, x1 = width - margin.right;
  panels.forEach((p, i) => {
    const { y0, y1 } = l.rows[i];
    pen.text(p.title, x0, y0 - 6, theme.ink, { bold: true });
    timeGrid(pen, theme, x, view.x, y0, y1, false);
    p.draw(pen, theme, run, x, view.x, y0, y1);
  });
  let bars = 0;
  if (l.gantt) {
    const { y0, y1 } = l.gantt, [g0, g1] = view.y, how = shown(run, view);
    const y = (g) => y0 + ((g - g0) / (g1 - g0)) * (y1 - y0);
    const title = how === "map" ? "share of the GPUs in use, by node" : data.pool ? "jobs, on lanes given for this drawing" : "jobs, by node and GPU";
    pen.text(title, x0, y0 - 6, theme.ink, { bold: true });
    pen.rect(x0, y0, x1 - x0, y1 - y0, theme.empty);
    if (how === "bars") {
      timeGrid(pen, theme, x, view.x, y0, y1, false);
      ganttRows(pen, theme, run, y, g0, g1, x0, x1, y1 - y0);
    }
    pen.clip(x0, y0, x1 - x0, y1 - y0);
    if (how === "map") drawMap(pen, theme, run, view, x, y);
    else bars = drawBars(pen, theme, run, view, x, y, y0, y1, name);
    drawDowns(pen, theme, run, view, x, y);
    if (how === "bars" && hovered.job >= 0) drawHovered(pen, theme, run, x, y);
    pen.unclip();
    if (how === "map") ganttRows(pen, theme, run, y, g0, g1, x0, x0, y1 - y0);
    pen.frame(x0, y0, x1 - x0, y1 - y0, theme.axis);
  }
  timeGrid(pen, theme, x, view.x, l.bottom, l.bottom, true);
  pen.text("time since the first submit", (x0 + x1) / 2, l.bottom + 34, theme.soft, { align: "center" });
  canvas.dataset.bars = bars;
}

// drawHovered frames all stints of the job under the pointer.
function drawHovered(pen, theme, run, x, y) {
  const s = run.stints, [g0] = view.y;
  for (const i of s.of.get(hovered.job) || []) {
    for (let k = s.from[i]; k < s.from[i + 1]; k++) {
      const top = s.gpu[k] + (s.off ? s.off[k] / 1000 : 0), h = s.milli && s.milli[k] < 1000 ? s.milli[k] / 1000 : s.count[k];
      pen.frame(x(s.start[i]), y(top), Math.max(1, x(s.end[i]) - x(s.start[i])), Math.max(1, y(g0 + h) - y(g0)), theme.ink, 2);
    }
  }
}

function redraw() {
  for (const t of timelines) if (!t.section.hidden) t.figure.later();
  updateRange();
  writeAddress();
}

function zoomX(factor, about = (view.x[0] + view.x[1]) / 2) { view.x = zoomed(view.x, about, factor, span, Math.min(span, 100)); redraw(); }
function zoomY(factor, about = (view.y[0] + view.y[1]) / 2) { view.y = zoomed(view.y, about, factor, data.gpus || 1, Math.min(data.gpus || 1, 2)); redraw(); }
function panX(share) { view.x = moved(view.x, share * (view.x[1] - view.x[0]), span); redraw(); }
function panY(share) { view.y = moved(view.y, share * (view.y[1] - view.y[0]), data.gpus || 1); redraw(); }
function reset() { view.x = [0, span]; view.y = [0, data.gpus || 1]; redraw(); }

// Reading values.

// place names the GPUs of a stint, or lanes.
function place(s, i) {
  const parts = [];
  for (let k = s.from[i]; k < s.from[i + 1] && parts.length < 8; k++) {
    let g = s.gpu[k];
    const end = g + s.count[k];
    if (data.pool) { parts.push(end - g > 1 ? `${g}–${end - 1}` : String(g)); continue; }
    while (g < end && parts.length < 8) { // node by node
      const node = nodeOf(g), stop = Math.min(end, data.node0[node + 1] ?? data.gpus), first = g - data.node0[node];
      parts.push(`node ${node} .${first}` + (stop - g > 1 ? `–${first + stop - g - 1}` : ""));
      g = stop;
    }
  }
  return (data.pool ? "lanes " : "") + parts.join(", ") + (parts.length === 8 ? ", …" : "");
}

function jobTip(event, run, i) {
  const s = run.stints, j = s.job[i], jobs = data.jobs, stints = s.of.get(j), n = gang(s, i), milli = jobs.milli ? jobs.milli[j] : 1000;
  const preemptions = stints.filter((k) => s.ended[k] === PREEMPTED).length, failures = stints.filter((k) => s.ended[k] === FAILED).length;
  const last = stints[stints.length - 1], named = (key, label) => jobs[key] && [label, jobs[key].names[jobs[key].of[j]] || "not stated"];
  const node = data.type && !data.pool ? nodeOf(s.gpu[s.from[i]]) : -1;
  showTip(event, "job " + jobs.id[j], [
    ["submitted", exact(jobs.submit[j])],
    ["first start", `${exact(s.firstStart.get(j))} (waited ${duration(s.firstStart.get(j) - jobs.submit[j])})`],
    ["this stint", `${exact(s.start[i])} to ${exact(s.end[i])} (${duration(s.end[i] - s.start[i])})`],
    ["", `${beginnings[s.began[i]]}; then ${endings[s.ended[i]]}`],
    ["GPUs", (milli < 1000 ? `${n} × ${milli / 1000}` : count(n)) + ", " + place(s, i) + (node >= 0 ? ", " + data.types[data.type[node]] : "")],
    n !== jobs.gpus[j] ? ["asked for", plural(jobs.gpus[j], "GPU")] : null,
    ["work", duration(jobs.work[j]) + `, on GPUs for ${duration(s.held.get(j))} in ${plural(stints.length, "stint")}`],
    ["preempted", preemptions ? plural(preemptions, "time") : "never"],
    failures ? ["lost its node", plural(failures, "time")] : null,
    s.ended[last] === FINISHED ? ["completion", duration(s.end[last] - jobs.submit[j])] : ["completion", "not in this run"],
    named("user", "user"), named("vc", "virtual cluster"), named("model", "model"),
  ]);
}

function span3(v, unit) {
  if (!v) return "–";
  return count(v.mean) + (v.low !== v.top ? ` (${count(v.low)} to ${count(v.top)})` : "") + (unit ? " " + unit : "");
}

function momentTip(event, run, t, extra) {
  const use = valueAt(run, USED, t), dead = valueAt(run, DOWN, t);
  showTip(event, exact(Math.round(t)), [
    ...extra,
    ["GPUs in use", use ? span3(use) + ` of ${count(data.gpus)}, ${Math.round((100 * use.mean) / data.gpus)} %` : "–"],
    dead && dead.mean > 0 ? ["GPUs down", span3(dead)] : null,
    ["running", span3(valueAt(run, RUNNING, t))],
    ["waiting", span3(valueAt(run, QUEUE, t))],
  ]);
}

function hover(event, run, figure) {
  const box = figure.canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  const x = xScale(view.x, box.width), t = x.invert(px), l = layout(run);
  const inside = px >= margin.left && px <= box.width - margin.right;
  for (const o of timelines) {
    o.cross.hidden = !inside;
    o.cross.style.left = px + "px";
    o.cross.style.height = layout(o.run).bottom + "px";
  }
  if (!inside || t > run.to) return leave(false);
  let job = -1;
  if (l.gantt && py >= l.gantt.y0 && py < l.gantt.y1) {
    const g = view.y[0] + ((py - l.gantt.y0) / (l.gantt.y1 - l.gantt.y0)) * (view.y[1] - view.y[0]);
    if (shown(run, view) === "bars") {
      const i = stintAt(run, t, g, 1.5 / x.perMs);
      if (i >= 0) { job = run.stints.job[i]; jobTip(event, run, i); }
      else momentTip(event, run, t, [["idle", data.pool ? "lane " + Math.floor(g) : `node ${nodeOf(g)} .${Math.floor(g) - data.node0[nodeOf(g)]}`]]);
    } else momentTip(event, run, t, [mapValue(run.heat, t, g)]);
  } else momentTip(event, run, t, []);
  setHovered(run.index, job);
}

// mapValue tells what the map shows at a time and a GPU.
function mapValue(h, t, g) {
  const row = Math.max(0, lastUpTo(h.gpu0, g)), i = Math.floor((t - h.from) / h.width);
  if (row >= h.rows.length || i < 0 || i >= h.rows[row].length) return null;
  const a = row * h.nodes, b = Math.min(data.nodes, a + h.nodes) - 1, share = shades.indexOf(h.rows[row][i]) / 63;
  return [a === b ? "node " + a : `nodes ${a}–${b}`, `${Math.round(100 * share)} % in use over ${duration(h.width)}`];
}

function setHovered(run, job) {
  if (hovered.run === run && hovered.job === job) return;
  hovered = { run, job };
  for (const t of timelines) if (!t.section.hidden) t.figure.later();
}

function leave(all = true) {
  tip.hidden = true;
  if (all) for (const t of timelines) t.cross.hidden = true;
  setHovered(-1, -1);
}

// interact lets the reader zoom and move with wheel, pointer and keys.
function interact(run, figure) {
  const c = figure.canvas;
  let drag = null;
  c.tabIndex = 0;
  const time = (e) => xScale(view.x, c.clientWidth).invert(e.clientX - c.getBoundingClientRect().left);
  const gpu = (e) => {
    const g = layout(run).gantt;
    return view.y[0] + ((e.clientY - c.getBoundingClientRect().top - g.y0) / (g.y1 - g.y0)) * (view.y[1] - view.y[0]);
  };
  c.addEventListener("wheel", (e) => {
    const l = layout(run), py = e.clientY - c.getBoundingClientRect().top;
    if (!l.gantt || py < l.gantt.y0 || py > l.gantt.y1) return; // the page scrolls
    const by = e.deltaY || e.deltaX, whole = e.shiftKey ? view.y[1] - view.y[0] >= data.gpus : view.x[1] - view.x[0] >= span;
    if (by > 0 && whole) return; // there is no more to see
    e.preventDefault();
    const factor = Math.pow(1.0015, Math.max(-400, Math.min(400, e.deltaMode ? by * 33 : by)));
    if (e.shiftKey) zoomY(factor, gpu(e)); else zoomX(factor, time(e));
  }, { passive: false });
  c.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    drag = { x: e.clientX, y: e.clientY, vx: view.x, vy: view.y };
    try { c.setPointerCapture(e.pointerId); } catch { /* a pointer that is gone */ }
    c.classList.add("dragged");
  });
  c.addEventListener("pointermove", (e) => {
    if (!drag) return hover(e, run, figure);
    leave();
    const g = layout(run).gantt, width = c.clientWidth - margin.left - margin.right;
    view.x = moved(drag.vx, ((drag.x - e.clientX) / width) * (drag.vx[1] - drag.vx[0]), span);
    if (g) view.y = moved(drag.vy, ((drag.y - e.clientY) / (g.y1 - g.y0)) * (drag.vy[1] - drag.vy[0]), data.gpus || 1);
    redraw();
  });
  const drop = () => { drag = null; c.classList.remove("dragged"); };
  c.addEventListener("pointerup", drop);
  c.addEventListener("pointercancel", drop);
  c.addEventListener("pointerleave", () => leave());
  c.addEventListener("dblclick", reset);
  c.addEventListener("keydown", (e) => {
    const act = {
      ArrowLeft: () => panX(-0.15), ArrowRight: () => panX(0.15), ArrowUp: () => panY(-0.15), ArrowDown: () => panY(0.15),
      "+": () => zoomX(0.7), "=": () => zoomX(0.7), "-": () => zoomX(1 / 0.7), "[": () => zoomY(1 / 0.7), "]": () => zoomY(0.7), "0": reset, Home: reset,
    }[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    act();
  });
}

// What stands on the page.

function header() {
  return make("header", {}, make("h1", {}, data.title),
    make("dl", { class: "facts" }, ...data.facts.map(([k, v]) => make("div", {}, make("dt", {}, k), make("dd", {}, v)))));
}

function learning() {
  if (!data.charts.length) return null;
  const some = data.charts.some((c) => c.curves.some((u) => u.best >= 0));
  const named = (c) => c.curves.map((u) => u.name), names = named(data.charts[0]);
  const one = data.charts.every((c) => named(c).join("\n") === names.join("\n")); // else each has a legend of its own
  const swatches = (list) => (theme) => list.map((n, i) => swatch(runColour(theme, i), n, Math.floor(i / theme.series.length) % 4));
  return make("section", {}, make("h2", {}, data.chartsTitle || "Learning"),
    one || some ? legend((theme) => [...(one ? swatches(names)(theme) : []), some ? make("span", { class: "entry" }, "◆ the best checkpoint") : null].filter(Boolean)) : "",
    make("div", { class: "pair" }, ...data.charts.map((c) => {
      const figure = new Figure(c.name, `${c.title}: ${c.y} over ${c.x}`, () => chartHeight, (pen, theme, width) => drawChart(c, pen, theme, width));
      figure.canvas.addEventListener("pointermove", (e) => chartTip(c, figure, e));
      figure.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
      const off = chartScale(c).off.map((l) => `${l.name} ${valueOf(c, l.value)}`);
      const text = [c.text, off.length ? `Off the axis: ${off.join(", ")}.` : ""].filter(Boolean).join(" ");
      return figureBox(figure, c.title, one ? null : legend(swatches(named(c))), text ? make("p", { class: "told" }, text) : null);
    })));
}

function differences() {
  const list = data.forests.filter((f) => f.rows.length);
  if (!list.length) return null;
  return make("section", {}, make("h2", {}, data.forestsTitle || "Paired differences"),
    legend((theme) => [swatch(theme.series[2], "better"), swatch(theme.series[1], "worse"), swatch(theme.axis, "the interval holds 0")]),
    make("div", { class: "pair" }, ...list.map((f) => figureBox(
      new Figure(f.name, `${f.title}: ${f.rows.map((r) => `${r.name} ${r.text}`).join("; ")}`, () => forestHeight(f), (pen, theme, width) => drawForest(f, pen, theme, width)),
      f.title, f.text ? make("p", { class: "told" }, f.text) : null))));
}

function figureBox(figure, caption, ...after) {
  figures.push(figure);
  return make("figure", {}, make("figcaption", {}, make("span", {}, caption), figure.saveButton()), figure.box, ...after);
}

function comparison() {
  const jct = new Figure("completion-times", "Distribution of completion times of every run", () => curveHeight, drawJCT);
  const queues = new Figure("queues", "Waiting jobs over time of every run", () => curveHeight, drawQueues);
  return make("section", {}, make("h2", {}, "Completion times and queues"),
    legend((theme) => runs.map((r, i) => swatch(runColour(theme, i), r.name, Math.floor(i / theme.series.length) % 4))),
    make("div", { class: "pair" }, figureBox(jct, "Share of the jobs that were complete within a time"), figureBox(queues, "Waiting jobs over time")));
}

// told is what the reader must know of how a run is drawn.
function told(run) {
  const out = [];
  if (!run.series) return ["Nothing happened in this run."];
  if (run.series.at) out.push("The panels show every change.");
  else out.push(`The panels show means over ${duration(run.series.width)} each, shaded from the least to the most in that time.`);
  if (run.stints) {
    out.push(`Every stint is drawn: ${plural(run.stints.n - run.coreOnly, "time")} that a job held its GPUs.`);
    if (data.pool) out.push("The GPUs of a counter have no identity: each job is put on the lowest free lanes, for this drawing only.");
  } else {
    out.push(`${plural(run.starts, "start")}, too many to draw each` + (run.heat ? ":" : "."));
    if (run.heat) out.push(`the map shows which share of its GPUs a row had in use, a column being ${duration(run.heat.width)}` + (run.heat.nodes > 1 ? ` and a row ${run.heat.nodes} nodes.` : "."));
  }
  if (run.coreOnly) out.push(`${plural(run.coreOnly, "start")} of jobs without GPUs have no place among them.`);
  if (run.downs) {
    out.push(`Nodes failed ${plural(run.downs.all, "time")}` + (run.downs.all > run.downs.node.length ? `; the first ${count(run.downs.node.length)} are marked.` : "."));
  }
  return out;
}

let rangeText, tabs = [];
function updateRange() {
  const [a, b] = view.x;
  rangeText.textContent = `${duration(Math.round(a))} to ${duration(Math.round(b))}` + (view.y[1] - view.y[0] < data.gpus ? `, ${data.pool ? "lanes" : "GPUs"} ${Math.floor(view.y[0])}–${Math.ceil(view.y[1]) - 1}` : "");
}

function select(index) {
  view.run = index;
  recolour();
  tabs.forEach((t) => t.setAttribute("aria-pressed", String(Number(t.dataset.run) === index)));
  timelines.forEach((t, i) => { t.section.hidden = index >= 0 && i !== index; });
  redraw();
}

function recolour() {
  const theme = themes[themeName()];
  for (const [e, fill] of legends) e.replaceChildren(...fill(theme));
}

function stintLegend(theme) {
  const seen = printing || view.run < 0 ? runs : [runs[view.run]], out = [];
  const any = seen.some((r) => shown(r, view) === "bars");
  if (any && view.colour === "wait") {
    const bar = make("span", { class: "ramp" });
    bar.style.background = `linear-gradient(to right, ${scales[themeName()].join(",")})`;
    out.push(make("span", { class: "entry" }, "wait 0", bar, duration(longestWait) + " (logarithmic)"));
  } else if (any && view.colour === "size") {
    out.push(make("span", { class: "entry" }, "jobs have the same colours"));
  } else if (any && view.colour !== "job") {
    const r = ranks(view.colour);
    r.top.forEach((n, i) => out.push(swatch(theme.categories[i], n)));
    if (r.more) out.push(swatch(theme.other, `${count(r.more)} more`));
  } else if (any) out.push(make("span", { class: "entry" }, "each job has its own colour"));
  if (seen.some((r) => shown(r, view) === "map")) {
    const bar = make("span", { class: "ramp" });
    bar.style.background = `linear-gradient(to right, ${theme.empty}, ${mapRamp(theme).join(",")})`;
    out.push(make("span", { class: "entry" }, "in use 0 %", bar, "100 %"));
  }
  const ended = (k) => any && seen.some((r) => r.ended && r.ended[k] > 0);
  if (ended(PREEMPTED)) out.push(swatch(theme.marks.preempt, "preempted at this end"));
  if (ended(FAILED)) out.push(swatch(theme.marks.fail, "its node failed"));
  if (ended(MOVED) || ended(SIZED)) out.push(swatch(theme.marks.move, "migrated or resized"));
  if (seen.some((r) => r.downs)) out.push(swatch(theme.down, "node down"));
  return out;
}

function toolbar() {
  const button = (label, title, act) => make("button", { type: "button", title, "aria-label": title, onclick: act }, label);
  rangeText = make("output", { class: "range" });
  tabs = runs.map((r, i) => make("button", { type: "button", "data-run": i, onclick: () => select(i) }, r.name));
  if (runs.length > 1) tabs.push(make("button", { type: "button", "data-run": -1, onclick: () => select(-1) }, "all"));
  const choose = (label, options, key) => make("label", {}, label + " ",
    make("select", { onchange: (e) => { view[key] = e.target.value; recolour(); redraw(); } },
      ...options.map(([v, text]) => make("option", { value: v, selected: view[key] === v }, text))));
  const both = runs.some((r) => r.stints) && runs.some((r) => r.heat);
  return make("div", { class: "toolbar" }, make("div", { class: "tabs", role: "group", "aria-label": "Run" }, ...tabs),
    make("div", { class: "tools" },
      runs.some((r) => r.stints) ? choose("colour by", colourings, "colour") : null,
      both ? choose("show", [["bars", "every stint"], ["map", "map of node × time"]], "mode") : null,
      make("span", { class: "buttons", role: "group", "aria-label": "Zoom" },
        button("◀", "Earlier", () => panX(-0.25)), button("▶", "Later", () => panX(0.25)),
        button("−", "Zoom out", () => zoomX(1.6)), button("+", "Zoom in", () => zoomX(1 / 1.6)),
        button("▲", "Lower-numbered GPUs", () => panY(-0.25)), button("▼", "Higher-numbered GPUs", () => panY(0.25)),
        button("rows −", "More rows", () => zoomY(1.6)), button("rows +", "Fewer, higher rows", () => zoomY(1 / 1.6)),
        button("reset", "Show everything", reset)), rangeText));
}

function timeline(run) {
  const figure = new Figure("schedule-" + run.name, `${run.name}: GPUs in use, running and waiting jobs, and who held which GPU, over time`,
    () => (run.series ? layout(run).height : 40),
    (pen, theme, width, name) => {
      if (run.series) drawTimeline(run, figure.canvas, pen, theme, width, name);
      else pen.text("Nothing happened.", margin.left, 24, theme.soft);
    });
  const cross = make("div", { class: "cross", hidden: true });
  figure.box.append(cross);
  const section = make("section", { class: "run" }, figureBox(figure, run.name, make("p", { class: "told" }, told(run).join(" "))));
  timelines.push({ run, figure, section, cross });
  if (run.series) interact(run, figure);
  return section;
}

function schedules() {
  const sizesLegend = legend((theme) => [make("span", { class: "entry" }, "GPUs of a job:"),
    ...data.sizes.map((s, c) => (runs.some((r) => r.series && sizesSeen(r)[c]) ? swatch(sizeColour(theme, c), s) : null)).filter(Boolean)]);
  return make("section", { class: "schedules" }, make("h2", {}, "Schedules"), toolbar(), sizesLegend, legend(stintLegend), ...runs.map(timeline),
    make("p", { class: "hint" }, "Wheel over the jobs zooms in time, with Shift in rows; dragging moves; a double click shows everything. Keys: arrows, + −, [ ], 0."));
}

function notes() {
  if (!data.notes.length) return null;
  return make("section", {}, make("h2", {}, "Notes"), make("ul", {}, ...data.notes.map((n) => make("li", {}, n))));
}

// beforePrint puts every run on paper, as drawings that stay sharp; those of very many parts stay pictures.
function beforePrint() {
  printing = true;
  recolour();
  timelines.forEach((t) => { t.section.hidden = false; });
  for (const f of figures) {
    const t = timelines.find((o) => o.figure === f);
    if (t && t.run.stints && t.run.stints.n > 5000 && shown(t.run, view) === "bars") { f.now(); continue; }
    f.paper = f.svg(f.box.clientWidth > 700 ? 1000 : 560).root;
    f.box.append(f.paper);
    f.box.classList.add("on-paper");
  }
}

function afterPrint() {
  printing = false;
  for (const f of figures) {
    if (f.paper) f.paper.remove();
    f.paper = null;
    f.box.classList.remove("on-paper");
    f.later();
  }
  show();
}

// show shows what the address says.
function show() { if (runs.length) select(view.run); else recolour(); }

readAddress();
document.getElementById("page").append(...[header(), learning(), differences(), ...data.tables.map(table), notes(),
  ...(runs.length ? [comparison(), schedules()] : [])].filter(Boolean));
document.body.append(tip);
show();
for (const f of figures) f.now();
darkMedia.addEventListener("change", () => { recolour(); for (const f of figures) f.later(); });
window.addEventListener("hashchange", () => { readAddress(); show(); });
window.addEventListener("beforeprint", beforePrint);
window.addEventListener("afterprint", afterPrint);
document.documentElement.dataset.state = "ready";
