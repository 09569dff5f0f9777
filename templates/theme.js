/* theme.js: what each page begins with: its colours, and a word where it cannot be drawn. */

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

async function startPage(start) {
  startTheme();
  try {
    if (typeof DecompressionStream === 'undefined') throw new Error('this browser is too old to unpack the data (Chromium 103, Firefox 113, Safari 16.4 or later do); memprof shows the same in a terminal');
    await start();
  } catch (error) {
    const box = byId('failed');
    box.textContent = 'The page could not be drawn: ' + error.message;
    box.hidden = false;
    byId('summary').append(box);
    console.error(error);
  }
}
