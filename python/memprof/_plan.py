"""The plan of include/memprof_plan.h: which bytes to copy once so that views keep what they share."""

def span(data, item_bytes, shape, stride):
    """The bytes that a view may touch, [low, high): both are its data where a size is 0."""
    if 0 in shape:
        return data, data
    low = sum(min(0, (size - 1) * step) for size, step in zip(shape, stride))
    high = sum(max(0, (size - 1) * step) for size, step in zip(shape, stride)) + 1
    return data + low * item_bytes, data + high * item_bytes


def plan(spans):
    """Joins spans (low, high, storage) into ranges [low, high], by address: those that overlap, and those of one
    storage that touch (what lies beside another storage by chance must not be kept alive by it)."""
    ranges, storage = [], None
    for low, high, owner in sorted(each for each in spans if each[0] < each[1]):
        if ranges and (low < ranges[-1][1] or (low == ranges[-1][1] and owner == storage)):
            ranges[-1][1] = max(ranges[-1][1], high)
        else:
            ranges.append([low, high])
        storage = owner
    return ranges
