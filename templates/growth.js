/* growth.js: what the top lines held at the stored instants, stacked; it follows the timeline's view. */

const GROWTH_LINES = 8;

const growth = {
  layers: [], cursor: null,

  start() {
    const canvas = byId('growth-canvas');
    this.figure = figure(canvas, (c, w, h) => this.draw(c, w, h));
    canvas.addEventListener('pointermove', (e) => { this.cursor = this.time(e); this.legend(); redraw(this.figure); });
    canvas.addEventListener('pointerleave', () => { this.cursor = null; this.legend(); redraw(this.figure); });
    canvas.addEventListener('click', (e) => app.select({ device: app.device, at: model.instants.time[model.instantBefore(this.time(e))] }));
    canvas.addEventListener('keydown', (e) => timeline.key(e, null));
  },

  plot(w, h) { return { x: 70, y: 10, w: Math.max(20, w - 82), h: h - 10 - 22 }; },
  time(e) {
    const box = byId('growth-canvas').getBoundingClientRect();
    return timeline.timeOf(this.plot(box.width, box.height), e.clientX - box.left);
  },

  /* Live bytes by line at every stored instant of the device shown. */
  update() {
    const s = model.instants, m = model.m, n = s.count, lines = new Map();
    const now = new Float64Array(m.lines.line.length), touched = new Set();
    for (let i = 0; i < n; i++) {
      touched.clear();
      for (let k = s.first[i]; k < s.first[i + 1]; k++) {
        const site = s.site[k];
        if (!app.inView(site)) continue;
        now[m.sites.line[site]] += s.raw.grown_bytes[k];
        touched.add(m.sites.line[site]);
      }
      for (const line of touched) {
        let l = lines.get(line);
        if (!l) lines.set(line, l = { line, values: new Float64Array(n), last: i, max: 0 });
        l.values.fill(l.values[l.last], l.last, i);
        l.values[i] = now[line];
        l.last = i;
        l.max = Math.max(l.max, now[line]);
      }
    }
    const all = [...lines.values()];
    for (const l of all) l.values.fill(l.values[l.last], l.last);
    all.sort((a, b) => b.max - a.max);
    this.layers = all.slice(0, GROWTH_LINES).map((l, i) => ({ ...l, color: STACK_COLORS[i] }));
    if (all.length > GROWTH_LINES) {
      const rest = { line: -1, values: new Float64Array(n), color: OTHER_COLOR, rest: all.length - GROWTH_LINES };
      for (const l of all.slice(GROWTH_LINES)) for (let i = 0; i < n; i++) rest.values[i] += l.values[i];
      this.layers.push(rest);
    }
    this.top = new Float64Array(n);
    for (const l of this.layers) for (let i = 0; i < n; i++) this.top[i] += l.values[i];
    const gaps = s.flags.some((f) => f & INSTANT.DAMAGED);
    byId('growth-note').textContent = 'What the top lines of ' + model.core.devices[app.device].name + ' held at ' + plural(n, 'stored instant', 'stored instants') + '; between two of them it is drawn straight. Grey behind: all active bytes. Click to choose an instant.'
      + (gaps ? ' Some events could not be read: what comes after them is not exact.' : '');
    byId('growth-canvas').setAttribute('aria-label', 'Live bytes by line over time, the largest lines: ' + this.layers.slice(0, 4).map((l) => this.name(l)).join(', '));
    this.legend();
    this.fillTable();
    redraw(this.figure);
  },

  name(l) { return l.line < 0 ? plural(l.rest, 'other line', 'other lines') : model.lineName(l.line) + ' ' + model.linePlace(l.line); },

  /* Its own peak, which may be between two of the instants, or after the last one that its process lived at. */
  most(l) {
    const stored = l.values.reduce((a, b) => Math.max(a, b), 0);
    return l.line < 0 || app.kind >= 0 ? stored : Math.max(stored, app.linePeak(l.line) || 0);
  },

  legend() {
    const at = this.cursor === null ? -1 : model.instantBefore(this.cursor);
    byId('growth-legend').replaceChildren(...this.layers.map((l) => {
      const swatch = el('span', { class: 'swatch' });
      swatch.style.background = l.color;
      const value = at < 0 ? 'up to ' + bytes(this.most(l)) : bytes(l.values[at]);
      return el('li', {}, el('button', { type: 'button', title: l.line < 0 ? null : model.lineFull(l.line), click: () => { if (l.line >= 0) app.showLine(l.line); } }, swatch, el('span', { class: 'fn' }, this.name(l)), el('span', { class: 'value' }, value)));
    }).reverse());
  },

  draw(c, w, h) {
    if (!this.top) return;
    const s = model.instants, plot = this.plot(w, h), v = timeline.view, first = model.instantBefore(v.from), last = Math.min(s.count - 1, model.instantBefore(v.to) + 1);
    let max = 0;
    for (let i = first; i <= last; i++) max = Math.max(max, this.top[i]);
    const panel = timeline.panels.find((p) => p.device === app.device), seen = panel && app.kind < 0 ? timeline.visible(panel.pyramid, plot.w) : null;
    if (seen) for (let i = seen.first; i <= seen.last; i++) max = Math.max(max, seen.l.active_max[i]);
    max = max * 1.08 || 1;
    drawAxes(c, plot, max, v);
    const x = (i) => timeline.xOf(plot, s.time[i]), y = (value) => plot.y + plot.h - value / max * plot.h;
    c.save();
    c.beginPath();
    c.rect(plot.x, 0, plot.w, plot.y + plot.h);
    c.clip();
    if (seen) drawBehind(c, plot, seen, y);
    const below = new Float64Array(s.count);
    for (const l of this.layers) {
      c.beginPath();
      for (let i = first; i <= last; i++) c.lineTo(x(i), y(below[i] + l.values[i]));
      for (let i = last; i >= first; i--) c.lineTo(x(i), y(below[i]));
      c.closePath();
      c.fillStyle = l.color;
      c.globalAlpha = 0.9;
      c.fill();
      c.globalAlpha = 1;
      for (let i = first; i <= last; i++) below[i] += l.values[i];
    }
    if (this.cursor !== null) timeline.drawVertical(c, plot, s.time[model.instantBefore(this.cursor)], theme.colors.text, [3, 3]);
    if (app.selection && app.selection.shown && app.selection.shown.at !== undefined) timeline.drawVertical(c, plot, app.selection.shown.at, theme.colors.select, [], 1.5);
    c.restore();
  },

  fillTable() {
    const s = model.instants, step = Math.max(1, Math.ceil(s.count / 16)), rows = [];
    for (let i = 0; i < s.count; i += step) rows.push(el('tr', {}, el('td', {}, instant(s.time[i])), this.layers.map((l) => el('td', {}, bytes(l.values[i])))));
    byId('growth-table').replaceChildren(el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'Time'), this.layers.map((l) => el('th', {}, this.name(l))))), el('tbody', {}, rows)));
  },
};
