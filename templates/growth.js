/* growth.js: what the top lines, or the categories of blocks, held at the stored instants, stacked; it follows the timeline's view. */

const GROWTH_LINES = 8;
/* Categories that PyTorch's tensors have come first, and keep their colours from page to page. */
const CATEGORIES = ['parameter', 'gradient', 'optimizer', 'buffer', 'activation', 'backward'];
const CATEGORY_TEXT = { activation: 'blocks without a name that operators allocated in a forward pass', backward: 'blocks without a name that operators allocated in a backward pass: gradients of passes that were not looked at, and what autograd makes on the way' };

const growth = {
  layers: [], cursor: null, by: 'line', hidden: new Set(), /* categories that are left out */

  start() {
    const canvas = byId('growth-canvas');
    this.figure = figure(canvas, (c, w, h) => this.draw(c, w, h));
    canvas.addEventListener('pointermove', (e) => { this.cursor = this.time(e); this.legend(); redraw(this.figure); });
    canvas.addEventListener('pointerleave', () => { this.cursor = null; this.legend(); redraw(this.figure); });
    canvas.addEventListener('click', (e) => app.select({ device: app.device, at: model.instants.time[model.instantBefore(this.time(e))] }));
    canvas.addEventListener('keydown', (e) => timeline.key(e, null));
    for (const b of document.querySelectorAll('[data-growth]')) b.addEventListener('click', () => { this.by = b.dataset.growth; this.update(); });
  },

  plot(w, h) { return { x: 70, y: 10, w: Math.max(20, w - 82), h: h - 10 - 22 }; },
  time(e) {
    const box = byId('growth-canvas').getBoundingClientRect();
    return timeline.timeOf(this.plot(box.width, box.height), e.clientX - box.left);
  },

  /* Live bytes at every stored instant of the device shown, by line. */
  linesOverTime() {
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
    const layers = all.slice(0, GROWTH_LINES).map((l, i) => ({ ...l, color: STACK_COLORS[i] }));
    if (all.length > GROWTH_LINES) {
      const rest = { line: -1, values: new Float64Array(n), color: OTHER_COLOR, rest: all.length - GROWTH_LINES };
      for (const l of all.slice(GROWTH_LINES)) for (let i = 0; i < n; i++) rest.values[i] += l.values[i];
      layers.push(rest);
    }
    return layers;
  },

  /* What was said of blocks on the device shown: [name, bytes by instant], PyTorch's first, else the largest first. */
  categories() {
    const sums = new Map(), place = (name) => CATEGORIES.includes(name) ? CATEGORIES.indexOf(name) : CATEGORIES.length;
    for (const c of model.instants.raw.categories) {
      if (c.device !== app.device || (app.kind >= 0 && c.kind !== app.kind)) continue;
      const values = undelta(c.bytes), sum = sums.get(c.name);
      if (sum) values.forEach((v, i) => { sum[i] += v; }); else sums.set(c.name, values);
    }
    const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
    return [...sums].filter(([, values]) => most(values) > 0).sort((a, b) => place(a[0]) - place(b[0]) || most(b[1]) - most(a[1]));
  },

  /* The categories, and what is live besides. */
  categoriesOverTime() {
    const s = model.instants, all = this.categories(), rest = new Float64Array(s.count);
    let live = 0;
    for (let i = 0; i < s.count; i++) {
      for (let k = s.first[i]; k < s.first[i + 1]; k++) if (app.inView(s.site[k])) live += s.raw.grown_bytes[k];
      rest[i] = Math.max(0, live - all.slice(0, GROWTH_LINES).reduce((sum, [, values]) => sum + values[i], 0));
    }
    let free = STACK_COLORS.length;
    const colorOf = (name) => STACK_COLORS[CATEGORIES.includes(name) ? CATEGORIES.indexOf(name) : --free];
    const layers = all.slice(0, GROWTH_LINES).map(([category, values]) => ({ line: -1, category, values, color: colorOf(category) || OTHER_COLOR }));
    return [...layers, { line: -1, category: 'rest', values: rest, color: OTHER_COLOR }];
  },

  update() {
    const s = model.instants, n = s.count, has = model.instants.raw.categories.some((c) => c.device === app.device), isLine = this.by === 'line' || !has, device = model.core.devices[app.device].name;
    byId('growth-by').hidden = !has;
    press(byId('growth-by'), (b) => (b.dataset.growth === 'line') === isLine);
    this.layers = isLine ? this.linesOverTime() : this.categoriesOverTime();
    this.stack();
    const gaps = s.flags.some((f) => f & INSTANT.DAMAGED);
    byId('growth-note').textContent = (isLine ? 'What the top lines of ' + device + ' held' : 'What blocks on ' + device + ' were for that were live') + ' at ' + plural(n, 'stored instant', 'stored instants') + '; between two of them it is drawn straight. Grey behind: all active bytes. Click to choose an instant.'
      + (isLine ? '' : ' A named block counts once, from its birth on. ' + (this.layers.some((l) => l.category === 'activation') ? 'Activation: ' + CATEGORY_TEXT.activation + '. ' : '') + 'Click a category to leave it out.')
      + (gaps ? ' Some events could not be read: what comes after them is not exact.' : '');
    byId('growth-canvas').setAttribute('aria-label', 'Live bytes by ' + (isLine ? 'line over time, the largest lines: ' : 'category over time: ') + this.layers.slice(0, isLine ? 4 : undefined).map((l) => this.name(l)).join(', '));
    this.legend();
    this.fillTable();
    redraw(this.figure);
  },

  /* What is drawn one on the other, and how high that is. */
  stack() {
    this.drawn = this.layers.filter((l) => !this.hidden.has(l.category));
    this.top = new Float64Array(model.instants.count);
    for (const l of this.drawn) for (let i = 0; i < this.top.length; i++) this.top[i] += l.values[i];
  },

  /* A line is shown in the tables; a category is left out, or drawn again. */
  choose(l) {
    if (l.category === undefined) { if (l.line >= 0) app.showLine(l.line); return; }
    if (!this.hidden.delete(l.category)) this.hidden.add(l.category);
    this.stack();
    this.legend();
    redraw(this.figure);
  },

  name(l) { return l.category !== undefined ? l.category : l.line < 0 ? plural(l.rest, 'other line', 'other lines') : model.lineName(l.line) + ' ' + model.linePlace(l.line); },

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
      const value = at < 0 ? 'up to ' + tables.estimated(this.most(l)) : tables.estimated(l.values[at]);
      return el('li', {}, el('button', { type: 'button', title: l.line >= 0 ? model.lineFull(l.line) : CATEGORY_TEXT[l.category] || null, 'aria-pressed': l.category === undefined ? null : String(!this.hidden.has(l.category)), click: () => this.choose(l) }, swatch, el('span', { class: 'fn' }, this.name(l)), el('span', { class: 'value' }, value)));
    }).reverse());
  },

  draw(c, w, h) {
    if (!this.top) return;
    const s = model.instants, plot = this.plot(w, h), v = timeline.view, first = model.instantBefore(v.from), last = Math.min(s.count - 1, model.instantBefore(v.to) + 1);
    let max = 0;
    for (let i = first; i <= last; i++) max = Math.max(max, this.top[i]);
    const panel = timeline.panels.find((p) => p.device === app.device), seen = panel && app.kind < 0 && this.drawn.length === this.layers.length ? timeline.visible(panel.pyramid, plot.w) : null;
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
    for (const l of this.drawn) {
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
    for (let i = 0; i < s.count; i += step) rows.push(el('tr', {}, el('td', {}, instant(s.time[i])), this.layers.map((l) => el('td', {}, tables.estimated(l.values[i])))));
    byId('growth-table').replaceChildren(el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'Time'), this.layers.map((l) => el('th', {}, this.name(l))))), el('tbody', {}, rows)));
  },
};
