// Gradients summed and optimizer state kept once, over the ranks that hold the same parameters (ZeRO, stage 1;
// Rajbhandari et al. 2020).
//
// The gradients of some parameters form a bucket, a flat vector. Each of the P ranks that hold these parameters owns
// 1/P of the vector: it gets that part of the summed gradients (reduce_scatter), updates that part of the parameters
// and sends it to the others (all_gather). So every element of the model has exactly one owner in the job: its
// optimizer state exists once, and the gradient norm over all owned pieces counts it once.
//
//   rank 0   | w1 w1 w1 w2 | w2 w2 b w3 |      bucket of w1, w2, b, w3 on two ranks
//              own pieces    of rank 1
//
// A parameter that is updated as a whole (matrices of muon) is in a bucket of such ones and has one owner; the owners
// share the work of all of them about evenly (matrix_owners.h).
//
// The reduce_scatter of a bucket starts in the backward pass, as soon as its last gradient is complete. Parameters that
// are frozen are in buckets of their own, which are not sent.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "braid/autograd/hooks.h"
#include "braid/distributed/comm/communicator.h"
#include "braid/distributed/parallel/tree_sum.h"
#include "braid/nn/module.h"

namespace braid::dist {

// Buckets of consecutive gradients, given their numbers of elements in the order in which backward reaches them: the
// index of the last gradient of each bucket.
std::vector<size_t> bucket_ends(const std::vector<int64_t>& elements, int64_t bytes_per_element, int64_t bucket_bytes);
constexpr int64_t kBucketBytes = 4 << 20;

class DataParallel {
 public:
  // The ranks that hold the same tensor under this name.
  using Holders = std::function<const Communicator&(const std::string& name)>;

  // The number of first updates in which a parameter is frozen, nn::kNeverTrained for all; the same on every rank.
  using FrozenUntil = std::function<int64_t(const std::string& name)>;
  // The work of updating a parameter as a whole, relative to others; 0: its elements may have any owners. The same on
  // every rank, also where ranks hold other shards.
  using WorkOfWhole = std::function<double(const nn::NamedTensor& parameter)>;

  // The parameters are leaves in the order of the model. bucket_bytes: size of a bucket. Without frozen_until all are
  // trained, without work_of_whole none is updated as a whole.
  DataParallel(std::vector<nn::NamedTensor> parameters, const Holders& holders, int64_t bucket_bytes = kBucketBytes,
               const FrozenUntil& frozen_until = {}, const WorkOfWhole& work_of_whole = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;

  // The pieces that this rank ever updates: leaves that share the memory of the parameters, named like them;
  // the parameters themselves where no other rank holds them. Those that are updated as a whole have their shape, all
  // others are flat, but of the parameter's rank, (n, 1, ...), so that weight decay can distinguish matrices.
  const std::vector<nn::NamedTensor>& pieces() const { return pieces_; }

  // After `updates` updates: parameters that are frozen in the next one collect no gradient, all others do. Returns
  // whether that changed for any. At first all collect one.
  bool freeze(int64_t updates);
  // Call before the last backward pass of a step: gradients that become complete from here on are final.
  void start();
  // Waits for the sums: afterwards the gradient of each piece is the sum over ranks.
  void finish();
  // Instead of both: the gradient of each piece becomes the total of the terms of all holders, one of each of
  // `parameters`. samples: of every replica of the model, in the order of ranks; own.sums() are those of this one.
  // Where P ranks hold its shards, all P have the terms of what is not sharded. The sum has the same bits however the
  // samples are spread.
  void finish(TreeSum own, const std::vector<nn::NamedTensor>& parameters, const std::vector<Range>& samples);
  // After the update: every rank gets the pieces of all ranks, except those of frozen parameters, which the update did
  // not change.
  void gather_parameters() { gather(false); }
  // The same for every parameter.
  void gather_all_parameters() { gather(true); }

  // The elements of the flattened parameter that this rank owns: all of them where no other rank holds it.
  Range owned_range(const std::string& name) const;

 private:
  struct Entry {
    nn::NamedTensor parameter;
    Partition parts;     // of the flattened parameter over its holders, one range each
    Range at;            // its range in the bucket
    int owner = -1;      // the holder that updates it as a whole
    bool ready = false;  // the gradient is complete
    HookHandle hook = {};
    bool owned_by(int holder) const { return owner >= 0 ? owner == holder : parts.size(holder) > 0; }
  };
  struct Bucket {
    Communicator holders;
    Partition parts;  // of the flat vector
    std::vector<Entry> entries;
    int64_t frozen_until = 0;
    int64_t size = 0;
    size_t last = 0;  // index in the model of the parameter whose gradient is the last to come
    size_t missing = 0;
    bool frozen = false, sent = false;
    Work work;
  };
  struct Alone {  // a parameter that no other rank holds
    Tensor parameter;
    int64_t frozen_until;
  };
  void split(Bucket& bucket);
  void add_pieces(const std::vector<nn::NamedTensor>& parameters, const FrozenUntil& frozen_until);
  void gather(bool frozen);
  void watch(size_t bucket);
  void gradient_ready(size_t bucket, size_t entry);
  void send(Bucket& bucket);
  void send_in_order();
  void take_own(const Bucket& bucket, const Tensor& own, std::map<std::string, Tensor>& gradients) const;
  void set_gradients(const std::map<std::string, Tensor>& gradients);

  std::vector<Bucket> buckets_;  // one group after the other; within a group later layers first
  std::vector<nn::NamedTensor> pieces_;
  std::map<std::string, std::pair<size_t, size_t>> position_;  // name -> bucket, entry
  std::map<std::string, Alone> alone_;
  bool active_ = false;
};

}  // namespace braid::dist
