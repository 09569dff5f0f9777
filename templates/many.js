/* many.js: the page of several recordings: its data, the device and the recording that everything follows, and the start. */

const app = {
  device: 0,

  start() {
    const isMany = model.core.devices.length > 1;
    model.core.devices.forEach((d, i) => byId('device-switch').append(el('button', { type: 'button', 'data-device': i, click: () => this.setDevice(i) }, d.name)));
    byId('device-bar').hidden = !isMany;
    document.documentElement.classList.toggle('devices', isMany);
    this.isMany = isMany;
    /* what all paths begin with tells none from another */
    const first = model.files[0].path, directory = (n) => first.slice(0, n).lastIndexOf('/') + 1;
    let common = directory(first.length);
    while (common && !model.files.every((f) => f.path.startsWith(first.slice(0, common)))) common = directory(common - 1);
    this.common = common;
  },

  setDevice(i) {
    this.device = i;
    press(byId('device-switch'), (b) => Number(b.dataset.device) === i);
    for (const of of document.querySelectorAll('.of-device')) of.textContent = this.isMany ? ' ' + model.core.devices[i].name : '';
    tables.chosen = null;
    tables.update();
    timeline.follow();
  },

  /* The chosen recording: the first row's, until there is a choice. */
  file() {
    const current = tables.current();
    return current ? model.files[current.key] : null;
  },
  choose(file) {
    tables.chosen = { scope: 'file', key: model.files.indexOf(file) };
    tables.draw();
    tables.drawDetail();
    timeline.choose();
  },

  shortPath(file) { return file.path.slice(this.common) || file.path; },
  name(file) { return file.rank === undefined ? this.shortPath(file) : 'rank ' + file.rank; },
  isWhole(file) { return file.is_read && !file.problem && !file.notes.length && !file.has_failed && (file.state === null || file.state === 'complete'); },
  stateText(file) {
    const out = [];
    if (!file.is_read) out.push('not read');
    else if (file.problem) out.push('damaged');
    else if (file.state !== null && file.state !== 'complete') out.push(file.state);
    else if (file.notes.length) out.push('incomplete');
    if (file.has_failed) out.push(file.ended);
    return out.join(', ') || 'whole';
  },
  shell(text) { return /^[\w@%+=:,./-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'"; },

  remember() {},
};

/* Of a timeline that has active bytes alone. */
function makeActive(row) {
  const n = row.start.length;
  if (!n) return null;
  return makePyramid({ device: '', width: row.width, start: row.start, active_min: row.active_min, active_max: row.active_max, active_max_after: row.active_max_after, active_last: row.active_last, allocated_last: row.active_last, reserved_max: [], rss_max: [] });
}

startPage(async () => {
  const began = performance.now(), root = document.documentElement;
  model.core = JSON.parse(byId('data-core').textContent);
  model.files = await unpack('data-files');
  for (const f of model.files) for (const row of f.rows) row.pyramid = makeActive(row);
  model.row = (file) => file.rows.find((r) => r.device === app.device);
  if (!model.core.devices.length) throw new Error('no recording has a device');
  app.start();
  timeline.start();
  tables.start();
  app.setDevice(model.core.open_device);
  root.dataset.readyMs = (performance.now() - began).toFixed(0);
  root.dataset.ready = 'true';
});
