"""Tables as a notebook's cell shows them: numbers with bars. No colour is fixed, so light and dark pages both do."""
import html
import linecache
import os

from ._hook import Bytes

_WINDOW = ('start_bytes', 'at_peak_bytes', 'own_peak_bytes', 'net_growth_bytes', 'end_bytes', 'alloc_count',
           'temporary_count')
_WHOLE = ('at_peak_bytes', 'own_peak_bytes', 'active_peak_bytes', 'reserved_peak_bytes', 'net_growth_bytes',
          'alloc_count', 'temporary_count')
_TITLES = {'at_peak_bytes': 'held at peak', 'own_peak_bytes': 'own peak', 'start_bytes': 'live at start',
           'end_bytes': 'live at end', 'net_growth_bytes': 'net growth', 'alloc_count': 'allocs',
           'temporary_count': 'temporary', 'active_peak_bytes': 'device active', 'reserved_peak_bytes':
           'device reserved', 'alloc_bytes': 'allocated', 'free_bytes': 'freed'}
_CELL = 'padding:1px 8px;white-space:pre;font-family:monospace;text-align:%s'
_ROWS_MAX = 1000  # of one table


def _title(key):
    return _TITLES.get(key, key.replace('_bytes', '').replace('_', ' '))


def _shown(key, value):
    if value is None:
        return '-'
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if key.endswith('_bytes'):
        return str(Bytes(value)) if value else '0'
    if key.endswith('_ns'):
        return '%.3f ms' % (value / 1e6)
    return format(value, ',') if key.endswith('count') else str(value)


def _number(key, value, most):
    style = _CELL % 'right'
    if value and most and value > 0:
        share = 100 * value / most
        style += (';background:linear-gradient(to left,rgba(66,133,244,.30) %.1f%%,transparent %.1f%%)' %
                  (share, share))
    return '<td style="%s">%s</td>' % (style, html.escape(_shown(key, value)))


def _text(value):
    return '<td style="%s">%s</td>' % (_CELL % 'left', html.escape('' if value is None else str(value)))


def _head(titles, texts):
    return '<thead><tr>%s</tr></thead>' % ''.join(
        '<th style="padding:1px 8px;text-align:%s">%s</th>' % ('left' if title in texts else 'right',
                                                               html.escape(title)) for title in titles)


def _most(rows, keys):
    return {key: max((row[key] for row in rows if isinstance(row.get(key), (int, float))), default=0) for key in keys}


def _prose(text, style=''):
    return '<div style="padding:2px 8px;%s">%s</div>' % (style, html.escape(text))


def _notes(data):
    window = data.get('window') or {}
    if window.get('name'):
        lasted_ms = (window.get('lasted_ns') or 0) / 1e6
        lasted = '%.2f s' % (lasted_ms / 1000) if lasted_ms >= 1000 else '%.2f ms' % lasted_ms
        yield _prose('%s, %s' % (window['name'], lasted), 'font-weight:bold')
    for note in data.get('notes') or ():
        if not str(note).startswith('still being recorded'):  # of a program that asks that is no news
            yield _prose(str(note), 'font-style:italic')


def _source(group):
    """The function's lines as (number, text, row); those without numbers where Python knows the text."""
    rows = {row['line']: row for row in group}
    numbers = [number for number in rows if number]
    first, last = min(numbers, default=0), max(numbers, default=0)
    declared = group[0].get('declared_line') or first
    text = linecache.getlines(os.path.abspath(group[0]['file']) if os.path.exists(group[0]['file'] or '') else
                              group[0]['file'] or '')
    first = declared if 0 < declared < first else first
    every = range(first, last + 1) if text and last - first < _ROWS_MAX else sorted(numbers)
    for number in every:
        known = text[number - 1].rstrip('\r\n') if 0 < number <= len(text) else None
        row = rows.get(number)
        code = row.get('code') if row else None
        yield number, code if code is not None else known or '', row


def _function(group, keys):
    most = _most(group, keys)
    first = group[0]
    title = '%s   %s:%s   %s' % (first['function'], os.path.relpath(first['file'])
                                 if first['file'] and first['file'].startswith(os.getcwd() + os.sep)
                                 else first['file'], first.get('declared_line') or first['line'], first['device'])
    body = []
    for number, code, row in _source(group):
        cells = [_number(key, row.get(key), most[key]) if row else '<td></td>' for key in keys]
        body.append('<tr%s>%s<td style="%s">%s</td>%s</tr>' % (
            '' if row else ' style="opacity:.6"', ''.join(cells), _CELL % 'right', number, _text(code)))
    return '%s<table>%s<tbody>%s</tbody></table>' % (
        _prose(title, 'font-family:monospace;font-weight:bold;white-space:pre'),
        _head([_title(key) for key in keys] + ['line', 'code'], ('code',)), ''.join(body))


def lines(data, columns):
    """Of `memprof lines`: a table for each function and device. columns: keys that were asked for; None: none were."""
    rows = data.get('lines') or []
    keys = columns if columns else _WINDOW if data.get('window') else _WHOLE
    if not columns:  # what no row says is left out
        keys = [key for key in keys if any(row.get(key) is not None for row in rows)]
    groups = {}
    for row in rows:
        groups.setdefault((row['function'], row['file'], row['device'], row.get('declared_line')), []).append(row)
    return '<div>%s%s</div>' % (''.join(_notes(data)), ''.join(_function(group, keys) for group in groups.values()))


def rows(data, rows):
    """Of any other report: its columns as they are."""
    keys = [key for key in (rows[0] if rows else ()) if any(row.get(key) is not None for row in rows)]
    numbers = [key for key in keys if all(isinstance(row.get(key), (int, float, type(None))) for row in rows)]
    most = _most(rows, [key for key in numbers if key.endswith(('_bytes', '_count'))])
    body = ''.join('<tr>%s</tr>' % ''.join(
        _number(key, row.get(key), most.get(key)) if key in numbers else _text(row.get(key)) for key in keys)
        for row in rows[:_ROWS_MAX])
    more = _prose('%d more rows' % (len(rows) - _ROWS_MAX)) if len(rows) > _ROWS_MAX else ''
    return '<div>%s<table>%s<tbody>%s</tbody></table>%s</div>' % (
        ''.join(_notes(data)), _head([_title(key) if key in numbers else key for key in keys],
                                     [key for key in keys if key not in numbers]), body, more)
