/* diff.js: the page of two recordings: its data, the device that everything follows, and the start. */

const app = {
  device: 0,

  /* Those that anything was allocated on, on either side. */
  devices() {
    const used = new Set(model.m.sites.device);
    return model.core.devices.map((d, i) => i).filter((i) => used.has(i) || i === model.core.open_device);
  },

  start() {
    const shown = this.devices(), isMany = shown.length > 1;
    for (const i of shown) byId('device-switch').append(el('button', { type: 'button', 'data-device': i, click: () => this.setDevice(i) }, model.core.devices[i].name));
    byId('device-bar').hidden = !isMany;
    document.documentElement.classList.toggle('devices', isMany);
    this.isMany = isMany;
  },

  setDevice(i) {
    const name = model.core.devices[i] ? model.core.devices[i].name : '';
    this.device = i;
    press(byId('device-switch'), (b) => Number(b.dataset.device) === i);
    for (const of of document.querySelectorAll('.of-device')) of.textContent = this.isMany ? ' ' + name : '';
    timeline.follow();
    tables.chosen = null;
    tables.update();
    flame.update();
    redraw();
  },

  remember() {}, /* the address has nothing to say: the device is one click away */

  about() {
    const notes = ['The rows are those of memprof diff, matched as it does; in the flame graph functions are the same by their names.'], raw = model.m;
    if (raw.left_out) notes.push('Of ' + plural(raw.node_count, 'place', 'places') + ' in the stacks of both the ' + count(raw.node_count - raw.left_out) + ' are shown that are the largest part of anything on either side; what is below them is "smaller stacks". memprof diff --by stack has all.');
    byId('about-body').replaceChildren(...notes.map((n) => el('li', {}, n)));
  },
};

async function loadDiff() {
  model.core = JSON.parse(byId('data-core').textContent);
  model.sides = model.core.sides;
  model.timelines = (await unpack('data-timelines')).map((side) => side.map(makePyramid));
  model.rows = await unpack('data-rows');
  const raw = await unpack('data-flame');
  raw.sites.alloc_bytes = raw.sites.new_alloc_bytes.map((v, i) => Math.max(v, raw.sites.old_alloc_bytes[i]));
  model.m = makeSites(raw);
}

startPage(async () => {
  const began = performance.now(), root = document.documentElement;
  await loadDiff();
  if (!model.core.devices.length) throw new Error('neither recording has a device');
  app.device = model.core.open_device;
  app.start();
  timeline.start();
  tables.start();
  tables.startMeasure();
  flame.start();
  flame.startWidth();
  app.about();
  app.setDevice(app.device);
  addEventListener('resize', () => flame.resize());
  root.dataset.readyMs = (performance.now() - began).toFixed(0);
  root.dataset.ready = 'true';
});
