/* diff_flame.js: the flame graph of both recordings: the width is of one, or of the larger of both; the colour is the difference. */

/* By how much of the larger side a box differs; the first that is reached counts. */
const CHANGES = [
  { color: 'grown-3', least: 1, label: 'new' }, { color: 'grown-2', least: 0.5, label: 'at least twice as much' }, { color: 'grown-1', least: 0.02, label: 'more' },
  { color: 'folded', least: -0.02, label: 'within 2 %' },
  { color: 'shrunk-1', least: -0.5, label: 'less' }, { color: 'shrunk-2', least: -0.9999999, label: 'at most half' }, { color: 'shrunk-3', least: -Infinity, label: 'gone' },
];

Object.assign(flame, {
  measure: 'at_peak_bytes', width: 'both',
  measures: [['at_peak_bytes', 'Bytes at the peak'], ['end_bytes', 'Live at the end'], ['alloc_bytes', 'Bytes allocated'], ['alloc_count', 'Allocations'], ['temporary_count', 'Temporary allocations']],

  startWidth() {
    for (const b of document.querySelectorAll('[data-width]')) b.addEventListener('click', () => {
      this.width = b.dataset.width;
      press(b.parentElement, (x) => x === b);
      this.update();
    });
  },

  /* The larger of both stack by stack, so that boxes add up. */
  measured() {
    const [old, now] = ['old', 'new'].map((side) => model.only(model.m.sites[side + '_' + this.measure], app.device, -1));
    const both = Float64Array.from(now, (v, i) => Math.max(v, old[i]));
    return [{ old, new: now, both }[this.width], old, now].map((values) => ({ values, totals: model.nodeTotals(values) }));
  },

  change(node) {
    const [, old, now] = node.sums, share = old === now ? 0 : (now - old) / Math.max(old, now);
    return CHANGES.find((x) => share >= x.least);
  },
  color(node) { return theme.colors[this.change(node).color]; },

  amount(node) {
    const [, old, now] = node.sums, difference = this.count() ? signedCount(now - old) : signedBytes(now - old);
    return this.text(old) + ' \u2192 ' + this.text(now) + ', ' + difference;
  },
  whole() { return this.amount(this.root); },

  legend() {
    byId('flame-legend').replaceChildren(...CHANGES.map((x) => {
      const key = el('span', { class: 'key' });
      key.style.background = 'var(--' + x.color + ')';
      return el('li', {}, key, x.label);
    }));
  },

  /* Lines differ between the two: a box is a function. */
  where(node) {
    const m = model.m, file = m.frames.file[node.frame], module = m.frames.module[node.frame];
    return file >= 0 ? baseName(m.files[file]) : module >= 0 ? baseName(m.modules[module]) : '';
  },
});
