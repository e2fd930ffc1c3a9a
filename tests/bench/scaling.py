"""How the cost of a step grows with the work: tokens per second of planc over sequence length,
layers, microbatches and ranks.

    python3 scaling.py --planc=PATH [--csv=scaling.csv] [--series=NAME ...] [--quick]

Trains a small Llama on random tokens for each point and writes one row with speed, memory and
where the time went by the profile of the last step (rank 0). Draw it with plot_scaling.py.
"""

import argparse
import csv
import json
import os
import re
import sys
import tempfile

from planc_run import run_planc

WARM_UP = 1  # steps
FAMILIES = ("products", "attention", "norms", "rotary", "activations", "embedding", "loss",
            "elementwise", "optimizer", "communication", "host")
BASE = {"layers": 4, "hidden": 256, "heads": 4, "ffn": 688, "vocab": 4096, "sequence": 512,
        "micro": 2, "microbatches": 1, "mesh": "", "dp": 1, "ranks": 1}
COLUMNS = ("series", "axis", "x", "ranks", "layers", "sequence", "micro", "microbatches",
           "tokens_per_step", "step_seconds", "tokens_per_second", "resident_bytes", "floor_ratio",
           "communication_seconds", "exposed_seconds", "dispatch_us", "dispatch_share")

JOB = """job: scaling
model:
  {{family: llama, layers: {layers}, hidden: {hidden}, heads: {heads}, kv_heads: {heads},
   ffn_hidden: {ffn}, vocab: {vocab}, max_sequence: {sequence}}}
cluster: {{nodes: 1, gpus_per_node: {ranks}, device: host}}
mesh: {{{mesh}}}
batch: {{global: {total}, micro: {micro}, sequence: {sequence}}}
precision: {{compute: {dtype}}}
optimizer: {{lr: 1e-4}}
data: {{train: [tokens.bin], format: tokens}}
run: {{steps: {steps}, log_every_steps: 1, directory: run}}
"""


def sequence_points(quick):
    """The same tokens in longer sequences: only attention works more for each token."""
    tokens = 2048
    for sequence in (128, 512, 2048) if quick else (128, 256, 512, 1024, 2048):
        yield sequence, {"sequence": sequence, "micro": tokens // sequence}


def layer_points(quick):
    for layers in (2, 8, 24) if quick else (2, 4, 8, 12, 16, 24):
        yield layers, {"layers": layers}


def microbatch_points(quick):
    """More microbatches of one size before each update."""
    for microbatches in (1, 4, 16) if quick else (1, 2, 4, 8, 16):
        yield microbatches, {"microbatches": microbatches, "micro": 1}


def rank_points(quick):
    """The same batch of 8 sequences on the same cores, cut up in three ways."""
    for axis in ("dp_replicate", "tp", "pp"):
        for ranks in (1, 2) if quick else (1, 2, 4):
            dp = ranks if axis == "dp_replicate" else 1
            yield ranks, {"axis": axis, "ranks": ranks, "dp": dp, "sequence": 256, "micro": 1,
                          "microbatches": 8 // dp, "mesh": f"{axis}: {ranks}" if ranks > 1 else ""}


SERIES = {"sequence": sequence_points, "layers": layer_points, "microbatches": microbatch_points,
          "ranks": rank_points}


def number(pattern, text):
    """The number that the first group of `pattern` finds; an error when the text has none."""
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"no {pattern!r} in the profile:\n{text}")
    return float(found.group(1))


def read_profile(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    row = {
        "floor_ratio": number(r"^  whole step +[\d.]+ +[\d.]+% +[\d.]+ +([\d.]+)$", text),
        "communication_seconds": number(r"^communication: total ([\d.]+) s", text),
        "exposed_seconds": number(r"^communication: .* exposed ([\d.]+) s", text),
        "dispatch_us": number(r"^dispatch on compute: .*\(median ([\d.]+) us\)", text),
        "dispatch_share": number(r"^dispatch on compute: .* ([\d.]+)% of the step", text),
    }
    for family in FAMILIES:
        found = re.search(rf"^  {family} +\d+ +[\d.]+ +([\d.]+)%", text, re.MULTILINE)
        row["share_" + family] = float(found.group(1)) if found else 0.0
    return row


def run_point(args, changes):
    point = {**BASE, **changes}
    total = point["micro"] * point["microbatches"] * point["dp"]
    tokens = total * point["sequence"]
    job = JOB.format(**point, total=total, dtype=args.dtype, steps=args.steps)
    with tempfile.TemporaryDirectory() as folder:
        rows = run_planc(args.planc, folder, job, args.steps * total, point["sequence"],
                         point["vocab"], "--profile")
        profile = read_profile(os.path.join(folder, "run", "profile-rank-0.txt"))
    seconds = min(row["step_seconds"] for row in rows[WARM_UP:])
    return {**{key: point[key] for key in COLUMNS if key in point}, "tokens_per_step": tokens,
            "step_seconds": seconds, "tokens_per_second": tokens / seconds,
            "resident_bytes": rows[-1]["resident_bytes"], **profile}


def print_row(row):
    shares = sorted(((row["share_" + family], family) for family in FAMILIES), reverse=True)
    text = " ".join(f"{family} {share:.0f}%" for share, family in shares[:3])
    print(f"{row['series']:12} {row['axis']:12} {row['x']:5} {row['tokens_per_second']:9.1f} "
          f"{row['step_seconds']:8.3f} {row['resident_bytes'] / 1e6:8.1f} "
          f"{row['floor_ratio']:6.2f}  {text}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--planc", required=True)
    parser.add_argument("--csv", default="scaling.csv")
    parser.add_argument("--series", action="append", choices=sorted(SERIES))
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, help="for each point, the first is not counted")
    parser.add_argument("--quick", action="store_true", help="fewer points and steps")
    args = parser.parse_args()
    args.steps = args.steps or (2 if args.quick else 5)
    if args.steps <= WARM_UP:
        parser.error(f"--steps must be more than {WARM_UP}")
    print(f"{'series':12} {'axis':12} {'x':>5} {'tokens/s':>9} {'step s':>8} {'peak MB':>8} "
          f"{'/floor':>6}  largest shares")
    columns = COLUMNS + tuple("share_" + family for family in FAMILIES)
    with open(args.csv, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        measured = {}
        for series in args.series or SERIES:
            for x, changes in SERIES[series](args.quick):
                axis = changes.pop("axis", "")
                key = json.dumps(changes)  # one rank is the same on every axis
                if key not in measured:
                    measured[key] = run_point(args, changes)
                row = {"series": series, "axis": axis, "x": x, **measured[key]}
                writer.writerow(row)
                file.flush()
                print_row(row)


if __name__ == "__main__":
    sys.exit(main())
