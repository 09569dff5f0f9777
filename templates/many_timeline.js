/* many_timeline.js: the timelines of several recordings: all together with the chosen one, and a small one of each, over one view. */

const SUM_BUCKETS = 2000, SMALL_STEP = 60;
const MANY_SERIES = [{ key: 'all', label: 'All together, at most', color: 'old' }, { key: 'chosen', label: '', color: 'new' }];

Object.assign(timeline, {
  tool: 'zoom', align: 'clock', scale: 'one', order: 'rank', small: [], smallShown: SMALL_STEP,
  orders: [['rank', 'by rank, then name'], ['peak', 'by peak'], ['end', 'by what is live at the end'], ['start', 'by start']],

  start() {
    this.onSelect = () => {};
    byId('align-switch').hidden = !model.core.is_aligned;
    /* of runs with hours between them the clock shows needles */
    if (!model.core.is_aligned || model.files.reduce((t, f) => t + f.duration, 0) < model.core.whole / 20) this.align = 'start';
    this.addPanel();
    this.overview = figure(byId('overview'), (c, w, h) => this.drawOverview(c, w, h));
    this.bindOverview(byId('overview'));
    byId('zoom-in').addEventListener('click', () => this.zoom(0.5));
    byId('zoom-out').addEventListener('click', () => this.zoom(2));
    byId('zoom-reset').addEventListener('click', () => this.show(0, this.whole));
    for (const b of byId('align-switch').children) b.addEventListener('click', () => { this.align = b.dataset.align; this.follow(); this.show(0, this.whole); });
    for (const b of byId('scale-switch').children) b.addEventListener('click', () => { this.scale = b.dataset.scale; press(byId('scale-switch'), (x) => x === b); redraw(); });
    byId('order').append(...this.orders.map(([key, label]) => el('option', { value: key }, label)));
    byId('order').addEventListener('change', () => { this.order = byId('order').value; this.smallShown = SMALL_STEP; this.fillSmall(); });
  },

  addPanel() {
    const panel = { device: -1, on: {}, values: {} }, head = el('div', { class: 'panel-head' });
    for (const s of MANY_SERIES) {
      panel.on[s.key] = true;
      const value = panel.values[s.key] = el('span', { class: 'value' }), swatch = el('span', { class: 'swatch' }), label = el('span', {}, s.label);
      const button = el('button', { type: 'button', class: 'series', 'data-series': s.key, 'aria-pressed': 'true', click: () => {
        panel.on[s.key] = !panel.on[s.key];
        button.setAttribute('aria-pressed', String(panel.on[s.key]));
        redraw();
      } }, swatch, label, value);
      if (s.key === 'chosen') panel.chosenLabel = label;
      swatch.style.borderTopColor = 'var(--' + s.color + ')';
      head.append(button);
    }
    panel.time = el('span', { class: 'panel-time' });
    head.append(panel.time);
    panel.canvas = el('canvas', { tabindex: '0', role: 'img' });
    panel.box = el('figure', { class: 'panel' }, head, panel.canvas);
    byId('panels').append(panel.box);
    panel.figure = figure(panel.canvas, (c, w, h) => this.drawPanel(panel, c, w, h));
    this.bindPanel(panel);
    this.panels.push(panel);
  },

  offset(file) { return this.align === 'clock' ? file.start : 0; },

  /* Another device, or another beginning. */
  follow() {
    press(byId('align-switch'), (b) => b.dataset.align === this.align);
    this.whole = Math.max(1, ...model.files.map((f) => this.offset(f) + f.duration));
    if (!this.was) { this.view = { from: 0, to: this.whole }; this.was = true; }
    this.panels[0].device = app.device;
    this.sum = this.makeSum();
    this.most = Math.max(1, ...model.files.map((f) => (model.row(f) || { peak: 0 }).peak));
    this.fillSmall();
    this.choose();
  },

  /* At most what all held together: in each of some buckets the sum of their highest. */
  makeSum() {
    const n = SUM_BUCKETS, width = this.whole / n, most = new Float64Array(n), least = new Float64Array(n), high = new Float64Array(n), low = new Float64Array(n);
    for (const f of model.files) {
      const row = model.row(f), l = row && row.pyramid && row.pyramid.levels[0], at = this.offset(f);
      if (!l || !l.start.length) continue;
      high.fill(0);
      low.fill(-1);
      const put = (from, to, max, min) => {
        for (let k = Math.max(0, Math.floor((at + from) / width)); k < Math.min(n, Math.ceil((at + to) / width)); k++) {
          high[k] = Math.max(high[k], max);
          low[k] = low[k] < 0 ? min : Math.min(low[k], min);
        }
      };
      for (let i = 0; i < l.start.length; i++) {
        put(l.start[i], l.end[i], l.active_max[i], l.active_min[i]);
        if (i + 1 < l.start.length && l.start[i + 1] > l.end[i]) put(l.end[i], l.start[i + 1], l.active_last[i], l.active_last[i]);
      }
      for (let k = 0; k < n; k++) { most[k] += high[k]; least[k] += Math.max(0, low[k]); }
    }
    const start = Float64Array.from(most, (_, k) => k * width);
    return { levels: [{ width, start, end: start.map((v) => v + width), active_max: most, active_min: least, active_last: most, active_max_after: new Float64Array(n) }], count: n };
  },

  choose() {
    const file = app.file();
    this.panels[0].chosenLabel.textContent = file ? app.name(file) : 'None';
    for (const s of this.small) s.box.setAttribute('aria-selected', String(s.file === file));
    const d = model.core.devices[app.device];
    this.panels[0].canvas.setAttribute('aria-label', 'Active bytes of ' + (d ? d.name : '') + ', all recordings together. ' + this.commonText());
    redraw();
  },

  commonText() {
    const d = model.core.devices[app.device];
    if (!d) return '';
    return 'Common peak ' + (d.common_least === d.common_most ? bytes(d.common_least) : 'between ' + bytes(d.common_least) + ' and ' + bytes(d.common_most)) + (d.common_time >= 0 ? ' at ' + instant(d.common_time) : '') + '.';
  },

  overviewed() { return this.sum ? [[this.sum, 'old']] : []; },

  /* What is drawn of a recording lies as far to the left as it began late. */
  shifted(file, draw) {
    const by = this.offset(file), view = this.view;
    this.view = { from: view.from - by, to: view.to - by };
    try { return draw(); } finally { this.view = view; }
  },

  drawPanel(panel, c, w, h) {
    const plot = this.plot(w, h), file = app.file(), row = file && model.row(file), pyramid = row && row.pyramid;
    const all = panel.on.all ? this.visible(this.sum, plot.w) : null, own = panel.on.chosen && pyramid ? this.shifted(file, () => this.visible(pyramid, plot.w)) : null;
    let max = 0;
    for (const v of [all, own]) for (let i = v ? v.first : 1; i <= (v ? v.last : 0); i++) max = Math.max(max, v.l.active_max[i]);
    this.drawPlot(panel, c, plot, max, (yOf, room) => {
      if (all) this.drawActive(c, plot, all, yOf, room, theme.colors.old);
      if (own) this.shifted(file, () => this.drawActive(c, plot, own, yOf, room, theme.colors.new));
      const d = model.core.devices[app.device], x = this.xOf(plot, d.common_time);
      if (all && this.align === 'clock' && d.common_time >= 0 && d.common_least === d.common_most && d.files > 1 && x >= plot.x - 1 && x <= plot.x + plot.w + 1) {
        this.drawPeak(c, x, yOf(d.common_least), theme.colors.old, 4.5);
        this.say(c, plot, x, yOf(d.common_least), 'common peak: ' + bytes(d.common_least) + ' at ' + instant(d.common_time), theme.colors.old);
      }
      if (own) {
        const time = this.offset(file) + row.peak_ns, px = this.xOf(plot, time);
        if (px < plot.x - 1 || px > plot.x + plot.w + 1) return;
        this.drawPeak(c, px, yOf(row.peak), theme.colors.new, 4.5);
        this.say(c, plot, px, yOf(row.peak), app.name(file) + ': ' + bytes(row.peak), theme.colors.new);
      }
    });
  },

  /* Of a recording at a time of the page; null where it was not there. */
  fileAt(file, ns) {
    const row = model.row(file), t = ns - this.offset(file);
    return row && row.pyramid && t >= 0 && t <= file.duration ? this.valueAt(row.pyramid, 'active', t) : null;
  },

  readout(panel) {
    const at = this.cursor, file = app.file(), row = file && model.row(file);
    const all = at === null ? this.commonText() : bytes(this.valueAt(this.sum, 'active', at));
    const own = at === null ? (row ? 'peak ' + bytes(row.peak) : '') : file ? bytes(this.fileAt(file, at)) : '';
    const time = at === null ? '' : instant(at, this.view.to - this.view.from);
    for (const [span, text] of [[panel.values.all, all], [panel.values.chosen, own], [panel.time, time]]) if (span.textContent !== text) span.textContent = text;
  },

  pick() {},

  /* --- the small ones --- */

  sorted() {
    const number = (f) => { const row = model.row(f); return this.order === 'start' ? -f.start : row ? row[this.order] : -1; };
    return this.order === 'rank' ? model.files : model.files.slice().sort((a, b) => number(b) - number(a));
  },

  fillSmall() {
    const box = byId('multiples'), files = this.sorted();
    for (const s of this.small) figures.splice(figures.indexOf(s.figure), 1);
    this.small = files.slice(0, this.smallShown).map((file) => this.makeSmall(file));
    box.replaceChildren(...this.small.map((s) => s.box));
    const more = byId('multiples-more');
    more.hidden = files.length <= this.smallShown;
    more.replaceChildren(el('button', { type: 'button', click: () => { this.smallShown += 4 * SMALL_STEP; this.fillSmall(); this.choose(); } }, 'Show more'), ' ' + count(this.small.length) + ' of ' + count(files.length));
    redraw();
  },

  makeSmall(file) {
    const row = model.row(file), s = { file, value: el('span', { class: 'value' }), canvas: el('canvas', {}) }, name = app.name(file);
    s.box = el('div', { class: 'small-one', role: 'option', tabindex: '0', title: file.path + (row ? '\npeak ' + bytes(row.peak) : ''), 'aria-selected': 'false', 'aria-label': name + (row ? ', peak ' + bytes(row.peak) : ''), click: () => app.choose(file), keydown: (e) => {
      if (e.key === 'Enter' || e.key === ' ') { app.choose(file); e.preventDefault(); }
      const next = e.key === 'ArrowRight' ? s.box.nextElementSibling : e.key === 'ArrowLeft' ? s.box.previousElementSibling : null;
      if (next) { next.focus(); e.preventDefault(); }
    } }, el('div', { class: 'small-head' }, el('span', { class: 'name' }, name), app.isWhole(file) ? null : el('span', { class: 'flag', title: app.stateText(file) }, '!'), s.value), s.canvas);
    s.figure = figure(s.canvas, (c, w, h) => this.drawSmall(s, c, w, h));
    s.canvas.addEventListener('pointermove', (e) => {
      const b = s.canvas.getBoundingClientRect();
      this.cursor = this.view.from + (e.clientX - b.left) / b.width * (this.view.to - this.view.from);
      redraw();
    });
    s.canvas.addEventListener('pointerleave', () => { this.cursor = null; redraw(); });
    return s;
  },

  drawSmall(s, c, w, h) {
    const row = model.row(s.file), plot = { x: 0, y: 3, w, h: h - 4 }, at = this.cursor;
    const text = !row ? 'nothing' : at === null ? bytes(row.peak) : bytes(this.fileAt(s.file, at));
    if (s.value.textContent !== text) s.value.textContent = text;
    if (row && row.pyramid) this.shifted(s.file, () => {
      const max = this.scale === 'one' ? this.most : Math.max(1, row.peak), y = (v) => plot.y + plot.h - Math.max(0, v) / max * plot.h, seen = this.visible(row.pyramid, plot.w), { most, least } = activeColumns(plot, seen);
      const chosen = s.file === app.file(), tops = most.map(y);
      c.fillStyle = theme.colors[chosen ? 'new' : 'muted'];
      c.globalAlpha = 0.25;
      fillColumns(c, plot, tops, plot.y + plot.h);
      c.globalAlpha = 0.75;
      fillColumns(c, plot, tops.map((v, k) => most[k] < 0 ? plot.y + plot.h : Math.min(v, plot.y + plot.h - 1)), least.map((v, k) => most[k] < 0 ? plot.y + plot.h : Math.max(y(v), y(most[k]) + 1.3)));
      c.globalAlpha = 1;
    });
    if (at === null) return;
    const x = Math.round((at - this.view.from) / (this.view.to - this.view.from) * w) + 0.5;
    c.strokeStyle = theme.colors.muted;
    c.setLineDash([3, 3]);
    c.beginPath();
    c.moveTo(x, 0);
    c.lineTo(x, h);
    c.stroke();
    c.setLineDash([]);
  },
});
