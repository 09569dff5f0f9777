# The C, C++ and CUDA sources are laid out as .clang-format says. Other versions of clang-format differ in places. What
# was found to be so stays in $BUILD/format, and what has changed since is looked at.
version=14
format=$(command -v clang-format-$version || command -v clang-format) || skip "clang-format is not installed"
found=$("$format" --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
[ "$found" = $version ] || skip "the layout is that of clang-format $version, and $found is installed"
cd "$ROOT"
work=$OLDPWD
# without git's list, as in a copy of the tree: all that is not built
git ls-files -- '*.c' '*.h' '*.cpp' '*.cu' >"$work/tracked" 2>/dev/null || : >"$work/tracked"
[ -s "$work/tracked" ] || find . \( -path ./build -o -path "./${BUILD#"$ROOT/"}" \) -prune -o \
    -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print >"$work/tracked"
# what is removed but not yet committed is no source any more
while read -r file; do [ ! -f "$file" ] || printf '%s\n' "$file"; done <"$work/tracked" >"$work/files"
at_least "sources" 400 "$(wc -l <"$work/files")"
kept=$BUILD/format
{ "$format" --version; cat .clang-format; } | sha256sum >"$work/inputs"
if ! cmp -s "$work/inputs" "$kept/inputs"; then
    rm -rf "$kept"
    mkdir -p "$kept"
    : >"$kept/sums"
    cp "$work/inputs" "$kept"
fi
xargs -d '\n' sha256sum <"$work/files" >"$work/sums"
grep -vxFf "$kept/sums" "$work/sums" | cut -c 67- >"$work/changed" || :
echo "  looked at: $(wc -l <"$work/changed")"
if xargs -r -d '\n' -P2 -n32 "$format" --dry-run -Werror <"$work/changed" >"$work/log" 2>&1; then
    cp "$work/sums" "$kept/sums.$$" && mv "$kept/sums.$$" "$kept/sums"
    exit 0
fi
bad=$(sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: error: code should be clang-formatted.*/\1/p' "$work/log" | sort -u)
[ -n "$bad" ] || { cat "$work/log"; fail "$format"; }
printf '%s\n' "$bad"
fail "not laid out as .clang-format says; mend with: $(basename "$format") -i" $bad
