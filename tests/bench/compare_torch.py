"""Training speed and memory of planc beside PyTorch, alternating in one run.

    python3 compare_torch.py --planc=PATH [--case=NAME ...] [--rounds=3] [--steps=6] [--compile]

Prints, for each case and precision, tokens per second (best step after the warm-up of every round,
median over rounds), their ratio, the peak resident memory of both (rank 0), and the part of it that
PyTorch takes before there is a model. planc computes norms and activations again in the backward
pass (recompute: selective); PyTorch keeps them, as it does unless told otherwise.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from planc_run import run_planc

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "sequence", "batch")
CASES = {
    "llama-512": ("llama", (12, 512, 8, 8, 1376, 8192, 512, 4)),
    "llama-2048": ("llama", (12, 512, 8, 4, 1376, 8192, 2048, 4)),
    "gpt2-124m": ("gpt2", (12, 768, 12, 12, 3072, 50257, 1024, 1)),
}
WARM_UP = 1  # steps

JOB = """job: bench
model:
  {{family: {family}, layers: {layers}, hidden: {hidden}, heads: {heads}, kv_heads: {kv_heads},
   ffn_hidden: {ffn}, vocab: {vocab}, max_sequence: {sequence}}}
cluster: {{nodes: 1, gpus_per_node: {ranks}, device: host}}
mesh: {{dp_replicate: {ranks}}}
batch: {{global: {total}, micro: {batch}, sequence: {sequence}}}
precision: {{compute: {dtype}}}
recompute: selective
optimizer: {{lr: 1e-4, betas: [0.9, 0.95]}}
data: {{train: [tokens.bin], format: tokens}}
run: {{steps: {steps}, directory: run}}
"""


def train_planc(args, folder, shape, family, dtype):
    fields = dict(zip(KEYS, shape), family=family, dtype=dtype, steps=args.steps, ranks=args.ranks)
    fields["total"] = fields["batch"] * args.ranks
    rows = run_planc(args.planc, folder, JOB.format(**fields), args.steps * fields["total"],
                     fields["sequence"], fields["vocab"])
    return {
        "step_seconds": [row["step_seconds"] for row in rows],
        "tokens": fields["total"] * fields["sequence"],
        "peak_bytes": rows[-1]["resident_bytes"],
    }


def train_torch(args, shape, family, dtype, compiled):
    command = [sys.executable, os.path.join(HERE, "torch_train.py"), f"--family={family}",
               f"--dtype={dtype}", f"--steps={args.steps}"]
    command += [f"--{key}={value}" for key, value in zip(KEYS, shape)]
    if compiled:
        command.append("--compile")
    if args.ranks == 1:
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return json.loads(output.splitlines()[-1])
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone",
              f"--nproc-per-node={args.ranks}"]
    command = launch + command[1:] + [f"--threads={max(1, args.threads // args.ranks)}"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def tokens_per_second(result):
    return result["tokens"] / min(result["step_seconds"][WARM_UP:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--planc", required=True)
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    parser.add_argument("--dtype", action="append", choices=("fp32", "bf16"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    print(f"{'case':12} {'dtype':5} {'tool':24} {'tokens/s':>9} {'ratio':>6} {'peak MB':>8} "
          f"{'of theirs':>9} {'library MB':>10}")
    for case in args.case or CASES:
        family, shape = CASES[case]
        for dtype in args.dtype or ("fp32", "bf16"):
            ours, theirs = [], {}
            for _ in range(args.rounds):
                with tempfile.TemporaryDirectory() as folder:
                    ours.append(train_planc(args, folder, shape, family, dtype))
                for compiled in (False, True) if args.compile else (False,):
                    result = train_torch(args, shape, family, dtype, compiled)
                    theirs.setdefault(result["tool"], []).append(result)
            speed = statistics.median(map(tokens_per_second, ours))
            peak = max(result["peak_bytes"] for result in ours)
            print(f"{case:12} {dtype:5} {'planc':24} {speed:9.1f} {'':6} {peak / 1e6:8.0f}")
            for tool, results in theirs.items():
                other = statistics.median(map(tokens_per_second, results))
                other_peak = max(result["peak_bytes"] for result in results)
                library = max(result["library_bytes"] for result in results)
                print(f"{case:12} {dtype:5} {tool[:24]:24} {other:9.1f} {speed / other:6.2f} "
                      f"{other_peak / 1e6:8.0f} {peak / other_peak:9.2f} {library / 1e6:10.0f}",
                      flush=True)


if __name__ == "__main__":
    main()
