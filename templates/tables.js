/* tables.js: lines, functions, files, modules, threads, leaks, temporaries of the selection; a row shows its stacks and source. */

const TABLE_STEP = 20;

/* A place as it fits; of a caller and others, how many there are stays. */
function placeSpan(at) {
  const others = /^(<- .*)( and [\d,]+ others?)$/.exec(at);
  return others ? el('span', { class: 'at callers-at' }, el('span', {}, others[1]), el('span', {}, others[2])) : el('span', { class: 'at' }, at);
}

const tables = {
  tab: 'line', sort: null, ascending: false, filter: '', shown: TABLE_STEP, chosen: null, first: null, rows: [], nothing: 'Nothing here.',
  /* What a sampled recording can be off by at most, in per cent, in 95 of 100. */
  margin(value, device = model.core.devices[app.device].name) {
    const mean = model.core.sample_bytes;
    if (!mean || !(value > 0) || device !== 'host') return '';
    const p = 196 * Math.sqrt(mean / value);
    return ' \u00b1' + (p < 10 ? p.toFixed(1) : Math.round(p)) + '%';
  },
  estimated(value, device) { return bytes(value) + this.margin(value, device); },
  /* Beside what has no bound. */
  get unknown() { return model.core.sample_bytes && model.core.devices[app.device].name === 'host' ? ' \u00b1?' : ''; },
  /* The same of a number of blocks, which has no bound: small ones are met more seldom. */
  counted(value) { return count(value) + (this.margin(value) ? ' \u00b1?' : ''); },
  blocks(value) { return this.counted(value) + (value === 1 ? ' block' : ' blocks'); },

  tabs: [['line', 'Lines'], ['function', 'Functions'], ['file', 'Files'], ['module', 'Modules'], ['thread', 'Threads'], ['leak', 'Leaks'], ['temporary', 'Temporaries'], ['transfer', 'Transfers']],

  start() {
    const tabs = byId('tabs');
    for (const [key, label] of this.tabs)
      tabs.append(el('button', { type: 'button', role: 'tab', 'data-tab': key, 'aria-controls': 'table', click: () => this.open(key) }, label));
    tabs.addEventListener('keydown', (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (!by) return;
      const there = this.tabs.filter((t) => this.isThere(t[0])), i = there.findIndex((t) => t[0] === this.tab), next = there[(i + by + there.length) % there.length][0];
      this.open(next);
      tabs.querySelector('[data-tab="' + next + '"]').focus();
    });
    byId('table-filter').addEventListener('input', (e) => { this.filter = e.target.value.toLowerCase(); this.shown = TABLE_STEP; this.draw(); this.drawDetail(); });
  },

  open(tab) {
    this.tab = tab;
    this.chosen = null;
    this.sort = null;
    this.shown = TABLE_STEP;
    this.update();
    app.remember();
  },

  /* What the detail is of: the row that was chosen; else the first one, so that the page opens on an answer. */
  current() { return this.chosen || this.first; },

  isThere(tab) { return tab === 'temporary' ? !model.core.sample_bytes : tab !== 'transfer' || this.transfers().length > 0; },
  /* A tab's columns and rows, and what is to be said of them. */
  make(tab) {
    const makers = { thread: 'threadRows', leak: 'leakRows', temporary: 'temporaryRows', transfer: 'transferRows' };
    return makers[tab] ? this[makers[tab]]() : this.scopeRows(tab);
  },

  /* New rows for the selection; what was chosen stays chosen. */
  update() {
    if (!this.isThere(this.tab)) this.tab = 'line';
    const made = this.make(this.tab);
    this.columns = made.columns;
    this.rows = made.rows;
    byId('table-note').textContent = made.note || '';
    byId('table-note').hidden = !made.note;
    for (const b of byId('tabs').children) {
      b.setAttribute('aria-selected', String(b.dataset.tab === this.tab));
      b.tabIndex = b.dataset.tab === this.tab ? 0 : -1;
      b.hidden = !this.isThere(b.dataset.tab);
    }
    if (!this.sort || !this.columns.some((c) => c.key === this.sort)) { this.sort = made.sort || this.columns[0].key; this.ascending = false; }
    this.draw();
    this.drawDetail();
  },

  nameCell(scope, key) {
    const m = model.m;
    if (scope === 'line') return { name: model.lineName(key), at: model.linePlace(key), full: model.lineFull(key) };
    if (scope === 'function') {
      const file = m.functions.file[key];
      return { name: m.functions.short[key], at: file >= 0 ? baseName(m.files[file]) + ':' + m.functions.line[key] : '', full: m.functions.name[key] };
    }
    if (key === model.scopeSize(scope) - 1) return { name: scope === 'file' ? '(no source position)' : '(no module)', at: scope === 'file' && model.core.folded.folded_lines ? 'and small lines' : '', full: '' };
    const path = scope === 'file' ? m.files[key] : m.modules[key];
    return { name: baseName(path), at: path, full: path };
  },

  scopeRows(scope) {
    const view = app.view, c = [], rows = [], run = app.runMeasures();
    const self = model.sumSelf(scope, view.bytes), blocks = model.sumSelf(scope, view.count), callees = model.sumWithCallees(scope, app.nodeTotals);
    const allocs = model.sumSelf(scope, run.alloc_count), temporary = model.sumSelf(scope, view.point ? run.temporary_count : view.temporary);
    const end = model.sumSelf(scope, run.end_bytes), grown = view.point ? null : model.sumSelf(scope, view.grown);
    c.push({ key: 'self', label: view.point ? 'Held' : 'Allocated', kind: 'bytes', bar: app.total });
    if (grown) c.push({ key: 'grown', label: 'Grew by', kind: 'signed' });
    c.push({ key: 'blocks', label: view.point ? 'Blocks' : 'Allocations', kind: 'count' }, { key: 'callees', label: 'With callees', kind: 'bytes' });
    if (scope === 'line') c.push({ key: 'own', label: 'Own peak', kind: 'bytes', title: 'The most that this line held at any instant' });
    const looked = model.core.resident, resident = view.point && looked && looked.differs && looked.is_near && run.resident_bytes ? model.sumSelf(scope, run.resident_bytes) : null;
    if (resident) c.push({ key: 'resident', label: 'Resident\nat ' + instant(looked.time), kind: 'bytes', title: 'On pages that were present then, at the highest resident memory that was looked at' });
    if (view.point) c.push({ key: 'allocs', label: 'Allocations', kind: 'count', title: 'Over the whole run' });
    if (!resident && !model.core.sample_bytes) /* there is no room for both, and temporaries have a table of their own */
      c.push({ key: 'temporary', label: 'Temporary', kind: 'count', title: "Freed before their thread's next allocation" + (view.point ? ', over the whole run' : '') });
    if (view.point) c.push({ key: 'end', label: 'At the end', kind: 'bytes' });
    for (let key = 0; key < self.length; key++) {
      if (!self[key] && !callees[key] && !allocs[key]) continue;
      const row = { scope, key, self: self[key], blocks: blocks[key], callees: Math.max(callees[key], self[key]), allocs: allocs[key], temporary: temporary[key], end: end[key] };
      if (grown) row.grown = grown[key];
      if (resident) row.resident = resident[key];
      if (scope === 'line') row.own = app.linePeak(key);
      rows.push(row);
    }
    return { columns: c, rows, note: this.foldedNote(scope) };
  },

  foldedNote(scope) {
    const f = model.core.folded;
    if (!f.folded_sites) return '';
    return (model.core.sample_bytes ? '' : 'Own values are exact. ') + count(f.folded_sites) + ' of ' + plural(f.sites, 'stack', 'stacks') + ' are folded into their nearest shown caller, so "with callees" may miss up to their share'
      + (f.folded_lines ? '; ' + plural(f.folded_lines, 'small line is', 'small lines are') + ' one row' : '') + '. memprof report --by ' + scope + ' has every one.';
  },

  threadRows() {
    const device = model.core.devices[app.device].name, threads = new Map(model.core.threads.map((t) => [t.thread_id, t]));
    const processes = new Map(model.core.processes.map((p) => [p.process_id, p]));
    const rows = [];
    const kind = app.kind < 0 ? 'all' : model.m.kinds[app.kind];
    for (const t of model.core.thread_totals) {
      if (t.device !== device || t.kind !== kind) continue;
      const info = threads.get(t.thread_id), process = info && processes.get(info.process_id);
      rows.push({ scope: 'thread', key: t.thread_id, cell: { name: info ? info.name + ' (' + info.tid + ')' : 'thread ' + t.thread_id, at: process ? 'process ' + process.pid + ', ' + (process.title || baseName(process.exe)) : '', full: '' },
        self: t.at_peak_bytes, allocs: t.alloc_count, bytes: t.alloc_bytes, temporary: t.temporary_count, end: t.end_bytes });
    }
    const total = model.total(app.device, 'all');
    return { rows, note: 'By the thread that allocated. These are for the whole run and its peak, whatever instant is chosen.', columns: [
      { key: 'self', label: 'At the peak', kind: 'bytes', bar: total ? total.peak_active_bytes : 0 }, { key: 'allocs', label: 'Allocations', kind: 'count' },
      { key: 'bytes', label: 'Allocated', kind: 'bytes' }, { key: 'temporary', label: 'Temporary', kind: 'count' }, { key: 'end', label: 'At the end', kind: 'bytes' }] };
  },

  leakRows() {
    const s = model.m.sites, rows = [];
    let total = 0;
    for (let i = 0; i < model.m.siteCount; i++) {
      if (!app.inView(i) || s.end_count[i] <= 0) continue;
      total += s.end_bytes[i];
      rows.push({ scope: 'site', key: i, cell: this.nameCell('line', s.line[i]), self: s.end_bytes[i], blocks: s.end_count[i], allocs: s.alloc_count[i], largest: s.largest_bytes[i] });
    }
    return { rows, note: 'Stacks whose blocks were still live when their process ended, whatever instant is chosen.', columns: [
      { key: 'self', label: 'Live at the end', kind: 'bytes', bar: total }, { key: 'blocks', label: 'Blocks', kind: 'count' },
      { key: 'allocs', label: 'Of allocations', kind: 'count' }, { key: 'largest', label: 'Largest', kind: 'bytes' }] };
  },

  temporaryRows() {
    const run = app.runMeasures(), view = app.view, from = view.point ? run.temporary_count : view.temporary;
    const temporary = model.sumSelf('line', from), allocs = model.sumSelf('line', view.point ? run.alloc_count : view.count), size = model.sumSelf('line', run.temporary_bytes);
    const rows = [], all = model.sumSelf('line', run.temporary_count);
    let total = 0;
    for (let key = 0; key < temporary.length; key++) {
      if (!temporary[key]) continue;
      total += temporary[key];
      rows.push({ scope: 'line', key, self: temporary[key], allocs: allocs[key], share: allocs[key] ? 100 * temporary[key] / allocs[key] : 0, mean: all[key] ? size[key] / all[key] : 0 });
    }
    return { rows, note: "Blocks freed before their thread's next allocation" + (view.point ? ', over the whole run.' : ', in the range.'), columns: [
      { key: 'self', label: 'Temporary', kind: 'count', bar: total }, { key: 'allocs', label: 'Of allocations', kind: 'count' },
      { key: 'share', label: 'Share', kind: 'percent' }, { key: 'mean', label: 'Mean size', kind: 'bytes' }] };
  },

  transfers() { return model.transfers.filter((t) => t.device === model.core.devices[app.device].name); },
  transferRows() {
    const mine = this.transfers(), rows = mine.map((t) => {
      const fn = t.function || '?', at = t.file ? baseName(t.file) + ':' + t.line : '';
      return { scope: 'transfer', key: model.transfers.indexOf(t), cell: { name: shortName(fn), at, full: fn + (t.file ? '\n' + t.file + ':' + t.line : '') }, self: t.bytes, direction: t.direction, calls: t.count, mean: t.count ? t.bytes / t.count : 0 };
    });
    return { rows, note: 'Copies and fills of this device\u2019s memory in the whole run, by the line that asked. H: host, D: device, peer: from device to device, unified: managed memory takes part.', columns: [
      { key: 'self', label: 'Bytes', kind: 'bytes', bar: mine.reduce((t, x) => t + x.bytes, 0) }, { key: 'direction', label: 'Direction', kind: 'text' }, { key: 'calls', label: 'Calls', kind: 'count' }, { key: 'mean', label: 'Bytes a call', kind: 'bytes' }] };
  },

  format(column, value) {
    if (column.kind === 'text') return value;
    if (value === null || value === undefined) return '-';
    if (column.kind === 'bytes' && this.tab !== 'transfer' && ['self', 'callees', 'own', 'end', 'bytes'].includes(column.key)) return this.estimated(value);
    return column.kind === 'bytes' ? bytes(value) : column.kind === 'signed' ? signedBytes(value) : column.kind === 'change' ? signedCount(value) : column.kind === 'percent' ? value.toFixed(1) + ' %' : this.tab === 'transfer' ? count(value) : this.counted(value);
  },

  cell(row) { return row.cell || (row.cell = this.nameCell(row.scope, row.key)); },

  draw() {
    const { sort } = this;
    let rows = this.rows;
    if (this.filter) rows = rows.filter((r) => { const c = this.cell(r); return (c.name + ' ' + c.at + ' ' + c.full).toLowerCase().includes(this.filter); });
    /* what only calls others has nothing of its own: it comes in when it is sorted by that */
    else if (sort === 'self' && !this.ascending) rows = rows.filter((r) => r.self || r.allocs);
    const column = this.columns.find((c) => c.key === sort), order = (column && column.order) || sort; /* a change by its size */
    const by = (r) => r[order] === null || r[order] === undefined ? -Infinity : r[order];
    const isText = this.columns.some((c) => c.key === sort && c.kind === 'text');
    rows = rows.slice().sort(isText ? (a, b) => String(a[sort]).localeCompare(String(b[sort])) * (this.ascending ? 1 : -1) || b.self - a.self : sort === 'name' ? (a, b) => this.cell(a).name.localeCompare(this.cell(b).name) * (this.ascending ? 1 : -1)
      : (a, b) => (by(b) - by(a) || b.self - a.self) * (this.ascending ? -1 : 1));
    this.first = rows.length ? { scope: rows[0].scope, key: rows[0].key } : null;
    const what = { leak: 'Stack', temporary: 'Line', transfer: 'Line' }[this.tab] || this.tabs.find((t) => t[0] === this.tab)[1].replace(/s$/, '');
    const head = el('tr', {}, this.heading('name', what, null, 'text'), this.columns.map((c) => this.heading(c.key, c.label, c.title)));
    const body = el('tbody', {}, rows.slice(0, this.shown).map((r) => this.rowElement(r)));
    const parts = [el('table', { 'data-rows': rows.length }, el('thead', {}, head), body)];
    if (!rows.length) parts.push(el('p', { class: 'hint' }, this.filter ? 'Nothing matches the filter.' : this.nothing));
    if (rows.length > this.shown)
      parts.push(el('p', { class: 'more' }, el('button', { type: 'button', click: () => { this.shown += TABLE_STEP * 5; this.draw(); } }, 'Show more'), ' ' + count(this.shown) + ' of ' + count(rows.length) + ' rows'));
    byId('table').replaceChildren(...parts);
  },

  heading(key, label, title, kind) {
    const sorted = this.sort === key;
    return el('th', { class: kind, scope: 'col', 'aria-sort': sorted ? (this.ascending ? 'ascending' : 'descending') : null, title },
      el('button', { type: 'button', 'data-sort': key, click: () => {
        this.ascending = sorted ? !this.ascending : key === 'name';
        this.sort = key;
        this.draw();
        this.drawDetail();
      } }, label));
  },

  rowElement(row) {
    const c = this.cell(row), current = this.current(), chosen = current && current.scope === row.scope && current.key === row.key;
    const choose = () => {
      for (const r of byId('table').querySelectorAll('tr[aria-selected="true"]')) r.setAttribute('aria-selected', 'false');
      tr.setAttribute('aria-selected', 'true');
      this.choose(row.scope, row.key);
    };
    const tr = el('tr', { class: 'row', tabindex: '0', 'aria-selected': String(!!chosen), 'data-key': row.key, click: choose, keydown: (e) => {
      if (e.key === 'Enter' || e.key === ' ') { choose(); e.preventDefault(); }
      const next = e.key === 'ArrowDown' ? tr.nextElementSibling : e.key === 'ArrowUp' ? tr.previousElementSibling : null;
      if (next) { next.focus(); e.preventDefault(); }
    } });
    tr.append(el('td', { class: 'name', title: c.full || c.name }, el('span', { class: 'fn' }, c.name), c.at ? placeSpan(c.at) : null));
    for (const column of this.columns) {
      const value = row[column.key], text = this.format(column, value);
      if (column.bar === undefined) { tr.append(el('td', { class: value || column.kind === 'id' ? null : 'zero' }, text)); continue; }
      const fill = el('span', { class: 'fill' });
      fill.style.width = column.bar > 0 ? Math.max(0, Math.min(100, 100 * value / column.bar)).toFixed(1) + '%' : '0';
      tr.append(el('td', { class: value ? 'bar' : 'bar zero' }, el('span', { class: 'share', title: percent(value, column.bar) + ' of ' + this.format(column, column.bar) }, value > 0 ? el('span', { class: 'track' }, fill) : null, el('span', { class: 'number' }, text))));
    }
    return tr;
  },

  choose(scope, key) {
    this.chosen = { scope, key };
    this.drawDetail();
    app.remember();
  },

  /* The sites of the chosen row that count in the selection. */
  chosenSites() {
    const { scope, key } = this.current(), out = [];
    if (scope === 'site') return [key];
    for (let i = 0; i < model.m.siteCount; i++) if (app.inView(i) && scope !== 'thread' && model.selfKey(scope, i) === key) out.push(i);
    return out;
  },

  drawDetail() {
    const box = byId('detail'), current = this.current();
    if (current && current.scope === 'transfer' && model.transfers[current.key].device === model.core.devices[app.device].name) {
      const t = model.transfers[current.key];
      box.replaceChildren(el('h3', {}, t.function || '?'), el('p', { class: 'where' }, t.file ? t.file + ':' + t.line : 'no source position'),
        el('dl', {}, [['Direction', t.direction], ['Bytes', bytes(t.bytes)], ['Calls', count(t.count)], ['Bytes a call', bytes(t.count ? t.bytes / t.count : 0)]].flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)])));
      return;
    }
    const thread = current && current.scope === 'thread' ? this.rows.find((r) => r.scope === 'thread' && r.key === current.key) : null;
    if (thread) {
      box.replaceChildren(el('h3', {}, thread.cell.name), el('p', { class: 'where' }, thread.cell.at), el('dl', {}, this.columns.flatMap((c) => [el('dt', {}, c.label), el('dd', {}, this.format(c, thread[c.key]))])));
      return;
    }
    if (!current || current.scope === 'thread' || current.scope === 'transfer') {
      box.replaceChildren(el('p', { class: 'hint' }, 'Choose a row to see its stacks and source.'));
      return;
    }
    const { scope, key } = current, c = scope === 'site' ? this.nameCell('line', model.m.sites.line[key]) : this.nameCell(scope, key), sites = this.chosenSites();
    const line = scope === 'line' ? key : scope === 'site' ? model.m.sites.line[key] : -1;
    const parts = [el('h3', {}, c.full.split('\n')[0]), el('p', { class: 'where' }, scope === 'line' || scope === 'site' ? c.full.split('\n')[1] || 'no source position' : c.at)];
    parts.push(this.facts(sites, line));
    parts.push(el('div', { class: 'actions' },
      el('button', { type: 'button', click: () => { flame.search(c.name); byId('flame').scrollIntoView(); } }, 'In the flame graph'),
      line >= 0 && source.has(line) ? el('button', { type: 'button', click: () => source.showLine(line, true) }, 'In the source') : null));
    const snippet = line >= 0 ? source.snippet(line) : null, caller = snippet ? -1 : this.ownCaller(sites), above = caller >= 0 ? source.snippet(caller) : null;
    if (snippet) parts.push(el('h4', {}, 'Source'), snippet);
    else if (above) parts.push(el('h4', {}, 'Called from ' + model.linePlace(caller)), above);
    parts.push(...this.stacks(sites));
    box.replaceChildren(...parts);
  },

  /* The program's own line in the largest stack: for what has no source of its own. */
  ownCaller(sites) {
    const weight = (i) => app.view.bytes[i] || 0, most = sites.reduce((best, i) => best < 0 || weight(i) > weight(best) ? i : best, -1);
    return most < 0 ? -1 : source.ownCaller(most);
  },

  facts(sites, line) {
    const s = model.m.sites, sum = (values) => sites.reduce((t, i) => t + values[i], 0);
    const rows = [['At the peak', this.estimated(sum(s.at_peak_bytes)) + ' in ' + this.blocks(sum(s.at_peak_count))], ['At the end', this.estimated(sum(s.end_bytes)) + ' in ' + this.blocks(sum(s.end_count))],
      ['Allocations', this.counted(sum(s.alloc_count))], ['Allocated', this.estimated(sum(s.alloc_bytes))], ...(model.core.sample_bytes ? [] : [['Temporary', count(sum(s.temporary_count))]]),
      [this.unknown ? 'Largest sampled block' : 'Largest block', bytes(sites.reduce((t, i) => Math.max(t, s.largest_bytes[i]), 0))]];
    if (s.resident_bytes && model.core.resident.is_near) rows.splice(1, 0, ['Resident', bytes(sum(s.resident_bytes)) + ' at ' + instant(model.core.resident.time) + (sum(s.untouched_bytes) ? ', ' + bytes(sum(s.untouched_bytes)) + ' on no page' : '')]);
    const freed = sum(s.free_count);
    if (freed) rows.push(['Mean lifetime', instant(sum(s.lifetime_ns) / freed) + this.unknown]);
    if (line >= 0 && app.linePeak(line) !== null) rows.push(['Own peak', this.estimated(app.linePeak(line))]);
    const list = (pairs) => el('dl', {}, pairs.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)]));
    const all = el('details', { class: 'statistics' }, el('summary', {}, 'All statistics'), list(this.statistics(sites)));
    return el('div', {}, list(rows), all);
  },

  /* Every statistic of the sites together, but those that only the events tell; the derived ones by what they follow from. */
  statistics(sites) {
    const value = {}, known = model.m.stats.filter((s) => s.a || (s.combine !== 'exact' && model.m.sites[s.column]));
    for (const s of known) {
      const of = model.m.sites[s.column];
      if (s.combine === 'sum') value[s.column] = sites.reduce((t, i) => t + of[i], 0);
      else if (s.combine === 'max') value[s.column] = sites.reduce((t, i) => Math.max(t, of[i]), 0);
      else value[s.column] = s.combine === 'MINUS' ? value[s.a] - (value[s.b] || 0) /* of a window alone */ : value[s.b] > 0 ? value[s.a] / value[s.b] : null;
    }
    const show = { bytes: (v) => v < 0 ? signedBytes(v) : bytes(v), count, ns: instant };
    /* of a sample: sums of bytes have a bound; the largest is one of those that were met */
    const error = (s) => !value[s.column] || s.combine === 'max' ? '' : s.combine === 'sum' && s.unit === 'bytes' ? this.margin(value[s.column]) : this.unknown;
    return known.filter((s) => !this.unknown || !s.column.startsWith('temporary')).map((s) => [s.text, value[s.column] === null ? '-' : show[s.unit](value[s.column]) + error(s)]);
  },

  stacks(sites) {
    const view = app.view, value = (i) => view.bytes[i] || 0;
    /* when none of them holds anything now, by what they allocated in the run */
    const any = sites.some((i) => value(i) > 0), weight = any ? value : (i) => model.m.sites.alloc_bytes[i];
    const total = sites.reduce((t, i) => t + weight(i), 0), top = sites.filter((i) => weight(i) > 0 || sites.length === 1).sort((a, b) => weight(b) - weight(a)).slice(0, 10);
    const out = [el('h4', {}, (sites.length === 1 ? 'Its stack' : 'Stacks, largest first') + (any ? '' : ' (by all that they allocated)'))];
    top.forEach((i, n) => {
      const list = el('ul', { class: 'frames' }), d = el('details', {}, el('summary', {}, this.estimated(weight(i)) + ', ' + percent(weight(i), total)), list);
      const fill = () => { if (!list.children.length) list.append(...this.frameItems(model.m.sites.node[i])); };
      d.addEventListener('toggle', fill);
      if (n === 0) { d.open = true; fill(); }
      out.push(d);
    });
    const rest = sites.filter((i) => weight(i) > 0).length - top.length;
    if (rest > 0) out.push(el('p', { class: 'hint' }, plural(rest, 'more stack holds', 'more stacks hold') + ' less.'));
    return out;
  },

  frameItems(node) {
    const m = model.m;
    return model.frames(node).map((f) => {
      const fn = m.frames.function[f], file = m.frames.file[f], flags = m.frames.flags[f];
      const where = file >= 0 ? baseName(m.files[file]) + ':' + m.frames.line[f] : m.frames.module[f] >= 0 && !m.functions.unknown[fn] /* whose name has the module */ ? baseName(m.modules[m.frames.module[f]]) : '';
      const li = el('li', { title: m.functions.name[fn] + (file >= 0 ? '\n' + m.files[file] + ':' + m.frames.line[f] : '') },
        el('span', { class: 'fn' }, m.functions.short[fn]), ' ', el('span', { class: 'at' }, where + (flags & FRAME.INLINE ? ' (inlined)' : '') + (flags & FRAME.FOLDED ? ' (smaller stacks, folded)' : '')));
      li.style.borderLeftColor = 'var(--' + model.frameColor(f) + ')';
      return li;
    });
  },
};
