"""Reads 'memprof report --by function --csv' of a sampled recording and the true figures (argument 1): for each figure a
line: function, figure, 1 where the truth is within the stated error, the error, the estimate, the truth."""
import csv
import sys

FIGURES = ("alloc_count", "alloc_bytes", "end_count", "end_bytes")
truth = {}
with open(sys.argv[1]) as file:
    for line in file:
        words = line.split()
        truth[words[0]] = [int(word) for word in words[1:]]
found = {row["function"]: row for row in csv.DictReader(sys.stdin)}
for function, values in truth.items():
    row = found.get(function)
    for figure, value in zip(FIGURES, values):
        estimate = int(row[figure]) if row else 0
        error = int(row[figure + "_error"]) if row else 0
        print(function, figure, int(abs(estimate - value) <= error), error, estimate, value)
