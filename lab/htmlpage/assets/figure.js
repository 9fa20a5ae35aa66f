// What pages are made of: elements, figures that follow their width, legends, and what stands under the pointer. A page says
// by themeName() whether it is "light" or "dark".

// make builds an element; texts become text and nothing else.
function make(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes)) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children) if (c !== null && c !== undefined) e.append(c);
  return e;
}

// Figure is a drawing that follows its width.
class Figure {
  constructor(name, label, height, draw) {
    Object.assign(this, { name, height, draw });
    this.canvas = make("canvas", { role: "img", "aria-label": label });
    this.box = make("div", { class: "drawing" }, this.canvas);
    new ResizeObserver(() => this.later()).observe(this.box);
  }
  later() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.now(); });
  }
  now() {
    const width = this.box.clientWidth;
    if (!width) return; // hidden
    const name = themeName(), pen = new CanvasPen(this.canvas, width, this.height());
    this.draw(pen, themes[name], width, name);
  }
  // ruler is a pen that only measures.
  ruler() { return { measure: (s, size = 11) => { const c = this.canvas.getContext("2d"); c.font = size + "px " + fontFamily; return c.measureText(s).width; } }; }
  svg(width) {
    SVGPen.made++;
    const pen = new SVGPen(width, this.height(), themes.light.paper);
    this.draw(pen, themes.light, width, "light");
    return pen;
  }
  // saveButton stores the drawing as it stands, in light colours, as a file for papers.
  saveButton() {
    return make("button", {
      type: "button", class: "quiet", title: "Save this figure as SVG", onclick: () => {
        const url = URL.createObjectURL(new Blob([this.svg(960).markup()], { type: "image/svg+xml" }));
        make("a", { href: url, download: this.name.replace(/[^A-Za-z0-9+._-]+/g, "-").slice(0, 80) + ".svg" }).click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
      },
    }, "SVG");
  }
}

const tip = make("div", { class: "tip", role: "status", hidden: true });

function showTip(event, head, rows) {
  tip.replaceChildren(make("b", {}, head), make("dl", {}, ...rows.filter(Boolean).flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)])));
  tip.hidden = false;
  const w = tip.offsetWidth, h = tip.offsetHeight, px = event.clientX + 14, py = event.clientY + 14;
  tip.style.left = Math.max(4, px + w > window.innerWidth - 8 ? event.clientX - w - 14 : px) + "px";
  tip.style.top = Math.max(4, py + h > window.innerHeight - 8 ? event.clientY - h - 14 : py) + "px";
}

function swatch(colour, label, dash) {
  const s = make("span", { class: dash === undefined ? "swatch" : "swatch stroke" });
  if (dash === undefined) s.style.background = colour;
  else { s.style.borderTopColor = colour; s.style.borderTopStyle = dash === 0 ? "solid" : dash === 2 ? "dotted" : "dashed"; }
  return make("span", { class: "entry" }, s, label);
}

const legends = []; // [element, fill]: filled again when colours change
function legend(fill, attributes = {}) {
  const e = make("div", { class: "legend", ...attributes });
  legends.push([e, fill]);
  return e;
}

// table is a table whose first column names the rows. The first t.left columns are words.
function table(t) {
  const words = (i) => (i > 0 && i < t.left ? { class: "words" } : {});
  const row = (cells, tag) => make("tr", {}, ...cells.map((c, i) => make(i === 0 ? "th" : tag, i === 0 ? { scope: tag === "th" ? "col" : "row" } : tag === "th" ? { scope: "col", ...words(i) } : words(i), c)));
  return make("section", {}, make("h2", {}, t.title), make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": t.title },
    make("table", {}, make("thead", {}, row(t.header, "th")), make("tbody", {}, ...t.rows.map((r) => row(r, "td"))))),
    t.text ? make("p", { class: "told" }, t.text) : null);
}

// zoom scales one range about a point, within [0, most].
function zoomed([a, b], about, factor, most, least) {
  const size = Math.min(most, Math.max(least, (b - a) * factor));
  const from = Math.min(most - size, Math.max(0, about - ((about - a) / (b - a)) * size));
  return [from, from + size];
}
function moved([a, b], by, most) {
  by = Math.max(-a, Math.min(most - b, by));
  return [a + by, b + by];
}
