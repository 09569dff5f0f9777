#!/usr/bin/env python3
"""Compares memprof's look-up with eu-addr2line -i for every call site of a program.

usage: compare.py LOOKUP FILE [LIMIT]     LOOKUP: the program built from lookup.c

Every frame's function, file, line and column must agree. Differences are put in classes; only those of the class
'DIFFERENT' make it fail. The others are cases in which eu-addr2line knows less, each with its reason below.
"""
import collections
import os
import re
import shutil
import subprocess
import sys

# Where the two differ, binutils' addr2line and llvm-symbolizer are asked. Known of eu-addr2line 0.188: it leaves out inlined
# functions in programs optimized at link time, in namespaces (as clang writes them), in units without .debug_aranges, and
# where an inlined block begins at the same address as its caller's; it takes the line before the end of a sequence for
# code that follows it; it does not prefer a symbol to the plain name of a function local to its file or to another one.
THIRD = 'eu-addr2line differs; addr2line or llvm-symbolizer agrees with memprof'
# Several names of one address in the symbol table: memprof prefers global ones, then those without leading underscores.
ALIAS = 'another name of the same symbol'
# eu-addr2line prints the nearest symbol before the address even where that symbol has ended.
BEYOND = 'no symbol covers the address'


def normal(path):
    """Without "." components and doubled slashes: memprof removes them. And without the directory that libdw puts twice
    before paths that -ffile-prefix-map made relative (stdlib/stdlib/strtod.c), which memprof has once."""
    parts = [p for p in path.split('/') if p not in ('', '.')]
    for k in range(1, 0 if path.startswith('/') else (len(parts) - 1) // 2 + 1):
        if parts[:k] == parts[k:2 * k]:
            parts = parts[k:]
            break
    return ('/' if path.startswith('/') else '') + '/'.join(parts)


def whole(name):
    """Without the suffixes of compiler-made parts: memprof names the function that they are parts of. And without the
    name space of glibc's own calls, which nobody writes."""
    return re.sub(r'^__GI_(?=.)', '', re.sub(r'(\.(isra|constprop|part|cold|lto_priv)(\.\d+)*)+$', '', name))


def call_sites(file):
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', file], capture_output=True, text=True, check=True).stdout
    sites, after_call = [], False
    for line in text.splitlines():
        address, is_code, instruction = line.partition(':\t')
        if is_code:
            if after_call:
                sites.append(int(address, 16) - 1)
            after_call = instruction.startswith('call')
    return sorted(set(sites))


def ours(lookup, file, sites):
    done = subprocess.run([lookup, file], input=''.join('%x\n' % s for s in sites), capture_output=True, text=True, check=True)
    sys.stderr.write(done.stderr)
    chains = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        address, _, function, place = line.split('\t')
        path, number, column = place.rsplit(':', 2)
        chains[int(address, 16)].append((whole(function), normal(path), int(number), int(column)))
    return chains


def asked(command, file, sites, of):
    """What another tool says of these addresses, kept for as long as it is the same (tests/kept.sh)."""
    kept = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'kept.sh')
    files = [f for f in (file, debug_file(file), shutil.which(command[0])) if f]
    # 1: eu-addr2line's where an address has no name
    known = ['sh', '-c', '"$@" || [ $? = 1 ]', 'sh'] if command[0] == 'eu-addr2line' else []
    return subprocess.run(['sh', kept, *files, '--', *known, *command, '-a', '-i', '-f', '-e', of],
                          input=''.join('0x%x\n' % s for s in sites), capture_output=True, text=True)


def theirs(file, sites):
    done = asked(['eu-addr2line'], file, sites, file)
    chains = collections.defaultdict(list)
    address, function = None, None
    for line in done.stdout.splitlines():
        if re.fullmatch(r'0x[0-9a-f]{16}', line):
            address, function = int(line, 16), None
        elif function is None:
            function = re.sub(r' inlined at .*', '', line)
        else:
            if line == '??:0':
                line = '??:0:0'
            m = re.fullmatch(r'(.*?):(\d+)(?::(\d+))?', line)
            chains[address].append((whole(function), normal(m[1]), int(m[2]), int(m[3] or 0)))
            function = None
    return chains


def symbols_of(file):
    """address -> names, (start, end) ranges"""
    names, ranges = collections.defaultdict(set), []
    for path in [file, debug_file(file)]:
        for table in ('-s', '--dyn-syms'):
            text = subprocess.run(['readelf', '-W', table, path], capture_output=True, text=True).stdout if path else ''
            for line in text.splitlines():
                f = line.split()
                if len(f) >= 8 and f[0].rstrip(':').isdigit() and f[6] != 'UND':
                    size = int(f[2], 0)
                    names[int(f[1], 16)].add(f[7].split('@')[0])
                    ranges.append((int(f[1], 16), int(f[1], 16) + size, f[7].split('@')[0]))
    return names, ranges


def debug_file(file):
    text = subprocess.run(['readelf', '-n', file], capture_output=True, text=True).stdout
    m = re.search(r'Build ID: ([0-9a-f]+)', text)
    path = m and '/usr/lib/debug/.build-id/%s/%s.debug' % (m[1][:2], m[1][2:])
    return path if path and os.path.exists(path) else None


def third(command, file, sites):
    """site -> [(function, path, line)] as another tool with addr2line's output says"""
    if not sites or not shutil.which(command[0]):
        return {}
    done = asked(command, file, sites, debug_file(file) or file)
    done.check_returncode()
    chains, function, address = collections.defaultdict(list), None, None
    for line in done.stdout.splitlines():
        if re.fullmatch(r'0x[0-9a-f]+', line):
            address, function = int(line, 16), None
        elif function is None:
            function = line
        else:
            path, number = re.fullmatch(r'(.*?):(\d+|\?)(?: \(discriminator \d+\))?', line).groups()
            chains[address].append((whole(function), normal(path), int(number.replace('?', '0'))))
            function = None
    return chains


def classify(site, our, their, others, names, ranges):
    def known(frames):
        return [f[:3] if f[2] else (f[0], '??', 0) for f in frames]
    if any(known(our) == known(other[site]) for other in others if site in other):
        return THIRD
    if len(our) == len(their) and [f[1:] for f in our] == [f[1:] for f in their]:
        different = [(a[0], b[0]) for a, b in zip(our, their) if a[0] != b[0]]
        if all(any(a in n and b in n for n in names.values()) for a, b in different):
            return ALIAS
        if all(a == '??' and not any(r[2] == b and r[0] <= site < r[1] for r in ranges) for a, b in different):
            return BEYOND
    return 'DIFFERENT'


def main():
    lookup, file = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    sites = call_sites(file)
    if len(sys.argv) > 3:
        sites = sites[::max(1, len(sites) // int(sys.argv[3]))]
    a, b = ours(lookup, file, sites), theirs(file, sites)
    names, ranges = symbols_of(file)
    differing = [site for site in sites if a[site] != b[site]]
    others = [third(['addr2line'], file, differing),
              third(['llvm-symbolizer', '--output-style=GNU', '--no-demangle'], file, differing)]
    classes, shown = collections.Counter(), collections.Counter()
    inlined = 0
    for site in sites:
        inlined += len(a[site]) > 1
        kind = 'same' if a[site] == b[site] else classify(site, a[site], b[site], others, names, ranges)
        classes[kind] += 1
        if kind != 'same' and shown[kind] < 3:
            shown[kind] += 1
            print('%s: %#x' % (kind, site))
            said = [('memprof', a), ('eu-addr2line', b), ('addr2line', others[0]), ('llvm-symbolizer', others[1])]
            for tool, frame in [(t, f) for t, chains in said for f in chains.get(site, [])]:
                print('    %-16s %s %s' % (tool, frame[0], ':'.join(map(str, frame[1:]))))
    print('%s: %d addresses, %d with inlined functions; %s' %
          (file, len(sites), inlined, ', '.join('%s: %d' % kv for kv in classes.most_common())))
    return 1 if classes['DIFFERENT'] or not classes['same'] else 0


sys.exit(main())
