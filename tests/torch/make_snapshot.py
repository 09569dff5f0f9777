"""Makes memory snapshots as PyTorch writes them, of a simulated caching allocator.

    make_snapshot.py SHAPE OUT [--protocol N] [--cpp] [--seed N] [--bytes N] [--events N]

SHAPE: plain, devices, oom, expandable, pending, annotations, pools, ring, cut, old, host, all, empty, large.
--cpp writes as torch's C++ pickler does: protocol 2, a container is remembered after it is complete, and its items are
one group even when there are none. large: a file of --bytes (1 GB), whose entries each have a list of frames of their own.
"""
import argparse
import io
import pickle
import random
import struct

MIB = 1 << 20


class Device:
    """Hands out parts of segments, first fit; keeps the history."""

    def __init__(self, number, rng, expandable=False, pending=False, streams=(0,), pools=((0, 0),), clock=None):
        self.number, self.rng, self.expandable, self.pending = number, rng, expandable, pending
        self.streams, self.pools = streams, pools
        self.segments = []  # dicts with a list of [address, size, requested, state, frames]
        self.trace = []
        self.next_address = 0x7F0000000000 + (number << 36)
        self.clock = clock or [1700000000000000]
        self.waiting = []

    def tick(self):
        self.clock[0] += self.rng.randrange(1, 40)
        return self.clock[0]

    def entry(self, action, address, size, segment, frames):
        self.trace.append({'action': action, 'addr': address, 'size': size, 'stream': segment['stream'],
                           'time_us': self.tick(), 'compile_context': 'N/A', 'user_metadata': '',
                           'pool_id': segment['segment_pool_id'], 'frames': frames})

    def grow(self, size, stream, pool, frames):
        total = 2 * MIB if size <= MIB else (size + 20 * MIB - 1) // (20 * MIB) * 20 * MIB
        segment = {'device': self.number, 'address': self.next_address, 'total_size': total, 'stream': stream,
                   'segment_type': 'small' if size <= MIB else 'large', 'segment_pool_id': pool,
                   'is_expandable': self.expandable, 'frames': frames, 'parts': [[self.next_address, total, 0, 'inactive', []]]}
        self.next_address += (total + 2 * MIB) // (2 * MIB) * 2 * MIB + 2 * MIB
        if self.expandable:  # mapped in two steps, as it grows
            half = max(total // 4 // (2 * MIB) * 2 * MIB, 2 * MIB)
            self.entry('segment_map', segment['address'], min(half, total), segment, frames)
            if total > half:
                self.entry('segment_map', segment['address'] + half, total - half, segment, frames)
        else:
            self.entry('segment_alloc', segment['address'], total, segment, frames)
        self.segments.append(segment)
        return segment

    def alloc(self, requested, frames, stream=None, pool=None):
        stream = self.rng.choice(self.streams) if stream is None else stream
        pool = self.rng.choice(self.pools) if pool is None else pool
        size = (requested + 511) // 512 * 512
        kind = 'small' if size <= MIB else 'large'
        for segment in self.segments:
            if (segment['stream'], segment['segment_pool_id'], segment['segment_type']) != (stream, pool, kind):
                continue
            for i, part in enumerate(segment['parts']):
                if part[3] == 'inactive' and part[1] >= size:
                    return self.place(segment, i, size, requested, frames)
        return self.place(self.grow(size, stream, pool, frames), 0, size, requested, frames)

    def place(self, segment, i, size, requested, frames):
        part = segment['parts'][i]
        if part[1] - size >= 512:
            segment['parts'].insert(i + 1, [part[0] + size, part[1] - size, 0, 'inactive', []])
            part[1] = size
        part[2:] = [requested, 'active_allocated', frames]
        self.entry('alloc', part[0], requested, segment, frames)
        return segment, part

    def release(self, block, frames):
        segment, part = block
        self.entry('free_requested', part[0], part[2], segment, frames)
        if self.pending and self.rng.randrange(4) == 0:  # another stream still uses it
            part[3] = 'active_pending_free'
            self.waiting.append(block)
        else:
            self.complete(block, frames)

    def complete(self, block, frames):
        segment, part = block
        self.entry('free_completed', part[0], part[2], segment, frames)
        part[2:] = [0, 'inactive', []]
        parts = segment['parts']
        i = next(n for n, p in enumerate(parts) if p is part)
        if i + 1 < len(parts) and parts[i + 1][3] == 'inactive':
            part[1] += parts.pop(i + 1)[1]
        if i and parts[i - 1][3] == 'inactive':
            parts[i - 1][1] += parts.pop(i)[1]

    def empty_cache(self, frames):
        for segment in list(self.segments):
            if len(segment['parts']) == 1 and segment['parts'][0][3] == 'inactive':
                self.entry('segment_unmap' if self.expandable else 'segment_free', segment['address'],
                           segment['total_size'], segment, frames)
                self.segments.remove(segment)

    def final(self):
        out = []
        for s in self.segments:
            parts = s['parts']
            active = sum(p[1] for p in parts if p[3].startswith('active'))
            out.append({'device': s['device'], 'address': s['address'], 'total_size': s['total_size'],
                        'allocated_size': sum(p[1] for p in parts if p[3] == 'active_allocated'), 'active_size': active,
                        'requested_size': sum(p[2] for p in parts), 'stream': s['stream'],
                        'segment_type': s['segment_type'], 'segment_pool_id': s['segment_pool_id'],
                        'is_expandable': s['is_expandable'], 'frames': s['frames'],
                        'blocks': [{'address': p[0], 'size': p[1], 'requested_size': p[2], 'state': p[3], 'frames': p[4]}
                                   for p in parts]})
        return out


def make_stacks(rng, count, depth):
    frames = [{'name': 'f%d' % i, 'filename': '/srv/train/model_%d.py' % (i % 37), 'line': 10 + i % 900}
              for i in range(60 + count)]
    native = [{'name': 'at::_ops::op_%d::call(at::Tensor const&)' % i, 'filename': '??', 'line': 0} for i in range(40)]
    stacks = []
    for i in range(count):
        n = rng.randrange(1, depth)
        stacks.append(rng.sample(native, min(n, rng.randrange(0, 6))) + [frames[(i * 7 + k * k) % len(frames)] for k in range(n)])
    return stacks


SETTINGS = {'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True', 'max_split_size': -1, 'garbage_collection_threshold': 0.8,
            'expandable_segments': True, 'pinned_num_register_threads': 1, 'release_lock_on_cudamalloc': False,
            'roundup_power2_divisions': {'1': 0, '2': 0, '4': 8}}


def run(device, rng, stacks, events):
    live = []
    while len(device.trace) < events:
        if live and rng.random() < 0.47:
            device.release(live.pop(rng.randrange(len(live))), rng.choice(stacks))
        else:
            size = rng.choice((rng.randrange(1, 4000), rng.randrange(4000, MIB), rng.randrange(MIB, 30 * MIB)))
            live.append(device.alloc(size, rng.choice(stacks)))
        if device.waiting and rng.random() < 0.2:
            device.complete(device.waiting.pop(0), [])
        if rng.random() < 0.01:
            device.empty_cache(rng.choice(stacks))
    return live


def make(shape, rng, events, no_sets=False):
    stacks = make_stacks(rng, 50, 30)
    clock = [1700000000000000]
    everything = shape == 'all'
    count = 3 if shape == 'devices' or everything else 1
    devices = [Device(n, rng, clock=clock, expandable=(shape == 'expandable' or everything and n == 1),
                      pending=shape == 'pending' or everything,
                      streams=(0, 94387000) if shape == 'pools' or everything else (0,),
                      pools=((0, 0), (0, 1), (3, 0)) if shape == 'pools' or everything else ((0, 0),)) for n in range(count)]
    snapshot = {'segments': [], 'device_traces': [], 'allocator_settings': dict(SETTINGS)}
    if shape == 'empty':
        snapshot['device_traces'] = [[]]
        return snapshot
    annotations = []
    steps = 5
    for step in range(steps):
        for d in devices:
            annotations.append({'stage': 'START', 'name': 'step %d' % step, 'device': d.number, 'time_us': d.tick()})
            annotations.append({'stage': 'START', 'name': 'forward', 'device': d.number, 'time_us': d.tick()})
            run(d, rng, stacks, events * (step + 1) // steps)
            annotations.append({'stage': 'END', 'name': 'forward', 'device': d.number, 'time_us': d.tick()})
            annotations.append({'stage': 'END', 'name': 'step %d' % step, 'device': d.number, 'time_us': d.tick()})
            if shape == 'oom' or everything:
                d.trace.append({'action': 'oom', 'device_free': 123 * MIB, 'size': 77 * MIB, 'stream': 0, 'time_us': d.tick(),
                                'frames': stacks[step]})
    if shape == 'annotations' or everything:
        annotations.insert(0, {'stage': 'END', 'name': 'before', 'device': 0, 'time_us': 1700000000000000})
        annotations.append({'stage': 'START', 'name': 'unfinished', 'device': 0, 'time_us': clock[0]})
        snapshot['external_annotations'] = annotations
        devices[0].trace.append({'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': clock[0] + 1, 'frames': []})
        devices[0].trace.append({'action': 'user_defined', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': clock[0] + 2,
                                 'user_metadata': 'epoch 3', 'frames': []})
    for d in devices:
        snapshot['segments'] += d.final()
        trace = d.trace
        if shape == 'ring':
            trace = trace[len(trace) * 2 // 3:]
        if shape == 'cut':  # the history was turned off before the end
            trace = trace[:len(trace) * 2 // 3]
        snapshot['device_traces'].append(trace)
    if shape == 'host' or everything:
        host = Device(0, rng, clock=clock)
        run(host, rng, stacks, events // 4)
        snapshot['host_segments'] = host.final()
        snapshot['host_traces'] = [host.trace]
    if everything:
        snapshot['a_new_key'] = {'x': [1, 2.5, None, (1, 2, 3), b'bytes', {4, 5}, True, 1 << 70]}
        if no_sets:  # as calls only
            snapshot['a_new_key'] = {'x': [1, 2.5, None, (1, 2, 3), True]}
    if shape == 'old':  # before PyTorch 2.0: a list of segments; blocks without addresses, with histories
        old = []
        for s in snapshot['segments']:
            blocks = [{'size': b['size'], 'state': b['state'],
                       'history': [{'addr': b['address'], 'real_size': b['requested_size'], 'frames': b['frames']}]
                       if b['state'] != 'inactive' else []} for b in s['blocks']]
            old.append({k: v for k, v in s.items() if k not in ('blocks', 'frames', 'requested_size', 'is_expandable',
                                                               'segment_pool_id')} | {'blocks': blocks})
        return old
    return snapshot


class Cpp:
    """torch::jit::Pickler: what is remembered, and when."""

    def __init__(self, out):
        self.out, self.memo, self.keep = out, {}, []

    def put(self, key):
        n = len(self.memo)
        self.memo[key] = n
        self.out.write(b'q' + bytes([n]) if n < 256 else b'r' + struct.pack('<I', n))

    def get(self, key):
        n = self.memo.get(key)
        if n is None:
            return False
        self.out.write(b'h' + bytes([n]) if n < 256 else b'j' + struct.pack('<I', n))
        return True

    def value(self, v):
        w = self.out.write
        if v is None:
            w(b'N')
        elif v is True or v is False:
            w(b'\x88' if v else b'\x89')
        elif isinstance(v, int):
            if 0 <= v < 256:
                w(b'K' + bytes([v]))
            elif 0 <= v < 65536:
                w(b'M' + struct.pack('<H', v))
            elif -2**31 <= v < 2**31:
                w(b'J' + struct.pack('<i', v))
            else:
                w(b'\x8a\x08' + struct.pack('<q', v))
        elif isinstance(v, float):
            w(b'G' + struct.pack('>d', v))
        elif isinstance(v, str):
            if not self.get(v):
                data = v.encode()
                w(b'X' + struct.pack('<I', len(data)) + data)
                self.put(v)
        elif isinstance(v, tuple):
            w(b'(')
            for x in v:
                self.value(x)
            w(b't')
        elif not self.get(id(v)):
            self.keep.append(v)
            if isinstance(v, dict):
                w(b'}(')
                for k, x in v.items():
                    self.value(k)
                    self.value(x)
                w(b'u')
            else:
                w(b'](')
                for x in v:
                    self.value(x)
                w(b'e')
            self.put(id(v))

    def dump(self, v):
        self.out.write(b'\x80\x02')
        self.value(v)
        self.out.write(b'.')


def dump(snapshot, out, protocol, cpp):
    if cpp:
        Cpp(out).dump(snapshot)
    else:
        pickle.Pickler(out, protocol).dump(snapshot)


def large(out, size, rng):
    """A training loop, as protocol 4 writes it: written as it is made, so that it needs no memory."""
    memo = [0]

    def text(s):
        memo[0] += 1
        return b'\x8c' + bytes([len(s)]) + s.encode() + b'\x94'

    def get(n):
        return b'h' + bytes([n]) if n < 256 else b'j' + struct.pack('<I', n)

    def number(n):
        if n < 256:
            return b'K' + bytes([n])
        if n < 65536:
            return b'M' + struct.pack('<H', n)
        if n < 2**31:
            return b'J' + struct.pack('<i', n)
        return b'\x8a\x07' + struct.pack('<q', n)[:7] if n < 2**55 else b'\x8a\x08' + struct.pack('<q', n)

    w = out.write
    w(b'\x80\x04}\x94(')
    memo[0] = 1
    words = {}
    # the words and the frames first, under a key that no reader knows
    w(text('memo'))
    w(b']\x94(')
    memo[0] += 1
    for word in ('action', 'addr', 'size', 'stream', 'time_us', 'frames', 'alloc', 'free_requested', 'free_completed',
                 'segment_alloc', 'name', 'filename', 'line'):
        words[word] = get(memo[0])
        w(text(word))
    frames = []
    for i in range(4000):
        frames.append(get(memo[0]))
        memo[0] += 1
        w(b'}\x94(' + words['name'] + text('function_%d' % i) + words['filename'] + text('/srv/train/layer_%d.py' % (i % 90))
          + words['line'] + number(1 + i % 1500) + b'u')
    w(b'e')
    stacks = [b']\x94(' + b''.join(frames[(i * 13 + k * (k + i % 5)) % len(frames)] for k in range(20 + i % 21)) + b'e'
              for i in range(6000)]
    empty = words['frames'] + b']\x94'
    action = {a: b'}\x94(' + words['action'] + words[a] + words['addr'] for a in ('alloc', 'free_requested', 'free_completed',
                                                                               'segment_alloc')}
    written = [0]

    def entry(what, address, length, time, stack):
        memo[0] += 2
        data = (action[what] + number(address) + words['size'] + number(length) + words['stream'] + b'K\x00'
                + words['time_us'] + number(time) + words['frames'] + stacks[stack] + b'u')
        w(data)
        written[0] += len(data)

    w(text('device_traces') + b']\x94]\x94')
    memo[0] += 2
    base, time, events = 0x7F0000000000, 1700000000000000, 0
    blocks = [(base + i * 2 * MIB, 512 * (1 + i * 37 % 4000)) for i in range(3000)]
    w(b'(')
    for i in range(0, 6000 * MIB, 1000 * MIB):
        entry('segment_alloc', base + i, 1000 * MIB, time, 0)
    w(b'e')
    live = 0
    while written[0] < size:
        w(b'(')
        for _ in range(170):  # two steps: forward allocates, backward frees in reverse
            n = 3 + (events * 7919 + events // 997) % 6
            for k in range(n):
                if live == len(blocks):
                    break
                time += 3
                entry('alloc', blocks[live][0], blocks[live][1], time, (live * 3 + events // 100000) % len(stacks))
                live += 1
                events += 1
            for k in range(2 + events * 31 % 7):
                if live == 0:
                    break
                live -= 1
                time += 3
                entry('free_requested', blocks[live][0], blocks[live][1], time, live % 500)
                entry('free_completed', blocks[live][0], blocks[live][1], time, live % 500)
                events += 2
        w(b'e')
    w(b'a')  # the one history into the list of histories
    segments = []
    for i in range(0, 6000 * MIB, 1000 * MIB):
        parts, at, end = [], base + i, base + i + 1000 * MIB
        for address, length in blocks[:live]:
            if base + i <= address < end:
                if address > at:
                    parts.append({'address': at, 'size': address - at, 'requested_size': 0, 'state': 'inactive', 'frames': []})
                parts.append({'address': address, 'size': length, 'requested_size': length, 'state': 'active_allocated', 'frames': []})
                at = address + length
        parts.append({'address': at, 'size': end - at, 'requested_size': 0, 'state': 'inactive', 'frames': []})
        used = sum(p['requested_size'] for p in parts)
        segments.append({'device': 0, 'address': base + i, 'total_size': 1000 * MIB, 'allocated_size': used, 'active_size': used,
                         'requested_size': used, 'stream': 0, 'segment_type': 'large', 'segment_pool_id': (0, 0),
                         'is_expandable': False, 'blocks': parts})
    w(text('segments'))
    # what pickle makes of them, less its frame and its memo: the numbers would be ours
    part = io.BytesIO()
    cpp = Cpp(part)
    cpp.put = lambda key: None
    cpp.value(segments)
    w(part.getvalue())
    w(b'u.')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('shape')
    parser.add_argument('out')
    parser.add_argument('--protocol', type=int, default=4)
    parser.add_argument('--cpp', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--bytes', type=int, default=1000000000)
    parser.add_argument('--events', type=int, default=2000)
    a = parser.parse_args()
    rng = random.Random(a.seed)
    with open(a.out, 'wb', buffering=1 << 20) as out:
        if a.shape == 'large':
            large(out, a.bytes, rng)
        else:
            dump(make(a.shape, rng, a.events, a.cpp or a.protocol < 4), out, a.protocol, a.cpp)


if __name__ == '__main__':
    main()
