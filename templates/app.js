/* app.js: the selection that everything follows, the theme, links into the page, and the start. */

const app = {
  device: 0, kind: -1, selection: null, view: null, nodeTotals: null, total: 0, linePeaks: new Map(),

  inView(site) { return model.m.sites.device[site] === this.device && (this.kind < 0 || model.m.sites.kind[site] === this.kind); },

  runMeasures() {
    const key = this.device + ':' + this.kind;
    if (this.runKey !== key) {
      this.runKey = key;
      this.run = {};
      for (const name of ['alloc_count', 'temporary_count', 'temporary_bytes', 'end_bytes']) this.run[name] = model.only(model.m.sites[name], this.device, this.kind);
    }
    return this.run;
  },

  linePeak(line) { const v = this.linePeaks.get(line * 64 + this.device); return v === undefined ? null : v; },

  start() {
    const raw = model.m.line_peaks;
    for (let i = 0; i + 2 < raw.length; i += 3) this.linePeaks.set(raw[i] * 64 + raw[i + 1], raw[i + 2]);
    const first = model.core.devices.findIndex((d, i) => { const t = model.total(i, 'all'); return t && t.alloc_count > 0; });
    this.device = Math.max(0, first);
    const group = byId('device-switch');
    model.core.devices.forEach((d, i) => group.append(el('button', { type: 'button', 'data-device': i, click: () => this.setDevice(i) }, d.name)));
    group.hidden = model.core.devices.length < 2;
    byId('kind-select').addEventListener('change', (e) => { this.kind = Number(e.target.value); this.select(this.wanted); });
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
    const w = this.wanted;
    this.kind = -1;
    this.select(w.from !== undefined ? { ...w, device: i } : w.at !== undefined ? { ...w, device: i } : { ...w, device: i });
  },

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
    if (f & INSTANT.FAILURE) names.push('out of memory');
    if (f & INSTANT.MARK) {
      const m = model.core.marks.find((x) => x.start_ns === model.instants.time[i]);
      names.push(m ? 'mark ' + m.name.slice(0, 40) : 'mark');
    }
    return names.join(', ');
  },

  fillInstants() {
    const options = [el('option', { value: '' }, 'Stored instants (' + count(model.instants.count) + ')')];
    model.core.devices.forEach((d, i) => { const p = model.peak(i, 'active'); if (p) options.push(el('option', { value: 'p' + i }, seconds(p.time, timeline.whole) + '  peak of ' + d.name)); });
    for (let i = 0; i < model.instants.count; i++) {
      const name = this.instantName(i);
      if (name && name !== 'peak') options.push(el('option', { value: i }, seconds(model.instants.time[i], timeline.whole) + '  ' + name));
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

  /* wanted: {device} with peak, end, run, at (ns), or from and to (ns): what the reader asked for. */
  select(wanted) {
    const began = performance.now();
    this.wanted = wanted;
    if (wanted.device !== this.device) {
      this.device = wanted.device;
      this.kind = -1;
    }
    this.fillKinds();
    press(byId('device-switch'), (b) => Number(b.dataset.device) === this.device);
    this.selection = this.resolve(wanted);
    const raw = model.measures(this.selection), view = this.view = { point: raw.point, net: raw.net };
    for (const name of ['bytes', 'count', 'grown', 'temporary']) if (raw[name]) view[name] = model.only(raw[name], this.device, this.kind);
    this.nodeTotals = model.nodeTotals(view.bytes);
    this.total = view.bytes.reduce((a, b) => a + b, 0);
    press(document.querySelector('[data-moment]').parentElement, (b) => b.dataset.moment === this.selection.moment);
    this.tell();
    tables.update();
    document.documentElement.dataset.selectMs = (performance.now() - began).toFixed(1);
    redraw();
    /* what is further down the page may come a moment later */
    const wantedNow = wanted;
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      if (this.wanted !== wantedNow) return;
      source.update();
      if (tables.chosen) tables.drawDetail();
      flame.update();
      if (this.growthKey !== this.device + ':' + this.kind) { this.growthKey = this.device + ':' + this.kind; growth.update(); blocks.update(); } else blocks.updateSegments();
      redraw();
      document.documentElement.dataset.settled = String(Number(document.documentElement.dataset.settled || 0) + 1);
    }, 0);
  },

  resolve(w) {
    const t = model.instants.time;
    if (w.peak) {
      const p = model.peak(this.device, 'active', this.kind < 0 ? 'all' : 'all');
      return { moment: 'peak', device: this.device, shown: p ? { at: p.time } : null };
    }
    if (w.end) return { moment: 'end', device: this.device, shown: { at: timeline.whole } };
    if (w.run) return { moment: 'run', device: this.device, shown: { from: 0, to: timeline.whole } };
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
    return seconds(ns, timeline.whole) + (wall ? ' (' + wall + ')' : '');
  },

  /* One sentence: what the figures below are, and from which instants they come. */
  tell() {
    const s = this.selection, name = model.core.devices[this.device].name + (this.kind >= 0 ? ' ' + model.m.kinds[this.kind] : ''), out = [], t = model.instants.time;
    const strong = (text) => out.push(el('strong', {}, text)), say = (text) => out.push(text), from = (text) => out.push(el('span', { class: 'from' }, text));
    if (s.moment === 'peak') {
      strong(bytes(this.total));
      say(' live on ' + name + ' at its peak' + (s.shown ? ', ' + this.clock(s.shown.at) : '') + '. ');
      from('Exact to the event.');
    } else if (s.moment === 'end') {
      strong(bytes(this.total));
      say(' on ' + name + ' still live when its process ended. ');
      from('Exact.');
    } else if (s.moment === 'run') {
      strong(bytes(this.total));
      say(' allocated on ' + name + ' in the whole run. ');
      from('Exact.');
    } else if (s.moment === 'instant') {
      strong(bytes(this.total));
      say(' live on ' + name + ' at ' + this.clock(t[s.instant]) + '. ');
      const early = s.asked - t[s.instant], label = this.instantName(s.instant);
      from((early > 0 ? 'Figures of the stored instant ' + duration(early) + ' before the one that you chose (' + seconds(s.asked, timeline.whole) + ')' : 'A stored instant') + (label ? ': ' + label : '') + '; exact there.');
    } else {
      strong(bytes(this.total));
      say(' allocated on ' + name + ' from ' + seconds(t[s.from], timeline.whole) + ' to ' + seconds(t[s.to], timeline.whole) + '; grew by ' + signedBytes(this.view.grown.reduce((a, b) => a + b, 0)) + '. ');
      from(t[s.from] !== s.asked.from || t[s.to] !== s.asked.to ? 'Figures between the nearest stored instants around ' + seconds(s.asked.from, timeline.whole) + ' to ' + seconds(s.asked.to, timeline.whole) + '.' : 'Between two stored instants.');
    }
    const damaged = s.moment === 'instant' && model.instants.flags[s.instant] & INSTANT.DAMAGED;
    if (damaged) from(' Some events before it could not be read, so this is not exact.');
    if (this.view.net) from(' No events are kept for part of it: what came and went between two key frames is not counted.');
    byId('selection-text').replaceChildren(...out);
    byId('zoom-selection').hidden = s.moment !== 'range';
  },

  showLine(line) {
    tables.tab = 'line';
    tables.chosen = { scope: 'line', key: line };
    tables.update();
    byId('holders').scrollIntoView();
  },
  showSite(site) {
    tables.chosen = { scope: 'site', key: site };
    tables.update();
    byId('holders').scrollIntoView();
  },

  /* #line=3&at=peak and #time=NS: where findings lead. */
  follow() {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (parts.has('line')) {
      const line = Number(parts.get('line')), at = parts.get('at');
      if (!Number.isInteger(line) || line < 0 || line >= model.m.selfLineCount) return;
      let site = -1;
      for (let i = 0; i < model.m.siteCount && site < 0; i++) if (model.m.sites.line[i] === line) site = i;
      const device = site < 0 || this.hasLine(line) ? this.device : model.m.sites.device[site];
      this.select(at === 'end' ? { device, end: true } : at === 'run' ? { device, run: true } : { device, peak: true });
      this.showLine(line);
    } else if (parts.has('time')) {
      const ns = Number(parts.get('time'));
      if (!(ns >= 0 && ns <= timeline.whole)) return;
      this.select({ device: this.device, at: ns });
      timeline.show(ns - timeline.whole / 20, ns + timeline.whole / 20);
      byId('timeline').scrollIntoView();
    }
  },
  hasLine(line) {
    for (let i = 0; i < model.m.siteCount; i++) if (model.m.sites.line[i] === line && model.m.sites.device[i] === this.device) return true;
    return false;
  },

  about() {
    const core = model.core, folded = core.folded, box = byId('about-body'), notes = [];
    if (folded.folded_sites) notes.push(count(folded.folded_sites) + ' of ' + count(folded.sites) + ' allocating stacks are folded into their nearest shown caller as "smaller stacks"; memprof report --by stack lists all.');
    notes.push('The page stores ' + count(model.instants.count) + ' instants; memprof report --at TIME answers for any other.');
    if (!folded.events_kept) notes.push('No events are kept in the file: the stored instants are its key frames.');
    if (folded.damaged_chunks) notes.push(count(folded.damaged_chunks) + ' parts of the events could not be read; what depends on them is marked.');
    if (folded.marks > folded.marks_max) notes.push('Of ' + count(folded.marks) + ' marks the ' + count(folded.marks_max) + ' longest are shown; memprof sql has all.');
    if (folded.threads > folded.rows_max || folded.processes > folded.rows_max) notes.push('Of processes and threads the first ' + count(folded.rows_max) + ' are listed.');
    const end = (p) => p.end_kind === 'exit' ? 'exit ' + p.exit_status : p.end_kind === 'signal' ? 'signal ' + p.exit_signal : p.end_kind || 'not seen to end';
    box.replaceChildren(el('div', { class: 'about-grid' },
      el('div', {}, el('h3', {}, 'What this page leaves out'), el('ul', {}, notes.map((n) => el('li', {}, n))),
        core.counters.length ? [el('h3', {}, 'Counted by the collector'), el('table', {}, el('tbody', {}, core.counters.map((c) => el('tr', {}, el('td', {}, count(c.value)), el('td', { class: 'text' }, c.text)))))] : null),
      el('div', {}, el('h3', {}, 'Processes'), el('div', { class: 'table-wrap' }, el('table', {}, el('thead', {}, el('tr', {}, ['Pid', 'Started', 'Ended', ''].map((h, i) => el('th', { class: i === 3 ? 'text' : null }, h)))),
        el('tbody', {}, core.processes.slice(0, 20).map((p) => el('tr', {}, el('td', {}, p.pid), el('td', {}, seconds(p.start_ns, timeline.whole)), el('td', {}, end(p)), el('td', { class: 'text' }, p.command_line.slice(0, 160))))))),
      core.processes.length > 20 ? el('p', { class: 'hint' }, 'and ' + count(folded.processes - 20) + ' more; memprof info lists them') : null)));
  },
};

/* The first findings are the worst; more than fit at a glance wait behind a button. */
function foldFindings() {
  const items = [...document.querySelectorAll('.finding')];
  if (items.length <= 7) return;
  for (const item of items.slice(6)) item.hidden = true;
  const button = el('button', { type: 'button', click: () => { for (const item of items) item.hidden = false; button.remove(); } }, 'Show ' + (items.length - 6) + ' more findings');
  byId('findings').append(el('p', { class: 'more' }, button));
}

function startTheme() {
  let stored = 'auto';
  try { stored = localStorage.getItem('memprof-theme') || 'auto'; } catch { /* a page of a file may have no storage */ }
  const set = (choice) => {
    if (choice === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    press(document.querySelector('.theme'), (b) => b.dataset.themeChoice === choice);
    theme.read();
    redraw();
  };
  for (const b of document.querySelectorAll('[data-theme-choice]')) b.addEventListener('click', () => {
    try { localStorage.setItem('memprof-theme', b.dataset.themeChoice); } catch { /* as above */ }
    set(b.dataset.themeChoice);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { theme.read(); redraw(); });
  const dark = () => document.documentElement.dataset.theme;
  let before;
  addEventListener('beforeprint', () => { for (const f of document.querySelectorAll('.finding')) f.hidden = false; before = dark(); document.documentElement.dataset.theme = 'light'; theme.read(); redraw(); drawNow(); });
  addEventListener('afterprint', () => { if (before) document.documentElement.dataset.theme = before; else delete document.documentElement.dataset.theme; theme.read(); redraw(); });
  set(['light', 'dark'].includes(stored) ? stored : 'auto');
}

async function start() {
  const began = performance.now(), root = document.documentElement;
  startTheme();
  foldFindings();
  if (typeof DecompressionStream === 'undefined') throw new Error('this browser is too old to unpack the data (Chromium 103, Firefox 113, Safari 16.4 or later do); memprof report shows the same in a terminal');
  await loadModel(async (stage) => {
    if (stage === 'timeline') {
      timeline.start((wanted) => { if (model.instants) app.select(wanted); });
      root.dataset.timelineMs = (performance.now() - began).toFixed(0);
      await new Promise((done) => setTimeout(done, 0)); /* let it be painted */
    }
  });
  app.start();
  tables.start();
  source.start();
  flame.start();
  growth.start();
  blocks.start();
  app.about();
  app.select({ device: app.device, peak: true });
  app.follow();
  addEventListener('hashchange', () => app.follow());
  addEventListener('resize', () => flame.resize());
  document.addEventListener('keydown', (e) => {
    if (e.target.matches && e.target.matches('input, select, textarea, canvas')) return;
    if (e.key === '[' || e.key === ']') app.stepInstant(e.key === '[' ? -1 : 1);
  });
  root.dataset.readyMs = (performance.now() - began).toFixed(0);
  root.dataset.ready = 'true';
}

start().catch((error) => {
  const box = byId('failed');
  box.textContent = 'The page could not be drawn: ' + error.message;
  box.hidden = false;
  byId('summary').append(box);
  console.error(error);
});
