/* source.js: source text with what each line held, allocated and left, callees included. */

const source = {
  files: new Map(), shown: null, isPicked: false,

  start() {
    for (const f of model.source.files) {
      const lines = new Map();
      for (const part of f.parts) part.text.split('\n').forEach((text, i, all) => { if (i < all.length - 1) lines.set(part.first + i, text); });
      this.files.set(f.file, { missing: f.missing, lines });
    }
    byId('source-select').addEventListener('change', (e) => { this.shown = Number(e.target.value); this.isPicked = true; this.draw(); });
  },

  has(line) {
    const f = this.files.get(model.m.lines.file[line]);
    return !!f && f.lines.has(model.m.lines.line[line]);
  },

  /* Per line of code, callees included, whatever the stack: its share of the selection and of the run. */
  update() {
    const run = app.runMeasures();
    this.held = model.sumWithCallees('line', app.nodeTotals);
    this.blocks = model.sumWithCallees('line', model.nodeTotals(app.view.count));
    const key = app.device + ':' + app.kind;
    if (this.runKey !== key) { /* does not change with the instant */
      this.runKey = key;
      this.allocs = model.sumWithCallees('line', model.nodeTotals(run.alloc_count));
      this.temporary = model.sumWithCallees('line', model.nodeTotals(run.temporary_count));
      this.end = model.sumWithCallees('line', model.nodeTotals(run.end_bytes));
    }
    this.functions();
    this.draw(this.target);
  },

  /* The innermost line of a site that the program's author wrote and that has text; where there is none, of an installed package. */
  ownCaller(site) {
    const isInstalled = (line) => /\/(site|dist)-packages\//.test(model.m.files[model.m.lines.file[line]]);
    const line = model.ownLine(site, (l) => this.has(l) && !isInstalled(l));
    return line >= 0 ? line : model.ownLine(site, (l) => this.has(l));
  },

  /* The line of the program's own that holds most, in whatever library its blocks are made: where the source opens. */
  ownLine() {
    if (!this.own) { /* by site; does not change */
      this.own = new Int32Array(model.m.siteCount);
      for (let i = 0; i < this.own.length; i++) this.own[i] = this.ownCaller(i);
    }
    const sums = new Map();
    for (let i = 0; i < this.own.length; i++) if (this.own[i] >= 0 && app.view.bytes[i] > 0) sums.set(this.own[i], (sums.get(this.own[i]) || 0) + app.view.bytes[i]);
    return [...sums].reduce((best, x) => x[1] > best[1] ? x : best, [-1, 0])[0];
  },

  /* Functions with text, by what they hold; a function is where its lines are. */
  functions() {
    const m = model.m, held = model.sumWithCallees('function', app.nodeTotals), spans = new Map();
    for (let i = 0; i < m.lines.line.length; i++) {
      if (!this.has(i)) continue;
      const fn = m.lines.function[i], s = spans.get(fn) || { fn, file: m.lines.file[i], first: Infinity, last: 0, lines: [] };
      if (s.file !== m.lines.file[i]) continue;
      s.first = Math.min(s.first, m.lines.line[i]);
      s.last = Math.max(s.last, m.lines.line[i]);
      s.lines.push(i);
      spans.set(fn, s);
    }
    for (const s of spans.values()) if (m.functions.file[s.fn] === s.file && m.functions.line[s.fn] > 0 && m.functions.line[s.fn] < s.first && s.first - m.functions.line[s.fn] < 400) s.first = m.functions.line[s.fn];
    /* the program's own functions come before those of headers and libraries */
    const isOwn = (s) => s.lines.some((i) => m.lines.own[i] === true);
    this.spans = [...spans.values()].map((s) => ({ ...s, own: isOwn(s) })).sort((a, b) => b.own - a.own || held[b.fn] - held[a.fn]);
    const select = byId('source-select');
    select.replaceChildren(...this.spans.map((s) => el('option', { value: s.fn }, m.functions.short[s.fn] + ' - ' + tables.estimated(held[s.fn]))));
    select.hidden = !this.spans.length;
    const best = this.ownLine();
    this.target = null;
    if (!this.isPicked && best >= 0 && this.spans.some((s) => s.fn === m.lines.function[best])) {
      this.shown = m.lines.function[best];
      this.target = m.lines.line[best];
    }
    if (!this.spans.some((s) => s.fn === this.shown)) this.shown = this.spans.length ? this.spans[0].fn : null;
    if (this.shown !== null) select.value = String(this.shown);
    this.note();
  },

  note() {
    const m = model.m, own = new Set(m.lines.file.filter((f, i) => m.lines.own[i])); /* nobody misses the text of his C library */
    const missing = model.source.files.filter((f) => f.missing && own.has(f.file));
    let text = 'Each line with everything that it calls. ' + (app.view.point ? 'Held: live at the chosen instant.' : 'Allocated: in the chosen range.');
    if (!model.source.with_source) text = 'Source text was left out (--no-source).';
    else if (!this.spans.length) text = 'No source text: ' + (missing.length ? 'for example ' + model.m.files[missing[0].file] + ' was ' + missing[0].missing + '.' : 'the program has no debug information with source lines.') + ' Record with -g code and --source to keep it in the file.';
    else if (missing.length) text += ' Without text: ' + missing.slice(0, 3).map((f) => baseName(model.m.files[f.file]) + ' (' + f.missing + ')').join(', ') + (missing.length > 3 ? ' and ' + plural(missing.length - 3, 'more file.', 'more files.') : '.');
    byId('source-note').textContent = text;
  },

  /* The last line to show of a function: at most two behind the last that is known of it, none of what follows it, which is no deeper than its beginning. */
  lastLine(span) {
    const text = this.files.get(span.file).lines, depth = (n) => text.get(n).replace(/\t/g, '        ').search(/\S/);
    const isDeclared = model.m.functions.line[span.fn] === span.first && text.has(span.first) && !model.m.functions.name[span.fn].startsWith('<');
    let last = span.last;
    for (let n = span.last + 1; n <= span.last + 2 && text.has(n); n++) {
      if (depth(n) < 0) continue;
      const isEnd = /^\s*\}/.test(text.get(n)) && depth(n) <= depth(span.first);
      if (isDeclared && !isEnd && depth(n) <= depth(span.first) && !/^\s*([#)\]{]|\w+:(?!:))/.test(text.get(n))) break;
      last = n;
      if (isDeclared && isEnd) break;
    }
    return last;
  },

  rows(file, first, last, target) {
    const m = model.m, f = this.files.get(file), byLine = new Map(), rows = [];
    for (let i = 0; i < m.lines.line.length; i++) {
      if (m.lines.file[i] !== file || m.lines.line[i] < first || m.lines.line[i] > last) continue;
      const sum = byLine.get(m.lines.line[i]) || { held: 0, blocks: 0, allocs: 0, temporary: 0, end: 0 };
      for (const key of Object.keys(sum)) sum[key] = Math.max(sum[key], this[key][i]); /* inlined into several functions: not twice */
      byLine.set(m.lines.line[i], sum);
    }
    let most = 0;
    for (const v of byLine.values()) most = Math.max(most, v.held);
    for (let n = first; n <= last; n++) {
      if (!f.lines.has(n)) { if (rows.length && rows[rows.length - 1].className !== 'gap') rows.push(el('tr', { class: 'gap' }, el('td', { colspan: '7' }, '\u22ee'))); continue; }
      const v = byLine.get(n), number = el('td', { class: 'number' }, n);
      if (v && v.held > 0) number.style.borderRightColor = 'rgba(' + theme.colors.heat + ',' + (0.15 + 0.85 * v.held / most).toFixed(2) + ')';
      rows.push(el('tr', { class: (v ? 'held' : '') + (n === target ? ' target' : ''), 'data-line': n },
        ['held', 'blocks', 'allocs', 'temporary', 'end'].map((key) => el('td', {}, v && v[key] ? (key === 'held' || key === 'end' ? tables.estimated(v[key]) : tables.counted(v[key])) : '')), number, el('td', { class: 'code' }, f.lines.get(n))));
    }
    return rows;
  },

  draw(target) {
    const span = this.spans.find((s) => s.fn === this.shown), box = byId('source-view');
    if (!span) { box.replaceChildren(); return; }
    const m = model.m, heads = [app.view.point ? 'Held' : 'Allocated', app.view.point ? 'Blocks' : 'Allocs', 'Allocations', 'Temporary', 'At end', 'Line', ''];
    const rows = this.rows(span.file, Math.max(1, span.first - (m.functions.line[span.fn] === span.first ? 0 : 2)), this.lastLine(span), target);
    box.replaceChildren(el('div', { class: 'source' }, el('div', { class: 'source-head' }, el('span', { class: 'fn' }, m.functions.name[span.fn]), ' ', el('span', { class: 'at' }, m.files[span.file] + ':' + span.first)),
      el('div', { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': 'Source' }, el('table', {}, el('thead', {}, el('tr', {}, heads.map((h, i) => el('th', { scope: 'col', class: i === 6 ? 'text' : null }, h)))), el('tbody', {}, rows)))));
    const row = target && box.querySelector('tr.target'), view = box.querySelector('.table-wrap');
    if (row) view.scrollTop = row.offsetTop - view.clientHeight / 2; /* the page itself stays where it is */
  },

  showLine(line) {
    this.shown = model.m.lines.function[line];
    this.isPicked = true;
    if (!this.spans.some((s) => s.fn === this.shown)) return;
    byId('source-select').value = String(this.shown);
    byId('source').scrollIntoView();
    this.draw(model.m.lines.line[line]);
  },

  /* The few lines around one, for the detail of a row. */
  snippet(line) {
    if (!this.has(line) || !this.held) return null;
    const n = model.m.lines.line[line], f = this.files.get(model.m.lines.file[line]), rows = [];
    for (let k = n - 3; k <= n + 3; k++) if (f.lines.has(k)) rows.push(el('tr', { class: k === n ? 'target' : null }, el('td', { class: 'number' }, k), el('td', { class: 'code' }, f.lines.get(k))));
    return el('div', { class: 'source' }, el('div', { class: 'table-wrap' }, el('table', {}, el('tbody', {}, rows))));
  },
};
