/* many_table.js: a row for each recording on the chosen device; the chosen one shows its lines and what is wrong with it. */

Object.assign(tables, {
  tab: 'file', nothing: 'No recording has anything on this device.', tabs: [['file', 'Files']],

  isThere() { return true; },

  make() {
    const rows = [], hasRank = model.files.some((f) => f.rank !== undefined), allWhole = model.files.every((f) => app.isWhole(f));
    const most = Math.max(1, ...model.files.map((f) => (model.row(f) || { peak: 0 }).peak));
    const columns = [{ key: 'self', label: 'Peak', kind: 'bytes', bar: most }, { key: 'reserved', label: 'Reserved\npeak', kind: 'bytes' }, { key: 'end', label: 'Live at\nthe end', kind: 'bytes' },
      { key: 'duration', label: 'Ran for', kind: 'ns' }];
    if (hasRank) columns.unshift({ key: 'rank', label: 'Rank', kind: 'id' });
    if (!allWhole) columns.push({ key: 'state', label: 'State', kind: 'text' });
    columns.push({ key: 'top', label: 'Line that held most', kind: 'text' });
    model.files.forEach((file, key) => {
      const r = model.row(file), line = r && r.lines[0];
      rows.push({ scope: 'file', key, file, cell: { name: app.shortPath(file), at: file.command === null ? '' : file.command, full: file.path + (file.command === null ? '' : '\n' + file.command) },
        rank: file.rank, self: r ? r.peak : null, allocs: 1 /* a row without a peak is shown, too */, reserved: r ? r.reserved : null, end: r ? r.end : null, duration: file.is_read ? file.duration : null,
        state: app.stateText(file), top: line ? shortName(line.name) + ' ' + this.shortPlace(line.place) : '' });
    });
    return { columns, rows, sort: 'self' };
  },

  shortPlace(place) {
    const [, path, line] = /^(.*?)(:\d+)?$/s.exec(place);
    return line ? baseName(path) + line : place;
  },

  format(column, value) {
    if (column.kind === 'text') return value;
    if (value === null || value === undefined) return '-';
    return column.kind === 'bytes' ? bytes(value) : column.kind === 'ns' ? instant(value) : count(value);
  },

  choose(scope, key) {
    this.chosen = { scope, key };
    this.drawDetail();
    timeline.choose();
  },

  drawDetail() {
    const box = byId('detail'), file = app.file();
    if (!file) { box.replaceChildren(); return; }
    const r = model.row(file), parts = [el('h3', {}, app.name(file)), el('p', { class: 'where' }, file.path)];
    if (file.command !== null) parts.push(el('p', { class: 'where mono' }, file.command.slice(0, 2000)));
    for (const text of [file.problem, ...file.notes]) if (text) parts.push(el('p', { class: 'note' }, text));
    const facts = [];
    if (r) facts.push(['Peak', bytes(r.peak) + ' in ' + plural(r.peak_count, 'block', 'blocks')], ['at', instant(r.peak_ns)], ['Reserved peak', r.reserved === null ? '-' : bytes(r.reserved)], ['Live at the end', bytes(r.end)],
      ['Allocations', count(r.alloc_count)], ['Allocated', bytes(r.alloc_bytes)], ['Temporary', count(r.temporary_count)]);
    if (file.is_read) facts.push(['Began after', instant(file.start)], ['Ran for', instant(file.duration)]);
    if (file.ended) facts.push(['Ended', file.ended]);
    if (file.host) facts.push(['Host', file.host]);
    parts.push(el('dl', {}, facts.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)])));
    if (r && r.lines.length) {
      parts.push(el('h4', {}, 'Lines at its peak'), el('ul', { class: 'failure-lines' }, r.lines.map((line) => {
        const fill = el('span', { class: 'fill' });
        fill.style.width = (r.peak > 0 ? Math.min(100, 100 * line.bytes / r.peak) : 0).toFixed(1) + '%';
        return el('li', { title: line.name + '\n' + line.place }, el('div', { class: 'many-line' }, el('span', { class: 'fn' }, shortName(line.name)), el('span', { class: 'value' }, bytes(line.bytes))),
          el('span', { class: 'callers' }, this.shortPlace(line.place)), el('span', { class: 'track' }, fill));
      })));
    }
    if (file.is_read) parts.push(el('h4', {}, 'Its own page'), el('p', {}, el('code', { class: 'command-line' }, 'memprof report ' + app.shell(file.path) + ' --html')));
    box.replaceChildren(...parts);
  },
});
