'use strict';
/* units.js: numbers for people, and the few DOM helpers. Text of the recording enters the page through el() alone, as text. */

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/* So many digits behind the point; a tie goes to the even one, as printf does it: the page and the terminal say the same. */
function rounded(value, digits) {
  const scale = Math.pow(10, digits), scaled = value * scale, below = Math.floor(scaled);
  return scaled - below === 0.5 && below % 2 === 0 ? (below / scale).toFixed(digits) : value.toFixed(digits);
}

function twoDigits(value) { return rounded(value, 2); }

function bytes(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return '-';
  let size = Math.abs(value), unit = 0;
  while (size >= (unit ? 999.995 : 1024) && unit < BYTE_UNITS.length - 1) { size /= 1024; unit++; }
  return (value < 0 ? '\u2212' : '') + (unit === 0 ? String(size) : twoDigits(size)) + ' ' + BYTE_UNITS[unit];
}

function signedBytes(value) {
  return value > 0 ? '+' + bytes(value) : bytes(value);
}

function count(value) {
  return value === null || value === undefined ? '-' : Math.round(value).toLocaleString('en-US');
}

function signedCount(value) {
  return (value > 0 ? '+' : value < 0 ? '\u2212' : '') + count(Math.abs(value));
}

/* "1 block", "2 blocks" */
function plural(n, one, many) {
  return count(n) + ' ' + (n === 1 ? one : many);
}

function percent(part, whole) {
  if (!(whole > 0)) return '0 %';
  const p = 100 * part / whole;
  return p > 0 && p < 0.1 ? '<0.1 %' : p.toFixed(p < 10 ? 1 : 0) + ' %';
}

/* An instant or a time, as units_ns() of the terminal prints it. In a view of spanNs, with as many digits more as tell its
 * pixels apart. */
function instant(ns, spanNs) {
  const unit = ns < 999.5 ? 1 : ns < 999.5e3 ? 1e3 : ns < 999.5e6 ? 1e6 : 1e9, value = ns / unit;
  let digits = unit === 1 ? 0 : unit === 1e9 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0;
  const needed = spanNs > 0 ? Math.min(9, Math.ceil(Math.log10(500 * unit / spanNs))) : 0, isMore = needed > digits;
  if (ns >= 120e9) {
    const whole = Math.floor(ns / 60e9), rest = (ns - whole * 60e9) / 1e9;
    return whole + ' m ' + (needed > 0 ? rest.toFixed(needed).padStart(3 + needed, '0') : String(Math.floor(rest)).padStart(2, '0')) + ' s';
  }
  if (isMore) digits = needed;
  const text = rounded(value, digits);
  return (unit === 1e9 || isMore ? text : String(Number(text))) + ' ' + (unit === 1 ? 'ns' : unit === 1e3 ? 'us' : unit === 1e6 ? 'ms' : 's');
}

function wallClock(startUs, ns) {
  if (!startUs) return '';
  const d = new Date(startUs / 1000 + ns / 1e6);
  return Number.isNaN(d.getTime()) ? '' : d.toISOString().slice(11, 23) + ' UTC';
}

/* With the directory before it where every directory has a file of that name. */
function baseName(path) {
  return (/[^/]+\/(__init__\.py|__main__\.py|mod\.rs|index\.js)$/.exec(path) || [path.slice(path.lastIndexOf('/') + 1)])[0] || path;
}

/* Of code without a symbol: etree+0x12f for etree.cpython-311-x86_64-linux-gnu.so+0x12f. */
const STRIPPED = /^(.+?)(?:\.(?:cpython|pypy|abi).*)?\.so(?:\.[^+]*)?(\+0x[0-9a-f]+)$/;

const OPERATOR = /operator(?:<=>|<<=|>>=|->\*|\(\)|\[\]|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=|->|""|[-<>+*/%^&|~!=, ])/y;
const UNIT = / \[(?!clone )[^\]]*\]$/y; /* "f(int) [a.cpp]": what the recorder says of a name of several files */
const WHOLE = /\(anonymous namespace\)|(?<=\.)\(\*[^)]*\)/y; /* and Go's "main.(*T).f" */
const WITHIN = /(?: const)?(?: volatile)?(?: ?&&?)?(?:\[[^\]]*\])?::/y; /* what is in a function, behind its arguments */

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  const m = pattern.exec(text);
  return m ? m[0] : '';
}

/* Behind the bracket that closes the one at i. */
function bracketEnd(text, i, open = '(', close = ')') {
  for (let depth = 0; i < text.length; i++) {
    depth += text[i] === open ? 1 : text[i] === close ? -1 : 0;
    if (!depth) return i + 1;
  }
  return i;
}

/* Behind an operator's name, what is in parentheses, or an arrow, at i; i: none of these, which no bracket or comma of a list is in. */
function groupEnd(name, i) {
  const operator = /[\w$\u0080-\uffff]/.test(name[i - 1] || '') ? '' : matchAt(OPERATOR, name, i);
  return operator ? i + operator.length : name[i] === '(' ? bracketEnd(name, i) : name.startsWith('->', i) ? i + 2 : i;
}

/* The same for '<', of whose list those are no part. */
function angleEnd(name, i) {
  for (let depth = 0, end; i < name.length; i = end) {
    end = groupEnd(name, i);
    if (end === i) depth += name[end++] === '<' ? 1 : name[i] === '>' ? -1 : 0;
    if (!depth) return end;
  }
  return i;
}

/* Behind a closure's own name at i: "{lambda(int)#1}", "<lambda(int)>", clang's "$_0", Rust's "{closure#0}"; i: none. */
function closureEnd(name, i) {
  if (/^\{(lambda\(|closure#)/.test(name.slice(i, i + 9))) return bracketEnd(name, i, '{', '}');
  if (name.startsWith('<lambda(', i)) return angleEnd(name, i);
  return name[i - 1] === ':' ? i + matchAt(/\$_\d*/y, name, i).length : i;
}

/* Behind the closure at i, and those that are within it. */
function closuresEnd(name, i) {
  let end = i;
  for (let next; i < name.length && !',> *&'.includes(name[i]); i = next) {
    next = closureEnd(name, i);
    if (next !== i) end = next;
    else if (name[i] === '(') {
      next = bracketEnd(name, i);
      const after = matchAt(WITHIN, name, next);
      if (!after) break;
      next += after.length - 2;
    } else next = Math.max(groupEnd(name, i), name[i] === '<' ? angleEnd(name, i) : i + 1);
  }
  return end;
}

/* The first of the program's closures among the template arguments at i, else in those of an argument; '': none. */
function findClosure(name, i, depth = 0) {
  let inner = '', type = i + 1;
  for (let next = i + 1; (i = next) < name.length && name[i] !== '>';) {
    next = closureEnd(name, i);
    if (next !== i) {
      while ('&* '.includes(name[type])) type++;
      if (!/^(std|__gnu_cxx|core|alloc)::/.test(name.slice(type, type + 12))) return name.slice(type, closuresEnd(name, i));
      continue;
    }
    next = groupEnd(name, i);
    if (next !== i) continue;
    if (name[i] === ',' && inner) break;
    if (name[i] === '<' && !inner && depth < 32) inner = findClosure(name, i, depth + 1);
    if (name[i] === ',') type = i + 1;
    next = name[i] === '<' ? angleEnd(name, i) : i + 1;
  }
  return inner;
}

/* Of a closure among the template arguments at i: "<f::{lambda#1}>"; a long one without the scopes that it is in. */
function closureOf(name, i, level) {
  const closure = level < 4 ? findClosure(name, i) : '';
  let text = closure && shortName(closure, level + 1);
  for (let m; text.length > 60 && (m = /^[^<{]*?::/.exec(text));) text = text.slice(m[0].length);
  return text && '<' + text + '>';
}

/* A function's name without its template and call arguments, as match_shown_name (common/match.c) has it, MATCH_SHORT. */
function shortName(name, level = 0) {
  const stripped = STRIPPED.exec(name);
  if (stripped) return stripped[1] + stripped[2];
  const isWord = (c) => c !== undefined && /[\w$\u0080-\uffff]/.test(c);
  let out = '', depth = 0, names = 0, isType = false;
  for (let i = 0; i < name.length;) {
    const c = name[i], before = name[i - 1];
    const operator = isWord(before) ? '' : matchAt(OPERATOR, name, i), whole = operator || matchAt(WHOLE, name, i);
    if (whole) {
      if (!depth) {
        out += whole === '(anonymous namespace)' ? '(anonymous)' : whole;
        if (/[ "]$/.test(operator)) isType = true; /* a conversion: its spaces are its own */
      }
      i += whole.length;
      continue;
    }
    if (c === '(' && !depth && !names) {
      const end = bracketEnd(name, i);
      if (name.endsWith('decltype', i)) { i = end; continue; }
      const after = i ? matchAt(WITHIN, name, end) : '';
      if (!after) break; /* the name ends here */
      isType = false;
      i = end + after.length - 2;
      continue;
    }
    if (c === '(' && !depth && isWord(before)) { i = bracketEnd(name, i); continue; } /* "{lambda(int)#1}" */
    if (c === ' ' && !depth && !names && !isType) {
      if (name[i + 1] === '[') break; /* "f [clone .cold]" */
      if (name[i + 1] !== '<') out = ''; /* "operator<< <char>"; else a return type */
    } else if (c === '<' && !depth && (!i || before === '.' || (before === ':' && /^<(impl |lambda)/.test(name.slice(i, i + 7))))) {
      names++; /* "load.<locals>", Rust's "<T as U>::f" */
      out += c;
    } else if (c === '<') {
      if (!depth && out.endsWith('::')) out = out.slice(0, -2); /* Rust's "f::<u8>" */
      if (!depth++) out += closureOf(name, i, level);
    } else if (c === '>' && before !== '-') {
      if (depth) depth--;
      else { names -= names > 0; out += c; }
    } else if (!depth) {
      names += c === '{' ? 1 : c === '}' && names ? -1 : 0;
      out += c;
    }
    i++;
  }
  const unit = level ? '' : matchAt(UNIT, name, Math.max(name.lastIndexOf(' ['), 0));
  return cutEndless(out.trim() || name) + unit;
}

/* One word that nobody reads, as text_is_endless (common/text.c) has it. */
function cutEndless(name) {
  return name.length > (/^_[ZR]/.test(name) ? 80 : 160) && /^[\w.$:~]+$/.test(name) ? name.slice(0, 39) + '\u2026' + name.slice(-39) : name;
}

/* el('td', {class: 'name', title: text}, child, 'text', ...): attributes and text nodes only, never HTML. */
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function') e.addEventListener(key, value);
    else e.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) e.append(child);
  return e;
}

const byId = (id) => document.getElementById(id);

function press(group, test) {
  for (const button of group.querySelectorAll('button')) button.setAttribute('aria-pressed', String(test(button)));
}

/* What lies between what names have in common, with the words that it cuts, in the bracket that it is in: "(\u2026bool\u2026)". */
function differingPart(name, head, tail) {
  const isWord = (c) => c !== undefined && /[\w:\u0080-\uffff]/.test(c);
  let begin = head, end = name.length - tail, depth = 0, open = '';
  while (begin > 0 && isWord(name[begin - 1])) begin--;
  while (isWord(name[end])) end++;
  for (let i = begin - 1; i >= 0 && !open; i--) {
    const c = name[i];
    if (c === ')' || (c === '>' && name[i - 1] !== '-')) depth++;
    else if ((c === '<' || c === '(') && depth-- === 0) open = c;
  }
  if (!open) return '';
  for (let i = begin, level = 0; i < end; i++) {
    level += name[i] === '<' || name[i] === '(' ? 1 : 0;
    if ((name[i] === ')' || (name[i] === '>' && name[i - 1] !== '-')) && level-- === 0) end = i;
  }
  const close = open === '<' ? '>' : ')', part = name.slice(begin, end);
  return open + (name[begin - 1] === open ? '' : '\u2026') + (part.length > 40 ? part.slice(0, 39) + '\u2026' : part) + (name[end] === close ? '' : '\u2026') + close;
}

/* Short names; those of several functions at one place (overloads without source, instances of a template) keep what tells them apart, as in report/print/distinct.c. */
function distinctNames(names, placeOf) {
  const short = names.map((name) => shortName(name)), groups = new Map();
  names.forEach((name, i) => {
    const key = short[i] + '\n' + placeOf(i);
    if (short[i] !== name) groups.has(key) ? groups.get(key).push(i) : groups.set(key, [i]);
  });
  for (const group of groups.values()) {
    const all = group.map((i) => names[i]), first = all[0];
    if (!all.some((name) => name !== first)) continue;
    let head = first.length, tail = first.length;
    for (const name of all) {
      let h = 0, t = 0;
      while (h < head && h < name.length && name[h] === first[h]) h++;
      while (t < tail && t < name.length && name[name.length - 1 - t] === first[first.length - 1 - t]) t++;
      head = h;
      tail = t;
    }
    for (const name of all) tail = Math.min(tail, name.length - head);
    for (const i of group) short[i] += differingPart(names[i], head, tail);
  }
  return short;
}
