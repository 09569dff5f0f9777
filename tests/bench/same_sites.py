"""same_sites.py MEMPROF RECORDING: a row for each site, sorted: what it is of, its statistics but for lifetimes, and
its stack as a number made of the places of its frames (module and offset; of code that names itself its function, file
and line), so that two recordings' are compared without walking every stack (`import torch`: 700,000 of 65 frames)."""
import csv, hashlib, subprocess, sys

STATISTICS = ("alloc_count alloc_bytes free_count free_bytes temporary_count temporary_bytes at_peak_bytes "
              "at_peak_count own_peak_bytes end_bytes end_count largest_bytes").split()


def rows(query):
    with subprocess.Popen([sys.argv[1], "sql", "--csv", sys.argv[2], query],
                          stdout=subprocess.PIPE, text=True) as asked:
        answer = csv.reader(asked.stdout)
        next(answer)
        yield from answer
    if asked.returncode != 0:
        sys.exit("same_sites.py: %s answers %d to: %s" % (sys.argv[1], asked.returncode, query))


def number_of(words):
    return int.from_bytes(hashlib.sha256("\0".join(words).encode()).digest()[:8], "big")


def places():
    """The number of each address, and what it is called for a reader of differences."""
    numbers, names = {}, {}
    for address, module, offset, names_itself, function, file, line in rows(
            "SELECT a.address_id, m.path, a.offset, a.offset < 0, fn.name, f.path, r.line FROM address a "
            "LEFT JOIN module m USING(module_id) LEFT JOIN frame r ON r.address_id = a.address_id AND "
            "r.inline_depth = 0 LEFT JOIN function fn USING(function_id) LEFT JOIN file f ON f.file_id = r.file_id"):
        numbers[int(address)] = number_of((function, file, line) if names_itself == "1" else (module, offset))
        names[int(address)] = function or "%s+%s" % (module, offset)
    return numbers, names


def stacks(numbers):
    """The number of each stack and its innermost address. A caller comes before what it calls."""
    stack_numbers, innermost = {0: 0}, {0: 0}
    for stack, caller, address in rows(
            "SELECT stack_id, coalesce(parent_id, 0), address_id FROM stack ORDER BY stack_id"):
        stack, address = int(stack), int(address)
        # of whole numbers, so the same in every run
        stack_numbers[stack] = hash((stack_numbers[int(caller)], numbers[address]))
        innermost[stack] = address
    return stack_numbers, innermost


def main():
    numbers, names = places()
    stack_numbers, innermost = stacks(numbers)
    names[0] = "unknown"
    found = []
    for stack, device, kind, *statistics in rows(
            "SELECT s.stack_id, d.name, s.kind, %s FROM site s JOIN device d USING(device_id)" % ", ".join(STATISTICS)):
        stack = int(stack)
        found.append("%016x %s %s %s %s\n" % (stack_numbers[stack] % 2**64, device, kind, " ".join(statistics),
                                             names[innermost[stack]]))
    print("stack device kind", *STATISTICS, "innermost")
    sys.stdout.writelines(sorted(found))


main()
