/* diff_timeline.js: the timelines of both recordings over each other, of the chosen device, each from its start on. */

const SIDES = [{ key: 'old', label: 'Old' }, { key: 'new', label: 'New' }];

Object.assign(timeline, {
  tool: 'zoom',

  start() {
    this.whole = Math.max(1, ...model.sides.map((s) => s.duration_ns));
    this.view = { from: 0, to: this.whole };
    this.onSelect = () => {}; /* no instants are stored that could be chosen */
    this.addPanel();
    this.overview = figure(byId('overview'), (c, w, h) => this.drawOverview(c, w, h));
    this.bindOverview(byId('overview'));
    byId('zoom-in').addEventListener('click', () => this.zoom(0.5));
    byId('zoom-out').addEventListener('click', () => this.zoom(2));
    byId('zoom-reset').addEventListener('click', () => this.show(0, this.whole));
  },

  addPanel() {
    const panel = { device: -1, pyramids: [], on: {}, values: {} }, head = el('div', { class: 'panel-head' });
    for (const side of SIDES) {
      panel.on[side.key] = true;
      const value = panel.values[side.key] = el('span', { class: 'value' }), swatch = el('span', { class: 'swatch' });
      const button = el('button', { type: 'button', class: 'series', 'data-series': side.key, 'aria-pressed': 'true', click: () => {
        panel.on[side.key] = !panel.on[side.key];
        button.setAttribute('aria-pressed', String(panel.on[side.key]));
        redraw();
      } }, swatch, side.label, value);
      swatch.style.borderTopColor = 'var(--' + side.key + ')';
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

  /* The chosen device's lines; a recording that does not have it has none. */
  follow() {
    const panel = this.panels[0], name = model.core.devices[app.device].name;
    panel.device = app.device;
    panel.pyramids = model.timelines.map((side) => side.find((p) => p.device === name && p.count) || null);
    panel.canvas.setAttribute('aria-label', 'Active bytes of ' + name + '. ' + SIDES.map((side, k) => side.label + ': ' + this.peakText(k)).join('. ') + '.');
    this.fillTable();
    redraw();
  },
  overviewed() { return this.panels[0].pyramids.map((p, k) => [p, SIDES[k].key]).filter(([p]) => p); },

  peakOf(side) { return model.sides[side].peaks.find((p) => p.device === app.device); },
  peakText(side) {
    const p = this.peakOf(side);
    return p ? 'peak ' + bytes(p.value) + ' at ' + instant(p.time) : 'nothing';
  },

  drawPanel(panel, c, w, h) {
    const plot = this.plot(w, h), seen = panel.pyramids.map((p, k) => p && panel.on[SIDES[k].key] ? this.visible(p, plot.w) : null);
    let max = 0;
    for (const v of seen) for (let i = v ? v.first : 1; i <= (v ? v.last : 0); i++) max = Math.max(max, v.l.active_max[i]);
    this.drawPlot(panel, c, plot, max, (yOf, room) => {
      seen.forEach((v, k) => { if (v) this.drawActive(c, plot, v, yOf, room, theme.colors[SIDES[k].key]); });
      seen.forEach((v, k) => { if (v) this.drawVertical(c, plot, model.sides[k].duration_ns, theme.colors[SIDES[k].key], [2, 4]); });
      const peaks = seen.map((v, k) => v && this.peakOf(k)).map((p, k) => p && { ...p, x: this.xOf(plot, p.time), y: yOf(p.value), side: SIDES[k] }).filter((p) => p && p.x >= plot.x - 1 && p.x <= plot.x + plot.w + 1);
      for (const p of peaks) this.drawPeak(c, p.x, p.y, theme.colors[p.side.key], 4.5);
      for (const p of peaks) this.say(c, plot, p.x, p.y, p.side.key + ': ' + bytes(p.value) + ' at ' + instant(p.time), theme.colors[p.side.key]);
    });
  },

  /* Active bytes of a side; null after its end. */
  sideAt(side, ns) {
    const p = this.panels[0].pyramids[side];
    return p && ns <= model.sides[side].duration_ns ? this.valueAt(p, 'active', ns) : null;
  },

  readout(panel) {
    const at = this.cursor;
    SIDES.forEach((side, k) => {
      const text = at === null ? this.peakText(k) : bytes(this.sideAt(k, at));
      if (panel.values[side.key].textContent !== text) panel.values[side.key].textContent = text;
    });
    const now = SIDES.map((_, k) => at === null ? null : this.sideAt(k, at)), known = now.every((v) => v !== null);
    const time = at === null ? '' : instant(at, this.view.to - this.view.from) + (known ? '  ' + signedBytes(now[1] - now[0]) : '');
    if (panel.time.textContent !== time) panel.time.textContent = time;
  },

  pick() {},

  fillTable() {
    const rows = [], n = 20;
    for (let k = 0; k <= n; k++) {
      const t = this.whole * k / n, [old, now] = [this.sideAt(0, t), this.sideAt(1, t)];
      rows.push(el('tr', {}, el('td', {}, instant(t)), el('td', {}, bytes(old)), el('td', {}, bytes(now)), el('td', {}, old === null || now === null ? '-' : signedBytes(now - old))));
    }
    byId('timeline-table').replaceChildren(el('div', { class: 'table-wrap' }, el('table', {}, el('thead', {}, el('tr', {}, ['Since the start', 'Old', 'New', 'Difference'].map((h) => el('th', {}, h)))), el('tbody', {}, rows))));
  },
});
