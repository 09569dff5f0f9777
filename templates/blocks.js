/* blocks.js: the largest blocks as shapes over time, stacked as they were live; and segments with the blocks that are known in them. */

const BLOCK = { DEVICE: 0, KIND: 1, PROCESS: 2, THREAD: 3, ADDRESS: 4, SIZE: 5, FROM: 6, TO: 7, SITE: 8, NAME: 9 };

const blocks = {
  shapes: [], hits: [], segmentHits: [],

  start() {
    const canvas = byId('blocks-canvas'), select = byId('blocks-count');
    for (const n of [50, 100, 200, 400]) select.append(el('option', { value: n, selected: n === 200 }, count(n)));
    select.addEventListener('change', () => this.update());
    this.figure = figure(canvas, (c, w, h) => this.draw(c, w, h));
    canvas.addEventListener('pointermove', (e) => this.hover(e));
    canvas.addEventListener('pointerleave', () => { tip.hide(); this.hovered = null; redraw(this.figure); });
    canvas.addEventListener('click', (e) => { const s = this.hit(e); if (s && s.block[BLOCK.SITE] >= 0) app.showSite(s.block[BLOCK.SITE]); });
    canvas.addEventListener('keydown', (e) => this.key(e));
    const seg = byId('segments-canvas');
    this.segmentFigure = figure(seg, (c, w, h) => this.drawSegments(c, w, h));
    seg.addEventListener('pointermove', (e) => this.hoverSegment(e));
    seg.addEventListener('pointerleave', () => tip.hide());
  },

  /* What was never freed went with its process, where others went on. */
  endOf(block) {
    if (block[BLOCK.TO] >= 0) return block[BLOCK.TO];
    const end = model.processEnds.get(block[BLOCK.PROCESS]);
    return end === undefined ? timeline.whole : end;
  },

  plot(w, h) { return { x: 70, y: 10, w: Math.max(20, w - 82), h: h - 32 }; },
  mine() { return model.blocks.blocks.filter((b) => b[BLOCK.DEVICE] === app.device && (app.kind < 0 || b[BLOCK.KIND] === app.kind)); },

  /* Every drawn block keeps its place among the live ones; it sinks when one below it goes. */
  update() {
    const all = this.mine(), n = Number(byId('blocks-count').value);
    const chosen = all.slice().sort((a, b) => b[BLOCK.SIZE] - a[BLOCK.SIZE]).slice(0, n), events = [];
    this.shapes = chosen.map((block) => ({ block, from: block[BLOCK.FROM], to: this.endOf(block), steps: [] }));
    for (const s of this.shapes) events.push([s.from, 1, s], [s.to, 0, s]);
    events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const live = [];
    let top = 0;
    this.outline = [[0, 0]];
    for (const [t, born, s] of events) {
      if (born) {
        s.steps.push([t, top]);
        live.push(s);
        top += s.block[BLOCK.SIZE];
      } else {
        const at = live.indexOf(s);
        if (at < 0) continue;
        live.splice(at, 1);
        top -= s.block[BLOCK.SIZE];
        for (let k = at; k < live.length; k++) live[k].steps.push([t, live[k].steps[live[k].steps.length - 1][1] - s.block[BLOCK.SIZE]]);
      }
      this.outline.push([t, top]);
    }
    const sites = new Map();
    for (const s of this.shapes) sites.set(this.line(s.block), (sites.get(this.line(s.block)) || 0) + s.block[BLOCK.SIZE]);
    const order = [...sites.entries()].sort((a, b) => b[1] - a[1]).map((e) => e[0]);
    for (const s of this.shapes) s.color = STACK_COLORS[order.indexOf(this.line(s.block))] || OTHER_COLOR;
    const known = model.blocks.block_count;
    byId('blocks-note').textContent = all.length ? (this.shapes.length === 1 ? 'The one block of ' : 'The ' + count(this.shapes.length) + ' largest blocks of ') + model.core.devices[app.device].name + ', coloured by line: a shape lasts as long as its block and is as high as it is large. The grey line is all active bytes: what lies between is smaller blocks. The file keeps ' + (known === 1 ? 'one block' : 'the ' + count(known) + ' largest blocks') + ' of the run' + (tables.unknown ? ' that were sampled: of others it knows nothing.' : '.')
      : 'The file holds no single blocks for ' + model.core.devices[app.device].name + '.';
    byId('blocks-canvas').hidden = !all.length;
    byId('blocks-canvas').setAttribute('aria-label', 'The largest blocks over time, ' + count(this.shapes.length));
    this.fillTable();
    this.updateSegments();
    redraw(this.figure);
  },

  line(block) { return block[BLOCK.SITE] >= 0 ? model.m.sites.line[block[BLOCK.SITE]] : -1; },
  name(block) { const l = this.line(block); return l < 0 ? 'unknown stack' : model.lineName(l) + ' ' + model.linePlace(l); },

  draw(c, w, h) {
    if (!this.outline) return;
    const plot = this.plot(w, h), v = timeline.view, panel = timeline.panels.find((p) => p.device === app.device);
    let max = 1;
    const seen = panel ? timeline.visible(panel.pyramid, plot.w) : null;
    if (seen) for (let i = seen.first; i <= seen.last; i++) max = Math.max(max, seen.l.active_max[i]);
    for (const [t, top] of this.outline) if (t >= v.from && t <= v.to) max = Math.max(max, top);
    max *= 1.06;
    drawAxes(c, plot, max, v);
    const x = (t) => timeline.xOf(plot, t), y = (b) => plot.y + plot.h - b / max * plot.h;
    c.save();
    c.beginPath();
    c.rect(plot.x, 0, plot.w, plot.y + plot.h);
    c.clip();
    if (seen) drawBehind(c, plot, seen, y);
    this.hits = [];
    for (const s of this.shapes) {
      if (s.to < v.from || s.from > v.to) continue;
      const size = s.block[BLOCK.SIZE], height = size / max * plot.h;
      c.beginPath();
      for (let k = 0; k < s.steps.length; k++) {
        const left = x(s.steps[k][0]), right = x(k + 1 < s.steps.length ? s.steps[k + 1][0] : s.to);
        c.rect(left, y(s.steps[k][1] + size), Math.max(0.7, right - left), Math.max(0.7, height));
        this.hits.push({ s, left, right, top: y(s.steps[k][1] + size), bottom: y(s.steps[k][1]) });
      }
      c.fillStyle = s.color;
      c.globalAlpha = this.hovered === s ? 1 : 0.78;
      c.fill();
      c.globalAlpha = 1;
      if ((height > 3 && x(s.to) - x(s.from) > 4) || this.hovered === s) {
        c.strokeStyle = this.hovered === s ? theme.colors.text : theme.colors.surface;
        c.lineWidth = this.hovered === s ? 1.4 : 0.5;
        c.stroke();
      }
    }
    if (app.selection && app.selection.shown && app.selection.shown.at !== undefined) timeline.drawVertical(c, plot, app.selection.shown.at, theme.colors.select, [], 1.5);
    c.restore();
  },

  hit(e) {
    const box = byId('blocks-canvas').getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    const found = this.hits.find((h) => x >= h.left && x <= h.right && y >= h.top && y <= h.bottom);
    return found && found.s;
  },

  describe(s) {
    const b = s.block, thread = model.core.threads.find((t) => t.thread_id === b[BLOCK.THREAD]);
    return [(b[BLOCK.NAME] ? b[BLOCK.NAME] + ': ' : '') + bytes(b[BLOCK.SIZE]) + ' at 0x' + b[BLOCK.ADDRESS], this.name(b), 'from ' + instant(b[BLOCK.FROM]) + (b[BLOCK.TO] < 0 ? ', never freed' : ' for ' + instant(b[BLOCK.TO] - b[BLOCK.FROM])) + (thread ? ', thread ' + thread.name : '')];
  },

  hover(e) {
    const s = this.hit(e);
    if (s !== this.hovered) { this.hovered = s; redraw(this.figure); }
    if (!s) { tip.hide(); return; }
    const [size, where, when] = this.describe(s), stack = s.block[BLOCK.SITE] >= 0 ? model.frames(model.m.sites.node[s.block[BLOCK.SITE]]).slice(1, 7) : [];
    tip.show(e, el('div', {}, size), el('div', { class: 'fn' }, where), el('div', { class: 'muted' }, when), stack.map((f) => el('div', { class: 'fn muted' }, '\u2039 ' + model.m.functions.short[model.m.frames.function[f]].slice(0, 90))));
  },

  key(e) {
    if (e.key !== 'ArrowLeft' && e.key !== 'ArrowRight') { timeline.key(e, null); return; }
    const order = this.shapes.slice().sort((a, b) => a.from - b.from), i = order.indexOf(this.hovered);
    this.hovered = order[Math.max(0, Math.min(order.length - 1, i + (e.key === 'ArrowRight' ? 1 : -1)))];
    if (this.hovered) byId('blocks-status').textContent = this.describe(this.hovered).join(', ');
    e.preventDefault();
    redraw(this.figure);
  },

  fillTable() {
    const rows = this.shapes.slice(0, 40).map((s) => {
      const [size, where, when] = this.describe(s);
      return el('tr', {}, el('td', { class: 'text' }, size), el('td', { class: 'text' }, when), el('td', { class: 'name' }, where));
    });
    byId('blocks-table').replaceChildren(el('table', {}, el('tbody', {}, rows)));
  },

  /* Segments live at the chosen instant, each as a bar of its addresses. */
  updateSegments() {
    const at = app.selection && app.selection.shown ? (app.selection.shown.at !== undefined ? app.selection.shown.at : app.selection.shown.to) : timeline.whole;
    const mine = model.blocks.segments.filter((g) => g[BLOCK.DEVICE] === app.device);
    byId('segments').hidden = !mine.length;
    if (!mine.length) return;
    const live = this.mine().filter((b) => b[BLOCK.FROM] <= at && (b[BLOCK.TO] < 0 ? this.endOf(b) >= at : b[BLOCK.TO] > at));
    const joined = new Map(), starts = live.map((b) => BigInt('0x' + b[BLOCK.ADDRESS]));
    this.segments = mine.filter((g) => g[BLOCK.FROM] <= at && (g[BLOCK.TO] < 0 || g[BLOCK.TO] > at)).map((g) => {
      const start = BigInt('0x' + g[BLOCK.ADDRESS]), size = g[BLOCK.SIZE], inside = [];
      /* They come by address: a block may begin in one directly before this one. */
      const first = joined.get(g[BLOCK.PROCESS] + ':' + start) ?? start;
      joined.set(g[BLOCK.PROCESS] + ':' + (start + BigInt(size)), first);
      live.forEach((b, i) => {
        const from = Number(starts[i] - start), offset = Math.max(0, from), end = Math.min(size, from + b[BLOCK.SIZE]);
        if (b[BLOCK.PROCESS] === g[BLOCK.PROCESS] && starts[i] >= first && from < size && (from >= 0 || end > 0)) inside.push({ block: b, offset, size: end - offset });
      });
      return { segment: g, inside, used: inside.reduce((t, b) => t + b.size, 0) };
    }).sort((a, b) => b.segment[BLOCK.SIZE] - a.segment[BLOCK.SIZE]);
    const whole = model.total(app.device, 'all'), known = model.blocks.blocks.length === model.blocks.block_count && whole && this.mine().length >= whole.alloc_count;
    const shown = Math.min(24, this.segments.length);
    byId('segments-note').textContent = plural(this.segments.length, 'segment is', 'segments are') + ' held at ' + instant(at) + (this.segments.length > shown ? ', the ' + shown + ' largest are drawn' : '') + '. Filled: live blocks. '
      + (known ? 'Empty: holes.' : 'Empty: holes, or blocks smaller than the file keeps one by one.');
    byId('segments-canvas').style.height = Math.max(40, shown * 22 + 8) + 'px';
    byId('segments-canvas').setAttribute('aria-label', this.segments.slice(0, 8).map((g) => bytes(g.segment[BLOCK.SIZE]) + ' segment with ' + bytes(g.used) + ' in ' + plural(g.inside.length, 'known block', 'known blocks')).join('; '));
    redraw(this.segmentFigure);
  },

  drawSegments(c, w) {
    if (!this.segments || !this.segments.length) return;
    const largest = this.segments[0].segment[BLOCK.SIZE] || 1, left = 156, room = w - left - 12;
    c.font = '11px ' + FONT;
    c.textBaseline = 'middle';
    this.segmentHits = [];
    this.segments.slice(0, 24).forEach((g, i) => {
      const y = 6 + i * 22, size = g.segment[BLOCK.SIZE], width = Math.max(3, size / largest * room);
      c.fillStyle = theme.colors.muted;
      c.textAlign = 'right';
      c.fillText(bytes(g.used) + ' of ' + bytes(size), left - 8, y + 8);
      c.fillStyle = theme.colors.soft;
      c.fillRect(left, y, width, 16);
      c.strokeStyle = theme.colors.reserved;
      c.lineWidth = 1;
      c.strokeRect(left + 0.5, y + 0.5, width - 1, 15);
      for (const b of g.inside) {
        const x = left + b.offset / size * width, bw = Math.max(1, b.size / size * width);
        c.fillStyle = theme.colors.active;
        c.fillRect(x, y + 2, Math.max(1, bw - 0.5), 12);
        this.segmentHits.push({ b, x, w: bw, y });
      }
    });
  },

  hoverSegment(e) {
    const box = byId('segments-canvas').getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    const found = this.segmentHits.find((h) => x >= h.x - 1 && x <= h.x + h.w + 1 && y >= h.y && y <= h.y + 16);
    if (!found) { this.hoverWhole(e, x, y); return; }
    const [size, where, when] = this.describe({ block: found.b.block });
    tip.show(e, el('div', {}, size), el('div', { class: 'fn' }, where), el('div', { class: 'muted' }, when));
    byId('segments-status').textContent = size + ', ' + where + ', ' + when;
  },
  /* Where no block is: the segment. */
  hoverWhole(e, x, y) {
    const g = this.segments && this.segments[Math.floor((y - 6) / 22)];
    if (!g || x < 156) { tip.hide(); return; }
    const [size, where, when] = this.describe({ block: g.segment });
    tip.show(e, el('div', {}, 'Segment ' + size), el('div', { class: 'fn' }, where), el('div', { class: 'muted' }, when));
  },
};
