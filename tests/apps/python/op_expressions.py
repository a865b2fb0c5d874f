"""The call of each row of the op table (tests/support/op_rows_*.cpp) in Python. A row that is not here is
braid.name(*inputs), `name` being what stands before the colon; name:extreme is name."""
import math

import braid as b

F64 = b.float64


def tensor(values, shape):
    return b.reshape(b.tensor(values, dtype=F64), shape)


def spread(x):
    """x plus steps of 5 in a scrambled order."""
    return x + tensor([5.0 * (i * 7919 % x.size) for i in range(x.size)], x.shape)


def turned(x):
    """x plus 3 and minus 3 by turns."""
    return x + tensor([3.0 - 6 * (i % 2) for i in range(x.size)], x.shape)


def definite(x):
    return x @ x.mT + 3.0 * b.eye(x.shape[-1], F64)


def shifted(x):
    """x plus 3, 4, 5 ... on the diagonals."""
    m, n = x.shape[-2:]
    return x + tensor([3.0 + i % n if i // n % m == i % n else 0 for i in range(x.size)], x.shape)


def halves(x, weights):
    out = weights.shape[0] // 2
    pair = b.linear_pair(x, weights[:out], weights[out:])
    return pair.a, pair.b


def both(of_norm):
    return b.concat([of_norm.sum, of_norm.y], -1)


def table(x, batch, half, f):
    """Of the rotary embedding: f of an angle for each sample, position and pair."""
    angles = [0.3 * (t + 1) + 0.7 * e - 0.2 * s for s in range(batch) for t in range(x.shape[1]) for e in range(half)]
    return tensor([f(angle) for angle in angles], (batch, x.shape[1], half))


def rope(x, batch, half):
    return b.rope(x, table(x, batch, half, math.cos), table(x, batch, half, math.sin))


def split_qkv(xs, queries, keys, d, half, per_sample, norm):
    x = xs[0]
    how = {"heads": queries, "kv_heads": keys, "head_dim": d, "norm_eps": 0.05}
    if norm:
        how |= {"q_norm": xs[1], "k_norm": xs[2]}
    if half:
        batch = x.shape[0] if per_sample else 1
        how |= {"cosine": table(x, batch, half, math.cos), "sine": table(x, batch, half, math.sin)}
    return b.concat([b.reshape(y, (*x.shape[:2], y.shape[2] * d)) for y in b.split_qkv(x, b.QkvSplit(**how))], 2)


def joined(branches):
    """All factors of compose_factors() side by side."""
    parts = []
    for f in branches:
        gate = b.unsqueeze(f.gate, 3)
        x = b.concat([f.down, f.up, gate], 3) if f.down is not None else gate
        parts.append(b.reshape(x, (*x.shape[:3], x.shape[3] * x.shape[4])))
    return b.stack(parts, 3)


def some_factors(w, gates):
    first, second = b.compose_factors(w, gates, 0.05)
    return b.concat([first.down, second.up, b.unsqueeze(second.gate, 3)], 3)


def dcmha(xs, **options):
    return b.dcmha(*xs[:3], b.HeadMixing(*xs[3:10]), b.HeadMixing(*xs[10:17]), **options)


def attention(xs, **options):
    return b.scaled_dot_product_attention(*xs, **options)


def attend(xs, batch, heads):
    """The mask by entry: row 1 of sample 0 sees no key."""
    B, N, T, S = xs[0].shape[0] if batch else 1, xs[0].shape[2] if heads else 1, xs[0].shape[1], xs[1].shape[1]
    seen = [(7 * s + 5 * n + 3 * t + 2 * k) % 3 != 0 and (s > 0 or t != 1)
            for s in range(B) for n in range(N) for t in range(T) for k in range(S)]
    return tensor([float(v) for v in seen], (B, N, T, S)).to(b.uint8)


def mask(window=0, offset=0, causal=True):
    return b.AttentionMask(causal=causal, window=window, offset=offset)


ALL, WINDOW, LATER, CAUSAL = mask(causal=False), mask(3), mask(4, 2), mask()
CHUNKED = {"impl": "chunked", "chunk": 2}
LAST_KEYS = {"alignment": "bottom_right"}
DROPOUT = {"dropout": 0.4, "dropout_key": (7, 3)}
SOFTCAP = {"softcap": 0.3}

IDS = b.tensor([[(first + row) % 4 for first in (2, 2, 0, 3)] for row in range(3)])
ROWS_AND_IDS = (b.tensor([[0], [1], [2]]), IDS)
COLUMNS = b.tensor([0, 1, 0, 1], dtype=b.uint8)

POINTWISE = {
    "maximum": lambda x, y: b.maximum(turned(x), y), "minimum": lambda x, y: b.minimum(turned(x), y),
    "affine": lambda x: b.affine(x, -1.5, 0.25), "scale": lambda x: b.scale(x, 2.5),
    "neg:operators": lambda x: -(2 * x - 3) * 0.5 + 1 - (1 - x / 4), "reciprocal:operators": lambda x: 1 / (0.5 + x),
    "pow": lambda x: b.pow(x, 2.5), "pow:negative": lambda x: x ** -1, "pow:square": lambda x: x ** 2,
    "pow:cube": lambda x: b.pow(x, 3), "pow:base": lambda x: b.pow(3, x),
    "clamp": lambda x: b.clamp(x, -0.5, 1), "clamp:below": lambda x: b.clamp(x, -0.5, 1),
    "clamp:above": lambda x: b.clamp(x, low=-0.5, high=1),
    "cast": lambda x: b.cast(b.cast(x, F64), x.dtype), "to": lambda x: b.to(b.to(x, "cpu"), x.device),
    "masked_fill": lambda x, m: b.masked_fill(x, m.to(b.uint8), -3),
    "mask_scores": lambda x: b.mask_scores(x, CAUSAL, -7),
    "mask_scores:window": lambda x: b.mask_scores(x, mask(2), -7),
    "mask_scores:offset": lambda x: b.mask_scores(x, mask(3, 4), -7),
    "mask_scores:before": lambda x: b.mask_scores(x, mask(0, -2), -7),
    "mask_scores:all": lambda x: b.mask_scores(x, ALL, -7),
    "dropout": lambda x: b.dropout(x, 0.25, (5, 6)), "dropout:none": lambda x: b.dropout(x, 0, (5, 6)) * 2,
    "ones": lambda x: x + b.ones(x.shape, x.dtype), "rand": lambda x: x + b.rand(x.shape, (5, 6), x.dtype),
    "randn": lambda x: x + b.randn(x.shape, (5, 6), x.dtype), "eye": lambda x: x + b.eye(x.shape[0], x.dtype),
    "maximum:number": lambda x: b.maximum(x, 0.25), "minimum:number": lambda x: b.minimum(x, 0.25),
    "floor_divide:number": lambda x: b.floor_divide(x, 0.75), "remainder:number": lambda x: b.remainder(x, 0.75),
    "where:number": lambda x: b.where(x > 0.5, -1, b.where(x < -0.5, b.square(x), 3)),
    "leaky_relu": lambda x: b.leaky_relu(x, 0.1), "elu": lambda x: b.elu(x, 2), "celu": lambda x: b.celu(x, 2),
    "softcap": lambda x: b.softcap(x, 1.5), "nan_to_num": lambda x: b.nan_to_num(x, 0, 1, -1),
    "lerp": lambda x, y: b.lerp(x, y, 0.25),
    "where": lambda x, y, m: b.where(m.to(b.uint8), x, y),
}
for name, dtype in {"i64": b.int64, "i32": b.int32, "u8": b.uint8}.items():
    POINTWISE[f"where:{name}"] = lambda x, y, m, t=dtype: b.where(m.to(b.uint8), x.to(t), y.to(t))
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    POINTWISE[f"{name}:floats"] = lambda x, y, f=getattr(b, name): f(x, x + (y.to(F64) - 1))
    POINTWISE[f"{name}:number"] = lambda x, f=getattr(b, name): f(x, 0.25)

ORDER = {
    "sort": lambda x: b.sort(spread(x)).values, "sort:descending": lambda x: b.sort(spread(x), True).values,
    "sort:long": lambda x: b.sort(spread(x)).values, "sort:axis": lambda x: b.sort(spread(x), 0).values,
    "sort:i32": lambda x: b.sort(x.to(b.int32), 1, True).values,
    "argsort:descending": lambda x: b.argsort(x, descending=True), "argsort:long": lambda x: b.argsort(x, True),
    "topk": lambda x: b.topk(spread(x), 3).values, "topk:indices": lambda x: b.topk(x, 2).indices,
    "topk:smallest": lambda x: b.topk(spread(x), 1, 0, largest=False).values,
    "kthvalue": lambda x: b.kthvalue(spread(x), 2, 0).values,
    "median": lambda x: b.median(spread(x)), "median:axis": lambda x: b.median(spread(x), 0),
    "quantile": lambda x: b.quantile(spread(x), 0.3, -1),
    "bincount": lambda ids, weights: b.bincount(ids, weights, 4),
}

SHAPES = {
    "reshape": lambda x: b.reshape(x, (2, -1)), "reshape:scalar": lambda x: b.reshape(x, ()),
    "transpose:axes": lambda x: b.transpose(x, 0, 2), "permute": lambda x: b.permute(x, (2, 0, -2)),
    "expand": lambda x: b.expand(x, (4, 3, 5)), "squeeze": lambda x: b.squeeze(x, 1),
    "squeeze:all": lambda x: b.squeeze(x), "unsqueeze": lambda x: b.unsqueeze(x, -1),
    "slice": lambda x: b.slice(x, -1, 1, 3), "slice:rows": lambda x: b.slice(x, 0, 0, 2),
    "slice:nothing": lambda x: b.slice(x, 0, 2, 2), "contiguous": lambda x: b.contiguous(b.transpose(x)),
    "concat": lambda x, y: b.concat([x, y, x], 1), "stack": lambda x, y: b.stack([x, y]),
    "stack:last": lambda x, y: b.stack([x, y], -1),
    "split": lambda x: (lambda p: b.concat([p[2], p[0] * 2], -1))(b.split(x, [1, 3, 2], -1)),
    "flip": lambda x: b.flip(x, 1), "flip:axes": lambda x: b.flip(x, (0, -1)),
    "roll": lambda x: b.roll(x, 2, -1), "roll:axes": lambda x: b.roll(x, [-1, 4], (0, 1)),
    "rot90:half": lambda x: b.rot90(x, 2, 1, 2), "rot90:back": lambda x: b.rot90(x, -1),
    "shuffle": lambda x: b.shuffle(x, (1, 2), 1),
    "repeat": lambda x: b.repeat(x, 3, 1), "repeat:counts": lambda x: b.repeat(x, [2, 0, 3], -1),
    "tile": lambda x: b.tile(x, [2, 3]), "broadcast_to": lambda x: b.broadcast_to(x, (4, 3, 5)),
    "pad:axes": lambda x: b.pad(x, [b.AxisPadding(0, 1, 0), b.AxisPadding(axis=1, before=0, after=2)]),
    "windows": lambda x: b.windows(x, 1, 3, 2), "windows:first": lambda x: b.windows(x, 0, 2),
    "triu:1": lambda x: b.triu(x, 1), "triu:-1": lambda x: b.triu(x, -1),
    "diagonal": lambda x: b.diagonal(x, 1), "diagonal:axes": lambda x: b.diagonal(x, -1, 0, 2),
    "diag_embed": lambda x: b.diag_embed(x, -2), "block_diag": lambda x, y: b.block_diag([x, y]),
    "flatten": lambda x: b.flatten(x, 1), "flatten:inner": lambda x: b.flatten(x, 0, -2),
    "unflatten": lambda x: b.unflatten(x, -1, (2, -1)),
    "moveaxis": lambda x: b.moveaxis(x, 0, -1), "swapaxes": lambda x: b.swapaxes(x, 0, -1),
    "narrow": lambda x: b.narrow(x, -1, -3, 2),
    "chunk": lambda x: (lambda p: b.concat([p[2], p[1]], 0))(b.chunk(x, 3)),
    "tensor_split": lambda x: (lambda p: b.concat([p[2], p[0]], -1))(b.tensor_split(x, 3, -1)),
    "split_at": lambda x: (lambda p: b.concat([p[3], p[1], p[0]], 0))(b.split_at(x, [2, 2, 3])),
    "unbind": lambda x: (lambda p: b.stack([p[2], p[0]]))(b.unbind(x, 1)),
    "hstack": lambda x: b.hstack([x, x]), "vstack": lambda x: b.vstack([x, x]), "dstack": lambda x: b.dstack([x, x]),
    "meshgrid": lambda x, y: b.mul(*b.meshgrid([x, y])),
    "broadcast_tensors": lambda x, y: b.stack(b.broadcast_tensors([x, y])),
    "select": lambda x: b.select(x, -2, 1),
    "index": lambda x: x[-1, 1:3], "index:steps": lambda x: x[::-2, ..., 1::2],
    "index:ids": lambda x: x[[2, 0, 2], 0:2],
    "take_along_axis": lambda x: b.take_along_axis(x, IDS, 1), "gather:axis": lambda x: b.gather(x, IDS, -1),
    "index_select:axis": lambda x: b.index_select(x, b.tensor([3, 3, -4]), 1),
    "take": lambda x: b.take(x, b.tensor([5, 5, -1])), "masked_select": lambda x: b.masked_select(x, COLUMNS),
    "scatter": lambda x, y: b.scatter(x, IDS, y, 1), "scatter_add": lambda x, y: b.scatter_add(x, IDS, y, 1),
    "masked_scatter": lambda x, y: b.masked_scatter(x, COLUMNS, y),
    "index_put": lambda x, y: b.index_put(x, ROWS_AND_IDS, y),
    "index_add": lambda x, y: b.index_add(x, ROWS_AND_IDS, y),
}
for name in ("constant", "replicate", "circular", "reflect"):
    SHAPES[f"pad:{name}"] = lambda x, p=name: b.pad(x, [b.AxisPadding(-1, 2, 3)], p)

REDUCTIONS = {
    "sum:first": lambda x: b.sum(x, 0), "sum:last": lambda x: b.sum(x, -1, keep=True),
    "sum:outer": lambda x: b.sum(x, (0, 2)), "sum:inner": lambda x: b.sum(x, [1, 2], True),
    "sum:i64": lambda x: b.sum(x, 0), "sum:u8": lambda x: b.sum(x.to(b.uint8), (0, 2)),
    "mean:axes": lambda x: b.mean(x, (-1, 0)), "var:axes": lambda x: b.var(x, (-1, 0), 0, True),
    "var:last": lambda x: b.var(x, -1), "stddev": lambda x: b.stddev(x, -1),
    "logsumexp": lambda x: b.logsumexp(x, -1), "logsumexp:first": lambda x: b.logsumexp(x, 0, True),
    "logsumexp:axes": lambda x: b.logsumexp(x, (2, 0)),
    "cumsum:first": lambda x: b.cumsum(x, 0), "cumsum:u8": lambda x: b.cumsum(x.to(b.uint8), 1),
    "max": lambda x: b.max(spread(x), 1, True), "max:drop": lambda x: b.max(spread(x), 0),
    "max:all": lambda x: b.max(spread(x)), "max:i64": lambda x: b.max(x, axis=1),
    "min": lambda x: b.min(spread(x), -1), "min:axes": lambda x: b.min(spread(x), (0, 2)),
    "min:u8": lambda x: b.min(x.to(b.uint8), 1),
    "amax": lambda x: b.amax(spread(x), (0, 2)), "amin": lambda x: b.amin(spread(x)),
    "max_with_indices": lambda x: b.max_with_indices(spread(x), 0).values,
    "min_with_indices": lambda x: b.min_with_indices(spread(x), -1).values,
    "argmin": lambda x: b.argmin(x, 1),
    "sum_to": lambda x: b.sum_to(x, (3, 1)), "sum_to:scalar": lambda x: b.sum_to(x, ()),
    "sum_product": lambda x, y: b.sum_product(x, y, 0), "sum_product:heads": lambda x, y: b.sum_product(x, y, 3),
    "sum_product:rank": lambda x, y: b.sum_product(x, y, 2), "sum_product:queries": lambda x, y: b.sum_product(x, y, 4),
    "sum_product:keys": lambda x, y: b.sum_product(x, y, 5),
    "any:axis": lambda x: b.any(x, 1), "all:axes": lambda x: b.all(x, (0, 2)),
    "count_nonzero": lambda x: b.count_nonzero(x, -1),
    "prod:i32": lambda x: b.prod(x.to(b.int32), -1), "prod:axis": lambda x: b.prod(x, 0),
    "prod:axes": lambda x: b.prod(x, (0, -1)),
    "norm:1": lambda x: b.norm(x, 1, 0), "norm:3": lambda x: b.norm(x, 3, (0, 2)),
    "norm:inf": lambda x: b.norm(spread(x), math.inf, 0),
    "softmin": lambda x: b.softmin(x, 0), "softmax:first": lambda x: b.softmax(x, 0),
    "log_softmax:first": lambda x: b.log_softmax(x, axis=0),
    "nansum": lambda x: b.nansum(x, 1), "nanmean": lambda x: b.nanmean(x, 0),
    "cumprod:first": lambda x: b.cumprod(x, 0), "logcumsumexp": lambda x: b.logcumsumexp(x, 0),
    "cummax": lambda x: b.cummax(spread(x), 0).values, "cummax:i32": lambda x: b.cummax(x.to(b.int32), 1).values,
    "cummin": lambda x: b.cummin(spread(x)).values, "diff": lambda x: b.diff(x, 2, 0),
    "linear_recurrence:reverse": lambda x, y: b.linear_recurrence(x, y, reverse=True),
}

PRODUCTS = {
    "linear_pair": lambda x, v, w: b.mul(*b.linear_pair(x, v, w)),
    "linear_pair:one_memory": lambda x, w: b.mul(*halves(x, w)),
    "linear_pair:swiglu": lambda x, w: b.swiglu(*halves(x, w)),
    "vecdot:first": lambda x, y: b.vecdot(x, y, 0), "tensordot:none": lambda x, y: b.tensordot(x, y, 0),
    "tensordot:axes": lambda x, y: b.tensordot(x, y, (0, -1), (1, 0)),
    "matrix_power": lambda x: b.matrix_power(x, 5),
    "irfft": lambda x: b.irfft(b.rfft(x), x.shape[-1]),
    "fftn": lambda x: b.fftn(x, (0, 1)), "ifftn": lambda x: b.ifftn(x, (0, 1)),
    "fftshift": lambda x: b.fftshift(x, -1), "ifftshift": lambda x: b.ifftshift(x, -1),
    "complex_abs": lambda x, y: b.complex_abs(b.complex_mul(x, y)),
}
# In the table of a build with LAPACK.
LAPACK = {
    "solve": lambda x, y: b.solve(definite(x), y), "lstsq": lambda x, y: b.lstsq(definite(x), y),
    "solve_triangular": lambda x, y: b.solve_triangular(shifted(x), y, upper=False),
    "qr": lambda x: b.matmul(*b.qr(shifted(x))),
    "svd": lambda x: (lambda u, s, vh: (u * s[..., None, :]) @ vh)(*b.svd(shifted(x))),
    "eigh": lambda x: (lambda values, q: (q * values[..., None, :]) @ q.mT)(*b.eigh(definite(x))),
    "eigvalsh": lambda x: b.sum(b.log(b.eigvalsh(definite(x))), -1),
    "svdvals": lambda x: b.sum(b.log(b.svdvals(definite(x))), -1),
    "slogdet": lambda x: b.slogdet(definite(x)).log,
    **{name: lambda x, f=getattr(b, name): f(definite(x)) for name in ("inverse", "pinv", "cholesky", "det")},
}

LAYERS = {
    "rms_norm": lambda x, w: b.rms_norm(x, w, 0.05), "rms_norm:no_weight": lambda x: b.rms_norm(x, None, eps=0.05),
    "layer_norm": lambda *xs: b.layer_norm(*xs, 0.05),
    "layer_norm:no_bias": lambda x, w: b.layer_norm(x, w, None, 0.05),
    "layer_norm:plain": lambda x: b.layer_norm(x, None, None, 0.05),
    "add_rms_norm": lambda *xs: both(b.add_rms_norm(*xs, 0.05)),
    "add_rms_norm:no_weight": lambda x, y: both(b.add_rms_norm(x, y, None, 0.05)),
    "add_rms_norm:norm_alone": lambda *xs: b.add_rms_norm(*xs, 0.05).y,
    "add_rms_norm:no_residual": lambda x, w: both(b.add_rms_norm(x, None, w, 0.05)),
    "add_layer_norm": lambda *xs: both(b.add_layer_norm(*xs, 0.05)),
    "add_layer_norm:plain": lambda x, y: both(b.add_layer_norm(x, y, None, None, 0.05)),
    "add_layer_norm:no_residual": lambda x, *ws: both(b.add_layer_norm(x, None, *ws, 0.05)),
    "rope": lambda x: rope(x, 1, x.shape[3] // 2),
    "rope:per_sample_partial": lambda x: rope(x, x.shape[0], (x.shape[3] - 2) // 2),
    "split_qkv:norm_and_rotation": lambda *xs: split_qkv(xs, 2, 2, 6, 3, False, True),
    "split_qkv:grouped": lambda *xs: split_qkv(xs, 4, 1, 8, 4, True, False),
    "split_qkv:partly_rotated": lambda *xs: split_qkv(xs, 2, 2, 10, 2, False, True),
    "split_qkv:copy": lambda *xs: split_qkv(xs, 3, 1, 5, 0, False, False),
    "compose_factors": lambda w, gates: joined(b.compose_factors(w, gates, 0.05)),
    "compose_factors:gates": lambda gates: joined(b.compose_factors(None, gates, 0.05)),
    "compose_factors:some": some_factors,
    "unfold": lambda x: b.unfold(x, (2, 3), stride=(1, 2)),
    "fold": lambda x: b.fold(x, (3, 5), (2, 3), stride=(1, 2)),
    "conv2d:patches": lambda *xs: b.conv2d(*xs, stride=(2, 3)),
    "conv2d:padded": lambda *xs: b.conv2d(*xs, padding=(1, 2)),
    "conv2d:strided": lambda *xs: b.conv2d(*xs, stride=(2, 1), padding=(0, 1)),
    "conv2d:groups": lambda *xs: b.conv2d(*xs, stride=(2, 1), groups=2),
    "conv2d:dilation": lambda *xs: b.conv2d(*xs, padding=(1, 2), dilation=(2, 3)),
    "conv2d:same": lambda *xs: b.conv2d(*xs, same=True), "conv1d": lambda *xs: b.conv1d(*xs, padding=1),
    "conv_transpose2d:stride": lambda *xs: b.conv_transpose2d(*xs, stride=(2, 3), padding=(1, 0),
                                                              output_padding=(1, 2)),
    "conv_transpose2d:groups": lambda *xs: b.conv_transpose2d(*xs, dilation=(1, 2), groups=2),
    "conv_transpose1d": lambda *xs: b.conv_transpose1d(*xs, stride=2),
    "max_pool2d": lambda x: b.max_pool2d(spread(x), (3, 2), stride=(2, 1), padding=(1, 0)),
    "avg_pool2d": lambda x: b.avg_pool2d(x, (3, 2), stride=(2, 1), padding=(1, 0)),
    "avg_pool2d:without_padding": lambda x: b.avg_pool2d(x, (3, 2), stride=(2, 1), padding=(1, 0),
                                                         count_include_pad=False),
    "adaptive_avg_pool2d": lambda x: b.adaptive_avg_pool2d(x, (2, 3)),
    "adaptive_avg_pool1d": lambda x: b.adaptive_avg_pool1d(x, 2),
    "interpolate:nearest": lambda x: b.interpolate(x, (4, 2)),
    "interpolate:linear": lambda x: b.interpolate(x, (4, 2), mode="linear"),
    "interpolate:corners": lambda x: b.interpolate(x, (4, 2), mode="linear", align_corners=True),
    "max_pool1d": lambda x: b.max_pool1d(spread(x), 3, stride=2),
    "max_pool1d_with_indices": lambda x: b.max_pool1d_with_indices(spread(x), 3, stride=2).values,
    "max_pool2d_with_indices": lambda x: b.squeeze(
        b.max_pool2d_with_indices(b.unsqueeze(spread(x), 2), (1, 3), stride=(1, 2)).values, 2),
    "avg_pool1d": lambda x: b.avg_pool1d(spread(x), 3, stride=2),
}

LOSSES = {
    "linear_cross_entropy:3": lambda *xs: b.linear_cross_entropy(*xs, 3),
    "linear_cross_entropy:1": lambda *xs: b.linear_cross_entropy(*xs, chunk_rows=1),
    "linear_cross_entropy:softcap": lambda *xs: b.linear_cross_entropy(*xs, chunk_rows=2, softcap=2.5),
    "linear_cross_entropy:z_loss": lambda *xs: b.linear_cross_entropy(*xs, chunk_rows=3, z_loss=0.2),
    "linear_cross_entropy:both": lambda *xs: b.linear_cross_entropy(*xs, softcap=2.5, z_loss=0.2),
    "cross_entropy:smoothed": lambda x, ids: b.cross_entropy(
        x, ids, weight=0.5 * b.arange(x.shape[1], F64) + 0.5, label_smoothing=0.2),
    "mse_loss:reduced": lambda x, y: b.mse_loss(x, y, reduction="mean"),
    "huber_loss": lambda x, y: b.huber_loss(x, y, 1.5), "smooth_l1_loss": lambda x, y: b.smooth_l1_loss(x, y, 0.5),
    "hinge_loss": lambda x, y: b.hinge_loss(x, y, 0.5), "kl_div": lambda x, y: b.kl_div(x, b.square(y) + 0.25),
    "kl_div:log": lambda x, y: b.kl_div(x, y, log_target=True),
    "bce_with_logits_loss": lambda x, y: b.bce_with_logits_loss(x, y, weight=b.full((), 0.5, F64),
                                                                pos_weight=b.full((), 2, F64)),
    "cosine_similarity": lambda x, y: b.cosine_similarity(x, y, 1),
    "triplet_margin_loss": lambda *xs: b.triplet_margin_loss(*xs, 3),
    "cosine_embedding_loss": lambda x, y: b.cosine_embedding_loss(
        x, y, tensor([1.0 - 2 * (i % 2) for i in range(x.shape[0])], x.shape[:1]), -0.9),
}

ATTENTION = {
    "dcmha:key_lengths": lambda *xs: dcmha(xs, mask=ALL, key_lengths=[3, 5, 0]),
    "dcmha:key_lengths_reference": lambda *xs: dcmha(xs, mask=ALL, key_lengths=[1, 2, 2], impl="reference"),
    "dcmha:bottom_right_lengths": lambda *xs: dcmha(xs, key_lengths=[3, 4, 2], groups=2, **LAST_KEYS),
    "dcmha:bottom_right_lengths_chunked": lambda *xs: dcmha(xs, mask=WINDOW, key_lengths=[3, 5, 1], **LAST_KEYS,
                                                            **CHUNKED),
    "dcmha:attend": lambda *xs: dcmha(xs, mask=ALL, attend=attend(xs, True, True)),
    "dcmha:attend_samples": lambda *xs: dcmha(xs, attend=attend(xs, True, False), **CHUNKED),
    "dcmha:bias_before": lambda *xs: dcmha(xs, groups=2, bias=xs[-1]),
    "dcmha:bias_after": lambda *xs: dcmha(xs, mask=ALL, bias=xs[-1], bias_place="after_compose", **CHUNKED),
    "dcmha:dropout": lambda *xs: dcmha(xs, mask=WINDOW, groups=2, **CHUNKED, **DROPOUT),
    "dcmha:softcap": lambda *xs: dcmha(xs, mask=WINDOW, groups=2, **CHUNKED, **SOFTCAP),
    "dcmha:softcap_reference": lambda *xs: dcmha(xs, key_lengths=[5], impl="reference", **SOFTCAP),
    "dcmha:everything": lambda *xs: dcmha(xs, mask=WINDOW, key_lengths=[4, 2], attend=attend(xs, True, True),
                                          bias=xs[-1], **LAST_KEYS, **DROPOUT, **SOFTCAP),
}
for name, options in {
        "reference": {"impl": "reference"}, "groups_window": {"mask": WINDOW, "groups": 2, "impl": "reference"},
        "offset": {"mask": LATER, "impl": "reference"}, "all": {"mask": ALL, "impl": "reference"},
        "fused": {"impl": "fused"}, "fused_groups_window": {"mask": WINDOW, "groups": 2, "impl": "fused"},
        "fused_offset": {"mask": LATER, "impl": "fused"}, "fused_all": {"mask": ALL, "impl": "fused"},
        "chunked": CHUNKED, "chunked_window": {"mask": WINDOW, "groups": 2, **CHUNKED},
        "chunked_all": {"mask": ALL, **CHUNKED}}.items():
    ATTENTION[f"dcmha:{name}"] = lambda *xs, o=options: dcmha(xs, **o)
for name, options in {
        "window": {"mask": WINDOW}, "offset": {"mask": LATER}, "all": {"mask": ALL}, "reference": {"impl": "reference"},
        "chunked": CHUNKED, "key_lengths": {"mask": ALL, "key_lengths": [3, 1]}, "bottom_right": LAST_KEYS,
        "bottom_right_chunked": {"mask": WINDOW, **LAST_KEYS, **CHUNKED}, "dropout": DROPOUT,
        "softcap": SOFTCAP}.items():
    ATTENTION[f"scaled_dot_product_attention:{name}"] = lambda *xs, o=options: attention(xs, **o)
ATTENTION["scaled_dot_product_attention:attend"] = lambda *xs: attention(xs, attend=attend(xs, False, True))
ATTENTION["scaled_dot_product_attention:bias"] = lambda *xs: attention(xs[:3], mask=ALL, bias=xs[3], **CHUNKED)

EXPRESSIONS = POINTWISE | ORDER | SHAPES | REDUCTIONS | PRODUCTS | LAYERS | LOSSES | ATTENTION
