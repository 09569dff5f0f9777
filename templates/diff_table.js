/* diff_table.js: the rows that differ, as memprof diff has them; a row shows all of its statistics on both sides. */

Object.assign(tables, {
  tab: 'line', measure: 'at_peak_bytes', nothing: 'Nothing differs.',
  tabs: [['line', 'Lines'], ['function', 'Functions'], ['file', 'Files'], ['module', 'Modules'], ['op', 'Operators']],
  labels: { at_peak_bytes: 'Bytes at the peak', own_peak_bytes: 'Own peak', end_bytes: 'Live at the end', alloc_bytes: 'Bytes allocated', alloc_count: 'Allocations', temporary_count: 'Temporary allocations' },
  shortLabels: { at_peak_bytes: 'At the peak', own_peak_bytes: 'Own peak', end_bytes: 'At the end', alloc_bytes: 'Allocated', alloc_count: 'Allocations', temporary_count: 'Temporary' },

  startMeasure() {
    const select = byId('table-measure');
    select.append(...model.rows.stats.map((s) => el('option', { value: s.column, title: s.text }, this.labels[s.column])));
    select.value = this.measure;
    select.addEventListener('change', () => { this.measure = select.value; this.sort = null; this.shown = TABLE_STEP; this.update(); });
  },

  /* By operator only where something has one. */
  isThere(tab) { return tab !== 'op' || model.rows.op.rows.some((r) => r.name !== '(no operator)'); },

  /* [old, new, difference] of a statistic; null where one is not known. */
  sides(row, column) {
    const i = model.rows.stats.findIndex((s) => s.column === column) * 2, [old, now] = [row.values[i], row.values[i + 1]];
    return [old, now, old === null || now === null ? null : now - old];
  },

  /* "src/net.c:42" without its directory. */
  shortPlace(place) {
    const [, path, line] = /^(.*?)(:\d+)?$/s.exec(place);
    return line ? baseName(path) + line : place; /* others are "<- caller", "[libz.so.1]" */
  },

  /* "renamed, moved" of "renamed from v1/, moved 13 -> 16": there is no room for all of it but beside the table. */
  ways(how) { return how && how.split(', ').map((way) => way.split(' ')[0]).join(', '); },

  make(tab) {
    const of = model.rows[tab], isCount = this.measure.endsWith('_count'), kind = isCount ? 'count' : 'bytes', changed = isCount ? 'change' : 'signed';
    const columns = [{ key: 'old', label: 'Old', kind }, { key: 'now', label: 'New', kind }, { key: 'difference', order: 'self', label: 'Difference', kind: changed }];
    const more = [['end_bytes', 'Live at\nthe end', 'signed'], ['alloc_bytes', 'Allocated', 'signed'], ['alloc_count', 'Allocations', 'change']].filter((m) => m[0] !== this.measure);
    columns.push(...more.map(([key, label, k]) => ({ key, label, kind: k, title: 'The difference' })), { key: 'how', label: 'Match', kind: 'text' });
    const rows = [];
    of.rows.forEach((r, key) => {
      if (r.device !== app.device) return;
      const [old, now, difference] = this.sides(r, this.measure), row = { scope: tab, key, from: r, old, now, difference, how: this.ways(r.how), self: difference === null ? null : Math.abs(difference) };
      for (const [column] of more) row[column] = this.sides(r, column)[2];
      row.cell = { name: tab === 'line' || tab === 'function' ? shortName(r.name) : tab === 'op' ? r.name : baseName(r.name), at: tab === 'file' || tab === 'module' ? r.name : this.shortPlace(r.place), full: r.name + (r.place ? '\n' + r.place : '') };
      if (difference || more.some(([column]) => row[column])) rows.push(row);
    });
    const total = model.rows.line.totals.find((t) => t.device === app.device), out = [];
    if (total) {
      const [old, now, difference] = this.sides(total, this.measure), text = (v) => this.format({ kind }, v);
      out.push('In all ' + text(old) + ' \u2192 ' + text(now) + (difference === null ? '' : ', ' + this.format({ kind: changed }, difference)) + '.');
    }
    out.push(plural(of.same_count, 'row does', 'rows do') + ' not differ.');
    if (of.row_count > of.rows.length) out.push('Of ' + count(of.row_count) + ' rows that differ the ' + count(of.rows.length) + ' are here that changed most at the peak or at the end; memprof diff --by ' + tab + ' lists all.');
    return { columns, rows, note: out.join(' '), sort: 'difference' };
  },

  drawDetail() {
    const box = byId('detail'), current = this.current(), row = current && this.rows.find((r) => r.key === current.key && r.scope === current.scope);
    if (!row) { box.replaceChildren(); return; }
    const r = row.from, parts = [el('h3', {}, r.name.slice(0, 400)), el('p', { class: 'where' }, r.place || '')];
    if (r.old_name !== undefined && (r.old_name !== r.name || r.old_place !== r.place)) parts.push(el('p', { class: 'where' }, 'Before: ' + r.old_name.slice(0, 400) + ' ' + r.old_place));
    parts.push(el('p', {}, r.match === 'new' ? 'In the new recording alone.' : r.match === 'gone' ? 'In the old recording alone.' : r.how ? 'Matched: ' + r.how + '.' : 'The same on both sides.'));
    const cell = (column, value, k) => el('td', {}, this.format({ kind: (column.endsWith('_count') ? ['count', 'count', 'change'] : ['bytes', 'bytes', 'signed'])[k] }, value));
    parts.push(el('table', { class: 'statistics' }, el('thead', {}, el('tr', {}, ['', 'Old', 'New', 'Difference'].map((h, i) => el('th', { class: i ? null : 'text' }, h)))),
      el('tbody', {}, model.rows.stats.map((s) => el('tr', {}, el('td', { class: 'text', title: s.text }, this.shortLabels[s.column]), this.sides(r, s.column).map((v, k) => cell(s.column, v, k)))))));
    if (row.scope !== 'op') parts.push(el('p', { class: 'actions' }, el('button', { type: 'button', click: () => { flame.search(row.cell.name); byId('flame').scrollIntoView(); } }, 'In the flame graph')));
    box.replaceChildren(...parts);
  },
});
