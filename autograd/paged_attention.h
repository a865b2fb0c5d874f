// Attention against keys in blocks, for inference: the op behind a paged cache (nn/attention/paged_cache.h).
//
// The keys, values and key-side factors of many sequences lie in blocks of one array, as they were computed; the rows
// of a call are new tokens of any of the sequences, each with the table of its blocks (PagedRow). The bits of a row
// depend on its own query and keys alone: not on the other rows of the call, on the number of threads or on where the
// blocks lie.
#pragma once
#include "braid/autograd/dcmha.h"
#include "braid/tensor/paged_rows.h"

namespace braid {

// q (1, R, N, d), row r for rows.rows[r]; k, v (1, S, Nkv, d), S = blocks x positions of a block; the query side of pre
// and post (1, R, ...), their key side (1, S, ...). Result (1, R, N, d): what dcmha() gives for each row by itself on
// the keys that its table names, zeros for a row without keys. Of the options it reads groups, scale and impl; `fused`
// throws on a device without kernel, and otherwise such a device gathers each row's keys. Where everything else is f32,
// k and v may be bf16 or f16: the same bits as with k and v converted. No derivative: throws when a tensor requires
// one.
Tensor paged_attention(const Tensor& q, const Tensor& k, const Tensor& v, const HeadMixing& pre, const HeadMixing& post,
                       const PagedRows& rows, const DcmhaOptions& options = {});

}  // namespace braid
