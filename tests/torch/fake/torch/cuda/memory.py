import os
import pickle
import time
import traceback

_history = None


def _record_memory_history(enabled='all', context='all', stacks='all', max_entries=0, device=None):
    global _history
    if os.environ.get('FAKE_TORCH_FAILS'):
        raise RuntimeError('no history today')
    _history = {}


def _note(action, address, size, device):
    if _history is None:
        return
    trace = _history.setdefault(device, [])
    if os.environ.get('FAKE_TORCH_LIES') and len(trace) == 6:
        address += 512
    frames = [{'name': f.name, 'filename': f.filename, 'line': f.lineno} for f in reversed(traceback.extract_stack()[:-3])]
    trace.append({'action': action, 'addr': address, 'size': size, 'stream': 0, 'time_us': time.time_ns() // 1000, 'frames': frames})


def _dump_snapshot(path):
    from . import _allocator
    segments = []
    for device in sorted(_allocator.next):
        blocks, base = [], 0x7F0000000000 + (device << 36)
        at = base
        for (d, address), size in sorted(_allocator.live.items()):
            if d != device:
                continue
            if address > at:
                blocks.append({'address': at, 'size': address - at, 'requested_size': 0, 'state': 'inactive', 'frames': []})
            rounded = (size + 511) // 512 * 512
            blocks.append({'address': address, 'size': rounded, 'requested_size': size, 'state': 'active_allocated', 'frames': []})
            at = address + rounded
        end = _allocator.next[device]
        if end > at:
            blocks.append({'address': at, 'size': end - at, 'requested_size': 0, 'state': 'inactive', 'frames': []})
        used = sum(b['size'] for b in blocks if b['state'] != 'inactive')
        segments.append({'device': device, 'address': base, 'total_size': end - base, 'allocated_size': used, 'active_size': used,
                         'requested_size': sum(b['requested_size'] for b in blocks), 'stream': 0, 'segment_type': 'large',
                         'segment_pool_id': (0, 0), 'is_expandable': False, 'frames': [], 'blocks': blocks})
    traces = [(_history or {}).get(d, []) for d in range(max(list(_history or {}) + [-1]) + 1)]
    with open(path, 'wb') as f:
        pickle.dump({'segments': segments, 'device_traces': traces, 'allocator_settings': {}, 'external_annotations': []}, f, 4)
