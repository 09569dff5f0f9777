"""What a snapshot holds, by a plain unpickling: one "device|what|value" a line, as tests/report/torch_import.sh asks the
database for. Goes back from the final state, so it needs no idea of what was there before the history."""
import pickle
import sys


class Restricted(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError('code')

    def persistent_load(self, pid):
        raise pickle.UnpicklingError('code')


def requested(block):
    if 'requested_size' in block:
        return block['requested_size']
    return block['history'][0]['real_size'] if block.get('history') else block['size']


def device(name, segments, trace, start_us):
    def show(what, value):
        print('%s|%s|%d' % (name, what, value))

    blocks = [b for s in segments for b in s['blocks']]
    state = {'active_allocated': 'active', 'inactive': 'inactive', 'active_pending_free': 'awaiting free',
             'active_awaiting_free': 'awaiting free'}
    show('segments', len(segments))
    show('segment bytes', sum(s['total_size'] for s in segments))
    for wanted in ('active', 'awaiting free', 'inactive'):
        these = [b for b in blocks if state[b['state']] == wanted]
        show('%s blocks' % wanted, len(these))
        show('%s bytes' % wanted, sum(b['size'] for b in these))
        if wanted != 'inactive':
            show('%s requested' % wanted, sum(requested(b) for b in these))
    live = [b for b in blocks if b['state'] != 'inactive']
    show('end active bytes', sum(map(requested, live)))
    show('end blocks', len(live))
    show('active by segments', sum(s['active_size'] for s in segments))
    show('allocated by segments', sum(s['allocated_size'] for s in segments))
    for action in ('alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_free', 'segment_map',
                   'segment_unmap', 'oom'):
        show('event %s' % action, sum(e['action'] == action for e in trace))
    active, reserved = sum(map(requested, live)), sum(s['total_size'] for s in segments)
    peak = [active, -1]
    peak_reserved = reserved
    last = max([e['time_us'] for e in trace], default=start_us)
    for e in reversed(trace):
        time = e['time_us']
        if active >= peak[0]:
            peak = [active, time]
        peak_reserved = max(reserved, peak_reserved)
        active += {'alloc': -1, 'free_completed': 1}.get(e['action'], 0) * e['size']
        reserved += {'segment_alloc': -1, 'segment_map': -1, 'segment_free': 1, 'segment_unmap': 1}.get(e['action'], 0) * e['size']
    if active >= peak[0]:
        peak = [active, start_us]
    peak_reserved = max(reserved, peak_reserved)
    show('peak active', peak[0])
    show('peak ns', (max(peak[1], start_us) - start_us) * 1000 if trace else 0)
    show('peak reserved', peak_reserved)
    show('start active', active)
    return last


def main():
    with open(sys.argv[1], 'rb') as f:
        snapshot = Restricted(f).load()
    if isinstance(snapshot, list):
        snapshot = {'segments': snapshot, 'device_traces': []}
    host = snapshot.get('host_traces', [[]])[0]
    times = [e['time_us'] for t in snapshot['device_traces'] + [host] for e in t]
    times += [a['time_us'] for a in snapshot.get('external_annotations') or []]
    start_us = min(times, default=0)
    count = max([len(snapshot['device_traces'])] + [s['device'] + 1 for s in snapshot['segments']])
    for n in range(count):
        trace = snapshot['device_traces'][n] if n < len(snapshot['device_traces']) else []
        device('cuda:%d' % n, [s for s in snapshot['segments'] if s['device'] == n], trace, start_us)
    if 'host_segments' in snapshot:
        device('host', snapshot['host_segments'], host, start_us)


main()
