/* flame.js: the icicle: callers above what they call (or the other way round); boxes of one function under one caller are one. */

const FLAME_ROW = 20;

const flame = {
  up: false, libraries: false, measure: 'selection', root: null, zoomed: null, focus: null, boxes: [], needle: '', depth: 1,
  measures: [['selection', 'Chosen instant or range'], ['at_peak_bytes', 'Bytes at the peak'], ['alloc_bytes', 'Bytes allocated'], ['alloc_count', 'Allocations'],
    ['temporary_count', 'Temporary allocations'], ['end_bytes', 'Live at the end']],

  start() {
    byId('flame-measure').append(...this.measures.filter(([key]) => key !== 'temporary_count' || tables.isThere('temporary')).map(([key, label]) => el('option', { value: key }, label)));
    byId('flame-measure').addEventListener('change', (e) => { this.measure = e.target.value; this.update(); });
    for (const b of document.querySelectorAll('[data-flame]')) b.addEventListener('click', () => {
      this.up = b.dataset.flame === 'up';
      press(b.parentElement, (x) => x === b);
      this.update();
    });
    byId('flame-libraries').addEventListener('change', (e) => { this.libraries = e.target.checked; this.update(); });
    byId('flame-search').addEventListener('input', (e) => { this.needle = e.target.value.trim().toLowerCase(); this.found(); redraw(this.figure); });
    const canvas = byId('flame-canvas');
    canvas.style.height = '200px';
    this.hiddenName = model.m.frames.flags.some((f) => (f & FRAME.LANGUAGE) === FRAME.PYTHON) ? 'interpreter and libraries' : 'libraries';
    byId('flame-libraries-name').textContent = this.hiddenName;
    this.figure = figure(canvas, (c, w, h) => this.draw(c, w, h));
    canvas.addEventListener('pointermove', (e) => { const b = this.hit(e); if (b) this.showTip(e, b); else tip.hide(); });
    canvas.addEventListener('pointerleave', () => tip.hide());
    canvas.addEventListener('click', (e) => { const b = this.hit(e); if (b) this.zoom(b.node); });
    canvas.addEventListener('keydown', (e) => this.key(e));
  },

  count() { return this.measure.endsWith('_count'); },
  /* Of a sampled recording with what it can be off by. */
  text(value) { return this.count() ? tables.counted(value) : tables.estimated(value); },

  /* Sums by site and by node; the first of them are the widths, a page that compares has more beside them. */
  measured() {
    const isChosen = this.measure === 'selection', values = isChosen ? app.view.bytes : model.only(model.m.sites[this.measure], app.device, app.kind);
    return [{ values, totals: isChosen ? app.nodeTotals : model.nodeTotals(values) }];
  },

  update() {
    this.columns = this.measured();
    this.totals = this.columns[0].totals;
    this.root = { name: 'all', value: 0, sums: this.noSums(), parent: null, depth: 0, items: [], kind: 'root', children: null };
    this.root.label = model.core.devices.length > 1 ? 'all of ' + model.core.devices[app.device].name : 'all';
    if (this.up) this.root.items = this.leafItems();
    else for (let i = 0; i < model.m.nodeCount; i++) if (model.m.nodes.parent[i] < 0 && this.totals[i] > 0) this.root.items.push([i, this.sumsOf(i)]);
    for (const [, sums] of this.root.items) this.add(this.root, sums);
    this.root.frameless = true;
    this.zoomed = this.focus = this.fork();
    byId('flame-status').textContent = '';
    this.found();
    this.resize();
    this.fillTable();
  },

  noSums() { return this.columns.map(() => 0); },
  sumsOf(node) { return this.columns.map((c) => c.totals[node]); },
  add(box, sums) {
    sums.forEach((v, k) => { box.sums[k] += v; });
    box.value = box.sums[0];
  },

  leafItems() {
    const at = new Map(), values = this.columns[0].values;
    for (let i = 0; i < values.length; i++) {
      if (!(values[i] > 0)) continue;
      const own = model.m.sites.node[i], node = this.hides(own) ? model.m.nodes.above[own] : own;
      if (!at.has(node)) at.set(node, this.noSums());
      this.columns.forEach((c, k) => { at.get(node)[k] += c.values[i]; });
    }
    return [...at];
  },

  /* The interpreter's, the allocator's and the standard libraries' frames give their place to what they call. */
  hides(node) { return !this.libraries && (model.m.frames.flags[model.m.nodes.frame[node]] & FRAME.LIBRARY) !== 0; },
  above(node) { return this.libraries ? model.m.nodes.parent[node] : model.m.nodes.above[node]; },

  /* Where it opens: below what all stacks go through. Branches that are too thin to see make no fork. */
  fork() {
    const least = this.root.value / 100;
    for (let n = this.root; ; ) {
      const kids = this.children(n), wide = kids.filter((k) => k.value >= least);
      if (!kids.length) return this.root;
      if (wide.length !== 1 || n.value - wide[0].value >= least) return n;
      n = wide[0];
    }
  },

  /* <module> says nothing without its file. */
  nameOf(frame) {
    const m = model.m, name = m.functions.short[m.frames.function[frame]], file = m.frames.file[frame];
    return name.startsWith('<') && (m.frames.flags[frame] & FRAME.LANGUAGE) === FRAME.PYTHON && file >= 0 ? name + ' ' + baseName(m.files[file]) : name;
  },

  /* Children are made when they are first seen: by function, largest first. */
  children(node) {
    if (node.children) return node.children;
    const m = model.m, groups = new Map();
    const put = (raw, sums) => {
      /* stacks of nothing but what is hidden are one box */
      const frame = raw < 0 ? -1 : m.nodes.frame[raw], folded = raw >= 0 && m.frames.flags[frame] & FRAME.FOLDED, key = raw < 0 ? -1 : m.frames.function[frame] + (folded ? 0.5 : 0);
      let g = groups.get(key);
      if (!g) groups.set(key, g = { name: raw < 0 ? this.hiddenName + ' alone' : this.nameOf(frame), fn: raw < 0 ? undefined : m.frames.function[frame], frame, value: 0, sums: this.noSums(), parent: node, depth: node.depth + 1, items: [], color: raw < 0 ? 'folded' : model.frameColor(frame), children: raw < 0 ? [] : null });
      this.add(g, sums);
      g.items.push([raw, sums]);
    };
    /* the shown nodes below one; what is hidden to its end counts for the nearest shown caller, or for nobody */
    const below = (raw, rest) => {
      for (let k = this.firstChild(raw); k >= 0; k = this.nextChild(k)) {
        if (!(this.totals[k] > 0)) continue;
        if (this.hides(k)) { below(k, rest); continue; }
        const sums = this.sumsOf(k);
        put(k, sums);
        sums.forEach((v, c) => { rest[c] -= v; });
      }
    };
    if (this.up) { for (const [raw, sums] of node.items) { const next = node.frameless ? raw : this.above(raw); if (node.frameless || next >= 0) put(next, sums); } }
    else if (node.frameless) {
      const rest = this.noSums();
      for (const [raw, sums] of node.items) {
        if (!this.hides(raw)) { put(raw, sums); continue; }
        sums.forEach((v, c) => { rest[c] += v; });
        below(raw, rest);
      }
      if (rest[0] > 0) put(-1, rest);
    } else for (const [raw] of node.items) below(raw, this.noSums());
    node.children = [...groups.values()].sort((a, b) => b.value - a.value);
    return node.children;
  },
  /* Nodes are numbered callers first, each right before its callees. */
  firstChild(i) { return i + 1 < model.m.nodeCount && model.m.nodes.parent[i + 1] === i ? i + 1 : -1; },
  nextChild(i) {
    if (!this.next) this.makeNext();
    return this.next[i];
  },
  makeNext() {
    const m = model.m, last = new Map();
    this.next = new Int32Array(m.nodeCount).fill(-1);
    for (let i = 0; i < m.nodeCount; i++) {
      const p = m.nodes.parent[i];
      if (last.has(p)) this.next[last.get(p)] = i;
      last.set(p, i);
    }
  },

  /* What is visible: boxes of the zoomed node's ancestors at full width, then its tree down to half a pixel. */
  layout(w) {
    const boxes = [], path = [];
    for (let n = this.zoomed; n; n = n.parent) path.unshift(n);
    const between = path.length - 3; /* callers that all goes through take one row together; the line above names them */
    if (between > 1) path.splice(1, between, this.root);
    path.forEach((n, i) => boxes.push({ node: n, x: 0, w, row: i, above: n !== this.zoomed, text: i === 1 && between > 1 ? '\u2026 ' + count(between) + ' callers of all this' : null }));
    let rows = path.length;
    const place = (node, x, width, row) => {
      for (const k of this.children(node)) {
        const kw = k.value / node.value * width;
        if (kw >= 0.6) {
          boxes.push({ node: k, x, w: kw, row });
          rows = Math.max(rows, row + 1);
          if (row < 300) place(k, x, kw, row + 1);
        }
        x += kw;
      }
    };
    if (this.zoomed.value > 0) place(this.zoomed, 0, w, path.length);
    this.boxes = boxes;
    return rows;
  },

  resize() {
    const width = byId('flame-canvas').getBoundingClientRect().width || 1000;
    const rows = this.layout(width);
    byId('flame-canvas').style.height = Math.max(60, rows * FLAME_ROW + 2) + 'px';
    this.path();
    this.legend();
    redraw(this.figure);
  },

  draw(c, w) {
    if (!this.root) return;
    this.layout(w);
    c.font = '12px ' + FONT;
    c.textBaseline = 'middle';
    c.textAlign = 'left';
    for (const b of this.boxes) {
      const y = b.row * FLAME_ROW, match = this.needle && b.node.fn !== undefined && this.matches(b.node);
      c.fillStyle = match ? theme.colors.found : this.color(b.node);
      c.globalAlpha = b.above ? 0.55 : this.needle && !match ? 0.6 : 1;
      c.fillRect(b.x, y, Math.max(0.6, b.w - 0.7), FLAME_ROW - 1);
      c.globalAlpha = 1;
      if (b.node === this.focus && document.activeElement === byId('flame-canvas')) {
        c.strokeStyle = theme.colors.text;
        c.lineWidth = 2;
        c.strokeRect(b.x + 1, y + 1, Math.max(2, b.w - 3), FLAME_ROW - 3);
      }
      if (b.w < 28) continue;
      c.fillStyle = b.node.fn === undefined ? theme.colors.text : theme.colors['flame-text'];
      const name = b.text || (b.node === this.root ? this.root.label + ': ' + this.whole() : b.node.name);
      c.fillText(fitText(c, name, b.w - 8), b.x + 4, y + FLAME_ROW / 2);
    }
    if (this.root.value <= 0) {
      c.fillStyle = theme.colors.muted;
      c.fillText('Nothing to show: the measure is zero here.', 8, FLAME_ROW * 1.7);
    }
  },

  color(node) { return theme.colors[node === this.root ? 'soft' : node.color]; },

  /* One legend: what is drawn, by what it belongs to. */
  legend() {
    const seen = new Map();
    for (const b of this.boxes) if (b.node.fn !== undefined) seen.set(b.node.color, (seen.get(b.node.color) || new Set()).add(b.node.color === 'folded' ? 'smaller stacks, folded' : model.m.groups[model.m.frames.group[b.node.frame]].name));
    const order = ['flame-1', 'flame-2', 'flame-3', 'flame-4', 'flame-5', 'flame-6', 'flame-7', 'flame-8', 'flame-other', 'folded'];
    byId('flame-legend').replaceChildren(...order.filter((c) => seen.has(c)).map((c) => {
      const key = el('span', { class: 'key' }), names = [...seen.get(c)];
      key.style.background = 'var(--' + c + ')';
      return el('li', { title: names.join(', ').slice(0, 400) }, key, names.length > 1 ? plural(names.length, 'other module', 'other modules') : names[0]);
    }));
  },

  matches(node) {
    const m = model.m;
    if (m.functions.name[node.fn].toLowerCase().includes(this.needle)) return true;
    const file = m.frames.file[node.frame], module = m.frames.module[node.frame];
    return (file >= 0 && m.files[file].toLowerCase().includes(this.needle)) || (module >= 0 && baseName(m.modules[module]).toLowerCase().includes(this.needle));
  },

  /* The share of everything whose stack has a match, each stack once. */
  found() {
    const out = byId('flame-found');
    if (!this.needle || !this.totals) { out.textContent = ''; return; }
    const m = model.m, fn = m.functions.name.map((n) => n.toLowerCase().includes(this.needle)), file = m.files.map((n) => n.toLowerCase().includes(this.needle));
    const module = m.modules.map((n) => baseName(n).toLowerCase().includes(this.needle)), below = new Uint8Array(m.nodeCount);
    let sum = 0, all = 0, seen = 0;
    const hidden = new Uint8Array(m.nodeCount); /* has a match among the frames that are not drawn */
    for (let i = 0; i < m.nodeCount; i++) {
      const p = m.nodes.parent[i], f = m.nodes.frame[i];
      if (p < 0) all += this.totals[i];
      if (p >= 0) { below[i] = below[p]; hidden[i] = hidden[p]; }
      if (below[i] || !(fn[m.frames.function[f]] || file[m.frames.file[f]] || module[m.frames.module[f]])) continue;
      if (!this.hides(i)) { below[i] = 1; seen += this.totals[i]; }
      if (!hidden[i]) { hidden[i] = 1; sum += this.totals[i]; }
    }
    this.onlyHidden = sum > 0 && !seen;
    out.textContent = 'Found in ' + percent(sum, all) + ', ' + this.text(sum) + (sum > seen ? seen > 0 ? ', some of it in hidden frames' : ', in hidden frames' : '');
  },

  search(text) {
    byId('flame-search').value = text;
    this.needle = text.trim().toLowerCase();
    this.found();
    if (this.onlyHidden) {
      byId('flame-libraries').checked = this.libraries = true;
      this.update();
    }
    redraw(this.figure);
  },

  hit(e) {
    const box = byId('flame-canvas').getBoundingClientRect(), x = e.clientX - box.left, row = Math.floor((e.clientY - box.top) / FLAME_ROW);
    return this.boxes.find((b) => b.row === row && x >= b.x && x < b.x + b.w);
  },

  /* Where a box is: its line when it has one, else how many. */
  where(node) {
    const m = model.m, places = new Set(node.items.map(([raw]) => m.frames.lineIndex[m.nodes.frame[raw]]));
    const [first] = places;
    return places.size === 1 ? model.linePlace(first) : plural(places.size, 'line', 'lines');
  },

  /* What a box stands for, in figures. */
  amount(node) { return this.text(node.value) + ', ' + percent(node.value, this.root.value) + ' of all'; },
  whole() { return this.text(this.root.value); },

  describe(node) {
    if (node === this.root) return 'All: ' + this.whole();
    if (node.fn === undefined) return node.name + ': ' + this.amount(node);
    const own = this.up ? 0 : node.value - this.children(node).reduce((t, k) => t + k.value, 0);
    return model.m.functions.name[node.fn] + ', ' + this.where(node) + ': ' + this.amount(node) + (own > 0 && own < node.value ? '; itself ' + this.text(own) : '');
  },

  showTip(e, b) {
    if (b.node.fn === undefined) { tip.show(e, el('div', {}, this.describe(b.node))); return; }
    const m = model.m, group = m.groups[m.frames.group[b.node.frame]];
    tip.show(e, el('div', { class: 'fn' }, m.functions.name[b.node.fn].slice(0, 300)), el('div', { class: 'muted' }, this.where(b.node) + (group ? ', ' + group.name : '')),
      el('div', {}, this.amount(b.node)));
  },

  zoom(node) {
    this.zoomed = this.focus = node;
    byId('flame-status').textContent = this.describe(node);
    this.resize();
  },

  path() {
    const parts = [];
    for (let n = this.zoomed; n; n = n.parent) {
      const to = n;
      parts.unshift(n.parent ? ' \u203a ' : '', n === this.zoomed ? el('span', {}, n.name) : el('button', { type: 'button', click: () => this.zoom(to) }, n.name));
    }
    if (parts.length > 14) parts.splice(2, parts.length - 12, ' \u203a \u2026');
    byId('flame-path').replaceChildren(...parts);
  },

  key(e) {
    const box = (n) => this.boxes.find((b) => b.node === n);
    let next = null;
    const siblings = this.focus.parent ? this.children(this.focus.parent) : [this.focus], i = siblings.indexOf(this.focus);
    if (e.key === 'ArrowDown') next = this.children(this.focus)[0];
    else if (e.key === 'ArrowUp') next = this.focus.parent;
    else if (e.key === 'ArrowRight') next = siblings[i + 1];
    else if (e.key === 'ArrowLeft') next = siblings[i - 1];
    else if (e.key === 'Enter') { this.zoom(this.focus); e.preventDefault(); return; }
    else if (e.key === 'Escape' || e.key === 'Backspace') { this.zoom(this.zoomed.parent || this.root); e.preventDefault(); return; }
    else return;
    e.preventDefault();
    if (!next || !box(next)) return;
    this.focus = next;
    byId('flame-status').textContent = this.describe(next);
    redraw(this.figure);
  },

  fillTable() {
    const lines = [];
    const walk = (node, depth) => {
      for (const k of this.children(node).slice(0, 5)) {
        if (lines.length > 60 || k.value < this.root.value * 0.02 || depth > 24) return;
        const li = el('div', {}, k.name + ' ' + this.amount(k));
        li.style.paddingLeft = Math.min(depth, 20) * 10 + 'px';
        lines.push(li);
        walk(k, depth + 1);
      }
    };
    walk(this.root, 0);
    byId('flame-table').replaceChildren(...lines);
    byId('flame-canvas').setAttribute('aria-label', 'Flame graph of ' + this.whole() + ' of ' + model.core.devices[app.device].name + ': ' + this.measures.find((x) => x[0] === this.measure)[1]
      + (this.children(this.root)[0] ? '. Largest: ' + this.children(this.root)[0].name : ''));
  },
};
