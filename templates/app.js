/* app.js: the selection that everything follows, the theme, links into the page, and the start. */

const app = {
  device: 0, kind: -1, selection: null, view: null, nodeTotals: null, total: 0, linePeaks: new Map(),

  inView(site) { return model.m.sites.device[site] === this.device && (this.kind < 0 || model.m.sites.kind[site] === this.kind); },

  runMeasures() {
    const key = this.device + ':' + this.kind;
    if (this.runKey !== key) {
      this.runKey = key;
      this.run = {};
      for (const name of ['alloc_count', 'temporary_count', 'temporary_bytes', 'end_bytes', 'resident_bytes', 'untouched_bytes']) if (model.m.sites[name]) this.run[name] = model.only(model.m.sites[name], this.device, this.kind);
    }
    return this.run;
  },

  linePeak(line) { const v = this.linePeaks.get(line * 64 + this.device); return v === undefined ? null : v; },

  start() {
    const raw = model.m.line_peaks;
    for (let i = 0; i + 2 < raw.length; i += 3) this.linePeaks.set(raw[i] * 64 + raw[i + 1], raw[i + 2]);
    const group = byId('device-switch');
    model.core.devices.forEach((d, i) => group.append(el('button', { type: 'button', 'data-device': i, click: () => this.setDevice(i) }, d.name)));
    const many = model.core.devices.length > 1;
    byId('device-bar').hidden = !many;
    document.documentElement.classList.toggle('devices', many);
    byId('moment-failure').addEventListener('click', () => failures.choose(failures.lastOf(this.device)));
    byId('kind-select').addEventListener('change', (e) => this.select({ ...this.wanted, kind: Number(e.target.value) }));
    for (const b of document.querySelectorAll('[data-moment]')) b.addEventListener('click', () => this.select({ device: this.device, [b.dataset.moment]: true }));
    byId('instant-before').addEventListener('click', () => this.stepInstant(-1));
    byId('instant-after').addEventListener('click', () => this.stepInstant(1));
    byId('instant-select').addEventListener('change', (e) => {
      const v = e.target.value;
      if (v.startsWith('p')) this.select({ device: Number(v.slice(1)), peak: true });
      else if (v !== '') this.select({ device: this.device, at: model.instants.time[Number(v)] });
    });
    this.fillInstants();
    this.fillKinds();
  },

  setDevice(i) {
    if (i !== this.device) this.select({ ...this.wanted, device: i, kind: -1 });
  },
  failureAt(device, ns) { return model.core.failures.some((f) => f.device === device && f.time === ns); },

  fillKinds() {
    const name = model.core.devices[this.device].name, kinds = model.core.totals.filter((t) => t.device === name && t.kind !== 'all').map((t) => t.kind), select = byId('kind-select');
    select.replaceChildren(el('option', { value: '-1' }, 'all kinds'), ...kinds.map((k) => el('option', { value: model.m.kinds.indexOf(k) }, k)));
    select.value = String(this.kind);
    select.hidden = kinds.length < 2;
  },

  instantName(i) {
    const f = model.instants.flags[i], names = [];
    if (f & INSTANT.PEAK) names.push('peak');
    if (f & INSTANT.RESERVED_PEAK) names.push('reserved peak');
    if (f & INSTANT.LOCAL_PEAK) names.push('further peak');
    if (f & INSTANT.FAILURE) names.push('failed allocation');
    if (f & INSTANT.MARK) {
      const m = model.core.marks.find((x) => x.start_ns === model.instants.time[i]);
      names.push(m ? 'mark ' + m.name.slice(0, 40) : 'mark');
    }
    return names.join(', ');
  },

  fillInstants() {
    const options = [el('option', { value: '' }, 'Stored instants (' + count(model.instants.count) + ')')];
    model.core.devices.forEach((d, i) => { const p = model.peak(i, 'active'); if (p) options.push(el('option', { value: 'p' + i }, (model.core.merged ? 'sum of peaks of ' : instant(p.time) + '  peak of ') + d.name)); });
    for (let i = 0; i < model.instants.count; i++) {
      const name = this.instantName(i);
      if (name && name !== 'peak') options.push(el('option', { value: i }, instant(model.instants.time[i]) + '  ' + name));
    }
    byId('instant-select').replaceChildren(...options);
  },

  stepInstant(by) {
    const s = this.selection, at = s.shown && s.shown.at !== undefined ? s.shown.at : s.shown ? s.shown.to : 0, t = model.instants.time;
    let i = model.instantBefore(at);
    if (by > 0) i++;
    else if (t[i] >= at) i--;
    i = Math.max(0, Math.min(t.length - 1, i));
    this.select({ device: this.device, at: t[i] });
  },

  /* The one state of the page. wanted: {device} with peak, end, run, at (ns), or from and to (ns): what the reader asked for; kind where it is
     to change. Everything follows it: timeline, layers, failures, tables, figures, the address. */
  select(wanted, isQuiet) {
    if (wanted.kind !== undefined) this.kind = wanted.kind;
    else if (wanted.device !== this.device) this.kind = -1;
    this.wanted = { ...wanted, kind: this.kind };
    this.device = wanted.device;
    wanted = this.wanted;
    this.fillKinds();
    press(byId('device-switch'), (b) => Number(b.dataset.device) === this.device);
    byId('moment-failure').hidden = failures.lastOf(this.device) < 0;
    for (const card of document.querySelectorAll('[data-device-card]')) card.classList.toggle('chosen', model.core.devices.length > 1 && card.dataset.deviceCard === model.core.devices[this.device].name);
    for (const of of document.querySelectorAll('.of-device')) of.textContent = model.core.devices.length > 1 ? ' ' + model.core.devices[this.device].name : '';
    timeline.follow();
    this.selection = this.resolve(wanted);
    const raw = model.measures(this.selection), view = this.view = { point: raw.point, net: raw.net };
    for (const name of ['bytes', 'count', 'grown', 'temporary']) if (raw[name]) view[name] = model.only(raw[name], this.device, this.kind);
    this.nodeTotals = model.nodeTotals(view.bytes);
    this.total = view.bytes.reduce((a, b) => a + b, 0);
    const isFailure = this.selection.moment === 'instant' && this.failureAt(this.device, this.selection.asked);
    press(document.querySelector('[data-moment]').parentElement, (b) => b.dataset.moment === this.selection.moment || (b.id === 'moment-failure' && isFailure));
    this.tell();
    tables.update();
    if (!isQuiet) this.remember();
    redraw();
    /* what is further down the page may come a moment later */
    const wantedNow = wanted;
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      if (this.wanted !== wantedNow) return;
      failures.update();
      layers.update();
      source.update();
      tables.drawDetail(); /* now with its source */
      flame.update();
      if (this.growthKey !== this.device + ':' + this.kind) { this.growthKey = this.device + ':' + this.kind; growth.update(); blocks.update(); } else blocks.updateSegments();
      redraw();
      document.documentElement.dataset.settled = String(Number(document.documentElement.dataset.settled || 0) + 1);
    }, 0);
  },

  resolve(w) {
    const t = model.instants.time;
    if (w.peak) {
      const p = model.peak(this.device, 'active');
      return { moment: 'peak', device: this.device, shown: p ? { at: p.time } : null };
    }
    if (w.end) return { moment: 'end', device: this.device, shown: { at: timeline.whole } };
    if (w.run) return { moment: 'run', device: this.device, shown: { from: timeline.begin, to: timeline.whole } };
    if (w.at !== undefined) {
      const i = model.instantBefore(w.at);
      return { moment: 'instant', device: this.device, instant: i, asked: w.at, shown: { at: w.at } };
    }
    const from = model.instantBefore(w.from);
    let to = model.instantBefore(w.to);
    if (t[to] < w.to && to + 1 < t.length) to++;
    return { moment: 'range', device: this.device, from, to: Math.max(to, Math.min(from + 1, t.length - 1)), asked: w, shown: { from: w.from, to: w.to } };
  },

  clock(ns) {
    const wall = wallClock(model.core.start_unix_us, ns);
    return instant(ns) + (wall ? ' (' + wall + ')' : '');
  },

  /* One sentence: what the figures below are, and from which instants they come. */
  tell() {
    const s = this.selection, name = model.core.devices[this.device].name + (this.kind >= 0 ? ' ' + model.m.kinds[this.kind] : ''), out = [], t = model.instants.time;
    const sampled = 'Estimated from a sample of the heap\u2019s blocks, one for each ' + bytes(model.core.sample_bytes) + ' allocated; \u00b1: at most, in 95 of 100 recordings; \u00b1?: not known.';
    const without = model.core.least_bytes > 0 ? ' Blocks of the heap below ' + bytes(model.core.least_bytes) + ' are left out.' : '';
    const strong = (text) => out.push(el('strong', {}, text)), say = (text) => out.push(text), from = (text) => out.push(el('span', { class: 'from' }, text));
    if (s.moment === 'peak' && model.core.merged) {
      strong(tables.estimated(this.total));
      say(' on ' + name + ' as the sum of the peaks of ' + plural(model.core.merged, 'recording', 'recordings') + '. ');
      from('Each one had its peak at an instant of its own.');
    } else if (s.moment === 'peak' && model.core.is_profile) {
      strong(tables.estimated(this.total));
      say(' live on ' + name + ' at its peak, as the imported profile says it, or else when that was written. ');
    } else if (s.moment === 'peak') {
      strong(tables.estimated(this.total));
      say(' live on ' + name + ' at its peak' + (s.shown ? ', ' + this.clock(s.shown.at) : '') + '. ');
      from(model.core.sample_bytes ? sampled + without : 'Exact to the event.' + without);
    } else if (s.moment === 'end') {
      strong(tables.estimated(this.total));
      say(' on ' + name + ' still live when its process ended. ');
      from(model.core.sample_bytes ? sampled + without : 'Exact.' + without);
    } else if (s.moment === 'run') {
      strong(tables.estimated(this.total));
      say(' allocated on ' + name + ' in the whole run. ');
      from(model.core.sample_bytes ? sampled + without : 'Exact.' + without);
    } else if (s.moment === 'instant') {
      strong(tables.estimated(this.total));
      say(' live on ' + name + ' at ' + this.clock(t[s.instant]) + '. ');
      const early = s.asked - t[s.instant], label = this.instantName(s.instant);
      from((early > 0 ? 'Figures of the stored instant ' + instant(early) + ' before the one that you chose (' + instant(s.asked) + ')' : 'A stored instant') + (label ? ': ' + label : '') + (model.core.sample_bytes ? '. ' + sampled : '; exact there.') + without);
    } else {
      strong(tables.estimated(this.total));
      const range = model.core.open_range;
      const during = range && range.name && s.asked.from === range.from && s.asked.to === range.to ? ' during ' + range.name + ',' : '';
      say(' allocated on ' + name + during + ' from ' + instant(t[s.from]) + ' to ' + instant(t[s.to]) + '; grew by ' + signedBytes(this.view.grown.reduce((a, b) => a + b, 0)) + tables.unknown + '. ');
      if (t[s.from] === s.asked.from && t[s.to] === s.asked.to) from('Between two stored instants.');
      else this.tellSnapped(s, from);
    }
    const damaged = s.moment === 'instant' && model.instants.flags[s.instant] & INSTANT.DAMAGED;
    if (damaged) from(' Some events before it could not be read, so this is not exact.');
    if (this.view.net) from(' No events are kept for part of it: what came and went between two key frames is not counted.');
    byId('selection-text').replaceChildren(...out);
    byId('device-text').textContent = out.map((x) => typeof x === 'string' ? x : x.className === 'from' ? '' : x.textContent).join('').replace(/\. $/, '');
    byId('zoom-selection').hidden = s.moment !== 'range';
  },

  /* Which stored instants stand for the ends of a range, and what tells the figures of the range itself. */
  tellSnapped(s, from) {
    const t = model.instants.time, ends = [[s.from, s.asked.from], [s.to, s.asked.to]].map(([i, asked]) => {
      const label = this.instantName(i), off = asked - t[i];
      return instant(t[i]) + (label ? ' (' + label + ')' : '') + (off ? ', ' + instant(Math.abs(off)) + (off > 0 ? ' before' : ' after') : ', just') + ' the ' + instant(asked) + ' that you chose';
    });
    from('Figures between the nearest stored instants: from ' + ends[0] + ', to ' + ends[1] + '. Exact for your choice: memprof report --from ' + Math.round(s.asked.from) + 'ns --to ' + (s.asked.to < timeline.whole ? Math.round(s.asked.to) + 'ns' : 'end') + '.');
  },

  showLine(line) {
    tables.tab = 'line';
    tables.chosen = { scope: 'line', key: line };
    tables.update();
    this.remember();
    byId('holders').scrollIntoView();
  },
  showSite(site) {
    tables.chosen = { scope: 'site', key: site };
    tables.update();
    byId('holders').scrollIntoView();
  },

  /* The state as the address has it: #device=cuda:0&at=peak, at=end, at=run, time=NS, or from=NS&to=NS; with kind=NAME; line=N is the chosen row. */
  fragment() {
    const w = this.wanted, out = ['device=' + encodeURIComponent(model.core.devices[this.device].name).replace(/%3A/g, ':')];
    if (this.kind >= 0) out.push('kind=' + encodeURIComponent(model.m.kinds[this.kind]));
    if (w.at !== undefined) out.push('time=' + Math.round(w.at));
    else if (w.from !== undefined) out.push('from=' + Math.round(w.from), 'to=' + Math.round(w.to));
    else out.push('at=' + (w.end ? 'end' : w.run ? 'run' : 'peak'));
    if (tables.chosen && tables.chosen.scope === 'line') out.push('line=' + tables.chosen.key);
    return out.join('&');
  },
  remember() {
    try { history.replaceState(null, '', '#' + this.fragment()); } catch { /* a page within another may have no address */ }
  },

  /* What an address asks for; null where it names a section, or nothing. */
  asked() {
    const parts = new URLSearchParams(location.hash.slice(1)), ns = (key) => timeline.within(Number(parts.get(key)));
    if (!['device', 'at', 'time', 'from', 'line'].some((key) => parts.has(key))) return null;
    const named = model.deviceIndex(parts.get('device')), kind = model.m.kinds.indexOf(parts.get('kind')), line = parts.has('line') ? Number(parts.get('line')) : -1;
    const out = { device: named < 0 ? this.device : named, kind }, isTime = (key) => parts.has(key) && Number.isFinite(Number(parts.get(key)));
    if (isTime('from') && isTime('to') && ns('from') < ns('to')) Object.assign(out, { from: ns('from'), to: ns('to') });
    else if (isTime('time')) out.at = ns('time');
    else if (['end', 'run'].includes(parts.get('at'))) out[parts.get('at')] = true;
    else out.peak = true;
    return { wanted: out, line: Number.isInteger(line) && line >= 0 && line < model.m.selfLineCount ? line : -1 };
  },
  /* isLink: a link on the page was followed, so what it leads to comes into view. */
  follow(isLink) {
    const asked = this.asked();
    if (!asked) return false;
    tables.chosen = asked.line >= 0 ? { scope: 'line', key: asked.line } : null;
    if (asked.line >= 0) tables.tab = 'line';
    this.select(asked.wanted);
    if (asked.line >= 0) byId('holders').scrollIntoView();
    else if (isLink) {
      const shown = this.selection.shown, at = shown && this.selection.moment !== 'end' ? shown.at : undefined;
      if (at !== undefined) timeline.show(at - timeline.length() / 20, at + timeline.length() / 20);
      byId(this.failureAt(this.device, at) ? 'failures' : 'timeline').scrollIntoView();
    }
    return true;
  },
  /* Where the page opens: with the range that it was asked for; where memory ran out last, if it did; else at the peak. */
  open() {
    if (this.follow(false)) return;
    const range = model.core.open_range;
    if (range && range.from < range.to) {
      this.select({ device: this.device, from: range.from, to: range.to });
      timeline.show(range.from - (range.to - range.from) / 2, range.to + (range.to - range.from) / 2);
      return;
    }
    const i = failures.lastOf(this.device);
    this.select(i < 0 ? { device: this.device, peak: true } : { device: this.device, at: model.core.failures[i].time }, true);
  },

  about() {
    const core = model.core, folded = core.folded, box = byId('about-body'), notes = [];
    if (folded.folded_sites) notes.push(count(folded.folded_sites) + ' of ' + plural(folded.sites, 'allocating stack', 'allocating stacks') + ' are folded into their nearest shown caller as "smaller stacks"; memprof report --by stack lists all.');
    notes.push('The page stores ' + plural(model.instants.count, 'instant', 'instants') + '; memprof report --at TIME answers for any other.');
    if (!folded.events_kept) notes.push('No events are kept in the file: the stored instants are its key frames.');
    if (folded.damaged_chunks) notes.push(plural(folded.damaged_chunks, 'part', 'parts') + ' of the events could not be read; what depends on that is marked.');
    if (folded.marks > folded.marks_max) notes.push('Of ' + count(folded.marks) + ' marks the ' + count(folded.marks_max) + ' longest are shown; memprof sql has all.');
    if (model.transferLines > model.transfers.length) notes.push('Of ' + count(model.transferLines) + ' lines that copy or fill the ' + count(model.transfers.length) + ' with most bytes are shown; memprof report --transfers has all.');
    if (folded.threads > folded.rows_max || folded.processes > folded.rows_max) notes.push('Of processes and threads the first ' + count(folded.rows_max) + ' are listed.');
    const end = (p) => p.end_kind === 'exit' ? 'exit ' + p.exit_status : p.end_kind === 'signal' ? 'signal ' + p.exit_signal : p.end_kind || 'not seen to end';
    box.replaceChildren(el('div', { class: 'about-grid' },
      el('div', {}, el('h3', {}, 'What this page leaves out'), el('ul', {}, notes.map((n) => el('li', {}, n))),
        core.counters.length ? [el('h3', {}, 'Counted by the collector'), el('table', {}, el('tbody', {}, core.counters.map((c) => el('tr', {}, el('td', {}, count(c.value)), el('td', { class: 'text' }, c.text)))))] : null),
      el('div', {}, el('h3', {}, 'Processes'), el('div', { class: 'table-wrap' }, el('table', {}, el('thead', {}, el('tr', {}, ['Pid', 'Started', 'Ended', ''].map((h, i) => el('th', { class: i === 3 ? 'text' : null }, h)))),
        el('tbody', {}, core.processes.slice(0, 20).map((p) => el('tr', {}, el('td', {}, p.pid), el('td', {}, instant(p.start_ns)), el('td', {}, end(p)), el('td', { class: 'text' }, ((p.not_recorded ? 'not recorded (' + String(p.not_recorded).split(/[:;]/)[0] + '): ' : '') + (p.title ? '[' + p.title + '] ' : '') + p.command_line).slice(0, 160))))))),
      core.processes.length > 20 ? el('p', { class: 'hint' }, 'and ' + count(folded.processes - 20) + ' more; memprof info lists them') : null)));
  },
};

/* The first findings are the worst; more than fit at a glance wait behind a button. */
function foldFindings() {
  const items = [...document.querySelectorAll('.finding')];
  if (items.length <= 7) return;
  for (const item of items.slice(6)) item.hidden = true;
  const button = el('button', { type: 'button', click: () => { for (const item of items) item.hidden = false; button.remove(); } }, 'Show ' + plural(items.length - 6, 'more finding', 'more findings'));
  byId('findings').append(el('p', { class: 'more' }, button));
}

async function start() {
  const began = performance.now(), root = document.documentElement;
  foldFindings();
  await loadModel(async (stage) => {
    if (stage === 'timeline') {
      app.device = model.core.open_device;
      timeline.start((wanted) => { if (model.instants) app.select(wanted); });
      root.dataset.timelineMs = (performance.now() - began).toFixed(0);
      await new Promise((done) => setTimeout(done, 0)); /* let it be painted */
    }
  });
  app.start();
  failures.start();
  layers.start();
  tables.start();
  source.start();
  flame.start();
  growth.start();
  blocks.start();
  app.about();
  app.open();
  addEventListener('hashchange', () => app.follow(true));
  document.addEventListener('click', (e) => { /* also where the address says so already */
    const link = e.target.closest && e.target.closest('a[href^="#"]');
    if (link && link.getAttribute('href') === location.hash && app.follow(true)) e.preventDefault();
  });
  addEventListener('resize', () => flame.resize());
  document.addEventListener('keydown', (e) => {
    if (e.target.matches && e.target.matches('input, select, textarea, canvas')) return;
    if (e.key === '[' || e.key === ']') app.stepInstant(e.key === '[' ? -1 : 1);
  });
  root.dataset.readyMs = (performance.now() - began).toFixed(0);
  root.dataset.ready = 'true';
}

startPage(start);
