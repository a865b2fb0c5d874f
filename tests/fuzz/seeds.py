#!/usr/bin/env python3
"""Writes the files that fuzzing begins with: FOLDER/TARGET/NAME, the same bytes each time.

    tests/fuzz/seeds.py FOLDER

tests/fuzz/corpora holds them together with what fuzzing found from them (scripts/fuzz --keep)."""
import io
import json
import pathlib
import struct
import sys
import zipfile
import zlib


def npy(descr, shape, data, version=1, order=False):
    head = str({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    size = 10 if version == 1 else 12
    head += b" " * (-(size + len(head) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(head)) + head + data


def npz(files, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in files:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def safetensors(tensors, metadata=None, pad=0):
    head, data = {}, b""
    if metadata is not None:
        head["__metadata__"] = metadata
    for name, dtype, shape, bytes_ in tensors:
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(head, separators=(",", ":")).encode() + b" " * pad
    return struct.pack("<Q", len(text)) + text + data


def gguf(values, tensors=()):
    """values: an int is u32, a float f32; other types as bytes. tensors: name, type, shape, bytes."""
    def text(x):
        return struct.pack("<Q", len(x.encode())) + x.encode()
    kinds = {bool: (7, "<?"), int: (4, "<I"), float: (6, "<f"), str: (8, None)}
    def bare(x):
        return text(x) if isinstance(x, str) else struct.pack(kinds[type(x)][1], x)
    def value(x):
        if isinstance(x, list):
            return struct.pack("<IIQ", 9, kinds[type(x[0])][0], len(x)) + b"".join(map(bare, x))
        return x if isinstance(x, bytes) else struct.pack("<I", kinds[type(x)][0]) + bare(x)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values)) + b"".join(text(k) + value(x) for k, x in values.items())
    data = b""
    for name, kind, shape, bytes_ in tensors:
        data += bytes(-len(data) % 32)
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(data))
        data += bytes_
    return head + bytes(-len(head) % 32) + data


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def shard(tokens, width, vocab, block=1 << 20):
    data = b"".join(struct.pack("<H" if width == 2 else "<I", t) for t in tokens)
    table = b"".join(struct.pack("<I", crc32c(data[at:at + block])) for at in range(0, len(data), block))
    head = b"BRAIDTOK" + struct.pack("<IIQQQQQI", 1, width, len(tokens), vocab, 7, block, len(table) // 4, crc32c(table))
    return head + struct.pack("<I", crc32c(head)) + data + table


def png(width, height, color, depth, rows, interlace=0, extra=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)) +
            extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def jpeg(size):
    def part(mark, data):
        return bytes([0xFF, mark]) + struct.pack(">H", len(data) + 2) + data
    table = bytes([1] + [0] * 15 + [0])  # one code, of one bit, for the symbol 0
    return (b"\xff\xd8" + part(0xDB, bytes([0] + [1] * 64)) + part(0xC0, struct.pack(">BHHB", 8, size, size, 1) + b"\1\x11\0") +
            part(0xC4, b"\0" + table) + part(0xC4, b"\x10" + table) + part(0xDA, b"\1\1\0\0\x3f\0") + b"\x3f\xff\xd9")


def idx(kind, sizes, data):
    return bytes([0, 0, kind, len(sizes)]) + b"".join(struct.pack(">I", n) for n in sizes) + data


ALPHABET = {chr(b) if 33 <= b < 127 else chr(256 + b): b for b in range(33, 127)}
ADDED = {"id": 96, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}


def tokenizer(model, **parts):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None, **parts, "model": model}


def bpe(vocab, merges, **more):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": merges, **more}


def tokenizers():
    small = {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5, "Ġa": 6, "1": 7, "2": 8, "s": 9, "I": 10, "t": 11}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    yield "bytes", tokenizer(bpe(small, ["a b", "ab c", "Ġ a"]), pre_tokenizer=level, decoder=level)
    split = {"type": "Split", "pattern": {"Regex": r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+"},
             "behavior": "Isolated", "invert": False}
    yield "split", tokenizer(bpe(small, [["a", "b"], ["ab", "c"]], ignore_merges=True),
                             pre_tokenizer={"type": "Sequence", "pretokenizers": [split, {**level, "use_regex": False}]},
                             added_tokens=[{**ADDED, "id": 12, "lstrip": True}],
                             post_processor={"type": "TemplateProcessing", "single": [
                                 {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                                 "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                                 "special_tokens": {"<s>": {"id": "<s>", "ids": [12], "tokens": ["<s>"]}}})
    words = {"<unk>": 0, "<0x41>": 1, "▁": 2, "a": 3, "b": 4, "▁a": 5, "c": 6, "▁ab": 7}
    yield "fallback", tokenizer(
        bpe(words, ["▁ a", "▁a b"], unk_token="<unk>", fuse_unk=True, byte_fallback=True),
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        decoder={"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                                  {"type": "ByteFallback"}, {"type": "Fuse"},
                                                  {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})
    meta = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
    yield "unigram", tokenizer({"type": "Unigram", "unk_id": 0, "vocab": [
        ["<unk>", 0.0], ["▁", -2.0], ["a", -2.5], ["b", -2.5], ["ab", -3.0], ["▁ab", -3.5], ["c", -4.0]],
        "byte_fallback": False}, pre_tokenizer=meta, decoder=meta, normalizer={"type": "NFKC"})
    yield "word_piece", tokenizer(
        {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10,
         "vocab": {"[UNK]": 0, "a": 1, "##b": 2, "##c": 3, "it": 4, "'": 5, "s": 6}},
        normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                    "lowercase": True},
        pre_tokenizer={"type": "BertPreTokenizer"}, decoder={"type": "WordPiece", "prefix": "##", "cleanup": True})
    yield "word_level", tokenizer(
        {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "abc": 1, "12": 2, "It's": 3}},
        normalizer={"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"},
                                                        {"type": "Strip", "strip_left": True, "strip_right": True}]},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                                                             {"type": "Digits", "individual_digits": True}]})


def model_configs():
    common = {"vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 128, "max_position_embeddings": 256}
    yield "dcformer", {"model_type": "dcformer", "n_layer": 2, "n_head": 4, "dim": 64, "vocab_size": 512,
                       "block_size": 128, "intermediate_size": 128, "window_size": 64, "window_type": "LG"}
    yield "llama", {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **common, "rms_norm_eps": 1e-5,
                    "num_key_value_heads": 2, "tie_word_embeddings": True, "hidden_act": "silu",
                    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                     "original_max_position_embeddings": 64}}
    yield "neox", {"model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], **common, "rotary_pct": 0.25,
                   "use_parallel_residual": True, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}
    for kind, name, more in (("mistral", "MistralForCausalLM", {"sliding_window": 32}),
                             ("qwen2", "Qwen2ForCausalLM", {"use_sliding_window": True, "max_window_layers": 1}),
                             ("qwen3", "Qwen3ForCausalLM", {"head_dim": 32}), ("olmo2", "Olmo2ForCausalLM", {}),
                             ("gemma2", "Gemma2ForCausalLM", {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                                                              "query_pre_attn_scalar": 16, "head_dim": 16})):
        yield kind, {"model_type": kind, "architectures": [name], **common, "rms_norm_eps": 1e-6,
                     "hidden_act": "gelu_pytorch_tanh" if kind == "gemma2" else "silu", **more}


def gguf_files():
    yield "none", gguf({})
    numbers = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")  # by the id of the type
    yield "values", gguf({str(kind): struct.pack("<I" + form, kind, 1) for kind, form in enumerate(numbers) if form} |
                         {"general.alignment": 64, "text": "a", "flags": [True, False], "numbers": [1.5], "texts": ["a", ""]})
    blocks = ((2, 32, 18), (3, 32, 20), (6, 32, 22), (7, 32, 24), (8, 32, 34), (10, 256, 84), (11, 256, 110), (12, 256, 144),
              (13, 256, 176), (14, 256, 210), (20, 32, 18), (23, 256, 136))  # type, elements, bytes
    yield "plain", gguf({}, [("x", 0, (2, 2), bytes(16)), ("y", 1, (3,), bytes(6)), ("z", 30, (1, 1, 2), bytes(4))])
    yield "blocks", gguf({}, [(str(kind), kind, (1, size), bytes(n)) for kind, size, n in blocks])
    def model(name, tokens, **more):
        sizes = {"context_length": 16, "embedding_length": 4, "block_count": 1, "feed_forward_length": 8,
                 "attention.head_count": 2, "attention.layer_norm_rms_epsilon": 1e-5, **more.pop("config", {})}
        values = {"general.architecture": name, **{f"{name}.{key}": x for key, x in sizes.items()},
                  "tokenizer.ggml.tokens": tokens, **{f"tokenizer.ggml.{key}": x for key, x in more.items()}}
        return gguf(values, [("token_embd.weight", 0, (len(tokens), 4), bytes(16 * len(tokens)))])
    yield "bytes", model("qwen2", ["a", "b", "ab", "Ġ", "<e>"], model="gpt2", pre="qwen2", token_type=[1, 1, 1, 1, 3],
                         merges=["a b"], bos_token_id=4, eos_token_id=4, add_bos_token=False)
    yield "pieces", model("gemma3", ["<unk>", "<s>", "<0x41>", "▁", "a", "▁a"], model="llama", bos_token_id=1,
                          scores=[0.0, 0.0, 0.0, -1.0, -2.0, -3.0], token_type=[2, 3, 6, 1, 1, 1], add_space_prefix=True,
                          config={"attention.sliding_window": 8, "attention.sliding_window_pattern": [True],
                                  "rope.scaling.type": "linear", "rope.scaling.factor": 2.0})


def seeds():
    """Yields target, name, bytes."""
    for name, value in tokenizers():
        yield "tokenizer_json", name, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    for name, data in gguf_files():
        yield "gguf", name, data
    for name, value in model_configs():
        yield "model_config", name, json.dumps(value, separators=(",", ":")).encode()
    for name, descr, shape, data in (("f4", "<f4", (2, 3), bytes(24)), ("f8", ">f8", (1,), bytes(8)), ("i8", "<i8", (), bytes(8)),
                                     ("u1", "|u1", (0, 4), b""), ("b1", "|b1", (3,), b"\1\0\1"), ("f2", "<f2", (2,), bytes(4))):
        yield "npy", name, npy(descr, shape, data)
        yield "npy", name + "_v2", npy(descr, shape, data, 2, True)
    x, y = npy("<f4", (2,), bytes(8)), npy("|u1", (4, 100), bytes(range(100)) * 4)
    yield "npz", "stored", npz([("x.npy", x), ("a/y.npy", y)], zipfile.ZIP_STORED)
    yield "npz", "deflated", npz([("x.npy", x), ("y.npy", y)], zipfile.ZIP_DEFLATED)
    yield "npz", "empty", npz([], zipfile.ZIP_STORED)
    yield "safetensors", "two", safetensors([("a", "F32", [2, 2], bytes(16)), ("b", "BF16", [3], bytes(6))], {"format": "pt"})
    yield "safetensors", "kinds", safetensors([(k, k, [1], bytes(n)) for k, n in (("F64", 8), ("I64", 8), ("U8", 1), ("BOOL", 1),
                                                                               ("F8_E4M3", 1), ("I16", 2))], pad=3)
    yield "safetensors", "empty", safetensors([("z", "F16", [0, 5], b""), ("s", "I32", [], bytes(4))], {})
    yield "safetensors", "none", safetensors([])
    yield "shard", "narrow", shard(range(40), 2, 258)
    yield "shard", "wide", shard([70000, 5, 1], 4, 80000)
    yield "shard", "empty", shard([], 2, 5)
    yield "images", "idx", bytes([0, 232]) + idx(8, [2, 2, 2], bytes(range(8))) + idx(8, [2], b"\1\2")
    yield "images", "cifar", bytes([1, 0]) + b"\3" + bytes(3072)
    for name, color, depth, rows in (("gray", 0, 8, b"\0\1\2\1\3\4"), ("rgb", 2, 8, (b"\2" + bytes(6)) * 2), ("rgba", 6, 8, (b"\4" + bytes(8)) * 2),
                                     ("bits", 0, 1, b"\0\x80\0\x40"), ("deep", 2, 16, (b"\3" + bytes(12)) * 2)):
        yield "images", "png_" + name, b"\2\0" + png(2, 2, color, depth, rows)
    palette = struct.pack(">I", 6) + b"PLTE" + bytes(6) + struct.pack(">I", zlib.crc32(b"PLTE" + bytes(6)))
    yield "images", "png_palette", b"\2\0" + png(2, 2, 3, 2, b"\0\x10\0\x40", extra=palette)
    yield "images", "png_interlaced", b"\2\0" + png(2, 2, 0, 8, b"\0\1\0\2\0\3\4", 1)
    yield "images", "jpeg", b"\3\0" + jpeg(8)
    yield "jsonl", "text", b'{"text": "abc \\u00fc \\ud83d\\ude00", "id": 1}'
    yield "jsonl", "nested", b'{"meta": {"text": "no"}, "text": "yes", "x": [1, 2.5e3, null, true]}'
    yield "jsonl", "other", b'{"content": "a"}'
    chat = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    for first in b"\0\1":
        for name, value in (("messages", {"messages": chat}), ("prompt", {"prompt": "a", "completion": "b"}),
                            ("sharegpt", {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}),
                            ("parts", {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}, chat[2]]})):
            yield "chat", f"{name}_{first}", bytes([first]) + json.dumps(value).encode()
    for name, text in (("loop", "{% for m in messages %}{{ '<|' + m['role'] + '|>' }}{{ m.content | trim }}{% endfor %}"),
                       ("if", "{%- if messages[0].b and not false -%}{{ s.split(' ')[0]|upper }}{%- elif x is defined %}1{% else %}2{% endif %}"),
                       ("set", "{% set ns = namespace(n=0) %}{% for k in [1, 2] %}{% set ns.n = ns.n + k %}{% endfor %}{{ ns.n ~ 'a' }}"),
                       ("macro", "{% macro f(a, b=2) %}{{ a * b }}{% endmacro %}{{ f(3) }}{{ messages[0].l | tojson }}"),
                       ("slice", "{{ messages[0]['content'][1:-1] }}{{ 1 if messages | length > 1 else raise_exception('no') }}")):
        yield "chat_template", name, text.encode()
    yield "weight_index", "two", json.dumps({"metadata": {"total_size": 8}, "weight_map": {
        "a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
    yield "weight_index", "plain", b'{"weight_map": {"x": "y.safetensors"}}'
    said = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "stop": ["a"], "stream": True,
            "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 2}
    tool = {**said, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"enum": ["x", None]},
                                               "c": {"type": "array", "items": {"$ref": "#/$defs/d"}, "maxItems": 3}},
              "required": ["a"], "additionalProperties": False, "$defs": {"d": {"anyOf": [{"type": "string"}, {"const": 1}]}}}
    form = {**said, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}
    asked = {"prompt": "abc", "max_tokens": 3, "temperature": 0.5, "top_p": 0.9, "top_k": 5, "seed": 1, "n": 2, "echo": True,
             "logprobs": 1, "logit_bias": {"5": -1}}
    for first, name, value in ((0, "completion", asked), (0, "ids", {"prompt": [1, 2, 3], "suffix": None}), (1, "chat", said),
                               (1, "tools", tool), (1, "schema", form), (2, "tokenize", {"content": "a b"}),
                               (3, "detokenize", {"tokens": [1, 2]})):
        yield "serve_request", name, bytes([first]) + json.dumps(value).encode()
    for step, name, text in ((4, "get", "GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
                             (24, "post", "POST /tokenize HTTP/1.1\r\nHost: localhost:80\r\nContent-Length: 2\r\n\r\n{}"),
                             (9, "chunked", "POST /v1/completions HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n"
                                            "3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n"),
                             (254, "two", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.0\r\nConnection: close\r\n\r\n")):
        yield "serve_request", name, bytes([step]) + text.encode()


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for target, name, data in seeds():
        folder = pathlib.Path(sys.argv[1]) / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
