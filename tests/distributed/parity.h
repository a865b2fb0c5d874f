// The same training run on one process and on many: losses, gradients and weights must agree.
#pragma once
#include <functional>
#include <map>
#include <memory>

#include "braid/distributed/comm/thread_transport.h"
#include "braid/models/families/dcformer/model.h"
#include "braid/models/training/trainer.h"
#include "tests/distributed/support.h"

namespace braid::test {

// A small model of a kind: sizes that do not divide evenly, local and global layers.
models::DcformerConfig parity_config(const std::string& kind);
std::vector<std::string> parity_kinds();

struct Shape3 {
  int64_t data = 1, context = 1, tensor = 1;
};
inline std::string str(const Shape3& s) {
  return "data " + std::to_string(s.data) + " context " + std::to_string(s.context) + " tensor " +
         std::to_string(s.tensor);
}

// Runs body on a rank of each place, on threads.
inline void on_ranks(const Shape3& s, const std::function<void(const dist::Communicator&)>& body) {
  dist::run_thread_ranks(static_cast<int>(s.data * s.context * s.tensor), body);
}

// The samples of a step; masked targets, very unevenly.
models::Batch step_batch(const models::DcformerConfig& config, int64_t step, int64_t samples, int64_t T);
// The same samples as sequences of documents of uneven lengths.
models::Batch with_documents(const models::Batch& batch);
// The samples of a data rank, in two micro-batches.
std::vector<models::Batch> share_of(const models::Batch& all, const dist::ProcessMesh& mesh);

// This rank's shards of the model.
std::unique_ptr<models::Dcformer> make_model(const models::DcformerConfig& config, const dist::ProcessMesh& mesh,
                                             DType dtype = DType::f64, bool recompute = false);

// AdamW, or another rule, with decay of matrices.
nn::OptimizerOptions parity_optimizer(const std::string& rule = "adamw");

// The unsharded tensors on every rank: elements of their owners and zeros of all others, summed.
std::map<std::string, std::vector<double>> unsharded(const std::vector<models::LocalTensor>& tensors,
                                                     const dist::Communicator& world);

struct Record {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<double>> gradients;  // of the first step
  std::map<std::string, std::vector<double>> weights;    // after the last
  double validation = 0;
};
// Before each of the first `steps` steps every weight is moved by one unit in its last place up or down, or not at all.
struct Noise {
  uint64_t salt = 0;
  int64_t steps = 0;
};
// Trains `steps` steps; bf16 means mixed precision. The record is complete on rank 0 (weights) and on all ranks (the
// rest).
Record train(const models::DcformerConfig& config, const dist::ProcessMesh& mesh, int64_t steps, int64_t samples,
             int64_t T, DType dtype = DType::f64, bool recompute = false, double lr = 1e-2, const Noise& noise = {},
             bool documents = false, double dropout = 0, const nn::OptimizerOptions& optimizer = parity_optimizer());
// The result of one process; cached.
const Record& reference(const std::string& kind, int64_t steps, int64_t samples, int64_t T, double lr = 1e-2);

void expect_parity(const Record& got, const Record& want, double tolerance, double weight_tolerance, bool root,
                   const std::string& what);

}  // namespace braid::test
