// The mathematics of one pair (query i, key j): the matrix that mixes its heads, from the weights of the layer.
//   W[m,n] = identity + base + sum_r q_down[i,r,m] q_up[i,r,n] + sum_r k_down[j,r,m] k_up[j,r,n] + gates on the diagonal
// The first index is the head read, the second the head written; heads mix within their group.

export const parts = ['identity', 'base', 'query', 'key', 'query_gate', 'key_gate'];

// weights: name -> {shape, data}, the names of the layer's dyn.* without their prefix. -> {identity, ..., total} of N x N
// numbers each, and the factors of the low-rank parts; a part that the model does not have is null.
export function mixing(weights, stage, i, j, heads) {
  const N = heads, zero = () => new Float64Array(N * N);
  const result = {identity: zero(), total: zero(), factors: {}};
  for (let n = 0; n < N; n++) result.identity[n * N + n] = 1;
  const of = (term) => weights.get(`dyn.${stage}${term}`) ?? null;

  result.base = null;
  const base = of('.w');
  if (base) {
    const [G, M] = base.shape;
    result.base = zero();
    for (let g = 0; g < G; g++)
      for (let m = 0; m < M; m++)
        for (let n = 0; n < M; n++) result.base[(g * M + m) * N + g * M + n] = base.data[(g * M + m) * M + n];
  }
  for (const [part, side, at] of [['query', '_q', i], ['key', '_k', j]]) {
    const down = of(`${side}.w1`), up = of(`${side}.w2`), gate = of(`${side}.dd`);
    result[part] = null;
    if (down) {
      const [, , G, R, M] = down.shape, first = at * G * R * M;
      const matrix = result[part] = zero(), read = [], write = [];
      for (let r = 0; r < R; r++) {
        read.push(new Float64Array(N));
        write.push(new Float64Array(N));
      }
      for (let g = 0; g < G; g++)
        for (let r = 0; r < R; r++)
          for (let m = 0; m < M; m++) {
            const e = first + (g * R + r) * M + m;
            read[r][g * M + m] = down.data[e];
            write[r][g * M + m] = up.data[e];
          }
      for (let m = 0; m < N; m++)
        for (let n = 0; n < N; n++)
          if (Math.floor(m / M) === Math.floor(n / M))
            for (let r = 0; r < R; r++) matrix[m * N + n] += read[r][m] * write[r][n];
      result.factors[part] = {read, write};
    }
    result[`${part}_gate`] = null;
    if (gate) {
      const matrix = result[`${part}_gate`] = zero();
      for (let n = 0; n < N; n++) matrix[n * N + n] = gate.data[at * N + n];
    }
  }
  for (const part of parts)
    if (result[part]) for (let e = 0; e < N * N; e++) result.total[e] += result[part][e];
  return result;
}

// The heads of a pair before and after: A (N), and O[n] = sum_m A[m] W[m,n].
export function mixed(before, total) {
  const N = before.length, after = new Float64Array(N);
  for (let m = 0; m < N; m++)
    for (let n = 0; n < N; n++) after[n] += before[m] * total[m * N + n];
  return after;
}
