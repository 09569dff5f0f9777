/* timeline.js: a panel per device over one shared view, cursor and selection; the overview below them moves the view. */

const SERIES = [
  { key: 'active', label: 'Active', color: 'active', has: () => true },
  { key: 'allocated', label: 'Allocated', color: 'allocated', dash: [5, 3], has: (p) => p.allocatedDiffers },
  { key: 'reserved', label: 'Reserved', color: 'reserved', dash: [], has: (p) => p.hasReserved },
  { key: 'rss', label: 'RSS', color: 'rss', dash: [2, 2], has: (p) => p.hasRss },
  { key: 'total', label: 'Capacity', color: 'muted', dash: [8, 4], has: (p) => p.total > 0 },
];

const timeline = {
  panels: [], view: { from: 0, to: 1 }, cursor: null, tool: 'select', morePeaks: false, drag: null, begin: 0, whole: 1, pointers: new Map(),

  start(onSelect) {
    this.begin = model.core.begin_ns; /* of a part of a rotated recording; its times are those of the run */
    this.whole = Math.max(this.begin + 1, model.core.duration_ns);
    this.view = { from: this.begin, to: this.whole };
    this.onSelect = onSelect;
    /* the device that the page opens on comes first */
    const isFirst = (p) => model.deviceIndex(p.device) === model.core.open_device ? 0 : 1, shown = model.timeline.filter((p) => p.count).sort((a, b) => isFirst(a) - isFirst(b));
    byId('panels').classList.toggle('many', shown.length > 4);
    for (const p of shown) this.addPanel(p);
    if (!this.panels.length) byId('panels').append(el('p', { class: 'hint' }, 'The file holds no timeline.'));
    this.overview = figure(byId('overview'), (c, w, h) => this.drawOverview(c, w, h));
    this.bindOverview(byId('overview'));
    for (const b of document.querySelectorAll('[data-tool]')) b.addEventListener('click', () => this.setTool(b.dataset.tool));
    byId('zoom-in').addEventListener('click', () => this.zoom(0.5));
    byId('zoom-out').addEventListener('click', () => this.zoom(2));
    byId('zoom-reset').addEventListener('click', () => this.show(this.begin, this.whole));
    byId('zoom-selection').addEventListener('click', () => { const s = app.selection; if (s.shown) this.show(s.shown.from, s.shown.to); });
    byId('more-peaks').addEventListener('change', (e) => { this.morePeaks = e.target.checked; redraw(); });
    this.fillTable();
  },

  length() { return this.whole - this.begin; },
  within(ns) { return Math.max(this.begin, Math.min(this.whole, ns)); },

  setTool(tool) {
    this.tool = tool;
    byId('timeline').dataset.toolNow = tool;
    press(document.querySelector('[data-tool]').parentElement, (b) => b.dataset.tool === tool);
  },

  addPanel(pyramid) {
    const device = model.deviceIndex(pyramid.device), panel = { pyramid, device, on: {}, values: {} };
    pyramid.total = model.core.devices[device].total_bytes;
    panel.name = el('button', { type: 'button', class: 'panel-name', title: 'Show this device in all that follows', click: () => app.setDevice(device) }, pyramid.device);
    const head = el('div', { class: 'panel-head' }, panel.name);
    for (const s of SERIES) {
      if (!s.has(pyramid)) continue;
      panel.on[s.key] = s.key === 'rss' ? !this.dwarfs(pyramid, this.most(pyramid, 'rss_max')) : s.key !== 'total' || !this.dwarfs(pyramid, pyramid.total);
      const label = s.key === 'rss' && pyramid.device !== 'host' ? 'Device used' : s.label;
      const value = panel.values[s.key] = el('span', { class: 'value' }), swatch = el('span', { class: 'swatch' });
      const button = el('button', { type: 'button', class: 'series', title: 'Draw this line, or leave it out', 'aria-pressed': String(panel.on[s.key]), click: () => {
        panel.on[s.key] = !panel.on[s.key];
        button.setAttribute('aria-pressed', String(panel.on[s.key]));
        redraw();
      } }, swatch, label, value);
      swatch.style.borderTopColor = 'var(--' + s.color + ')';
      button.dataset.series = s.key;
      if (s.dash && s.dash.length) swatch.style.borderTopStyle = s.key === 'rss' ? 'dotted' : 'dashed';
      head.append(button);
    }
    panel.time = el('span', { class: 'panel-time' });
    head.append(panel.time);
    panel.canvas = el('canvas', { tabindex: '0', role: 'img', 'data-device': pyramid.device });
    panel.box = el('figure', { class: 'panel' }, head, panel.canvas);
    byId('panels').append(panel.box);
    panel.figure = figure(panel.canvas, (c, w, h) => this.drawPanel(panel, c, w, h));
    panel.canvas.setAttribute('aria-label', this.describe(panel));
    this.bindPanel(panel);
    this.panels.push(panel);
  },

  most(pyramid, key) { return pyramid.levels[pyramid.levels.length - 1][key].reduce((a, b) => Math.max(a, b), 0); },
  /* RSS counts code and libraries too, a device has more than a program needs: they must not flatten the rest. */
  dwarfs(pyramid, bytes) { return bytes > 2.5 * Math.max(this.most(pyramid, 'active_max'), this.most(pyramid, 'reserved_max')); },

  /* The selection's device: its panel stands out, and the overview is of it. */
  follow() {
    for (const p of this.panels) {
      const is = p.device === app.device;
      p.box.classList.toggle('chosen', is && this.panels.length > 1);
      p.name.setAttribute('aria-pressed', String(is));
    }
  },
  panelOf(device) { return this.panels.find((p) => p.device === device); },

  describe(panel) {
    const active = model.peak(panel.device, 'active'), reserved = model.peak(panel.device, 'reserved'), t = model.total(panel.device, 'all');
    let text = 'Memory of ' + panel.pyramid.device + ' over ' + instant(this.length()) + '.';
    if (active) text += ' Peak of active bytes ' + tables.estimated(active.value, panel.pyramid.device) + ' at ' + instant(active.time) + '.';
    if (reserved && reserved.value) text += ' Peak of reserved bytes ' + model.reservedText(panel.device, reserved.value) + ' at ' + instant(reserved.time) + '.';
    if (t) text += ' At the end ' + tables.estimated(t.end_active_bytes, panel.pyramid.device) + '.';
    return text;
  },

  plot(w, h) { return { x: 70, y: 24, w: Math.max(20, w - 82), h: h - 24 - 22 }; },
  xOf(plot, ns) { return plot.x + (ns - this.view.from) / (this.view.to - this.view.from) * plot.w; },
  timeOf(plot, x) { return this.view.from + (x - plot.x) / plot.w * (this.view.to - this.view.from); },

  /* The level whose buckets are about a pixel wide, and the buckets in view. */
  visible(pyramid, w) {
    const span = this.view.to - this.view.from;
    let level = 0;
    while (level + 1 < pyramid.levels.length && pyramid.levels[level].width / span * w < 0.5) level++;
    const l = pyramid.levels[level];
    return { l, level, first: Math.max(0, this.find(l, this.view.from) - 1), last: Math.min(l.start.length - 1, this.find(l, this.view.to) + 1) };
  },
  /* The last bucket that starts at or before a time. */
  find(l, ns) {
    let low = 0, high = l.start.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (l.start[middle] <= ns) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  },
  valueAt(pyramid, key, ns) {
    const l = pyramid.levels[0], i = this.find(l, ns);
    const v = l[key + '_last'][i];
    return v < 0 ? null : v;
  },

  drawPanel(panel, c, w, h) {
    const plot = this.plot(w, h), v = this.visible(panel.pyramid, plot.w), keys = SERIES.filter((s) => panel.on[s.key]);
    let max = 0;
    for (let i = v.first; i <= v.last; i++)
      for (const s of keys) max = Math.max(max, s.key === 'total' ? panel.pyramid.total : v.l[s.key + '_max'][i]);
    this.drawPlot(panel, c, plot, max, (yOf, room) => {
      this.drawRanges(panel, c, plot);
      this.drawSelection(panel, c, plot);
      if (panel.on.active) this.drawActive(c, plot, v, yOf, room, theme.colors.active);
      const coarse = this.visible(panel.pyramid, plot.w / 5); /* a line over what goes up and down within pixels is its upper edge */
      for (const s of keys) if (s.key === 'total') this.drawTotal(panel, c, plot, yOf); else if (s.key !== 'active') this.drawLine(c, plot, coarse, s, yOf, room);
      this.drawInstants(c, plot);
      this.drawFailures(panel, c, plot);
      this.drawPeaks(panel, c, plot, yOf);
    });
  },

  /* Axes up to max, within them what draw(yOf, room) adds, and the cursor. */
  drawPlot(panel, c, plot, max, draw) {
    max = max * Math.max(1.12, plot.h / Math.max(1, plot.h - 22)) || 1; /* above all lines there is a row for a label */
    panel.max = max;
    this.room = makeRoom(plot);
    drawAxes(c, plot, max, this.view);
    c.save();
    c.beginPath();
    c.rect(plot.x, 0, plot.w, plot.y + plot.h + 1);
    c.clip();
    draw((value) => plot.y + plot.h - value / max * plot.h, this.room);
    if (this.cursor !== null) this.drawVertical(c, plot, this.cursor, theme.colors.muted, [3, 3]);
    c.restore();
    this.room = null;
    this.readout(panel);
  },

  drawActive(c, plot, v, yOf, room, color) {
    const l = v.l, wide = l.width / (this.view.to - this.view.from) * plot.w > 3;
    const base = plot.y + plot.h;
    const path = new Path2D(), line = room.pen(path);
    const at = (ns) => this.xOf(plot, ns);
    let before = v.first > 0 ? l.active_last[v.first - 1] : v.first === 0 ? 0 : l.active_last[v.first];
    line.moveTo(at(l.start[v.first]), yOf(before));
    for (let i = v.first; i <= v.last; i++) {
      const x = at(l.start[i]);
      line.lineTo(x, yOf(before));
      if (wide && v.level === 0) {
        const peak = at(l.start[i] + l.active_max_after[i]);
        line.lineTo(peak, yOf(before));
        line.lineTo(peak, yOf(l.active_max[i]));
      } else {
        line.lineTo(x, yOf(l.active_max[i]));
        line.lineTo(at(l.end[i]), yOf(l.active_max[i]));
      }
      line.lineTo(at(l.end[i]), yOf(l.active_last[i]));
      before = l.active_last[i];
    }
    const columns = activeColumns(plot, v), tops = columns.most.map((most) => yOf(Math.max(0, most)));
    c.fillStyle = color;
    c.globalAlpha = 0.13;
    if (wide) {
      const area = new Path2D(path);
      area.lineTo(at(Math.max(l.end[v.last], this.view.from)), base);
      area.lineTo(at(l.start[v.first]), base);
      area.closePath();
      c.fill(area);
    } else fillColumns(c, plot, tops, base);
    c.globalAlpha = 0.30;
    fillColumns(c, plot, tops, columns.least.map(yOf));
    c.globalAlpha = 1;
    c.strokeStyle = color;
    c.lineWidth = 1.4;
    c.lineJoin = 'round';
    c.stroke(path);
  },

  drawTotal(panel, c, plot, yOf) {
    const y = Math.round(yOf(panel.pyramid.total)) + 0.5, pen = this.room.pen(c);
    c.strokeStyle = theme.colors.muted;
    c.lineWidth = 1.2;
    c.setLineDash([8, 4]);
    c.beginPath();
    pen.moveTo(plot.x, y);
    pen.lineTo(plot.x + plot.w, y);
    c.stroke();
    c.setLineDash([]);
  },

  drawLine(c, plot, v, series, yOf, room) {
    const pen = room.pen(c), l = v.l, max = l[series.key + '_max'], last = l[series.key + '_last'], fine = v.level === 0 && l.width / (this.view.to - this.view.from) * plot.w > 3;
    c.strokeStyle = theme.colors[series.color];
    c.lineWidth = 1.5;
    c.setLineDash(series.dash || []);
    c.beginPath();
    let open = false;
    for (let i = v.first; i <= v.last; i++) {
      if (max[i] < 0 || last[i] < 0) continue;
      const x = this.xOf(plot, l.start[i]), x2 = this.xOf(plot, l.end[i]);
      if (!open) { pen.moveTo(x, yOf(max[i])); open = true; } else pen.lineTo(x, yOf(max[i]));
      pen.lineTo(x2, yOf(fine ? last[i] : max[i]));
    }
    c.stroke();
    c.setLineDash([]);
  },

  drawVertical(c, plot, ns, color, dash, width) {
    const x = Math.round(this.xOf(plot, ns)) + 0.5;
    if (x < plot.x - 1 || x > plot.x + plot.w + 1) return;
    if (this.room) this.room.verticals.push(x);
    c.strokeStyle = color;
    c.lineWidth = width || 1;
    c.setLineDash(dash || []);
    c.beginPath();
    c.moveTo(x, plot.y - 4);
    c.lineTo(x, plot.y + plot.h);
    c.stroke();
    c.setLineDash([]);
    return x;
  },

  /* Marks: a strip of names on top; ranges as bands, instants as lines. */
  drawRanges(panel, c, plot) {
    c.font = '11px ' + FONT;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    let textEnd = -1, shade = 0;
    const marks = model.core.marks.filter((m) => !m.device || m.device === panel.pyramid.device).sort((a, b) => a.start_ns - b.start_ns);
    for (const m of marks) {
      const x = this.xOf(plot, m.start_ns), ranged = m.is_range && m.end_ns !== null;
      const x2 = ranged ? this.xOf(plot, m.end_ns) : x;
      if (x2 < plot.x || x > plot.x + plot.w) continue;
      if (ranged) {
        c.fillStyle = theme.colors.mark;
        c.globalAlpha = shade++ % 2 ? 0.10 : 0.05;
        if (x2 - x > 40) c.fillRect(x, plot.y - 4, x2 - x, plot.h + 4);
        c.globalAlpha = 0.7;
        c.fillRect(x, plot.y - 6, Math.max(1, x2 - x), 2);
        c.globalAlpha = 1;
      } else this.drawVertical(c, plot, m.start_ns, theme.colors.mark, [4, 3]);
      const left = Math.max(x, plot.x) + 3, room = Math.min(ranged ? x2 : plot.x + plot.w, plot.x + plot.w) - left - 4;
      if (left < textEnd) continue;
      const text = fitText(c, m.name, Math.min(room, 160));
      if (!text || (text !== m.name && text.length < 6)) continue;
      c.fillStyle = theme.colors.muted;
      c.fillText(text, left, plot.y - 14);
      textEnd = left + c.measureText(text).width + 8;
    }
  },

  drawSelection(panel, c, plot) {
    const drag = this.drag && this.drag.now !== undefined && this.drag.kind !== 'pan' ? this.drag : null, s = app.selection;
    const range = drag ? { from: Math.min(drag.start, drag.now), to: Math.max(drag.start, drag.now) } : s && s.shown && s.shown.to !== undefined ? s.shown : null;
    if (range) {
      c.fillStyle = theme.colors.accent;
      c.globalAlpha = drag || s.device === panel.device ? 0.16 : 0.06;
      const x = this.xOf(plot, range.from);
      c.fillRect(x, plot.y - 4, this.xOf(plot, range.to) - x, plot.h + 4);
      c.globalAlpha = 1;
    } else if (s && s.shown && s.shown.at !== undefined && (s.moment !== 'peak' || s.device === panel.device)) {
      const mine = s.device === panel.device, x = this.drawVertical(c, plot, s.shown.at, mine ? theme.colors.select : theme.colors.muted, mine ? [] : [2, 3], mine ? 1.5 : 1);
      if (x !== undefined && mine) {
        c.fillStyle = theme.colors.select;
        c.beginPath();
        c.moveTo(x - 5, plot.y - 9);
        c.lineTo(x + 5, plot.y - 9);
        c.lineTo(x, plot.y - 2);
        c.fill();
      }
    }
  },

  /* The instants whose figures are stored: small ticks at the foot. */
  drawInstants(c, plot) {
    if (!model.instants) return;
    c.fillStyle = theme.colors.muted;
    for (let i = 0; i < model.instants.count; i++) {
      const x = this.xOf(plot, model.instants.time[i]);
      if (x < plot.x || x > plot.x + plot.w) continue;
      c.globalAlpha = model.instants.flags[i] & 31 ? 0.9 : 0.4;
      c.fillRect(x - 0.5, plot.y + plot.h - (model.instants.flags[i] & 31 ? 6 : 3), 1, model.instants.flags[i] & 31 ? 6 : 3);
    }
    c.globalAlpha = 1;
  },

  drawFailures(panel, c, plot) {
    const mine = model.core.failures.filter((f) => f.device === panel.device), spoken = new Set(mine.slice(-5)); /* of very many the last have a label */
    const at = mine.map((f) => [f, this.drawVertical(c, plot, f.time, theme.colors.failure, [], 1.5)]);
    for (const [f, x] of at) if (x !== undefined && spoken.has(f)) this.say(c, plot, x, plot.y + plot.h - 27, '\u2715 failed: ' + bytes(f.size) + ' asked for', theme.colors.failure);
  },

  drawPeaks(panel, c, plot, yOf) {
    const labels = [];
    for (const what of ['active', 'reserved']) {
      if (!panel.on[what]) continue;
      for (const p of model.core.peaks) {
        if (p.device !== panel.device || p.what !== what || p.kind !== 'all' || p.value <= 0 || (p.rank > 0 && !this.morePeaks)) continue;
        const x = this.xOf(plot, p.time), y = yOf(p.value);
        if (x < plot.x - 1 || x > plot.x + plot.w + 1) continue;
        this.drawPeak(c, x, y, theme.colors[what], p.rank ? 3 : 4.5);
        let text = (what === 'reserved' ? 'reserved ' + model.reservedText(p.device, p.value) : tables.estimated(p.value, panel.pyramid.device)) + (model.core.merged ? ', the sum of peaks' : ' at ' + instant(p.time));
        if (what === 'active' && p.line >= 0 && model.m && plot.w > 520) text += '  ' + model.lineName(p.line) + ' ' + model.linePlace(p.line);
        labels.push([x, y, text, p.rank]);
      }
    }
    for (const [x, y, text] of labels.sort((a, b) => a[3] - b[3])) this.say(c, plot, x, y, text, theme.colors.text);
  },

  drawPeak(c, x, y, color, radius) {
    c.fillStyle = theme.colors.surface;
    c.strokeStyle = color;
    c.lineWidth = 2;
    c.beginPath();
    c.arc(x, y, radius, 0, 7);
    c.fill();
    c.stroke();
    this.room.boxes.push([x - 6, y - 6, x + 6, y + 6]);
  },

  /* A label near a point, where it hides no line and no other label; none where there is no such place: the figures are in the panel's head,
     too. */
  say(c, plot, x, y, text, color) {
    c.font = '600 11.5px ' + FONT;
    const fitted = fitText(c, text, plot.w - 20), width = c.measureText(fitted).width, top = plot.y + 8, foot = plot.y + plot.h - 18;
    let best = { far: 170 };
    const offer = (left, at) => {
      const far = Math.max(0, left - x, x - left - width) + Math.abs(at - y), box = [left - 3, at - 8, left + width + 3, at + 8];
      if (left < plot.x + 4 || left + width > plot.x + plot.w - 4 || at < top || at > foot || far >= best.far) return;
      if (this.room.isFree(box)) best = { far, left, at, box };
    };
    for (const by of [-11, 13, -28, 30, -45, 47, -62, 64, top - y])
      for (let aside = 9; aside < 120; aside += 12) { offer(x + aside, y + by); offer(x - aside - width, y + by); }
    if (!best.box) return;
    this.room.boxes.push(best.box);
    this.label(c, best.left, best.at, fitted, width, color);
  },

  label(c, left, y, text, width, color) {
    c.globalAlpha = 0.85;
    c.fillStyle = theme.colors.surface;
    c.fillRect(left - 3, y - 8, width + 6, 16);
    c.globalAlpha = 1;
    c.fillStyle = color;
    c.textAlign = 'left';
    c.textBaseline = 'middle';
    c.fillText(text, left, y);
  },

  readout(panel) {
    const at = this.cursor;
    for (const [key, span] of Object.entries(panel.values)) {
      let text;
      if (at === null) {
        const p = key === 'active' || key === 'reserved' ? model.peak(panel.device, key) : null;
        text = p ? 'peak ' + (key === 'reserved' ? model.reservedText(panel.device, p.value) : tables.estimated(p.value, panel.pyramid.device)) : key === 'total' ? bytes(panel.pyramid.total) : key === 'rss' ? 'peak ' + (panel.pyramid.device === 'host' ? model.core.rss_peak : bytes(this.most(panel.pyramid, 'rss_max'))) : '';
      } else if (key === 'total') text = bytes(panel.pyramid.total);
      else text = key === 'reserved' ? model.reservedText(panel.device, this.valueAt(panel.pyramid, key, at)) : key === 'active' || key === 'allocated' ? tables.estimated(this.valueAt(panel.pyramid, key, at), panel.pyramid.device) : bytes(this.valueAt(panel.pyramid, key, at));
      if (span.textContent !== text) span.textContent = text;
    }
    const time = at === null ? '' : instant(at, this.view.to - this.view.from) + '  ' + wallClock(model.core.start_unix_us, at);
    if (panel.time.textContent !== time) panel.time.textContent = time;
  },

  /* What the overview shows: [pyramid, colour]. */
  overviewed() {
    const panel = this.panelOf(app.device) || this.panels[0];
    return panel ? [[panel.pyramid, 'active']] : [];
  },

  drawOverview(c, w, h) {
    const plot = { x: 70, y: 4, w: Math.max(20, w - 82), h: h - 8 }, x = (ns) => Math.max(plot.x, Math.min(plot.x + plot.w, plot.x + (ns - this.begin) / this.length() * plot.w));
    const shown = this.overviewed().map(([p, color]) => {
      let level = 0;
      while (level + 1 < p.levels.length && p.levels[level].start.length > plot.w) level++;
      return [p.levels[level], color];
    });
    if (!shown.length) return;
    const max = shown.reduce((most, [l]) => l.active_max.reduce((a, b) => Math.max(a, b), most), 1);
    for (const [l, color] of shown) {
      c.fillStyle = theme.colors[color];
      c.globalAlpha = 0.35;
      c.beginPath();
      c.moveTo(x(l.start[0]), plot.y + plot.h);
      for (let i = 0; i < l.start.length; i++) {
        c.lineTo(x(l.start[i]), plot.y + plot.h - l.active_max[i] / max * plot.h);
        c.lineTo(x(l.end[i]), plot.y + plot.h - l.active_max[i] / max * plot.h);
      }
      c.lineTo(x(l.end[l.end.length - 1]), plot.y + plot.h);
      c.fill();
      c.globalAlpha = 1;
    }
    const left = x(this.view.from), right = x(this.view.to);
    c.fillStyle = theme.colors.bg;
    c.globalAlpha = 0.72;
    c.fillRect(plot.x, 0, left - plot.x, h);
    c.fillRect(right, 0, plot.x + plot.w - right, h);
    c.globalAlpha = 1;
    c.strokeStyle = theme.colors.accent;
    c.lineWidth = 1.5;
    c.strokeRect(left, 1, Math.max(2, right - left), h - 2);
    c.fillStyle = theme.colors.accent;
    for (const edge of [left, right]) c.fillRect(edge - 2.5, h / 2 - 9, 5, 18);
    c.fillStyle = theme.colors.muted;
    c.font = '11px ' + FONT;
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    c.fillText(this.begin ? 'whole part' : 'whole run', plot.x - 6, h / 2);
  },

  bindOverview(canvas) {
    const ns = (e) => {
      const box = canvas.getBoundingClientRect();
      return this.within(this.begin + (e.clientX - box.left - 70) / Math.max(20, box.width - 82) * this.length());
    };
    let drag = null;
    canvas.addEventListener('pointerdown', (e) => {
      const t = ns(e), grip = this.length() * 8 / Math.max(20, canvas.getBoundingClientRect().width - 82), v = this.view;
      if (Math.abs(t - v.from) < grip) drag = { fixed: v.to };
      else if (Math.abs(t - v.to) < grip) drag = { fixed: v.from };
      else if (t > v.from && t < v.to && v.to - v.from < this.length()) drag = { move: t, from: v.from, to: v.to };
      else drag = { fixed: t };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener('pointermove', (e) => {
      if (!drag) return;
      const t = ns(e);
      if (drag.move !== undefined) this.show(drag.from + t - drag.move, drag.to + t - drag.move);
      else if (Math.abs(t - drag.fixed) > this.length() / 1000) this.show(Math.min(t, drag.fixed), Math.max(t, drag.fixed));
    });
    canvas.addEventListener('pointerup', () => { drag = null; });
    canvas.addEventListener('dblclick', () => this.show(this.begin, this.whole));
    canvas.addEventListener('keydown', (e) => this.key(e, null));
  },

  /* Shows a part of the run; its length stays when it meets an end. */
  show(from, to) {
    const least = Math.min(this.length(), 1000), span = Math.max(least, Math.min(this.length(), to - from));
    from = Math.max(this.begin, Math.min(this.whole - span, from + (to - from - span) / 2));
    this.view.from = from;
    this.view.to = from + span;
    const o = byId('overview');
    o.setAttribute('aria-valuemin', String(this.begin / 1e9));
    o.setAttribute('aria-valuemax', String(this.whole / 1e9));
    o.setAttribute('aria-valuenow', String(from / 1e9));
    o.setAttribute('aria-valuetext', instant(from) + ' to ' + instant(this.view.to));
    redraw();
  },
  zoom(factor, around) {
    const v = this.view, span = v.to - v.from;
    const at = around !== undefined ? around : this.cursor !== null && this.cursor >= v.from && this.cursor <= v.to ? this.cursor : v.from + span / 2;
    this.show(at - (at - v.from) * factor, at + (v.to - at) * factor);
  },

  bindPanel(panel) {
    const canvas = panel.canvas;
    const x = (e) => e.clientX - canvas.getBoundingClientRect().left;
    const plot = () => this.plot(panel.figure.width, panel.figure.height);
    const time = (e) => Math.max(this.view.from, Math.min(this.view.to, this.timeOf(plot(), x(e))));
    canvas.addEventListener('wheel', (e) => {
      if (!e.ctrlKey && document.activeElement !== canvas) return; /* whoever only scrolls past does not mean the chart */
      const whole = this.view.to - this.view.from >= this.length();
      if (whole && e.deltaY > 0 && !e.deltaX) return; /* nothing to zoom out of: the document scrolls */
      e.preventDefault();
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        const by = e.deltaX / plot().w * (this.view.to - this.view.from);
        this.show(this.view.from + by, this.view.to + by);
      } else this.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.0022))), time(e));
    }, { passive: false });
    canvas.addEventListener('pointerdown', (e) => {
      if (e.button !== 0) return;
      this.pointers.set(e.pointerId, x(e));
      canvas.setPointerCapture(e.pointerId);
      const kind = e.shiftKey || this.tool === 'pan' ? 'pan' : e.altKey || this.tool === 'zoom' ? 'zoom' : 'select';
      this.drag = { kind, start: time(e), x: x(e), from: this.view.from, to: this.view.to, device: panel.device };
      if (this.pointers.size === 2) this.drag = { kind: 'pinch', xs: [...this.pointers.values()], from: this.view.from, to: this.view.to };
    });
    canvas.addEventListener('pointermove', (e) => {
      this.cursor = time(e);
      if (this.pointers.has(e.pointerId)) this.pointers.set(e.pointerId, x(e));
      const d = this.drag;
      if (d && d.kind === 'pinch' && this.pointers.size === 2) this.pinch(d, plot());
      else if (d && Math.abs(x(e) - d.x) > 4) {
        if (d.kind === 'pan') {
          const by = (d.x - x(e)) / plot().w * (d.to - d.from);
          this.show(d.from + by, d.to + by);
        } else d.now = time(e);
      }
      redraw();
    });
    const up = (e) => {
      this.pointers.delete(e.pointerId);
      const d = this.drag;
      if (!d || this.pointers.size) return;
      this.drag = null;
      if (e.type !== 'pointerup' || d.kind === 'pinch') { redraw(); return; }
      if (d.now !== undefined) {
        const from = Math.min(d.start, d.now), to = Math.max(d.start, d.now);
        if (d.kind === 'zoom') this.show(from, to);
        else this.onSelect({ device: panel.device, from, to });
      } else if (Math.abs(x(e) - d.x) <= 4 && d.kind !== 'pan') this.pick(panel, x(e), plot());
      redraw();
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('pointerleave', () => { if (!this.drag) { this.cursor = null; redraw(); } });
    canvas.addEventListener('dblclick', () => this.show(this.begin, this.whole));
    canvas.addEventListener('keydown', (e) => this.key(e, panel));
    canvas.addEventListener('blur', () => { this.cursor = null; redraw(); });
  },

  pinch(d, plot) {
    const now = [...this.pointers.values()], span = d.to - d.from;
    const a = d.from + (d.xs[0] - plot.x) / plot.w * span, b = d.from + (d.xs[1] - plot.x) / plot.w * span;
    if (Math.abs(now[1] - now[0]) < 8) return;
    const scale = (b - a) / (now[1] - now[0]), from = a - (now[0] - plot.x) * scale;
    this.show(from, from + plot.w * scale);
  },

  /* A click: the peak when it is meant, else the instant. */
  pick(panel, x, plot) {
    const near = (ns) => Math.abs(this.xOf(plot, ns) - x) <= 6;
    const peak = model.peak(panel.device, 'active');
    if (peak && near(peak.time)) { this.onSelect({ device: panel.device, peak: true }); return; }
    let at = this.timeOf(plot, x);
    if (model.instants) {
      let best = -1;
      for (let i = 0; i < model.instants.count; i++)
        if (near(model.instants.time[i]) && model.instants.flags[i] & 31 && (best < 0 || Math.abs(model.instants.time[i] - at) < Math.abs(model.instants.time[best] - at))) best = i;
      if (best >= 0) at = model.instants.time[best];
    }
    this.onSelect({ device: panel.device, at: this.within(at) });
  },

  key(e, panel) {
    const span = this.view.to - this.view.from, step = span / 100;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (e.ctrlKey || e.metaKey) return;
    if (by && (e.shiftKey || !panel)) this.show(this.view.from + by * span / 10, this.view.to + by * span / 10);
    else if (by) {
      const now = this.cursor === null ? this.view.from + span / 2 : this.cursor;
      this.cursor = this.within(now + by * step);
      if (this.cursor < this.view.from || this.cursor > this.view.to) this.show(this.cursor - span / 2, this.cursor + span / 2);
    } else if (e.key === '+' || e.key === '=') this.zoom(0.5);
    else if (e.key === '-') this.zoom(2);
    else if (e.key === '0') this.show(this.begin, this.whole);
    else if (e.key === 'Home') this.cursor = this.view.from;
    else if (e.key === 'End') this.cursor = this.view.to;
    else if (e.key === 'p' && panel) this.onSelect({ device: panel.device, peak: true });
    else if ((e.key === 'Enter' || e.key === ' ') && panel && this.cursor !== null) this.onSelect({ device: panel.device, at: this.cursor });
    else if (model.instants && (e.key === '[' || e.key === ']')) app.stepInstant(e.key === '[' ? -1 : 1);
    else return;
    e.preventDefault();
    redraw();
  },

  fillTable() {
    const rows = [], n = 20;
    for (let k = 0; k <= n; k++) {
      const t = this.begin + this.length() * k / n;
      rows.push(el('tr', {}, el('td', {}, instant(t)), el('td', {}, wallClock(model.core.start_unix_us, t)),
        this.panels.flatMap((p) => [el('td', {}, tables.estimated(this.valueAt(p.pyramid, 'active', t), p.pyramid.device)), el('td', {}, bytes(this.valueAt(p.pyramid, 'reserved', t))),
          el('td', {}, bytes(this.valueAt(p.pyramid, 'rss', t)))])));
    }
    const named = [...model.core.marks.map((m) => [m.start_ns, m.is_range && m.end_ns !== null ? instant(m.start_ns) + ' to ' + instant(m.end_ns) : instant(m.start_ns), m.name]),
      ...model.core.failures.map((f) => [f.time, instant(f.time), 'failed allocation: ' + bytes(f.size) + ' asked for on ' + (model.core.devices[f.device] || { name: '?' }).name])].sort((a, b) => a[0] - b[0]);
    const marks = named.length ? [el('p', {}, 'Marks, ranges and failures:'), el('table', { class: 'plain' }, el('tbody', {}, named.slice(0, 200).map((n) => el('tr', {}, el('td', {}, n[1]), el('td', {}, n[2])))))] : [];
    byId('timeline-table').replaceChildren(...marks, el('div', { class: 'table-wrap' }, el('table', {}, el('thead', {}, el('tr', {}, el('th', {}, 'Time'), el('th', {}, 'Clock'),
      this.panels.flatMap((p) => [el('th', {}, p.pyramid.device + ' active'), el('th', {}, 'reserved'), el('th', {}, p.pyramid.device === 'host' ? 'RSS' : 'used')]))),
    el('tbody', {}, rows))));
  },
};

/* Where the lines of a plot run, by pixel column, so that labels can keep out of their way. pen(path) draws on a path and notes it. */
function makeRoom(plot) {
  const columns = Math.ceil(plot.w) + 2, lines = [];
  return {
    verticals: [], boxes: [],
    pen(path) {
      const low = new Float32Array(columns).fill(Infinity), high = new Float32Array(columns).fill(-Infinity);
      let fromX = 0, fromY = 0;
      lines.push({ low, high });
      return {
        moveTo(x, y) { path.moveTo(x, y); fromX = x; fromY = y; },
        lineTo(x, y) {
          path.lineTo(x, y);
          const first = Math.max(0, Math.floor(Math.min(fromX, x) - plot.x)), last = Math.min(columns - 1, Math.ceil(Math.max(fromX, x) - plot.x));
          const yAt = (column) => Math.abs(x - fromX) < 1 ? y : fromY + (y - fromY) * Math.max(0, Math.min(1, (column + plot.x - fromX) / (x - fromX)));
          for (let i = first; i <= last; i++) {
            const a = Math.abs(x - fromX) < 1 ? fromY : yAt(i), b = yAt(i + 1);
            low[i] = Math.min(low[i], a, b);
            high[i] = Math.max(high[i], a, b);
          }
          fromX = x;
          fromY = y;
        },
      };
    },
    isFree([left, top, right, bottom]) {
      if (this.verticals.some((v) => v > left - 2 && v < right + 2) || this.boxes.some((b) => b[0] < right && b[2] > left && b[1] < bottom && b[3] > top)) return false;
      const first = Math.max(0, Math.floor(left - plot.x)), last = Math.min(columns - 1, Math.ceil(right - plot.x));
      for (const l of lines) for (let i = first; i <= last; i++) if (l.low[i] < bottom + 2 && l.high[i] > top - 2) return false;
      return true;
    },
  };
}

/* The most and the least that was active in each column of pixels of a plot. */
function activeColumns(plot, seen) {
  const l = seen.l, count = Math.ceil(plot.w), most = new Float64Array(count).fill(-1), least = new Float64Array(count), x = (ns) => timeline.xOf(plot, ns) - plot.x;
  const put = (from, to, high, low) => {
    for (let k = Math.max(0, Math.floor(from)); k < Math.min(count, Math.max(Math.floor(from) + 1, Math.ceil(to))); k++) {
      least[k] = most[k] < 0 ? low : Math.min(least[k], low);
      most[k] = Math.max(most[k], high);
    }
  };
  for (let i = seen.first; i <= seen.last; i++) {
    const end = x(l.end[i]), next = i < seen.last ? x(l.start[i + 1]) : end;
    put(x(l.start[i]), end, l.active_max[i], l.active_min[i]);
    if (next - end >= 1) put(Math.ceil(end), next, l.active_last[i], l.active_last[i]);
  }
  return { most, least };
}

/* From top[k] down to bottom[k], or one bottom, in each column of pixels: rectangles on whole pixels, as a path of thousands of edges takes a
   hundred times as long to fill where no GPU does it. */
function fillColumns(c, plot, top, bottom) {
  const foot = (k) => typeof bottom === 'number' ? bottom : bottom[k];
  for (let k = 0, next; k < top.length; k = next) {
    for (next = k + 1; next < top.length && top[next] === top[k] && foot(next) === foot(k); next++);
    if (foot(k) > top[k]) c.fillRect(plot.x + k, top[k], next - k, foot(k) - top[k]);
  }
}

/* All active bytes in grey, behind what is made of them. */
function drawBehind(c, plot, seen, y) {
  const { most } = activeColumns(plot, seen), edge = new Path2D(), base = y(0);
  c.fillStyle = OTHER_COLOR;
  c.globalAlpha = 0.22;
  fillColumns(c, plot, most.map((v) => y(Math.max(0, v))), base);
  c.globalAlpha = 1;
  most.forEach((v, k) => {
    if (v < 0) return;
    if (!k || most[k - 1] < 0) edge.moveTo(plot.x + k, base);
    edge.lineTo(plot.x + k, y(v));
    edge.lineTo(plot.x + k + 1, y(v));
    if (k + 1 === most.length || most[k + 1] < 0) edge.lineTo(plot.x + k + 1, base);
  });
  c.strokeStyle = OTHER_COLOR;
  c.lineWidth = 1;
  c.stroke(edge);
}
