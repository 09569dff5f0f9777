# make dist: the same commit gives the same bytes, wherever it lies, whenever it is made, and with whatever umask,
# locale and time zone; what is in it is what git has, and no more.
need git xz
git -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1 || skip "no git repository here"
for place in one another/place; do
    git clone -q --no-local --depth 1 "file://$(git -C "$ROOT" rev-parse --show-toplevel)" "$place" || fail "git clone"
done
touch one/new-file
mkdir bin # xz at its quickest: its level is not what is tested
xz=$(command -v xz)
printf '#!/bin/sh\nexec %s -0 -T1 -c "$4"\n' "$xz" >bin/xz
chmod +x bin/xz
PATH=$PWD/bin:$PATH
grep -q 'xz -6 -T1 -c "' "$ROOT/tools/dist" || fail "tools/dist calls xz in another way"
(cd one && umask 022 && TZ=UTC LC_ALL=C make -s dist BUILD="$PWD/../a" >/dev/null) || fail "make dist"
find another -exec touch -d '2001-02-03 04:05:06' {} +
(cd another/place && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 make -s dist BUILD="$PWD/out" >/dev/null) ||
    fail "make dist, elsewhere"
first=$(find a -name 'memprof-*.tar.xz') second=$(find another/place/out -name 'memprof-*.tar.xz')
[ -n "$first" ] && [ -n "$second" ] || fail "no release"
equal "checksums of two releases" "$(sha256sum <"$first")" "$(sha256sum <"$second")"
equal "what is in it" "$(git -C one ls-files | sort | sha256sum)" \
    "$("$xz" -dc "$first" | tar -tf - | sed 's|^[^/]*/||' | grep -v '/$' | grep . | sort | sha256sum)"
