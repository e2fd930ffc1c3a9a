# A small job for tests that train on several hosts, and comparisons of runs. Sourced.

readonly kSteps=40

# Writes one_host.yaml, two_hosts.yaml and their data into the current folder: the same training of
# 4 ranks, on one machine and on two.
write_jobs() {
  seq 1 20000 > train.txt
  local name nodes ranks
  for name in one_host two_hosts; do
    nodes=1
    if [[ "$name" == two_hosts ]]; then nodes=2; fi
    ranks=$(( 4 / nodes ))
    cat > "$name.yaml" << JOB
job: $name
model: {family: llama, layers: 4, hidden: 64, heads: 4, kv_heads: 2, ffn_hidden: 128, vocab: 256}
cluster: {nodes: $nodes, gpus_per_node: $ranks, device: host}
mesh: {dp_shard: 2, tp: 2}
parallelism: {zero: 2}
batch: {global: 16, micro: 2, sequence: 64}
optimizer: {lr: 3e-3}
lr_schedule: {warmup_steps: 2}
data: {train: [train.txt], format: bytes}
checkpoint: {every_steps: 5, keep: 2, async: true, resume: auto}
run: {steps: $kSteps, directory: $name, stall_timeout: 20s}
JOB
  done
}

# Optimizer steps in a run's metrics.
rows() { if [[ -e "$1/metrics.jsonl" ]]; then wc -l < "$1/metrics.jsonl"; else echo 0; fi; }
reached() { (( $(rows "$1") >= $2 )); }

# The step and the losses of every row, as they were written.
losses() { grep -oE '"(step|loss|grad_norm|validation_loss)":[^,}]*' "$1/metrics.jsonl"; }
same_losses() {
  [[ "$(rows "$1")" == "$kSteps" ]] && cmp -s <(losses "$1") <(losses "$2")
}

newest_checkpoint() { find "$1/checkpoints" -maxdepth 1 -name 'step-????????' | sort | tail -n 1; }
newest_checkpoint_is() {
  [[ "$(newest_checkpoint "$1")" == "$1/checkpoints/$(printf 'step-%08d' "$2")" ]]
}

# Every tensor of the last checkpoint, and every loss.
same_training() {
  local file
  same_losses "$1" "$2" && newest_checkpoint_is "$1" "$kSteps" &&
    newest_checkpoint_is "$2" "$kSteps" || return 1
  for file in "$(newest_checkpoint "$1")"/*.safetensors; do
    cmp -s "$file" "$(newest_checkpoint "$2")/${file##*/}" || return 1
  done
}

# How a message names ranks, one or several, with one of RANKS ("[23]") among them.
ranks_with() { echo "ranks? ([0-9], )*$1"; }
