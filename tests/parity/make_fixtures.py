"""Completes the fixtures of //tests/parity: weights, losses and gradients in float64 by PyTorch.

    parity_test --write=DIR           # config.json, model.safetensors, tokens.json by planc
    python3 make_fixtures.py DIR      # new weights, and what PyTorch computes from them

The weights are random and so large that every module has a part in the result: products keep the
size of their inputs, norms are not 1 and biases not 0. After a few steps of training from the usual
start, half of the modules change the loss by less than bf16 rounds.

loss.json holds the loss of every token, the deviation of the logits (root mean square after each
row's mean is taken away), and the losses of the same model without a module, for modules that are
no instruction of a plan. Gradients are rounded to float32 when they are written. Of the first step
of AdamW it holds the norm of all changes, and their product with the weights.
"""

import json
import math
import os
import sys

import torch

from transformer import WITHOUT, Transformer, read_safetensors, write_safetensors


def random_weights(path):
    """Replaces the values of a safetensors file."""
    generator = torch.Generator().manual_seed(7)
    tensors = read_safetensors(path)
    for name in sorted(tensors):
        shape = tensors[name].shape
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        if len(shape) == 1:
            values = values / 4 + (0 if name.endswith("bias") else 1)
        else:
            # GPT-2's linear weights are [in, out].
            values = values / math.sqrt(shape[0 if ".c_" in name else 1])
        tensors[name] = values
    write_safetensors(path, tensors)


def adamw_step(weights):
    """Clips and updates as ParityOptimizer of parity_case.h says; what the changes sum up to."""
    before = [w.detach().clone() for w in weights]
    torch.nn.utils.clip_grad_norm_(weights, 0.25)
    groups = [
        {"params": [w for w in weights if w.dim() > 1], "weight_decay": 0.1},
        {"params": [w for w in weights if w.dim() == 1], "weight_decay": 0},
    ]
    torch.optim.AdamW(groups, lr=1, betas=(0.9, 0.95), eps=0.01).step()
    changes = [w.detach() - b for w, b in zip(weights, before)]
    norm = math.sqrt(sum(c.pow(2).sum().item() for c in changes))
    return norm, sum((c * b).sum().item() for c, b in zip(changes, before))


def rounded(losses):
    return [round(loss, 10) for loss in losses.tolist()]


def main():
    root = sys.argv[1]
    for name in sorted(os.listdir(root)):
        folder = os.path.join(root, name)
        if not os.path.isdir(folder):
            continue
        with open(os.path.join(folder, "tokens.json"), encoding="utf-8") as file:
            batch = json.load(file)
        random_weights(os.path.join(folder, "model.safetensors"))
        model = Transformer(folder, torch.float64)
        tokens, targets = torch.tensor(batch["tokens"]), torch.tensor(batch["targets"])
        losses = model.losses(tokens, targets)
        loss = losses.mean()
        loss.backward()
        gradients = {n: w.grad for n, w in model.weights.items()}
        write_safetensors(os.path.join(folder, "gradients.safetensors"), gradients)
        result = {"loss": loss.item(), "dtype": "float64", "torch": torch.__version__}
        with torch.no_grad():
            logits = model.logits(tokens)
            centered = logits - logits.mean(-1, keepdim=True)
            result["logit_deviation"] = centered.pow(2).mean().sqrt().item()
            result["losses"] = rounded(losses)
            result["without"] = {}
            for module in WITHOUT:
                changed = Transformer(folder, torch.float64, (module,)).losses(tokens, targets)
                if not torch.equal(changed, losses):
                    result["without"][module] = rounded(changed)
        step = adamw_step(list(model.weights.values()))
        result["update_norm"], result["update_along_weights"] = step
        with open(os.path.join(folder, "loss.json"), "w", encoding="utf-8") as file:
            json.dump(result, file)
            file.write("\n")
        print(f"{name}: loss {loss.item():.12f}, {len(gradients)} gradients")


if __name__ == "__main__":
    main()
