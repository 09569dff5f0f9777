# The whole tree compiles without a warning with gcc; with clang: warnings_clang.sh, as each takes minutes.
. "$ROOT/tests/static/warnings.inc"
compiles gcc -O1
