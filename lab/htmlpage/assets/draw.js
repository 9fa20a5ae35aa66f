// Figures are drawn by a pen: on a canvas for the screen, or as SVG for printing and for papers. Lines and areas are
// flat lists x0, y0, x1, y1, …

const fontFamily = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";

class CanvasPen {
  constructor(canvas, width, height) {
    const scale = Math.min(3, Math.max(1, window.devicePixelRatio || 1));
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + "px";
    this.c = canvas.getContext("2d");
    this.c.scale(scale, scale);
  }
  rect(x, y, w, h, fill, alpha = 1) {
    this.c.globalAlpha = alpha;
    this.c.fillStyle = fill;
    this.c.fillRect(x, y, w, h);
    this.c.globalAlpha = 1;
  }
  frame(x, y, w, h, stroke, width = 1) {
    this.c.strokeStyle = stroke;
    this.c.lineWidth = width;
    this.c.setLineDash([]);
    this.c.strokeRect(x, y, w, h);
  }
  path(points) {
    this.c.beginPath();
    this.c.moveTo(points[0], points[1]);
    for (let i = 2; i < points.length; i += 2) this.c.lineTo(points[i], points[i + 1]);
  }
  line(points, stroke, width = 1, dash = []) {
    if (points.length < 4) return;
    this.path(points);
    this.c.strokeStyle = stroke;
    this.c.lineWidth = width;
    this.c.setLineDash(dash);
    this.c.lineJoin = "round";
    this.c.stroke();
  }
  area(points, fill, alpha = 1) {
    if (points.length < 6) return;
    this.path(points);
    this.c.closePath();
    this.c.globalAlpha = alpha;
    this.c.fillStyle = fill;
    this.c.fill();
    this.c.globalAlpha = 1;
  }
  text(s, x, y, fill, o = {}) {
    this.c.font = (o.bold ? "600 " : "") + (o.size || 11) + "px " + fontFamily;
    this.c.textAlign = o.align || "left";
    this.c.textBaseline = "alphabetic";
    this.c.fillStyle = fill;
    this.c.fillText(s, x, y);
  }
  measure(s, size = 11) {
    this.c.font = size + "px " + fontFamily;
    return this.c.measureText(s).width;
  }
  clip(x, y, w, h) {
    this.c.save();
    this.c.beginPath();
    this.c.rect(x, y, w, h);
    this.c.clip();
  }
  unclip() { this.c.restore(); }
}

const svgSpace = "http://www.w3.org/2000/svg";

class SVGPen {
  constructor(width, height, background) {
    this.root = this.add(null, "svg", { xmlns: null, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": fontFamily });
    this.at = this.root;
    this.clips = 0;
    this.ruler = document.createElement("canvas").getContext("2d");
    if (background) this.rect(0, 0, width, height, background);
  }
  add(parent, name, attributes) {
    const e = document.createElementNS(svgSpace, name);
    for (const [k, v] of Object.entries(attributes)) {
      if (v !== null && v !== undefined) e.setAttribute(k, typeof v === "number" ? Math.round(v * 100) / 100 : v);
    }
    if (parent) parent.appendChild(e);
    return e;
  }
  rect(x, y, w, h, fill, alpha = 1) {
    this.add(this.at, "rect", { x, y, width: Math.max(0, w), height: Math.max(0, h), fill, "fill-opacity": alpha < 1 ? alpha : null });
  }
  frame(x, y, w, h, stroke, width = 1) {
    this.add(this.at, "rect", { x, y, width: w, height: h, fill: "none", stroke, "stroke-width": width });
  }
  points(list) {
    const out = [];
    for (let i = 0; i < list.length; i += 2) out.push(Math.round(list[i] * 100) / 100 + "," + Math.round(list[i + 1] * 100) / 100);
    return out.join(" ");
  }
  line(points, stroke, width = 1, dash = []) {
    if (points.length < 4) return;
    this.add(this.at, "polyline", {
      points: this.points(points), fill: "none", stroke, "stroke-width": width, "stroke-dasharray": dash.length ? dash.join(" ") : null,
      "stroke-linejoin": "round",
    });
  }
  area(points, fill, alpha = 1) {
    if (points.length < 6) return;
    this.add(this.at, "polygon", { points: this.points(points), fill, "fill-opacity": alpha < 1 ? alpha : null });
  }
  text(s, x, y, fill, o = {}) {
    const anchor = { left: null, center: "middle", right: "end" }[o.align || "left"];
    const e = this.add(this.at, "text", { x, y, fill, "font-size": o.size || 11, "font-weight": o.bold ? 600 : null, "text-anchor": anchor });
    e.textContent = s;
  }
  measure(s, size = 11) {
    this.ruler.font = size + "px " + fontFamily;
    return this.ruler.measureText(s).width;
  }
  clip(x, y, width, height) {
    const id = "clip-" + SVGPen.made + "-" + this.clips++;
    this.add(this.add(this.at, "clipPath", { id }), "rect", { x, y, width, height });
    this.at = this.add(this.at, "g", { "clip-path": `url(#${id})` });
  }
  unclip() { this.at = this.at.parentNode; }
  // markup is the drawing as a file.
  markup() { return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(this.root) + "\n"; }
}
SVGPen.made = 0; // drawings so far: clips of one page need different names

// The colours of figures. Those that tell runs and users apart are Okabe and Ito's, which colour-blind readers can
// tell apart, and lighter or darker ones of the same.
const themes = {
  light: {
    paper: "#ffffff", ink: "#1b1f24", soft: "#5a6472", grid: "#e3e6ea", axis: "#8b95a1", empty: "#f4f5f7", gap: "#ffffff", other: "#b4bac2",
    series: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7a5195", "#3d4a57"],
    ramp: ["#e6eef7", "#c3d7ec", "#9abddd", "#6d9fcb", "#4682b4", "#2b6799", "#184d7c", "#0b365d", "#042440"],
    marks: { preempt: "#111111", fail: "#d62728", move: "#1f5fd0" }, down: "#d62728", label: "#ffffff", labelDark: "#15191e",
    categories: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#7f9a2c", "#8c564b", "#3aa6a6", "#c44569", "#5b6ee1"],
    lightness: [58, 68],
  },
  dark: {
    paper: "#14171b", ink: "#e8eaed", soft: "#a3acb7", grid: "#2a2f36", axis: "#6b7580", empty: "#1c2026", gap: "#14171b", other: "#5f6872",
    series: ["#4aa8e0", "#f28e4b", "#2fc79b", "#e39cc4", "#e0b040", "#9ad4f5", "#b592d6", "#c4ccd4"],
    ramp: ["#1d2b3a", "#203c56", "#235074", "#2b6698", "#3d80b8", "#5d9bd0", "#86b7e2", "#b3d3ef", "#e0effb"],
    marks: { preempt: "#ffffff", fail: "#ff5c5c", move: "#8ab4ff" }, down: "#ff5c5c", label: "#ffffff", labelDark: "#10141a",
    categories: ["#3b94cf", "#e6a93a", "#22b488", "#d48bb4", "#6fc0ee", "#ea7a35", "#a587c9", "#9bb84a", "#b0796d", "#4fbcbc", "#d9607f", "#7c8cf0"],
    lightness: [48, 60],
  },
};

// Colours of the continuous scale from little to much.
const scales = {
  light: ["#fbe3b5", "#f7c27f", "#ef9a5f", "#dd7050", "#bf4c52", "#963358", "#6a2158", "#40164a", "#200a2e"],
  dark: ["#3a2148", "#5a2a5c", "#81355f", "#a8435c", "#cb5a55", "#e67f58", "#f3a76b", "#f9cd8c", "#fdf0c4"],
};

function scaleColour(name, x) {
  const list = scales[name], at = Math.min(1, Math.max(0, x)) * (list.length - 1), i = Math.min(list.length - 2, Math.floor(at)), f = at - i;
  const mix = (k) => Math.round(parseInt(list[i].slice(k, k + 2), 16) * (1 - f) + parseInt(list[i + 1].slice(k, k + 2), 16) * f);
  return `rgb(${mix(1)},${mix(3)},${mix(5)})`;
}
