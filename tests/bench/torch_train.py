"""Trains one transformer in PyTorch as its users would, and prints what it took as JSON.

Counterpart of `planc run` in compare_torch.py: fused library calls (scaled_dot_product_attention,
rms_norm), AdamW, float32 or bfloat16 by autocast, random tokens.
"""

import argparse
import json
import math
import os
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn


class RmsNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, cosine, sine):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads, self.kv_heads = args.heads, args.kv_heads
        self.size = args.hidden // args.heads
        self.gpt = args.family == "gpt2"
        norm = nn.LayerNorm if self.gpt else RmsNorm
        self.norm1, self.norm2 = norm(args.hidden), norm(args.hidden)
        width = (args.heads + 2 * args.kv_heads) * self.size
        self.qkv = nn.Linear(args.hidden, width, bias=self.gpt)
        self.output = nn.Linear(args.hidden, args.hidden, bias=self.gpt)
        self.up = nn.Linear(args.hidden, args.ffn * (1 if self.gpt else 2), bias=self.gpt)
        self.down = nn.Linear(args.ffn, args.hidden, bias=self.gpt)

    def forward(self, x, cosine, sine):
        batch, sequence, hidden = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, sequence, -1, self.size).transpose(1, 2)
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        if not self.gpt:
            q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        if self.kv_heads != self.heads:
            k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
            v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, sequence, hidden))
        h = self.up(self.norm2(x))
        if self.gpt:
            return x + self.down(F.gelu(h, approximate="tanh"))
        gate, up = h.chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        gpt = args.family == "gpt2"
        self.table = nn.Embedding(args.vocab, args.hidden)
        self.position = nn.Embedding(args.sequence, args.hidden) if gpt else None
        self.layers = nn.ModuleList(Layer(args) for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.hidden) if gpt else RmsNorm(args.hidden)
        self.head = nn.Linear(args.hidden, args.vocab, bias=False)
        if gpt:
            self.head.weight = self.table.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)
        size = args.hidden // args.heads
        frequency = 10000.0 ** (-torch.arange(0, size, 2).float() / size)
        angle = torch.outer(torch.arange(args.sequence).float(), frequency)
        self.register_buffer("cosine", angle.cos())
        self.register_buffer("sine", angle.sin())

    def forward(self, tokens, targets):
        x = self.table(tokens)
        if self.position is not None:
            x = x + self.position.weight
        for layer in self.layers:
            x = layer(x, self.cosine.to(x.dtype), self.sine.to(x.dtype))
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def library_bytes():
    """What PyTorch itself takes once it has differentiated and optimized one number."""
    x = torch.ones(1, requires_grad=True)
    (x * x).sum().backward()
    torch.optim.AdamW([x]).step()
    return peak_bytes()


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "sequence", "batch"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--family", choices=("llama", "gpt2"), default="llama")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    library = library_bytes()

    # Under torchrun-style variables: data parallel over Gloo, `batch` sequences on each rank.
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    model = Model(args)
    if ranks > 1:
        torch.distributed.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(model)
    if args.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95))
    seconds, losses = [], []
    for _ in range(args.steps):
        batch = torch.randint(0, args.vocab, (args.batch, args.sequence + 1))
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = model(batch[:, :-1], batch[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    assert all(math.isfinite(loss) for loss in losses)
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps({
            "tool": f"PyTorch {torch.__version__}" + (" compile" if args.compile else " eager"),
            "step_seconds": seconds,
            "tokens": args.batch * args.sequence * ranks,
            "peak_bytes": peak_bytes(),
            "library_bytes": library,
        }))


if __name__ == "__main__":
    main()
