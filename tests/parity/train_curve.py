"""Trains the quickstart model in planc and in PyTorch from the same weights on the same data.

    python3 train_curve.py --planc=PATH --print-windows=PATH --job=jobs/quickstart.yaml --work=DIR

Prints the loss curves and their largest differences. PyTorch is written out here in full: AdamW
with decoupled weight decay on matrices, clipping by the global norm, warm-up and cosine. It trains
in float32 and in float64: training at this rate amplifies rounding, and how far PyTorch's own two
curves part says how much of a difference rounding explains.
"""

import argparse
import json
import math
import os
import subprocess

import torch

from transformer import Transformer

# What jobs/quickstart.yaml says, and the defaults it leaves.
PEAK, WARM_UP, FLOOR, STEPS, DECAY = 4e-3, 40, 0.05, 500, 0.1
BETAS, EPSILON, CLIP, SEQUENCE = (0.9, 0.95), 1e-8, 1.0, 128


def learning_rate(step):
    if step < WARM_UP:
        return PEAK * (step + 1) / WARM_UP
    progress = min(1.0, (step - WARM_UP) / (STEPS - WARM_UP))
    return PEAK * (FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * progress)) / 2)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def train_planc(args):
    """The folder of the weights that both start from, and planc's losses."""
    start, folder = os.path.join(args.work, "start"), os.path.join(args.work, "folder")
    common = [f"--set=checkpoint.directory={args.work}/first", f"--set=run.directory={args.work}/run"]
    run(args.planc, "run", args.job, "--steps=1", *common)
    run(args.planc, "checkpoint", "export", f"{args.work}/first/step-00000001", folder)
    run(args.planc, "checkpoint", "import", folder, start, f"--job={args.job}")
    run(args.planc, "run", args.job, f"--steps={args.steps}", "--set=run.log_every_steps=1",
        "--set=run.eval_every_steps=0", f"--set=checkpoint.resume={start}", *common)
    with open(os.path.join(args.work, "run", "metrics.jsonl"), encoding="utf-8") as file:
        return folder, [json.loads(line)["loss"] for line in file]


def train_torch(args, folder, dtype):
    windows = run(getattr(args, "print_windows"), args.job, str(args.steps)).splitlines()
    with open(os.path.join(os.path.dirname(args.job), args.text), "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    model = Transformer(folder, dtype)
    matrices = [w for w in model.weights.values() if w.dim() == 2]
    vectors = [w for w in model.weights.values() if w.dim() != 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=BETAS, eps=EPSILON)
    losses = []
    for step, line in enumerate(windows):
        starts = [int(word) for word in line.split()]
        batch = torch.stack([text[s : s + SEQUENCE + 1] for s in starts]).long()
        loss = model.loss(batch[:, :-1], batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.weights.values(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser()
    for name in ("planc", "print-windows", "job", "work"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--text", default="../build/quickstart/train.txt")
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    args.work = os.path.abspath(args.work)
    os.makedirs(args.work)
    folder, ours = train_planc(args)
    single = train_torch(args, folder, torch.float32)
    double = train_torch(args, folder, torch.float64)
    for step in range(0, args.steps, 20):
        print(f"step {step + 1:4}  planc {ours[step]:.6f}  PyTorch float32 {single[step]:.6f}  "
              f"float64 {double[step]:.6f}")
    print(f"PyTorch {torch.__version__}, {args.steps} steps")
    for name, a, b in (("planc and float64", ours, double), ("planc and float32", ours, single),
                       ("float32 and float64", single, double)):
        differences = [abs(x - y) for x, y in zip(a, b, strict=True)]
        worst = max(range(args.steps), key=lambda step: differences[step])
        mean = sum(differences) / args.steps
        print(f"{name}: at most {differences[worst]:.2e} nats (step {worst + 1}), mean {mean:.2e}; "
              f"first 20 steps {max(differences[:20]):.2e}")


if __name__ == "__main__":
    main()
