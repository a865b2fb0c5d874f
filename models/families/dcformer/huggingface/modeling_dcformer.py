"""DCFormer for Hugging Face's transformers: Dynamically Composable Multi-Head Attention (arXiv 2405.08553).

Written by `braid convert --hf-code` beside the config.json and the weights of a DCFormer or DCPythia:

    AutoModelForCausalLM.from_pretrained(FOLDER, trust_remote_code=True)

Axes: B sequences, T queries, S keys, D width, N = G M heads in G groups of M, d width of a head, R rank, C branches,
K = 2 R M. A branch is one side (query or key) of one stage (before or after the softmax) of Compose.
"""
import torch
from torch import nn
from torch.nn import functional as F
from transformers import DynamicCache, GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

KEYS = """vocab_size dim n_layer n_head n_kv_head head_dim intermediate_size block_size norm ffn hidden_act norm_eps
use_qk_norm use_dcmha attention_bias mlp_bias use_parallel_residual mgate mgate_dim rope_base rotary_pct rope_scaling
rope_scaling_factor rope_low_freq_factor rope_high_freq_factor rope_original_block_size""".split()
PROFILE = """gelu qk_norm_eps dw_norm_eps window_keys decode_window_keys causal rope_table pre_compose post_compose
static_proj num_groups rank branches layer_windows""".split()
ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu,
               "relu2": lambda x: F.relu(x) ** 2,
               "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x), "tanh": torch.tanh}
ROUNDED = {"f16": torch.float16, "bf16": torch.bfloat16}  # rotary tables; others are not
CHOICES = {"norm": ("rms", "layer"), "ffn": ("swiglu", "gelu"), "hidden_act": ACTIVATIONS, "gelu": ("erf", "tanh"),
           "rope_scaling": ("none", "linear", "llama3"), "rope_table": ("exact", "auto", "f32", *ROUNDED)}

class DcformerConfig(PretrainedConfig):
    model_type = "dcformer"
    attribute_map = {"hidden_size": "dim", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head",
                     "max_position_embeddings": "block_size", "rope_scaling": "rope_kind"}  # the name is taken there

    def __init__(self, profile=None, **keys):
        self.profile = dict(profile or {})
        own = {key: keys.pop(key, None) for key in KEYS}
        keys.setdefault("tie_word_embeddings", False)
        super().__init__(**keys)
        for key, value in own.items():
            setattr(self, key, value)

    @classmethod
    def from_dict(cls, config_dict, **others):
        profile = dict(config_dict.get("profile") or {})
        if profile.get("rope_table") == "torch_dtype":  # as the file names it, whatever the model is loaded in
            named = config_dict.get("torch_dtype")
            profile["rope_table"] = {"float16": "f16", "bfloat16": "bf16"}.get(named, "f32")
        return super().from_dict({**config_dict, "profile": profile}, **others)

    def to_dict(self):
        return {"rope_scaling" if key == "rope_kind" else key: value for key, value in super().to_dict().items()}

def check(c):
    """Rejects by name what this file does not compute."""
    if missing := [key for key in PROFILE if key not in c.profile]:
        raise ValueError(f"config.json lacks profile.{', '.join(missing)}: write the folder by braid convert --hf-code")
    for key, known in CHOICES.items():
        value = c.profile[key] if key in PROFILE else getattr(c, key)
        if value not in known:
            raise ValueError(f"{key} = {value} is not supported: expected one of {', '.join(known)}")

class RmsNorm(nn.Module):
    def __init__(self, width, eps, name="weight"):
        super().__init__()
        self.eps, self.name = eps, name
        self.register_parameter(name, nn.Parameter(torch.ones(width)))

    def forward(self, x):
        y = x.to(torch.promote_types(x.dtype, torch.float32))
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype) * getattr(self, self.name)

NORMS = {"rms": RmsNorm, "layer": nn.LayerNorm}

def rotary_table(c, positions, dtype):
    """Cosines and sines of the positions (B, T): (B, T, 1, rotary / 2)."""
    table, rotary = c.profile["rope_table"], int(c.head_dim * c.rotary_pct)
    exact = table == "exact" or (table == "auto" and dtype == torch.float64)
    number = torch.float64 if exact else torch.float32
    e = torch.arange(0, rotary, 2, device=positions.device).to(number) / rotary
    f = 1 / torch.tensor(c.rope_base, dtype=number, device=e.device) ** e
    if c.rope_scaling == "linear":
        f = f / c.rope_scaling_factor
    elif c.rope_scaling == "llama3":
        low, high, old = c.rope_low_freq_factor, c.rope_high_freq_factor, c.rope_original_block_size
        wavelength = 2 * torch.pi / f
        smooth = ((old / wavelength - low) / (high - low)).clamp(0, 1)
        f = (1 - smooth) * f / c.rope_scaling_factor + smooth * f
    angles = positions.to(number).unsqueeze(-1).unsqueeze(-1) * f
    return tuple(x.to(ROUNDED.get(table, number)).to(dtype) for x in (angles.cos(), angles.sin()))

def rotate(x, cosine, sine):
    """The pairs (e, e + rotary / 2) of x (B, T, N, d) turned by the angles of their positions."""
    half = cosine.shape[-1]
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine, rest], -1)

class DynamicWeights(nn.Module):
    """The weights by which a position mixes heads, of each branch: down (R), up (R) and gate (1) for every head."""

    def __init__(self, c):
        super().__init__()
        p = c.profile
        self.branches, self.eps, self.gelu = p["branches"], p["dw_norm_eps"], "tanh" if p["gelu"] == "tanh" else "none"
        self.G, self.R, self.M = p["num_groups"], p["rank"], c.n_head // p["num_groups"]
        C, K = len(self.branches), 2 * self.R * self.M
        if C and K:
            self.dw1 = nn.Parameter(torch.zeros(c.dim, self.G, C, K))
            self.qkw = nn.Parameter(torch.zeros(self.G, C, K, 2 * self.R, self.M))
        if C:
            self.dd = nn.Parameter(torch.zeros(c.dim, self.G, C * self.M))
        matrix = lambda on: nn.ParameterDict({"w": torch.zeros(self.G, self.M, self.M)}) if on else None
        self.pre_proj = matrix(p["static_proj"] and p["pre_compose"])
        self.post_proj = matrix(p["static_proj"] and p["post_compose"])

    def forward(self, u):
        """u (B, T, D) -> the branches' factors by name, (B, G, M, T, 2 R + 1) each."""
        if not self.branches:
            return {}
        dd = self.dd.view(self.dd.shape[0], self.G, -1, self.M)
        factors = [torch.einsum("btd,dgcm->btgcm", u, dd).tanh().unsqueeze(-2)]
        if self.R:
            hidden = F.gelu(torch.einsum("btd,dgck->btgck", u, self.dw1), approximate=self.gelu)
            down, up = torch.einsum("btgck,gckrm->btgcrm", hidden, self.qkw).split(self.R, -2)
            down = down * torch.rsqrt(down.square().mean(-1, keepdim=True) + self.eps)
            factors = [down, up] + factors
        return dict(zip(self.branches, torch.cat(factors, -2).permute(3, 0, 2, 5, 1, 4)))

def compose(A, static, query, key):
    """O[n] = A[n] + sum_m A[m] W[m, n], A (B, G, M, T, S), W = static + low rank and gate of the query and the key."""
    O = A
    if static is not None:
        O = O + torch.einsum("bgmts,gmn->bgnts", A, static["w"])
    for w, place, at in ((query, "t", -1), (key, "s", -2)):
        R = 0 if w is None else w.shape[-1] // 2
        if R > 0:
            inner = torch.einsum(f"bgmts,bgm{place}r->bgrts", A, w[..., :R])
            O = O + torch.einsum(f"bgrts,bgn{place}r->bgnts", inner, w[..., R:2 * R])
        O = O if w is None else O + A * w[..., -1].unsqueeze(at)
    return O

class Attention(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.c, self.layer, p = c, layer, c.profile
        self.wqkv = nn.Linear(c.dim, (c.n_head + 2 * c.n_kv_head) * c.head_dim, c.attention_bias)
        self.wo = nn.Linear(c.n_head * c.head_dim, c.dim, c.attention_bias)
        if c.use_qk_norm:
            self.q_norm, self.k_norm = (RmsNorm(c.head_dim, p["qk_norm_eps"], "scale") for _ in "qk")
        mixes = p["branches"] or p["static_proj"] and (p["pre_compose"] or p["post_compose"])
        self.dyn_w_proj = DynamicWeights(c) if c.use_dcmha and mixes else None
        self.G = p["num_groups"] if self.dyn_w_proj else 1

    def mask(self, past, T, padding, device):
        """(B or 1, 1, 1, T, S): the keys that a query may attend to; none: all."""
        p, S = self.c.profile, past + T
        allowed = torch.ones(1, 1, 1, T, S, dtype=torch.bool, device=device)
        if p["causal"]:
            behind = torch.arange(past, S, device=device)[:, None] - torch.arange(S, device=device)
            window = p["layer_windows"][self.layer] or 0
            one_more = p["decode_window_keys" if T == 1 and past > 0 else "window_keys"] == "W+1"
            allowed = allowed & (behind >= 0) & ((behind < window + one_more) if window else True)
        return allowed if padding is None else allowed & padding[:, None, None, None, :S].bool()

    def forward(self, u, table, cache, past, padding):
        c, B, T, N, G, d = self.c, u.shape[0], u.shape[1], self.c.n_head, self.G, self.c.head_dim
        q, k, v = self.wqkv(u).view(B, T, -1, d).split([N, c.n_kv_head, c.n_kv_head], 2)
        if c.use_qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = rotate(q, *table) / d**0.5, rotate(k, *table)
        # The cache holds values beside the factors of the key side, which later queries need as well.
        k, v = (x.transpose(1, 2).repeat_interleave(N // c.n_kv_head, 1) for x in (k, v))  # (B, N, T, d)
        w = self.dyn_w_proj(u) if self.dyn_w_proj else {}
        of_keys = [name for name in w if name.endswith("k")]
        v = torch.cat([v] + [w[name].reshape(B, N, T, -1) for name in of_keys], -1)
        if cache is not None:
            k, v = cache.update(k, v, self.layer)
        k, v = (x.view(B, G, N // G, x.shape[2], -1) for x in (k, v))
        for name, x in zip(of_keys, v[..., d:].chunk(len(of_keys), -1) if of_keys else ()):
            w[name] = x
        static = (self.dyn_w_proj.pre_proj, self.dyn_w_proj.post_proj) if self.dyn_w_proj else (None, None)
        A = q.view(B, T, G, N // G, d).permute(0, 2, 3, 1, 4) @ k.transpose(-1, -2)  # (B, G, M, T, S)
        A = compose(A, static[0], w.get("pre_q"), w.get("pre_k"))
        A = A.masked_fill(~self.mask(past, T, padding, u.device), torch.finfo(A.dtype).min)
        A = A.softmax(-1, dtype=torch.promote_types(A.dtype, torch.float32)).to(u.dtype)
        A = compose(A, static[1], w.get("post_q"), w.get("post_k"))
        return self.wo((A @ v[..., :d]).permute(0, 3, 1, 2, 4).reshape(B, T, N * d))

class FeedForward(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.act, self.gated = ACTIVATIONS[c.hidden_act], c.ffn == "swiglu"
        self.w1 = nn.Linear(c.dim, c.intermediate_size, c.mlp_bias)
        self.w3 = nn.Linear(c.dim, c.intermediate_size, c.mlp_bias) if self.gated else None
        self.w2 = nn.Linear(c.intermediate_size, c.dim, c.mlp_bias)
        self.mg = nn.Linear(c.dim, c.mgate_dim, False) if c.mgate and self.gated else None

    def forward(self, x):
        h = self.act(self.w1(x)) * (self.w3(x) if self.gated else 1)
        if self.mg is not None:  # blocks of the hidden vector times the softmax of their gates
            h = (h.unflatten(-1, (self.mg.out_features, -1)) * self.mg(x).softmax(-1).unsqueeze(-1)).flatten(-2)
        return self.w2(h)

class Block(nn.Module):
    def __init__(self, c, layer):
        super().__init__()
        self.parallel, self.attention, self.feed_forward = c.use_parallel_residual, Attention(c, layer), FeedForward(c)
        self.attention_norm, self.ffn_norm = NORMS[c.norm](c.dim, c.norm_eps), NORMS[c.norm](c.dim, c.norm_eps)

    def forward(self, x, *rest):
        h = x + self.attention(self.attention_norm(x), *rest)
        return h + self.feed_forward(self.ffn_norm(x if self.parallel else h))

class DcformerForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = DcformerConfig
    _no_split_modules = ["Block"]
    # Copies and identity matrices of published folders.
    _keys_to_ignore_on_load_unexpected = [r"dw_m$", r"qkw_m$", r"kv_cache\.", r"(pre|post)_proj\.w$"]

    def __init__(self, config):
        super().__init__(config)
        check(config)
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Block(config, i) for i in range(config.n_layer))
        self.norm = NORMS[config.norm](config.dim, config.norm_eps)
        self.output = None if config.tie_word_embeddings else nn.Linear(config.dim, config.vocab_size, False)
        self.post_init()

    def _init_weights(self, module):  # the weights are those of the folder
        pass

    def get_input_embeddings(self):
        return self.tok_embeddings

    def forward(self, input_ids, attention_mask=None, position_ids=None, past_key_values=None, labels=None,
                use_cache=None, logits_to_keep=0, cache=None, **_):
        B, T = input_ids.shape
        cache = past_key_values if cache is None else cache  # the name differs between versions
        cache = DynamicCache() if cache is None and use_cache else cache
        past = 0 if cache is None else cache.get_seq_length()
        assert not past or self.config.profile["causal"], "profile.causal = false: such a model does not generate"
        if position_ids is None:
            of_keys = torch.ones(B, past + T, device=input_ids.device) if attention_mask is None else attention_mask
            position_ids = (of_keys.long().cumsum(-1) - 1).clamp(min=0)[:, -T:]
        x = self.tok_embeddings(input_ids)
        table = rotary_table(self.config, position_ids, x.dtype)
        for block in self.layers:
            x = block(x, table, cache, past, attention_mask)
        x = self.norm(x[:, -logits_to_keep:] if isinstance(logits_to_keep, int) else x[:, logits_to_keep])
        logits = F.linear(x, self.tok_embeddings.weight) if self.output is None else self.output(x)
        if cap := getattr(self.config, "logit_softcap", 0):  # written where there is one
            logits = cap * torch.tanh(logits / cap)
        pairs = None if labels is None else (logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        loss = F.cross_entropy(*pairs) if pairs else None
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=cache if use_cache else None)
