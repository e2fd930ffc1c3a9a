# Several hosts on one machine, for tests: network namespaces with an address, a host name and a
# hosts file each, joined by a bridge. Sourced. Everything lives in namespaces of the test's own
# (mounts, network, processes), so nothing of the machine is touched and all of it, every process
# included, is gone when the test ends, however it ends.
#
# Counts checks: `check NAME COMMAND...`, then `summary` prints "NAME: N passed, N failed".

readonly kSkipped=77

# Runs the calling script once more inside namespaces of its own; returns there, with an empty /run
# in memory. Where the machine does not permit that, the script ends as skipped, with the reason.
enter_private_machine() {
  if [[ -z "${PLANC_PRIVATE_MACHINE:-}" ]]; then
    local -a private=(unshare --mount --uts --net --ipc --pid --fork --kill-child --mount-proc)
    if (( EUID != 0 )); then private+=(--user --map-root-user); fi
    local reason
    if ! reason="$("${private[@]}" bash -c 'mount -t tmpfs tmpfs /run &&
        ip link add name planc0 type bridge &&
        ip link add name planc1 type veth peer name planc2' 2>&1)"; then
      echo "SKIPPED: ${0##*/}: this machine does not permit namespaces: $reason"
      exit "$kSkipped"
    fi
    PLANC_PRIVATE_MACHINE=1 exec "${private[@]}" bash "$0" "$@"
  fi
  mount -t tmpfs tmpfs /run
  ip link set lo up
  ip link add planc0 type bridge
  ip addr add 10.77.0.254/24 dev planc0
  ip link set planc0 up
}

# make_hosts FOLDER NAME...: hosts 10.77.0.1, 10.77.0.2, ... with two traps of real ones: each knows
# itself by a loopback address and only the others by those of the network, as Debian does it, and
# has one more interface, with the same address on every host, as container engines do.
make_hosts() {
  local folder="$1" name other index=0
  shift
  local -a names=("$@")
  for name in "${names[@]}"; do
    index=$(( index + 1 ))
    ip netns add "$name"
    ip link add "v-$name" type veth peer name eth0 netns "$name"
    ip link set "v-$name" master planc0 up
    ip -n "$name" addr add "10.77.0.$index/24" dev eth0
    ip -n "$name" link set eth0 up
    ip -n "$name" link set lo up
    ip -n "$name" link add docker0 type bridge
    ip -n "$name" addr add 172.17.0.1/16 dev docker0
    ip -n "$name" link set docker0 up
  done
  for name in "${names[@]}" head; do
    {
      echo "127.0.0.1 localhost"
      index=0
      for other in "${names[@]}"; do
        index=$(( index + 1 ))
        if [[ "$other" == "$name" ]]; then
          echo "127.0.1.1 $other"
        else
          echo "10.77.0.$index $other"
        fi
      done
      echo "10.77.0.254 head"
    } > "$folder/hosts.$name"
  done
  hostname head
  mount --bind "$folder/hosts.head" /etc/hosts
  hosts_folder="$folder"
}

# on_host NAME COMMAND...: in the host's network, under its name.
on_host() {
  nsenter --net="/run/netns/$1" unshare --mount --uts bash -c '
    hostname "$1" && mount --bind "$0/hosts.$1" /etc/hosts && shift && exec "$@"' \
    "$hosts_folder" "$@"
}

cut_link() { ip link set "v-$1" down; }
mend_link() { ip link set "v-$1" up; }

passed_checks=0
failed_checks=0

# check NAME COMMAND...: passes if the command succeeds.
check() {
  local name="$1"
  shift
  if "$@"; then
    passed_checks=$(( passed_checks + 1 ))
    echo "  ok: $name"
  else
    failed_checks=$(( failed_checks + 1 ))
    echo "  FAILED: $name"
  fi
}

# summary NAME: the last line of a test; fails if a check failed or none was made.
summary() {
  if (( failed_checks > 0 )); then tail -n 20 ./*.out; fi
  echo "$1: $passed_checks passed, $failed_checks failed"
  (( passed_checks > 0 && failed_checks == 0 ))
}

# scenario NAME COMMAND...: a titled group of checks with its time.
scenario() {
  local name="$1" start
  shift
  start="$(date +%s%N)"
  echo "== $name"
  "$@"
  printf '   %s took %d.%d s\n' "$name" $(( ($(date +%s%N) - start) / 1000000000 )) \
    $(( ($(date +%s%N) - start) / 100000000 % 10 ))
}

# eventually SECONDS COMMAND...: tries the command until it succeeds.
eventually() {
  local deadline=$(( $(date +%s) + $1 ))
  shift
  until "$@"; do
    if (( $(date +%s) >= deadline )); then return 1; fi
    sleep 0.1
  done
}

# says FILE REGEX: the file has the words, in whatever way they were wrapped into lines. (grep -q
# would hang up on tr at the first match, and a broken pipe is a failed check.)
says() { tr -s ' \n' ' ' < "$1" | grep -E -e "$2" > /dev/null; }
