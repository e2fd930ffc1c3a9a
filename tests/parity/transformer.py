"""Decoder-only transformers in PyTorch, written from the published descriptions of the models.

The reference that planc is compared with. It shares no code with planc: it reads a Hugging Face
folder (config.json and model.safetensors) and computes the loss with plain tensor operations in
the precision of its weights. Llama, Qwen 2, Qwen 3 and GPT-2.
"""

import json
import math
import os
import struct

import torch
import torch.nn.functional as F

WITHOUT = ("attention scaling", "causal mask", "SwiGLU gate", "SiLU")
DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def read_safetensors(path):
    """Every tensor of one safetensors file, by name."""
    with open(path, "rb") as file:
        header_bytes = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(header_bytes))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def write_safetensors(path, tensors):
    """Writes float32 tensors as one safetensors file."""
    header, parts, at = {}, [], 0
    for name in sorted(tensors):
        raw = tensors[name].detach().to(torch.float32).contiguous().numpy().tobytes()
        shape = list(tensors[name].shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    centered = x - x.mean(-1, keepdim=True)
    variance = centered.pow(2).mean(-1, keepdim=True)
    return centered * torch.rsqrt(variance + epsilon) * weight + bias


def rotate(x, theta):
    """Rotary embedding of x [B, heads, S, D]: element i turns together with element i + D/2."""
    sequence, size = x.shape[-2], x.shape[-1]
    frequency = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = torch.outer(torch.arange(sequence, dtype=torch.float64), frequency)
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., : size // 2], x[..., size // 2 :]
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


def attention(q, k, v, without=()):
    """Causal attention; q [B, heads, S, D], k and v [B, kv_heads, S, D]."""
    groups = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(groups, dim=1)
    v = v.repeat_interleave(groups, dim=1)
    scores = q @ k.transpose(-1, -2)
    if "attention scaling" not in without:
        scores = scores / math.sqrt(q.shape[-1])
    if "causal mask" in without:
        return scores.softmax(-1) @ v
    sequence = q.shape[-2]
    future = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ v


def heads_first(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Transformer:
    """A model of one Hugging Face folder. `weights` are leaves that require gradients.

    `without` may hold the names of modules to leave out, those of WITHOUT.
    """

    def __init__(self, folder, dtype, without=()):
        self.without = without
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        stored = read_safetensors(os.path.join(folder, "model.safetensors"))
        self.weights = {n: t.to(dtype).requires_grad_(True) for n, t in stored.items()}

    def logits(self, tokens):
        if self.config["model_type"] == "gpt2":
            return self._gpt2(tokens)
        return self._llama(tokens)

    def losses(self, tokens, targets):
        """Cross entropy in nats of each token, row after row; tokens and targets are [B, S]."""
        logits = self.logits(tokens).flatten(0, 1)
        return F.cross_entropy(logits, targets.flatten(), reduction="none")

    def loss(self, tokens, targets):
        """Mean of losses()."""
        return self.losses(tokens, targets).mean()

    def _swiglu(self, gate, up):
        if "SwiGLU gate" in self.without:
            return up
        return gate * up if "SiLU" in self.without else F.silu(gate) * up

    def _llama(self, tokens):
        c, w = self.config, self.weights
        epsilon, theta = c["rms_norm_eps"], c["rope_theta"]
        heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        x = w["model.embed_tokens.weight"][tokens]
        for layer in range(c["num_hidden_layers"]):
            p = f"model.layers.{layer}."

            def project(h, name, p=p):
                return F.linear(h, w[p + name + ".weight"], w.get(p + name + ".bias"))

            h = rms_norm(x, w[p + "input_layernorm.weight"], epsilon)
            q = heads_first(project(h, "self_attn.q_proj"), heads)
            k = heads_first(project(h, "self_attn.k_proj"), kv_heads)
            v = heads_first(project(h, "self_attn.v_proj"), kv_heads)
            if p + "self_attn.q_norm.weight" in w:
                q = rms_norm(q, w[p + "self_attn.q_norm.weight"], epsilon)
                k = rms_norm(k, w[p + "self_attn.k_norm.weight"], epsilon)
            mixed = attention(rotate(q, theta), rotate(k, theta), v, self.without)
            x = x + project(mixed.transpose(1, 2).flatten(-2), "self_attn.o_proj")
            h = rms_norm(x, w[p + "post_attention_layernorm.weight"], epsilon)
            gated = self._swiglu(project(h, "mlp.gate_proj"), project(h, "mlp.up_proj"))
            x = x + project(gated, "mlp.down_proj")
        x = rms_norm(x, w["model.norm.weight"], epsilon)
        tied = c["tie_word_embeddings"]
        return F.linear(x, w["model.embed_tokens.weight" if tied else "lm_head.weight"])

    def _gpt2(self, tokens):
        c, w = self.config, self.weights
        epsilon, heads = c["layer_norm_epsilon"], c["n_head"]

        def norm(x, name):
            return layer_norm(x, w[name + ".weight"], w[name + ".bias"], epsilon)

        def conv1d(x, name):  # weight [in, out]
            return x @ w[name + ".weight"] + w[name + ".bias"]

        x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][: tokens.shape[1]]
        for layer in range(c["n_layer"]):
            p = f"transformer.h.{layer}."
            q, k, v = conv1d(norm(x, p + "ln_1"), p + "attn.c_attn").chunk(3, dim=-1)
            mixed = attention(*(heads_first(t, heads) for t in (q, k, v)), self.without)
            x = x + conv1d(mixed.transpose(1, 2).flatten(-2), p + "attn.c_proj")
            hidden = conv1d(norm(x, p + "ln_2"), p + "mlp.c_fc")
            inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3)
            x = x + conv1d(0.5 * hidden * (1 + torch.tanh(inner)), p + "mlp.c_proj")
        return F.linear(norm(x, "transformer.ln_f"), w["transformer.wte.weight"])
