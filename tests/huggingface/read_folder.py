#!/usr/bin/env python3
"""Reads a Hugging Face folder of a Llama, Qwen2, Qwen3 or GPT-2 model, knowing only the format.

Checks config.json, the index and every safetensors file, and that the tensors have the names and
shapes that the architecture has for this config. Prints one line a tensor: its name, type, shape,
number of elements, and two digests of its values as float32 bit patterns: their sum, and the sum
of (position + 1) * bits, both modulo 2^64. Exits with 1 and a sentence at the first fault.
"""
import array
import json
import os
import struct
import sys

MODULUS = 1 << 64
ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gpt2": "GPT2LMHeadModel",
}
ELEMENT_BYTES = {"F32": 4, "BF16": 2}


def check(condition, message):
    if not condition:
        sys.exit(f"read_folder: {message}")


def rotary_shapes(config):
    """Names and shapes of Llama and of the two models derived from it."""
    hidden, ffn, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries = config["num_attention_heads"] * head
    keys = config["num_key_value_heads"] * head
    shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}."
        shapes[start + "self_attn.q_proj.weight"] = [queries, hidden]
        shapes[start + "self_attn.k_proj.weight"] = [keys, hidden]
        shapes[start + "self_attn.v_proj.weight"] = [keys, hidden]
        shapes[start + "self_attn.o_proj.weight"] = [hidden, queries]
        shapes[start + "mlp.gate_proj.weight"] = [ffn, hidden]
        shapes[start + "mlp.up_proj.weight"] = [ffn, hidden]
        shapes[start + "mlp.down_proj.weight"] = [hidden, ffn]
        shapes[start + "input_layernorm.weight"] = [hidden]
        shapes[start + "post_attention_layernorm.weight"] = [hidden]
        if config["model_type"] == "qwen2":
            shapes[start + "self_attn.q_proj.bias"] = [queries]
            shapes[start + "self_attn.k_proj.bias"] = [keys]
            shapes[start + "self_attn.v_proj.bias"] = [keys]
        if config["model_type"] == "qwen3":
            shapes[start + "self_attn.q_norm.weight"] = [head]
            shapes[start + "self_attn.k_norm.weight"] = [head]
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = [vocab, hidden]
    return shapes


def gpt2_shapes(config):
    """GPT-2: the weights of its products are stored [inputs, outputs]."""
    hidden, vocab = config["n_embd"], config["vocab_size"]
    ffn = config["n_inner"] or 4 * hidden
    shapes = {
        "transformer.wte.weight": [vocab, hidden],
        "transformer.wpe.weight": [config["n_positions"], hidden],
        "transformer.ln_f.weight": [hidden],
        "transformer.ln_f.bias": [hidden],
    }
    for layer in range(config["n_layer"]):
        start = f"transformer.h.{layer}."
        for name, inputs, outputs in (
            ("attn.c_attn", hidden, 3 * hidden),
            ("attn.c_proj", hidden, hidden),
            ("mlp.c_fc", hidden, ffn),
            ("mlp.c_proj", ffn, hidden),
        ):
            shapes[start + name + ".weight"] = [inputs, outputs]
            shapes[start + name + ".bias"] = [outputs]
        for name in ("ln_1", "ln_2"):
            shapes[start + name + ".weight"] = [hidden]
            shapes[start + name + ".bias"] = [hidden]
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = [vocab, hidden]
    return shapes


def read_tensors(path):
    """(name, type, shape, bytes) of all tensors of one file."""
    with open(path, "rb") as file:
        contents = file.read()
    (length,) = struct.unpack_from("<Q", contents)
    check(8 + length <= len(contents), f"{path}: header beyond the end")
    header = json.loads(contents[8 : 8 + length])
    check(header.pop("__metadata__", None) == {"format": "pt"}, f"{path}: no format in metadata")
    data = contents[8 + length :]
    reached = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        elements = 1
        for size in entry["shape"]:
            elements *= size
        check(begin == reached, f"{path}: {name}: a gap or an overlap before it")
        check(end - begin == elements * ELEMENT_BYTES[entry["dtype"]], f"{path}: {name}: size")
        reached = end
        yield name, entry["dtype"], entry["shape"], data[begin:end]
    check(reached == len(data), f"{path}: bytes behind the last tensor")


def bit_patterns(dtype, data):
    """The elements as bits of float32; bfloat16 is its upper half."""
    values = array.array("I" if dtype == "F32" else "H", data)
    if sys.byteorder == "big":
        values.byteswap()
    return values if dtype == "F32" else [value << 16 for value in values]


def main(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    kind = config["model_type"]
    check(config["architectures"] == [ARCHITECTURES[kind]], "architectures")
    dtype = {"float32": "F32", "bfloat16": "BF16"}[config["torch_dtype"]]
    expected = gpt2_shapes(config) if kind == "gpt2" else rotary_shapes(config)

    names = set(os.listdir(folder)) - {"config.json"}
    index = None
    if "model.safetensors.index.json" in names:
        names.remove("model.safetensors.index.json")
        with open(os.path.join(folder, "model.safetensors.index.json"), encoding="utf-8") as file:
            index = json.load(file)
        count = len(names)
        check(
            names == {f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)},
            f"names of the files: {sorted(names)}",
        )
    else:
        check(names == {"model.safetensors"}, f"names of the files: {sorted(names)}")

    found = {}
    total = 0
    for file_name in sorted(names):
        for name, file_type, shape, data in read_tensors(os.path.join(folder, file_name)):
            check(name not in found, f"{name} is there twice")
            check(file_type == dtype, f"{name} is {file_type}, config.json says {dtype}")
            check(index is None or index["weight_map"].get(name) == file_name, f"{name}: index")
            total += len(data)
            bits = bit_patterns(file_type, data)
            weighted = sum((place + 1) * value for place, value in enumerate(bits))
            print(name, file_type, json.dumps(shape, separators=(",", ":")), len(bits),
                  sum(bits) % MODULUS, weighted % MODULUS)
            found[name] = shape
    check(index is None or index["metadata"]["total_size"] == total, "total_size of the index")
    check(index is None or set(index["weight_map"]) == set(found), "tensors of the index")
    for name in sorted(set(expected) | set(found)):
        check(name in found, f"{name} is missing")
        check(name in expected, f"{name} does not belong to {kind}")
        check(found[name] == expected[name], f"{name} is {found[name]}, not {expected[name]}")


if __name__ == "__main__":
    check(len(sys.argv) == 2, "usage: read_folder.py FOLDER")
    main(sys.argv[1])
