"""Runs planc on random tokens, for the benchmarks of this folder."""

import json
import os
import random
import struct
import subprocess


def run_planc(planc, folder, job, sequences, sequence, vocab, *flags):
    """Trains `job`, the text of a job file that reads tokens.bin and writes to run/, in `folder`, on
    as many random sequences as it asks for; returns the rows of metrics.jsonl."""
    path = os.path.join(folder, "job.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(job)
    tokens = sequences * sequence + sequence + 1
    source = random.Random(1)
    with open(os.path.join(folder, "tokens.bin"), "wb") as file:
        values = [source.randrange(vocab) for _ in range(tokens)]
        file.write(struct.pack(f"<{tokens}H", *values))
    subprocess.run([planc, "run", path, *flags], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, "run", "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]
