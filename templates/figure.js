/* figure.js: what all canvases share: size, colours of the theme, axes, the tip. */

const theme = {
  colors: {},
  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['bg', 'surface', 'text', 'muted', 'rule', 'soft', 'accent', 'accent-soft', 'active', 'allocated', 'reserved', 'rss', 'failure', 'mark', 'select',
      'flame-1', 'flame-2', 'flame-3', 'flame-4', 'flame-5', 'flame-6', 'flame-7', 'flame-8', 'flame-other', 'folded', 'flame-text', 'found', 'heat',
      'old', 'new', 'grown-1', 'grown-2', 'grown-3', 'shrunk-1', 'shrunk-2', 'shrunk-3'])
      this.colors[name] = style.getPropertyValue('--' + name).trim();
  },
};
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
/* Okabe and Ito's colours, and grey for the rest. */
const STACK_COLORS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a800', '#7a6ff0'];
const OTHER_COLOR = '#9aa1a8';

const figures = [];
let drawPending = false;

/* draw(context, width, height) in CSS pixels, at the next frame after redraw() and whenever the size changes. */
function figure(canvas, draw) {
  const f = { canvas, draw, width: 0, height: 0, dirty: true };
  figures.push(f);
  new ResizeObserver(() => redraw(f)).observe(canvas);
  return f;
}

function redraw(only) {
  for (const f of figures) if (!only || f === only) f.dirty = true;
  if (drawPending) return;
  drawPending = true;
  requestAnimationFrame(drawNow);
}

function drawNow() {
  drawPending = false;
  for (const f of figures) {
    if (!f.dirty) continue;
    const box = f.canvas.getBoundingClientRect(), scale = window.devicePixelRatio || 1;
    if (!box.width || !box.height) continue;
    f.dirty = false;
    const w = Math.round(box.width * scale), h = Math.round(box.height * scale);
    if (f.canvas.width !== w || f.canvas.height !== h) { f.canvas.width = w; f.canvas.height = h; }
    f.width = box.width;
    f.height = box.height;
    const c = f.canvas.getContext('2d');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, box.width, box.height);
    f.draw(c, box.width, box.height);
  }
}

/* Round steps in powers of 1024 with at most most lines. */
function byteTicks(max, most) {
  if (!(max > 0)) return [0];
  let step = 1;
  while (max / step > most) step *= 2;
  if (step > 1 && max / step < most / 2.5) step /= 2;
  const out = [];
  for (let v = 0; v <= max * 1.0001; v += step) out.push(v);
  return out;
}

function tickBytes(value) {
  let size = value, unit = 0;
  while (size >= 1024 && unit < BYTE_UNITS.length - 1) { size /= 1024; unit++; }
  return String(Math.round(size * 100) / 100) + ' ' + BYTE_UNITS[unit];
}

function timeTicks(from, to, most) {
  const span = to - from;
  if (!(span > 0)) return [from];
  let step = Math.pow(10, Math.floor(Math.log10(span / most)));
  for (const k of [1, 2, 5, 10]) if (span / (step * k) <= most) { step *= k; break; }
  const out = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  out.step = step;
  return out;
}

/* In the unit of the last one, as instants have it. */
function tickTime(ns, step, to) {
  const power = to < 999.5e3 ? 3 : to < 999.5e6 ? 6 : 9, digits = Math.max(0, Math.min(9, power - Math.floor(Math.log10(step))));
  return (ns / Math.pow(10, power)).toFixed(digits) + (power === 3 ? ' us' : power === 6 ? ' ms' : ' s');
}

/* The frame of a plot over time: byte lines, time labels below. plot: {x, y, w, h}; y(value) from the bottom. */
function drawAxes(c, plot, maxBytes, view, options) {
  c.font = '11px ' + FONT;
  c.lineWidth = 1;
  c.textBaseline = 'middle';
  c.textAlign = 'right';
  for (const v of byteTicks(maxBytes, Math.max(2, Math.floor(plot.h / 34)))) {
    const y = Math.round(plot.y + plot.h - v / maxBytes * plot.h) + 0.5;
    c.strokeStyle = theme.colors.rule;
    c.beginPath();
    c.moveTo(plot.x, y);
    c.lineTo(plot.x + plot.w, y);
    c.stroke();
    c.fillStyle = theme.colors.muted;
    if (v > 0 || maxBytes > 0) c.fillText(v === 0 ? '0' : tickBytes(v), plot.x - 6, y);
  }
  if (options && options.noTime) return;
  c.textBaseline = 'alphabetic';
  c.textAlign = 'center';
  const ticks = timeTicks(view.from, view.to, Math.max(2, Math.floor(plot.w / 110)));
  for (const t of ticks) {
    const x = plot.x + (t - view.from) / (view.to - view.from) * plot.w;
    c.fillStyle = theme.colors.muted;
    c.fillText(tickTime(t, ticks.step, view.to), Math.min(Math.max(x, plot.x + 16), plot.x + plot.w - 22), plot.y + plot.h + 15);
  }
}

/* Text that ends in an ellipsis where it does not fit; a name's end says more than its beginning. */
function fitText(c, text, width, keepEnd) {
  if (c.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const cut = keepEnd ? '\u2026' + text.slice(-middle) : text.slice(0, middle) + '\u2026';
    if (c.measureText(cut).width <= width) low = middle; else high = middle - 1;
  }
  return low < 2 ? '' : keepEnd ? '\u2026' + text.slice(-low) : text.slice(0, low) + '\u2026';
}

const tip = {
  show(event, ...children) {
    const box = byId('tip');
    box.replaceChildren(...children);
    box.hidden = false;
    const w = box.offsetWidth, h = box.offsetHeight;
    box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8)) + 'px';
    box.style.top = (event.clientY + 18 + h > innerHeight ? Math.max(4, event.clientY - h - 12) : event.clientY + 18) + 'px';
  },
  hide() { byId('tip').hidden = true; },
};
