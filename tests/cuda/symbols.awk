# A linker's version script that exports what a driver of CUDA version V has: awk -v V=12040 -f symbols.awk driver/symbols.def
BEGIN { FS = "[(), ]+"; print "{\n  global:" }
/^X\(/ && $4 <= V { print "    " $5 ";" }
END { print "  local: *;\n};" }
