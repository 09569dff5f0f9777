/* failures.js: allocations that failed: what was asked for, what the device had, and who held the rest at that instant. */

const FAILURE_ROWS = 8;

const failures = {
  shown: -1, all: false,

  start() {
    const list = model.core.failures;
    byId('failures').hidden = !list.length;
    byId('nav-failures').hidden = !list.length;
    if (!list.length) return;
    this.shown = list.length - 1;
    const retried = model.core.retry_count, n = model.core.failure_count, unlisted = model.core.unlisted_count;
    byId('failures-note').textContent = plural(n, 'allocation', 'allocations') + ' failed' + (retried ? '; ' + plural(retried, 'was', 'were') + ' had when tried again' : '') + '.'
      + (unlisted ? ' ' + count(unlisted) + ' more failed after these, which the file has no rows of.' : '')
      + (n > list.length ? ' The last ' + count(list.length) + (unlisted ? ' of these' : '') + ' are listed; memprof sql has all' + (unlisted ? ' that the file has' : '') + '.' : '') + (n > 1 ? ' Choose one: the whole page follows.' : '');
  },

  /* The last failure of a device, -1: none. */
  lastOf(device) {
    for (let i = model.core.failures.length - 1; i >= 0; i--) if (model.core.failures[i].device === device) return i;
    return -1;
  },
  choose(i) {
    const f = model.core.failures[i];
    if (!f) return; /* its button is hidden, but may be pressed before that is drawn */
    this.shown = i;
    app.select({ device: f.device < 0 ? app.device : f.device, at: f.time });
  },

  /* Follows the selection where a failure is chosen; else stays where it was. */
  update() {
    const list = model.core.failures, s = app.selection;
    if (!list.length) return;
    const at = s.moment === 'instant' ? s.asked : -1;
    if (at >= 0 && (list[this.shown].time !== at || list[this.shown].device !== app.device)) {
      const i = list.findIndex((f) => f.time === at && f.device === app.device);
      if (i >= 0) this.shown = i;
    }
    this.draw();
  },

  frames(i) { return (model.failureFrames[i] || []).map(([name, file, line, isAllocator, isPython]) => ({ name, short: shortName(name), file, line, isAllocator, isPython })); },
  /* The line that asked: the innermost with a source position outside the allocator family, of Python where there is any, as everywhere. */
  self(i) {
    const frames = this.frames(i);
    return frames.find((f) => f.isPython && f.line) || frames.find((f) => f.line && !f.isAllocator) || frames.find((f) => !f.isAllocator) || frames[0] || null;
  },
  where(i) {
    const f = this.self(i);
    return f ? f.short + (f.file && f.line ? ' ' + baseName(f.file) + ':' + f.line : '') : '';
  },

  draw() {
    const list = model.core.failures, rows = [], most = this.all ? list.length : FAILURE_ROWS;
    const order = list.map((f, i) => i);
    const shown = order.length <= most ? order : [...order.slice(0, most / 2), ...order.slice(-most / 2)];
    for (const i of shown) {
      const f = list[i], choose = () => this.choose(i);
      rows.push(el('tr', { class: 'row', tabindex: '0', 'aria-selected': String(i === this.shown), 'data-failure': i, click: choose, keydown: (e) => { if (e.key === 'Enter' || e.key === ' ') { choose(); e.preventDefault(); } } },
        el('td', {}, instant(f.time)), el('td', { class: 'text' }, (model.core.devices[f.device] || { name: '?' }).name + (f.kind === 'device' || f.kind === 'heap' ? '' : ' ' + f.kind)),
        el('td', {}, bytes(f.size)), el('td', {}, bytes(f.free)), el('td', {}, bytes(f.total)), el('td', {}, bytes(f.active)), el('td', { class: 'name' }, el('span', { class: 'fn' }, this.where(i)))));
    }
    const table = list.length < 2 ? [] : [el('div', { class: 'table-wrap' }, el('table', {}, el('thead', {}, el('tr', {}, ['At', 'Device', 'Asked for', 'Device free', 'of total', 'Active', 'By'].map((h, i) => el('th', { class: i === 1 || i === 6 ? 'text' : null }, h)))), el('tbody', {}, rows)))];
    if (shown.length < list.length) table.push(el('p', { class: 'more' }, el('button', { type: 'button', click: () => { this.all = true; this.draw(); } }, 'Show all'), ' ' + count(shown.length) + ' of ' + count(list.length)));
    byId('failures-table').replaceChildren(...table);
    this.drawDetail();
  },

  /* What the figures say of the reason. */
  verdict(f, l) {
    const idle = Math.max(0, l.reserved - l.active), out = [];
    if (f.total !== undefined && f.size > f.total) return ['More was asked for than the device has.'];
    if (f.free !== undefined && f.free >= f.size) out.push('More was free than was asked for: it failed for another reason than the sum, such as no single piece of that size, or a limit.');
    else if (f.free !== undefined) out.push(bytes(f.size - f.free) + ' more would have been enough.');
    if (idle >= f.size) out.push(bytes(idle) + ' was reserved but not active: memory that allocators kept, in caches or holes (see the segments below).');
    else if (idle > 0 && f.free !== undefined && f.free + idle >= f.size) out.push('With the ' + bytes(idle) + ' that allocators reserved and did not use it would have fitted.');
    if (!l.isHost && l.untracked !== null && l.untracked >= f.size && l.total) out.push(bytes(l.untracked) + ' was not ours: the driver\u2019s own, or other programs\u2019.');
    return out;
  },

  layersOf(f) {
    const l = layers.atInstant(f.device, model.instantBefore(f.time));
    if (f.total !== undefined) l.total = f.total;
    if (f.free !== undefined && f.total !== undefined && !l.isHost) {
      l.used = l.sampled = f.total - f.free;
      l.about &= ~4;
      l.usedAt = f.time;
      l.free = f.free;
      l.untracked = Math.max(0, l.used - l.reserved);
    }
    return l;
  },

  drawDetail() {
    const f = model.core.failures[this.shown], box = byId('failures-detail');
    if (f.device < 0) { box.replaceChildren(); return; }
    const device = model.core.devices[f.device].name, i = model.instantBefore(f.time), early = f.time - model.instants.time[i], l = this.layersOf(f), self = this.self(this.shown);
    const live = model.only(model.liveAt(i).bytes, f.device, -1), lines = [...model.sumSelf('line', live)].map((v, line) => [line, v]).filter((x) => x[1] > 0).sort((a, b) => b[1] - a[1]);
    const isChosen = app.device === f.device && app.selection.moment === 'instant' && app.selection.asked === f.time;
    const show = (line) => { this.choose(this.shown); if (line >= 0) app.showLine(line); else byId('holders').scrollIntoView(); };
    /* what was asked for stands where it would have come, beyond the end of the device; half as long as that at most */
    const used = layers.extent(l), room = Math.max(l.total || 0, used), scale = Math.min(Math.max(room, used + Math.max(0, f.size)), 1.5 * room), left100 = scale > 0 ? 100 * used / scale : 0;
    const asked = el('span', { class: 'layer-asked', title: 'Asked for: ' + bytes(f.size) });
    asked.style.marginLeft = left100 + '%';
    asked.style.width = (scale > 0 ? Math.max(0.4, Math.min(100 - left100, 100 * f.size / scale)) : 100) + '%';
    const left = [el('h3', {}, bytes(f.size) + ' asked for on ' + device + ' at ' + instant(f.time)),
      self ? el('p', {}, 'by ', el('code', {}, self.short), self.file && self.line ? ' (' + baseName(self.file) + ':' + self.line + ')' : '') : null,
      el('p', {}, (f.free !== undefined ? bytes(f.free) + ' of ' + bytes(f.total) + ' were free. ' : '') + this.verdict(f, l).join(' ')),
      layers.bar(l, scale), el('div', { class: 'layer-bar asked' }, asked), layers.chips(l),
      el('p', { class: 'hint' }, 'The striped bar is what was asked for, after what was in use' + (l.total && used + f.size > l.total ? ': it ends beyond the device' : '') + (used + f.size > scale * 1.001 ? ' (cut off in the picture)' : '') + '.' + (early > 0 ? ' Figures of the stored instant ' + instant(early) + ' before.' : '')),
      this.stack()];
    const right = [el('h3', {}, 'Live then, by line'), lines.length ? el('ul', { class: 'failure-lines' }, lines.slice(0, 6).map(([line, v]) => {
      const fill = el('span', { class: 'fill' });
      fill.style.width = Math.min(100, 100 * v / l.active).toFixed(1) + '%';
      return el('li', {}, el('button', { type: 'button', title: model.lineFull(line), click: () => show(line) }, el('span', { class: 'fn' }, model.lineName(line) + ' ' + model.linePlace(line)),
        el('span', { class: 'value' }, bytes(v) + ', ' + percent(v, l.active)),
        el('span', { class: 'callers' }, this.callers(line, live))), el('span', { class: 'track' }, fill));
    })) : el('p', { class: 'hint' }, 'Nothing was live on ' + device + '.'),
    lines.length > 6 ? el('p', { class: 'hint' }, plural(lines.length - 6, 'more line', 'more lines') + '.') : null,
    isChosen ? el('p', { class: 'hint' }, 'This instant is chosen: all below shows it.') : el('p', {}, el('button', { type: 'button', id: 'failure-choose', click: () => show(-1) }, 'Choose this instant'))];
    box.replaceChildren(el('div', {}, left.filter(Boolean)), el('div', {}, right.filter(Boolean)));
  },

  /* Who calls a line, in the largest of its stacks: an allocator's wrapper says little by itself. */
  callers(line, live) {
    let most = -1;
    for (let i = 0; i < live.length; i++) if (live[i] > 0 && model.m.sites.line[i] === line && (most < 0 || live[i] > live[most])) most = i;
    if (most < 0) return '';
    const m = model.m, frames = model.frames(m.sites.node[most]), at = frames.findIndex((f) => m.frames.lineIndex[f] === line);
    const isPython = at >= 0 && (m.frames.flags[frames[at]] & 3) === 1;
    return frames.slice(at + 1).filter((f) => m.frames.file[f] >= 0 && (!isPython || (m.frames.flags[f] & 3) === 1) && !/^(_start|__libc_start)/.test(m.functions.name[m.frames.function[f]])).slice(0, 3)
      .map((f) => '\u2039 ' + m.functions.short[m.frames.function[f]] + ' ' + model.linePlace(m.frames.lineIndex[f])).join(' ');
  },

  stack() {
    const frames = this.frames(this.shown);
    if (!frames.length) return null;
    return el('details', {}, el('summary', {}, 'The stack that asked'), el('ul', { class: 'frames' }, frames.map((f) => el('li', { title: f.name + (f.file ? '\n' + f.file + ':' + f.line : '') },
      el('span', { class: 'fn' }, f.short), ' ', el('span', { class: 'at' }, f.file ? baseName(f.file) + ':' + f.line : '')))));
  },
};
