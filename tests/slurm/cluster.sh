# A Slurm cluster for tests: a controller on host `head` and one daemon on each of the hosts that
# make_hosts made (tests/network/hosts.sh). Sourced. Everything Slurm writes is in one folder.

# start_cluster FOLDER NAME...: returns when every node is idle.
start_cluster() {
  cluster="$1"
  shift
  cluster_nodes=("$@")
  mkdir -p "$cluster"/{munge,state,log}
  chmod 700 "$cluster/munge"
  mkdir -m 755 /run/munge
  mungekey --create --keyfile "$cluster/munge/key"
  munged --key-file="$cluster/munge/key" --socket=/run/munge/munge.socket.2 \
    --pid-file="$cluster/munge/pid" --log-file="$cluster/munge/log" \
    --seed-file="$cluster/munge/seed"
  write_cluster_configuration > "$cluster/slurm.conf"
  export SLURM_CONF="$cluster/slurm.conf"
  slurmctld -D -c -f "$SLURM_CONF" 2> "$cluster/log/slurmctld.stderr" &
  local node
  for node in "${cluster_nodes[@]}"; do start_node "$node"; done
  eventually 30 all_nodes_idle
}

# cred_expire is what a requeued job waits for (at least 5); SlurmdTimeout how long a silent node
# counts as up.
write_cluster_configuration() {
  cat << CONFIGURATION
ClusterName=planc
SlurmctldHost=head(10.77.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=cred_expire=5
CryptoType=crypto/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmdSpoolDir=$cluster/spool.%n
StateSaveLocation=$cluster/state
SlurmctldLogFile=$cluster/log/slurmctld.log
SlurmdLogFile=$cluster/log/slurmd.%n.log
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmctldTimeout=30
SlurmdTimeout=10
KillWait=5
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 State=UNKNOWN
CONFIGURATION
  local node index=0
  for node in "${cluster_nodes[@]}"; do
    index=$(( index + 1 ))
    echo "NodeName=$node NodeHostname=$node NodeAddr=10.77.0.$index RealMemory=2000"
  done
  local names
  names="$(IFS=,; echo "${cluster_nodes[*]}")"
  echo "PartitionName=debug Nodes=$names Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO"
}

start_node() {
  on_host "$1" slurmd -D -f "$SLURM_CONF" -N "$1" 2> "$cluster/log/slurmd.$1.stderr" &
}

# The node's daemon and everything it started die at once, as if the machine lost power.
kill_node() {
  ip netns pids "$1" | xargs --no-run-if-empty kill -KILL
}

all_nodes_idle() {
  [[ "$(sinfo --noheader --Node --format=%t 2>/dev/null | sort | uniq -c | xargs)" == \
    "${#cluster_nodes[@]} idle" ]]
}

node_is_idle() { [[ "$(sinfo --noheader --nodes="$1" --format=%t)" == idle ]]; }

job_is_gone() {
  local state
  state="$(squeue --noheader --jobs="$1" --format=%T 2>/dev/null)"
  [[ -z "$state" || "$state" == COMPLETED || "$state" == FAILED || "$state" == CANCELLED ]]
}
