"""replay_large.py SIZE [PID [FROM TO]]: of v_event as CSV, without smaller blocks: allocations, their bytes, bytes live
at the end of their process, and the most that was live at once; of what happened from FROM on and before TO"""
import csv, sys

size = int(sys.argv[1])
pid = int(sys.argv[2]) if len(sys.argv) > 2 else 0
start, end = (int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 4 else (0, 1 << 63)
live, allocated, count, left, now, peak = {}, 0, 0, 0, 0, 0
for row in csv.DictReader(sys.stdin):
    if pid and int(row["pid"]) != pid:
        continue
    time, op, bytes_, address = int(row["time_ns"]), row["op"], int(row["size_bytes"]), int(row["address"])
    if time >= end:
        break
    key, inside = (row["process_id"], row["kind"], address), time >= start
    if inside:
        peak = max(peak, now)
    if op in ("alloc", "realloc"):
        if bytes_ < size:
            continue
        live[key] = bytes_
        now += bytes_
        count += inside
        allocated += bytes_ * inside
    elif op == "split":
        whole = live.pop(key, None)
        if whole is not None:
            live[key] = bytes_
            live[(row["process_id"], row["kind"], address + bytes_)] = whole - bytes_
    elif op in ("free", "cut", "to_segment") and key in live:
        now -= live.pop(key)
    elif op == "end": # a row a site; the blocks are all that the process has
        for other in [k for k in live if k[0] == row["process_id"]]:
            left += live[other] * inside
            now -= live.pop(other)
    if inside:
        peak = max(peak, now)
print(count, allocated, left + now, max(peak, now), end=" ") # now: where nothing happened inside the window
