# Ten attaches in a row to nginx's worker, which packs one file again and again: its answers are the same.
need python3 readelf nginx curl
. "$ROOT/tests/e2e/attach.inc"
head -c 20000 /dev/urandom | od -An -x >index.html
cat >nginx.conf <<CONF
daemon off; worker_processes 1; pid $PWD/pid; error_log $PWD/error.log; user $(id -un);
events { worker_connections 64; }
http { access_log off; gzip on; gzip_min_length 10; client_body_temp_path $PWD/1; proxy_temp_path $PWD/2;
    fastcgi_temp_path $PWD/3; uwsgi_temp_path $PWD/4; scgi_temp_path $PWD/5;
    server { listen 127.0.0.1:17772; root $PWD; } }
CONF
LD_BIND_NOW=1 nginx -p "$PWD" -c "$PWD/nginx.conf" 2>nginx.err &
nginx=$!
until_true "nginx answers" curl -sf -o /dev/null http://127.0.0.1:17772/index.html
target=$(tr -d ' ' </proc/$nginx/task/$nginx/children)
(while [ ! -e enough ]; do curl -s --compressed http://127.0.0.1:17772/index.html | cksum; done | sort -u >sums) &
load=$!
ten nginx
: >enough
wait $load
equal "different answers of nginx" "$(cksum <index.html)" "$(cat sums)"
kill $nginx
wait $nginx || fail "nginx ended with $?"
