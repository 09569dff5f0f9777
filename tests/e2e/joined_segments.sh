# Blocks that begin in one segment of an allocator and go on in those directly behind it: each segment has its part.
record_ok env LD_PRELOAD="$PROGRAMS/lib_joined.so" "$PROGRAMS/joined"
"$MEMPROF" report out.db --segments --csv >segments.csv
# by address: live bytes, blocks, largest hole
awk -F, 'NR > 1 { print $5, $8, $9, $10 }' segments.csv | sort -n | cut -d' ' -f2- >parts
# The 16 bytes before each block are holes.
cat >expected <<END
$((768 * 1024 - 16 + 256 * 1024 - 16)) 2 16
$((512 * 1024 + 512 * 1024 - 16)) 2 16
$((256 * 1024 + 768 * 1024 - 16)) 2 16
$((1024 * 1024)) 1 0
$((256 * 1024)) 1 $((768 * 1024))
END
diff expected parts || fail "the segments' parts"
"$MEMPROF" report out.db --segments >report
contains "their sum is what is live" report "5.00 MiB  4.25 MiB"
