"""Which slots of a process lead into libmemprof.so, and what is in all of them: read from outside, by readelf.
attach_slots.py PID [FILE]: prints how many lead there; FILE gets a line for each slot."""
import os
import subprocess
import sys

pid = int(sys.argv[1])
objects = {}
ours = []
for line in open(f"/proc/{pid}/maps"):
    part = line.split(maxsplit=5)
    if len(part) < 6 or not part[5].startswith("/") or part[5].startswith("/memfd:"):
        continue
    path = part[5].rstrip("\n")
    start, end = (int(x, 16) for x in part[0].split("-"))
    if int(part[2], 16) == 0 and path not in objects:
        objects[path] = start
    if path.endswith("/libmemprof.so"):
        ours.append((start, end))
memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
slots = []
for path, base in sorted(objects.items()):
    if path.endswith(("/libmemprof.so", " (deleted)")) or open(path, "rb").read(4) != b"\x7fELF":
        continue
    text = subprocess.run(["readelf", "-hrW", path], capture_output=True, text=True).stdout
    bias = 0 if "EXEC (Executable file)" in text else base
    for line in text.splitlines():
        part = line.split()
        if len(part) > 2 and part[2] in ("R_X86_64_JUMP_SLOT", "R_X86_64_JUMP_SLO", "R_X86_64_GLOB_DAT"):
            at = bias + int(part[0], 16)
            value = int.from_bytes(os.pread(memory, 8, at), "little")
            slots.append((path, at, value, part[4] if len(part) > 4 else ""))
if len(sys.argv) > 2:
    with open(sys.argv[2], "w") as out:
        for path, at, value, name in slots:
            out.write(f"{path} {at:x} {value:x} {name}\n")
print(sum(any(s <= value < e for s, e in ours) for _, _, value, _ in slots))
