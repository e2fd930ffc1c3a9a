"""Completes the fixtures of //tests/parity: loss and gradients in float64 by PyTorch.

    parity_test --write=DIR           # config.json, model.safetensors, tokens.json by planc
    python3 make_fixtures.py DIR      # adds gradients.safetensors and loss.json to each folder

Gradients are rounded to float32 when they are written.
"""

import json
import os
import sys

import torch

from transformer import Transformer, write_safetensors


def main():
    root = sys.argv[1]
    for name in sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        if not os.path.isdir(folder):
            continue
        with open(os.path.join(folder, "tokens.json"), encoding="utf-8") as file:
            batch = json.load(file)
        model = Transformer(folder, torch.float64)
        loss = model.loss(torch.tensor(batch["tokens"]), torch.tensor(batch["targets"]))
        loss.backward()
        gradients = {n: w.grad for n, w in model.weights.items()}
        write_safetensors(os.path.join(folder, "gradients.safetensors"), gradients)
        result = {"loss": loss.item(), "dtype": "float64", "torch": torch.__version__}
        with open(os.path.join(folder, "loss.json"), "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        print(f"{name}: loss {loss.item():.12f}, {len(gradients)} gradients")


if __name__ == "__main__":
    main()
