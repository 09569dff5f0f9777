"""Whether a snapshot is what PyTorch's viewer and _memory_viz.py need: keys and types, segments filled by their blocks, sums,
and, going back from the final state as the viewer does, each block within a segment at every instant and each entry about
something there: a segment_alloc about a segment that begins there and has that size, a segment_map about a part of one."""
import bisect
import pickle
import pickletools
import sys


class Restricted(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError('code')


def need(condition, *what):
    if not condition:
        sys.exit('not a snapshot: ' + ' '.join(map(str, what)))


def opcodes(data):
    """The names of those that a pickle has. pickletools.genops, which reads arguments, too, takes three times as long."""
    lengths = [0] * 256
    for op in pickletools.opcodes:
        lengths[ord(op.code)] = op.arg.n if op.arg else 0
    found, at, code, stop = [0] * 256, 0, data[0], ord('.')
    while code != stop:
        found[code], n = 1, lengths[code]
        at += 1
        if n >= 0:
            at += n
        elif n == pickletools.TAKEN_FROM_ARGUMENT1:
            at += 1 + data[at]
        elif n in (pickletools.TAKEN_FROM_ARGUMENT4, pickletools.TAKEN_FROM_ARGUMENT4U):
            at += 4 + int.from_bytes(data[at:at + 4], 'little')
        else:
            need(False, 'opcode', chr(code))
        code = data[at]
    need(at == len(data) - 1, 'bytes behind its end')
    return {op.name for op in pickletools.opcodes if found[ord(op.code)]} | {'STOP'}


checked = set()  # frames are the same list wherever they are the same


def check_frames(frames):
    if id(frames) in checked:
        return
    checked.add(id(frames))
    for f in frames:
        need(isinstance(f['name'], str) and isinstance(f['filename'], str) and isinstance(f['line'], int), 'frame', f)


def check_segment(s):
    for key in ('device', 'address', 'total_size', 'allocated_size', 'active_size', 'requested_size', 'stream'):
        need(isinstance(s[key], int) and s[key] >= 0, 'segment', key, s[key])
    need(s['segment_type'] in ('large', 'small') and isinstance(s['is_expandable'], bool), 'segment type')
    need(isinstance(s['segment_pool_id'], tuple) and len(s['segment_pool_id']) == 2, 'pool')
    check_frames(s['frames'])
    at = s['address']
    sums = [0, 0, 0]
    for b in s['blocks']:
        need(b['address'] == at, 'block', b['address'], 'expected at', at)
        need(b['state'] in ('active_allocated', 'active_pending_free', 'inactive'), 'state', b['state'])
        need(0 <= b['requested_size'] <= b['size'], 'sizes', b)
        check_frames(b['frames'])
        at += b['size']
        if b['state'] != 'inactive':
            sums[1] += b['size']
            sums[2] += b['requested_size']
            sums[0] += b['size'] * (b['state'] == 'active_allocated')
    need(at == s['address'] + s['total_size'], 'blocks of segment', s['address'], 'do not fill it')
    need(sums == [s['allocated_size'], s['active_size'], s['requested_size']], 'sums of segment', s['address'], sums)


class Segments:
    """Ranges by address. The viewer joins what segment_unmap gives back with its neighbours of the same stream."""

    def __init__(self, segments):
        self.streams = {s['address']: s['stream'] for s in segments}
        self.ranges = sorted((s['address'], s['address'] + s['total_size']) for s in segments)
        for a, b in zip(self.ranges, self.ranges[1:]):
            need(a[1] <= b[0], 'segments overlap at', b[0])

    def holds(self, address, size):
        i = bisect.bisect_right(self.ranges, (address, 1 << 62)) - 1
        end = address
        while 0 <= i < len(self.ranges) and self.ranges[i][0] <= end < address + size:
            end = self.ranges[i][1]
            i += 1
        return i >= 0 and end >= address + size

    def add_whole(self, start, end, stream):
        bisect.insort(self.ranges, (start, end))
        self.streams[start] = stream

    def add_part(self, start, end, stream):
        i = bisect.bisect_left(self.ranges, (start, 0))
        if i < len(self.ranges) and self.ranges[i][0] == end and self.streams[end] == stream:
            end = self.ranges.pop(i)[1]
        if i and self.ranges[i - 1][1] == start and self.streams[self.ranges[i - 1][0]] == stream:
            start = self.ranges.pop(i - 1)[0]
        self.add_whole(start, end, stream)

    def remove_whole(self, start, end):
        need((start, end) in self.ranges, 'a segment that is not there as a whole:', hex(start))
        self.ranges.remove((start, end))

    def remove_part(self, start, end):
        i = bisect.bisect_right(self.ranges, (start, 1 << 62)) - 1
        need(i >= 0 and self.ranges[i][1] >= end, 'a part of no segment:', hex(start))
        first, last = self.ranges.pop(i)
        if last > end:
            self.add_whole(end, last, self.streams[first])
        if first < start:
            bisect.insort(self.ranges, (first, start))


def check_trace(trace, segments):
    live = {}
    for s in segments:
        for b in s['blocks']:
            if b['state'] != 'inactive':
                live[b['address']] = [b['requested_size'], b['state'] == 'active_pending_free']
    here = Segments(segments)
    time = None
    for e in reversed(trace):
        need(isinstance(e['time_us'], int) and (time is None or e['time_us'] <= time), 'times go back at', e)
        time = e['time_us']
        check_frames(e['frames'])
        if e['action'] == 'oom':
            need(isinstance(e['device_free'], int) and e['size'] >= 0, 'oom', e)
            continue
        address, size = e['addr'], e['size']
        need(0 <= address < 1 << 53 and size >= 0 and isinstance(e['stream'], int), 'entry', e)
        if e['action'] == 'free_completed':
            need(address not in live, 'two blocks at', address)
            need(here.holds(address, max(size, 1)), 'block outside of segments:', e['action'], hex(address), size)
            live[address] = [size, True]
        elif e['action'] == 'free_requested':
            need(address in live and live[address][1], 'a free is requested of what is not pending:', hex(address))
            live[address][1] = False
        elif e['action'] == 'alloc':
            need(address in live, 'allocated, and not there:', hex(address))
            need(live.pop(address)[0] == size, 'another size than at birth:', hex(address))
            need(here.holds(address, max(size, 1)), 'block outside of segments:', e['action'], hex(address), size)
        elif e['action'] in ('segment_alloc', 'segment_map'):
            remove = here.remove_whole if e['action'] == 'segment_alloc' else here.remove_part
            remove(address, address + size)
            need(not any(address <= a < address + size for a in live), 'blocks are left where there was no segment:', hex(address))
        elif e['action'] == 'segment_free':
            here.add_whole(address, address + size, e['stream'])
        elif e['action'] == 'segment_unmap':
            here.add_part(address, address + size, e['stream'])
        else:
            need(e['action'] in ('snapshot', 'user_defined'), 'action', e['action'])
    for address, (size, _) in live.items():
        need(here.holds(address, max(size, 1)), 'block outside of segments at the start:', hex(address))


def main():
    with open(sys.argv[1], 'rb') as f:
        data = f.read()
    known = {'PROTO', 'STOP', 'MARK', 'MEMOIZE', 'EMPTY_DICT', 'EMPTY_LIST', 'SETITEMS', 'APPENDS', 'SHORT_BINUNICODE', 'BINUNICODE',
             'BINGET', 'LONG_BINGET', 'BININT', 'BININT1', 'BININT2', 'LONG1', 'TUPLE2', 'NEWTRUE', 'NEWFALSE', 'BINFLOAT'}
    ops = opcodes(data)
    need(ops <= known, 'opcodes', ops - known)  # all of these the viewer knows
    need(data[:2] == b'\x80\x04', 'protocol')
    s = Restricted(__import__('io').BytesIO(data)).load()
    for segment in s['segments']:
        check_segment(segment)
    for number, trace in enumerate(s['device_traces']):
        check_trace(trace, [x for x in s['segments'] if x['device'] == number])
    need(all(x['device'] < len(s['device_traces']) for x in s['segments']), 'a segment of a device without a history')
    for a in s['external_annotations']:
        need(a['stage'] in ('START', 'END') and isinstance(a['name'], str) and isinstance(a['time_us'], int), 'annotation', a)
    print('%d segments, %d entries' % (len(s['segments']), sum(map(len, s['device_traces']))))


main()
