/* model.js: the recording's data, unpacked, and every sum over it: by line, function, file, module, tree node. */

async function unpack(id) {
  const text = atob(byId(id).textContent.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return JSON.parse(await new Response(stream).text());
}

function undelta(values) {
  const out = new Float64Array(values.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) out[i] = sum += values[i];
  return out;
}

const INSTANT = { PEAK: 1, RESERVED_PEAK: 2, LOCAL_PEAK: 4, FAILURE: 8, MARK: 16, KEYFRAME: 32, NET: 256, DAMAGED: 512 };
const FRAME = { LANGUAGE: 3, PYTHON: 1, JIT: 2, INLINE: 4, FOLDED: 8, LIBRARY: 16 }; /* LIBRARY: of the interpreter, an allocator, a standard library */
const CHECKPOINT_EVERY = 16;

/* When each process ended that others outlived. */
function endsBeforeOthers(processes) {
  const last = Math.max(...processes.map((p) => p.end_ns === null ? Infinity : p.end_ns));
  return new Map(processes.filter((p) => p.end_kind !== 'exec' && p.end_ns !== null && p.end_ns < last).map((p) => [p.process_id, p.end_ns]));
}

/* Names, frames, the tree of stacks (callers before callees), sites. */
function makeSites(raw) {
  const m = raw;
  m.functions.short = distinctNames(m.functions.name, (i) => m.functions.file[i] + ':' + m.functions.line[i]);
  m.frames.function = undelta(m.frames.function);
  m.nodes.depth = undelta(m.nodes.depth);
  m.nodes.frame = undelta(m.nodes.frame);
  m.nodeCount = m.nodes.depth.length;
  m.siteCount = m.sites.node.length;
  m.selfLineCount = m.lines.line.length;
  m.nodes.parent = new Int32Array(m.nodeCount);
  const path = [];
  for (let i = 0; i < m.nodeCount; i++) {
    const depth = m.nodes.depth[i];
    m.nodes.parent[i] = depth > 0 ? path[depth - 1] : -1;
    path[depth] = i;
  }
  m.sitesOfNode = null;
  addFrameLines(m);
  markFirsts(m);
  m.nodes.above = nearestAbove(m);
  groupFrames(m);
  return m;
}

/* Frames name lines too; the ones that no site has as its own come after those. */
function addFrameLines(m) {
  const known = new Map();
  const key = (fn, file, line) => fn + ':' + file + ':' + line;
  for (let i = 0; i < m.lines.line.length; i++) known.set(key(m.lines.function[i], m.lines.file[i], m.lines.line[i]), i);
  const count = m.frames.file.length;
  m.frames.lineIndex = new Int32Array(count);
  m.lines.own = []; /* of the program itself */
  for (let i = 0; i < count; i++) {
    const k = key(m.frames.function[i], m.frames.file[i], m.frames.line[i]);
    let index = known.get(k);
    if (index === undefined) {
      index = m.lines.line.length;
      known.set(k, index);
      m.lines.function.push(m.frames.function[i]);
      m.lines.file.push(m.frames.file[i]);
      m.lines.line.push(m.frames.line[i]);
      m.lines.caller.push(-1);
      m.lines.other_callers.push(0);
    }
    m.frames.lineIndex[i] = index;
    if (!(m.frames.flags[i] & FRAME.LIBRARY)) m.lines.own[index] = true;
  }
}

/* Per node and scope: is it the first of its line (function, ...) on the way from the root? Recursion then counts once. */
function markFirsts(m) {
  const scopes = { line: m.frames.lineIndex, function: m.frames.function, file: m.frames.file, module: m.frames.module };
  m.first = {};
  for (const [scope, keys] of Object.entries(scopes)) {
    const first = m.first[scope] = new Uint8Array(m.nodeCount), on = new Map(), path = [];
    for (let i = 0; i < m.nodeCount; i++) {
      const depth = m.nodes.depth[i];
      while (path.length > depth) {
        const key = path.pop();
        on.set(key, on.get(key) - 1);
      }
      const key = keys[m.nodes.frame[i]], above = on.get(key) || 0;
      first[i] = above === 0 && key >= 0 ? 1 : 0;
      on.set(key, above + 1);
      path.push(key);
    }
  }
  m.scopeKeys = scopes;
}

/* Per node the nearest caller that is of the program itself, -1: none. */
function nearestAbove(m) {
  const above = new Int32Array(m.nodeCount).fill(-1);
  for (let i = 0; i < m.nodeCount; i++) {
    const p = m.nodes.parent[i];
    if (p >= 0) above[i] = m.frames.flags[m.nodes.frame[p]] & FRAME.LIBRARY ? above[p] : p;
  }
  return above;
}

/* What a frame belongs to, for its colour: a module of native code, a package of Python's, or a language. */
function frameGroup(m, f) {
  const flags = m.frames.flags[f], language = flags & FRAME.LANGUAGE, file = m.frames.file[f] >= 0 ? m.files[m.frames.file[f]] : '', module = m.frames.module[f];
  if (language === FRAME.JIT) return 'JIT';
  if (language === FRAME.PYTHON) {
    const installed = /\/(?:site|dist)-packages\/([^/]+)/.exec(file);
    return installed ? installed[1].replace(/\.py$/, '') + ' (Python)' : flags & FRAME.LIBRARY ? 'Python\u2019s library' : 'Python';
  }
  return module >= 0 ? baseName(m.modules[module]).replace(/\.so(\..*)?$/, '').replace(/\.(cpython|pypy|abi)[^+]*$/, '') : 'no module';
}

/* The groups by what they allocated, callees included, the program's own before the libraries: the first ones have a colour. */
const GROUP_COLORS = 8;
function groupFrames(m) {
  const sums = new Map(), total = new Float64Array(m.nodeCount), names = Array.from({ length: m.frames.flags.length }, (_, f) => frameGroup(m, f));
  for (let i = 0; i < m.siteCount; i++) total[m.sites.node[i]] += m.sites.alloc_bytes[i];
  for (let i = m.nodeCount - 1; i > 0; i--) if (m.nodes.parent[i] >= 0) total[m.nodes.parent[i]] += total[i];
  for (let i = 0; i < m.nodeCount; i++) {
    const f = m.nodes.frame[i], p = m.nodes.parent[i];
    if (p >= 0 && names[m.nodes.frame[p]] === names[f]) continue;
    const g = sums.get(names[f]) || { name: names[f], sum: 0, own: false };
    g.sum += total[i];
    g.own = g.own || !(m.frames.flags[f] & FRAME.LIBRARY);
    sums.set(g.name, g);
  }
  m.groups = [...sums.values()].sort((a, b) => b.own - a.own || b.sum - a.sum);
  m.groups.forEach((g, i) => { g.color = i < GROUP_COLORS ? 'flame-' + (i + 1) : 'flame-other'; });
  const at = new Map(m.groups.map((g, i) => [g.name, i]));
  m.frames.group = Int32Array.from(names, (n) => at.has(n) ? at.get(n) : -1);
}

/* Stored instants: what was live at each, by site, kept whole at every 16th. */
function makeInstants(raw, siteCount) {
  const s = { time: undelta(raw.time), flags: raw.flags, count: raw.time.length, site: undelta(raw.site), raw, checkpoints: [] };
  s.first = new Float64Array(s.count + 1);
  for (let i = 0; i < s.count; i++) s.first[i + 1] = s.first[i] + raw.entry_count[i];
  const bytesNow = new Float64Array(siteCount), countNow = new Float64Array(siteCount);
  for (let i = 0; i < s.count; i++) {
    for (let k = s.first[i]; k < s.first[i + 1]; k++) {
      bytesNow[s.site[k]] += raw.grown_bytes[k];
      countNow[s.site[k]] += raw.grown_count[k];
    }
    if (i % CHECKPOINT_EVERY === 0) s.checkpoints.push({ bytes: bytesNow.slice(), count: countNow.slice() });
  }
  return s;
}

/* A device's layers: at its peak, at the end, at each stored instant. */
function makeLayers(raw) {
  const out = { ...raw };
  for (const [key, value] of Object.entries(raw)) if (Array.isArray(value)) out[key] = undelta(value);
  return out;
}

const model = {
  core: null, timeline: null, m: null, instants: null, layers: null, transfers: null, failureFrames: null, blocks: null, source: null,

  deviceIndex(name) { return this.core.devices.findIndex((d) => d.name === name); },
  total(device, kind) {
    const name = this.core.devices[device].name;
    return this.core.totals.find((t) => t.device === name && t.kind === kind);
  },
  /* With how it may be off: the host's heaps are sampled. about: it is the highest around an instant. */
  reservedText(device, value, about) { return (about ? '\u2248 ' : value > 0 ? this.core.devices[device].reserved_mark : '') + bytes(value); },
  peak(device, what, kind) {
    return this.core.peaks.find((p) => p.device === device && p.what === what && p.rank === 0 && p.kind === (kind || 'all'));
  },
  lineName(i) {
    const m = this.m, fn = m.lines.function[i];
    return fn >= 0 ? m.functions.short[fn] : '?';
  },
  lineFull(i) {
    const m = this.m, fn = m.lines.function[i];
    return (fn >= 0 ? m.functions.name[fn] : '?') + (m.lines.file[i] >= 0 ? '\n' + m.files[m.lines.file[i]] + ':' + m.lines.line[i] : m.lines.caller[i] >= 0 ? '\n' + this.linePlace(i) : '');
  },
  linePlace(i) {
    const m = this.m;
    if (m.lines.caller[i] >= 0) {
      const others = m.lines.other_callers[i];
      return '<- ' + m.functions.short[m.lines.caller[i]] + (others > 0 ? ' and ' + plural(others, 'other', 'others') : '');
    }
    return m.lines.file[i] >= 0 ? baseName(m.files[m.lines.file[i]]) + ':' + m.lines.line[i] : '';
  },

  /* Live bytes and blocks of every site at stored instant i. */
  liveAt(i) {
    const s = this.instants, from = Math.floor(i / CHECKPOINT_EVERY), c = s.checkpoints[from];
    const out = { bytes: c.bytes.slice(), count: c.count.slice() };
    for (let k = s.first[from * CHECKPOINT_EVERY + 1]; k < s.first[i + 1]; k++) {
      out.bytes[s.site[k]] += s.raw.grown_bytes[k];
      out.count[s.site[k]] += s.raw.grown_count[k];
    }
    return out;
  },
  /* The last stored instant at or before a time. */
  instantBefore(ns) {
    const t = this.instants.time;
    let low = 0, high = t.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (t[middle] <= ns) low = middle + 1; else high = middle;
    }
    return Math.max(0, low - 1);
  },

  /* The measures of a selection by site: bytes and count are what the tables sort by first. */
  measures(selection) {
    const s = this.m.sites, n = this.m.siteCount;
    if (selection.moment === 'peak') return { point: true, bytes: s.at_peak_bytes, count: s.at_peak_count };
    if (selection.moment === 'end') return { point: true, bytes: s.end_bytes, count: s.end_count };
    if (selection.moment === 'instant') {
      const live = this.liveAt(selection.instant);
      return { point: true, bytes: live.bytes, count: live.count };
    }
    if (selection.moment === 'run') {
      const grown = new Float64Array(n);
      for (let i = 0; i < n; i++) grown[i] = s.alloc_bytes[i] - s.free_bytes[i];
      return { point: false, bytes: s.alloc_bytes, count: s.alloc_count, grown, temporary: s.temporary_count };
    }
    const r = this.instants.raw, site = this.instants.site;
    const out = { point: false, bytes: new Float64Array(n), count: new Float64Array(n), grown: new Float64Array(n), temporary: new Float64Array(n), net: false };
    for (let i = selection.from + 1; i <= selection.to; i++)
      if (r.flags[i] & INSTANT.NET) out.net = true;
    for (let k = this.instants.first[selection.from + 1]; k < this.instants.first[selection.to + 1]; k++) {
      out.bytes[site[k]] += r.alloc_bytes[k];
      out.count[site[k]] += r.alloc_count[k];
      out.grown[site[k]] += r.grown_bytes[k] + r.ended_bytes[k]; /* what a process had as it ended is live at the end of the range, as in a report of it */
      out.temporary[site[k]] += r.temporary_count[k];
    }
    return out;
  },

  /* values (by site) of one device and kind (-1: all), zero elsewhere */
  only(values, device, kind) {
    const s = this.m.sites, out = new Float64Array(this.m.siteCount);
    for (let i = 0; i < out.length; i++) if (s.device[i] === device && (kind < 0 || s.kind[i] === kind)) out[i] = values[i];
    return out;
  },
  /* Sums by tree node, callees included. */
  nodeTotals(values) {
    const m = this.m, out = new Float64Array(m.nodeCount);
    for (let i = 0; i < m.siteCount; i++) out[m.sites.node[i]] += values[i];
    for (let i = m.nodeCount - 1; i > 0; i--) if (m.nodes.parent[i] >= 0) out[m.nodes.parent[i]] += out[i];
    return out;
  },
  /* How many keys there are; the last of files and of modules is that of code without one, so that they add up. */
  scopeSize(scope) {
    const m = this.m;
    return { line: m.lines.line.length, function: m.functions.name.length, file: m.files.length + 1, module: m.modules.length + 1 }[scope];
  },
  /* The key of a site's own line, function, file or module. */
  selfKey(scope, site) {
    const m = this.m, line = m.sites.line[site];
    if (scope === 'line' || scope === 'function') return scope === 'line' ? line : m.lines.function[line];
    const key = scope === 'file' ? m.lines.file[line] : m.sites.module[site];
    return key >= 0 ? key : this.scopeSize(scope) - 1;
  },
  sumSelf(scope, values) {
    const out = new Float64Array(this.scopeSize(scope));
    for (let i = 0; i < values.length; i++) {
      if (!values[i]) continue;
      const key = this.selfKey(scope, i);
      if (key >= 0) out[key] += values[i];
    }
    return out;
  },
  sumWithCallees(scope, nodeTotals) {
    const m = this.m, keys = m.scopeKeys[scope], first = m.first[scope], out = new Float64Array(this.scopeSize(scope));
    for (let i = 0; i < m.nodeCount; i++) if (first[i] && nodeTotals[i]) out[keys[m.nodes.frame[i]]] += nodeTotals[i];
    return out;
  },
  /* The innermost line of a site that the program's author wrote and that test(line) is true of; -1: none. */
  ownLine(site, test) {
    const m = this.m;
    for (let n = m.sites.node[site]; n >= 0; n = m.nodes.above[n]) {
      const f = m.nodes.frame[n], line = m.frames.lineIndex[f];
      if (!(m.frames.flags[f] & FRAME.LIBRARY) && test(line)) return line;
    }
    return -1;
  },
  frameColor(f) {
    const g = this.m.groups[this.m.frames.group[f]];
    return this.m.frames.flags[f] & FRAME.FOLDED ? 'folded' : g ? g.color : 'flame-other';
  },
  /* The frames of a node, innermost first. */
  frames(node) {
    const out = [];
    for (let n = node; n >= 0; n = this.m.nodes.parent[n]) out.push(this.m.nodes.frame[n]);
    return out;
  },
};

/* One device's timeline as levels of a pyramid: level 0 as stored, each next one half as fine. */
function makePyramid(raw) {
  const plain = new Set(['device', 'width', 'active_max_after']);
  const base = { width: raw.width };
  for (const [key, value] of Object.entries(raw)) if (Array.isArray(value)) base[key] = plain.has(key) ? Float64Array.from(value) : undelta(value);
  base.end = new Float64Array(base.start.length);
  for (let i = 0; i < base.end.length; i++) base.end[i] = base.start[i] + raw.width;
  const levels = [base];
  while (levels[levels.length - 1].start.length > 64) {
    const fine = levels[levels.length - 1], n = Math.ceil(fine.start.length / 2), coarse = { width: fine.width * 2 };
    for (const key of Object.keys(fine)) {
      if (key === 'width') continue;
      const out = coarse[key] = new Float64Array(n);
      for (let i = 0; i < n; i++) {
        const a = fine[key][2 * i], b = 2 * i + 1 < fine[key].length ? fine[key][2 * i + 1] : a;
        out[i] = key === 'start' || key === 'active_max_after' ? a : key.endsWith('_min') ? Math.min(a, b) : key.endsWith('_max') ? Math.max(a, b)
          : key.startsWith('alloc_') ? (2 * i + 1 < fine[key].length ? a + b : a) : b;
      }
    }
    levels.push(coarse);
  }
  const has = (key) => base[key].some((v) => v > 0);
  let allocatedDiffers = false;
  for (let i = 0; i < base.start.length && !allocatedDiffers; i++)
    allocatedDiffers = base.allocated_last[i] !== base.active_last[i];
  return { device: raw.device, levels, count: base.start.length, hasReserved: has('reserved_max'), hasRss: has('rss_max'), allocatedDiffers };
}

async function loadModel(stage) {
  model.core = JSON.parse(byId('data-core').textContent);
  model.processEnds = endsBeforeOthers(model.core.processes);
  model.timeline = (await unpack('data-timeline')).map(makePyramid);
  await stage('timeline');
  model.m = makeSites(await unpack('data-sites'));
  model.instants = makeInstants(await unpack('data-instants'), model.m.siteCount);
  const devices = await unpack('data-devices');
  model.layers = devices.layers.map(makeLayers);
  model.transfers = devices.transfers;
  model.transferLines = devices.transfer_lines;
  model.failureFrames = devices.failure_frames;
  await stage('sites');
  model.blocks = await unpack('data-blocks');
  model.source = await unpack('data-source');
  await stage('rest');
}
