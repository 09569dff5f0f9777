/* layers.js: what a device's memory is made of, from what the program asked for up to what the device has. */

const LAYERS = [
  { key: 'allocated', label: 'Allocated', color: 'allocated', text: 'Requested by the program and not given back: live blocks, less those whose free was asked for and waits for its stream.' },
  { key: 'active', label: 'Active', color: 'active', text: 'All live blocks, those included whose free still waits for its stream.' },
  { key: 'reserved', label: 'Reserved', color: 'reserved', text: 'What allocators hold from the driver: segments, pools, mappings. What is not active of it lies idle, or in holes.',
    host: 'What allocators hold from the kernel. What is not active of it lies idle, in holes, was never touched, or is in Python\u2019s arenas, whose small objects are not seen one by one.' },
  { key: 'used', label: 'Device used', color: 'rss', text: 'In use on the device as its driver says, by all programs. Sampled: NVML is up to 20 ms old.',
    hostLabel: 'RSS', host: 'Pages of the recorded processes that are in memory, code and libraries included. Sampled every 20 ms; with an instant beside it, what a look at the pages saw then.' },
  { key: 'untracked', label: 'Not tracked', color: 'rss', text: 'Device used less reserved at that sample: the driver\u2019s own memory (contexts, modules), and programs that were not recorded.',
    host: 'Pages that no recorded call asked for: code and data of files, stacks, other anonymous memory, memprof itself. Only a look at the pages tells, and of its instant: what is reserved need not be there, so RSS less reserved says nothing.' },
  { key: 'free', label: 'Free', color: 'soft', text: 'Capacity less device used, at that sample.' },
  { key: 'total', label: 'Capacity', color: 'muted', text: 'What the device has.' },
];

/* The layers that are not exact, as bits. RSS is a sample: at the end one from before it. */
const ABOUT = { allocated: 1, reserved: 2, used: 4, free: 4 };
const SAMPLED = '; of a sample near that instant: they are 20 ms apart, and what came and went between is not in it', SAMPLED_BEFORE = '; of the last sample before the end: what was given back since is in it';

/* What present pages hold, as v_resident has it, in the colours of the layers. */
const RESIDENT_PARTS = { blocks: 'active', beside: 'reserved', heap: 'reserved', segment: 'reserved', inherited: 'reserved' };
const UNTOUCHED = 'Live, and on no page: asked for and never written, or given back to the kernel. It takes addresses only.';

const layers = {
  whole: null, /* bars as long as the capacity; null: where that leaves something to see */

  start() {
    const box = byId('layers');
    box.addEventListener('pointerover', (e) => this.hover(e));
    box.addEventListener('pointermove', (e) => this.hover(e));
    box.addEventListener('pointerleave', () => tip.hide());
    byId('failures').addEventListener('pointerover', (e) => this.hover(e));
    byId('failures').addEventListener('pointerleave', () => tip.hide());
    byId('layers-whole').addEventListener('change', (e) => { this.whole = e.target.checked; this.update(); });
    this.fillTable();
  },

  hover(e) {
    const part = e.target.closest('[data-resident]');
    if (part) { tip.show(e, el('div', {}, part.dataset.says), part.dataset.resident === 'untouched' ? el('div', { class: 'muted' }, UNTOUCHED) : null); return; }
    const at = e.target.closest('[data-layer]'), l = at && LAYERS.find((x) => x.key === at.dataset.layer);
    if (!l) { tip.hide(); return; }
    const isHost = at.dataset.host === 'true';
    tip.show(e, el('div', {}, at.dataset.says), el('div', { class: 'muted' }, (isHost && l.host) || l.text));
  },

  /* Of the host a look at the pages tells, where it speaks for the instant: {bytes, time, present}. */
  look(row) {
    const r = model.core.resident;
    if (r && row === 0 && r.is_near && r.processes === 1) return { bytes: r.untracked, time: r.time, present: r.present };
    return r && row === 1 && r.last_untracked !== undefined ? { bytes: r.last_untracked, time: r.last_untracked_ns, present: r.last_present } : null;
  },

  /* row: 0 the peak, 1 the end, i + 2 the stored instant i */
  of(device, row, active) {
    const c = model.layers[device], isHost = model.core.devices[device].id === 0, sampled = c.used[row] < 0 ? null : c.used[row], total = c.total[row] || null, reserved = c.reserved[row];
    const look = isHost ? this.look(row) : null, lookUsed = look && row === 0 ? look.present : null, untracked = isHost ? look && look.bytes : sampled === null ? null : Math.max(0, sampled - c.used_reserved[row]);
    /* the sample is of another instant: what was reserved since comes on top */
    const used = lookUsed !== null ? lookUsed : sampled === null || isHost || c.used_reserved[row] === reserved ? sampled : reserved + untracked;
    /* where no free ever waits for a stream, what is active is allocated */
    const panel = timeline.panelOf(device), waits = panel && panel.pyramid.allocatedDiffers, about = (c.about[row] & (waits ? 3 : 2)) | (used !== null && (isHost ? lookUsed === null : used !== sampled) ? ABOUT.used : 0);
    return { device, isHost, active, allocated: waits ? Math.min(c.allocated[row], active) : active, reserved, used, total, sampled, usedAt: c.used_ns[row], about, untracked, untrackedAt: look && look.time, untrackedOf: look && look.present, usedOfLook: lookUsed !== null,
      free: used === null || total === null || isHost ? null : Math.max(0, total - used) };
  },
  atPeak(device) {
    const t = model.total(device, 'all');
    return this.of(device, 0, t ? t.peak_active_bytes : 0);
  },
  atEnd(device) {
    const t = model.total(device, 'all'), last = this.last(device);
    if (last) {
      const d = model.core.devices[device], isHost = d.id === 0, total = model.layers[device].total[1] || null;
      return { device, isHost, active: last.active, allocated: last.allocated, reserved: last.reserved, used: last.used, total, sampled: last.used, usedAt: last.time, about: isHost ? ABOUT.used : 0, isEnd: true,
        untracked: isHost ? null : last.untracked, free: isHost || total === null ? null : Math.max(0, total - last.used) };
    }
    return { ...this.of(device, 1, t ? t.end_active_bytes : 0), isEnd: true };
  },
  /* Of several processes that ended one after another: the last instant with a sample, as v_layer has it. */
  last(device) { return model.processEnds.size ? model.layers[device].last : undefined; },
  atInstant(device, i) {
    const live = model.liveAt(i).bytes, s = model.m.sites.device;
    let active = 0;
    for (let k = 0; k < live.length; k++) if (s[k] === device) active += live[k];
    return this.of(device, i + 2, active);
  },
  has(device) { return model.total(device, 'all') !== undefined || model.layers[device].sample_count > 0; },

  /* Parts that lie beside each other: what is active, idle in reserve, not tracked, free. */
  parts(l) {
    const idle = Math.max(0, l.reserved - l.active), out = [{ key: 'active', value: l.allocated, says: 'Active: ' + tables.estimated(l.active, model.core.devices[l.device].name) }];
    if (l.active > l.allocated) out.push({ key: 'active', value: l.active - l.allocated, waits: true, says: bytes(l.active - l.allocated) + ' wait for their stream to be freed' });
    if (idle > 0) out.push({ key: 'reserved', value: idle, says: 'Reserved, not active: ' + bytes(idle) });
    if (l.untracked > 0) out.push({ key: 'untracked', value: l.untracked, says: 'Not tracked: ' + this.untrackedText(l) });
    return out;
  },
  /* What the look saw is of its instant, and so is what was resident then. */
  usedText(l) { return (this.isAbout(l, 'used') ? '\u2248 ' : '') + bytes(l.used) + (l.usedOfLook ? ' at ' + instant(l.untrackedAt) : ''); },
  untrackedText(l) { return bytes(l.untracked) + (l.isHost ? ' at ' + instant(l.untrackedAt) : ''); },
  extent(l) { return this.parts(l).reduce((t, p) => t + p.value, 0); },

  bar(l, scale) {
    const bar = el('div', { class: 'layer-bar', role: 'img', 'aria-label': this.says(l) });
    let end = 0;
    for (const p of this.parts(l)) {
      const part = el('span', { class: 'layer-part ' + p.key + (p.waits ? ' waits' : ''), 'data-layer': p.key, 'data-host': l.isHost, 'data-says': p.says });
      part.style.width = (scale > 0 ? Math.max(0, Math.min(100 - end, 100 * p.value / scale)) : 0) + '%';
      end += scale > 0 ? 100 * p.value / scale : 0;
      bar.append(part);
    }
    if (l.free !== null && l.total <= scale) {
      const part = el('span', { class: 'layer-part free', 'data-layer': 'free', 'data-says': 'Free: ' + bytes(l.free) });
      part.style.width = Math.max(0, 100 * l.total / scale - end) + '%';
      bar.append(part);
    }
    return bar;
  },

  says(l) { return this.figures(l).map((f) => f.label + ' ' + f.text).join(', '); },

  figures(l) {
    const of = l.total || Math.max(l.used || 0, l.reserved, l.active), out = [];
    for (const layer of LAYERS) {
      const value = l[layer.key], label = (l.isHost && layer.hostLabel) || layer.label;
      if (layer.key === 'allocated' && value === l.active && l.isHost) continue;
      if (value === null && (layer.key !== 'used')) continue;
      const about = this.isAbout(l, layer.key);
      const text = value === null ? this.unsampled(l) : (layer.key === 'reserved' ? model.reservedText(l.device, value, about) : layer.key === 'untracked' ? this.untrackedText(l) : layer.key === 'used' ? this.usedText(l) : (about ? '\u2248 ' : '') + bytes(value) + tables.margin(['active', 'allocated'].includes(layer.key) && value, l.isHost ? 'host' : ''));
      out.push({ layer, label, text, share: value === null || layer.key === 'total' || !(of > 0) ? '' : percent(value, layer.key === 'untracked' && l.untrackedOf > 0 ? l.untrackedOf : of), about });
    }
    return out;
  },
  isAbout(l, key) { return (l.about & ABOUT[key]) > 0; },
  unsampled(l) {
    const c = model.layers[l.device];
    if (l.isHost) return 'not sampled';
    if (c.sample_count) return 'not sampled';
    if (model.core.is_import) return 'not in a snapshot';
    return /^cuda:/.test(model.core.devices[l.device].name) ? 'not sampled: no NVML' + (timeline.whole < 1e9 ? ', or too short a run' : '') : 'not sampled: not ours to ask for';
  },

  chips(l) {
    const of = l.total ? 'of the capacity' : 'of the largest layer';
    return el('ul', { class: 'layer-figures' }, this.figures(l).map((f) => el('li', { 'data-layer': f.layer.key, 'data-host': l.isHost,
      'data-says': f.label + ': ' + f.text + (f.share ? ', ' + f.share + ' ' + (f.layer.key === 'untracked' && l.untrackedOf > 0 ? 'of what was resident then' : of) : '') + (f.about && f.layer.key === 'reserved' ? '; the highest around that instant' : '')
        + (f.about && l.isHost && f.layer.key === 'used' ? (l.isEnd ? SAMPLED_BEFORE : SAMPLED) : '')
        + (f.layer.key === 'used' && l.usedAt >= 0 && !l.isHost ? '; ' + bytes(l.sampled) + ' sampled at ' + instant(l.usedAt) + (f.about ? ', and what was reserved between' : '') : '') },
    el('span', { class: 'layer-key ' + f.layer.key }), f.label, ' ', el('strong', {}, f.text), f.share ? el('span', { class: 'small' }, ' ' + f.share) : null)));
  },

  /* What was on pages, and of what was asked for was on none, where that is much: by the look at the pages. */
  resident() {
    const r = model.core.resident;
    if (!r) return null;
    const all = r.present + (r.differs ? r.untouched : 0), bar = el('div', { class: 'layer-bar', role: 'img', 'aria-label': 'Resident ' + bytes(r.present) + (r.differs ? ', on no page ' + bytes(r.untouched) : '') });
    const parts = r.rows.map((x) => ({ key: x.what, color: RESIDENT_PARTS[x.what] || (x.what === 'shared' && r.processes > 1 ? 'reserved' : 'untracked'), text: x.text, bytes: x.bytes }));
    if (r.differs) parts.push({ key: 'untouched', color: 'untouched', text: 'asked for, on no page', bytes: r.untouched });
    const says = (p) => p.text[0].toUpperCase() + p.text.slice(1) + ': ' + bytes(p.bytes) + (p.key === 'untouched' ? '' : ', ' + percent(p.bytes, r.present) + ' of what was resident');
    for (const p of parts) {
      const part = el('span', { class: 'layer-part ' + p.color, 'data-resident': p.key, 'data-says': says(p) });
      part.style.width = 100 * p.bytes / all + '%';
      bar.append(part);
    }
    const chips = [el('li', {}, 'Resident ', el('strong', {}, bytes(r.present))), el('li', { 'data-resident': 'untracked', 'data-says': 'Not tracked: ' + bytes(r.untracked) + ', of files, stacks and the like, which no recorded call asked for' }, 'Not tracked ', el('strong', {}, bytes(r.untracked)))];
    for (const p of parts) if (p.bytes) chips.push(el('li', { 'data-resident': p.key, 'data-says': says(p) }, el('span', { class: 'layer-key ' + p.color }), p.text, ' ', el('strong', {}, bytes(p.bytes))));
    const notes = ['A look at which pages were there, at the highest resident memory that was looked at' + (r.is_short ? ' (the peak RSS is ' + bytes(r.peak_rss) + ')' : '') + '; it took ' + instant(r.took) + (r.moved > 0 ? ', ' + plural(r.moved, 'event', 'events') + ' meanwhile' : '')
      + (r.processes > 1 ? ', of ' + count(r.processes) + ' processes' : '') + '. The last look of all was at ' + instant(r.last) + ', before the end.'];
    if (r.swapped) notes.push(bytes(r.swapped) + ' of it was swapped out.');
    if (r.huge > 0) notes.push(bytes(r.huge) + ' of it was in huge pages.');
    return el('div', { class: 'layer-row', id: 'layers-resident' }, el('div', { class: 'layer-when' }, el('strong', {}, r.differs ? 'Asked for and there' : 'On pages'), el('span', { class: 'small' }, instant(r.time))),
      el('div', {}, bar, el('ul', { class: 'layer-figures' }, chips), el('p', { class: 'hint' }, notes.join(' '))));
  },

  /* What was live at the end is elsewhere of each process at its own, and not of one instant, as layers are. */
  endNote(device) {
    const t = model.total(device, 'all'), ended = model.core.processes.filter((p) => p.end_kind !== 'exec').length;
    if (!t || !t.end_active_bytes) return '';
    if (!model.processEnds.size) return this.tornNote(device);
    const last = this.last(device), torn = model.layers[device].torn;
    if (last && torn)
      return 'The last instant with a sample. Live at the end is ' + tables.estimated(t.end_active_bytes, model.core.devices[device].name) + ' in all: with ' + bytes(torn) + ' that Python freed as it took itself down, and what processes that had ended before held then.';
    const ends = plural(ended, 'process', 'processes') + ' held at its own end';
    if (!last) return 'Active is the sum of what each of ' + ends + '; ' + (model.core.devices[device].id === 0 ? 'reserved and RSS are' : 'all else is') + ' of the end of the run.';
    return 'The last instant with a sample. What each of ' + ends + ' is ' + tables.estimated(t.end_active_bytes, model.core.devices[device].name) + ' in all, not at one instant.';
  },

  /* What was live where Python began to take itself down counts as live at the end. */
  tornNote(device) {
    const torn = model.layers[device].torn;
    return torn ? 'Active is of where Python began to take itself down, which then freed ' + bytes(torn) + ' of it; all else is of the end of the run.' : '';
  },

  /* Whether several processes ran at an instant: only then a page counts in the RSS of each. */
  hasSeveral(time) {
    return model.core.processes.filter((p) => p.start_ns <= time && (p.end_ns === null || p.end_ns >= time)).length > 1;
  },

  /* [label, time, layers] of the instants to show */
  rows(device) {
    const s = app.selection, peak = model.peak(device, 'active'), out = [], end = timeline.whole;
    const chosen = s.moment === 'instant' ? s.instant : s.moment === 'range' ? s.to : -1;
    out.push(['At the peak', peak ? peak.time : null, this.atPeak(device), s.moment === 'peak']);
    if (chosen >= 0) out.push([s.moment === 'range' ? 'At the end of the range' : app.failureAt(device, model.instants.time[chosen]) ? 'When an allocation failed' : 'At the chosen instant', model.instants.time[chosen], this.atInstant(device, chosen), true]);
    const last = this.last(device);
    out.push(['At the end', last ? last.time : end, this.atEnd(device), s.moment === 'end', this.endNote(device)]);
    return out.sort((a, b) => a[1] - b[1]);
  },

  update() {
    const device = app.device, box = byId('layers-rows'), name = model.core.devices[device].name;
    if (!this.has(device)) {
      box.replaceChildren(el('p', { class: 'hint' }, 'Nothing was recorded of ' + name + '.'));
      byId('layers-whole').parentElement.hidden = true;
      return;
    }
    const rows = this.rows(device), total = rows.reduce((t, r) => Math.max(t, r[2].total || 0), 0), most = rows.reduce((t, r) => Math.max(t, this.extent(r[2]), r[2].used || 0), 0);
    const whole = total > 0 && (this.whole === null ? most * 4 >= total : this.whole), scale = whole ? Math.max(total, most) : most;
    byId('layers-whole').parentElement.hidden = !(total > 0);
    byId('layers-whole').checked = whole;
    box.replaceChildren(...rows.map(([label, time, l, chosen, note]) => el('div', { class: 'layer-row' + (chosen ? ' chosen' : '') },
      el('div', { class: 'layer-when' }, el('strong', {}, label), el('span', { class: 'small' }, time === null ? '' : instant(time))),
      el('div', {}, this.bar(l, scale), this.chips(l), note ? el('p', { class: 'small' }, note) : null))));
    const again = model.core.devices[device].id === 0 && rows.some((r) => this.hasSeveral(r[1])) && model.core.rss_again;
    if (again) box.append(el('p', { class: 'small', id: 'layers-again' }, 'RSS is a sum over processes: at its highest, ' + again + '.'));
    const resident = model.core.devices[device].id === 0 ? this.resident() : null;
    if (resident) box.append(resident);
  },

  /* Every device at its peak and at the end. */
  fillTable() {
    const rows = [];
    model.core.devices.forEach((d, i) => {
      if (!this.has(i)) return;
      for (const [label, l] of [['at the peak', this.atPeak(i)], ['at the end', this.atEnd(i)]])
        rows.push(el('tr', {}, el('td', { class: 'text' }, d.name), el('td', { class: 'text' }, label),
          LAYERS.map((layer) => el('td', {}, l[layer.key] === null ? (layer.key === 'used' ? this.unsampled(l) : '-') : layer.key === 'untracked' ? this.untrackedText(l) : layer.key === 'used' ? this.usedText(l) : (this.isAbout(l, layer.key) && !(layer.key === 'allocated' && l.allocated === l.active) ? '\u2248 ' : '') + bytes(l[layer.key]) + tables.margin(['active', 'allocated'].includes(layer.key) ? l[layer.key] : 0, model.core.devices[l.device].name)))));
    });
    const notes = [...new Set(model.core.devices.map((d, i) => this.endNote(i)))].filter(Boolean).map((note) => el('p', { class: 'small' }, 'At the end: ' + note));
    byId('layers-table').replaceChildren(...notes, el('table', {}, el('thead', {}, el('tr', {}, el('th', { class: 'text' }, 'Device'), el('th', {}), LAYERS.map((l) => el('th', {}, l.label)))), el('tbody', {}, rows)));
    const isMixed = model.core.devices.length > 1;
    byId('layers-words').replaceChildren(...LAYERS.flatMap((l) => [el('dt', {}, l.label + (l.hostLabel ? ', ' + l.hostLabel : '')), el('dd', {}, isMixed || model.core.devices[0].id !== 0 ? l.text + (l.host ? ' On the host: ' + l.host : '') : l.host || l.text)]));
  },
};
