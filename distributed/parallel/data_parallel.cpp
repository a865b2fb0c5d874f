#include "braid/distributed/parallel/data_parallel.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "braid/autograd/record.h"
#include "braid/distributed/parallel/matrix_owners.h"
#include "braid/nn/optim/groups.h"

namespace braid::dist {

namespace {
Tensor flat(const Tensor& x) { return x.detach().reshaped({x.numel()}); }
}  // namespace

std::vector<size_t> bucket_ends(const std::vector<int64_t>& elements, int64_t bytes_per_element, int64_t bucket_bytes) {
  std::vector<size_t> ends;
  int64_t size = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    size += elements[i];
    if (size * bytes_per_element < bucket_bytes && i + 1 < elements.size()) continue;
    ends.push_back(i);
    size = 0;
  }
  return ends;
}

DataParallel::DataParallel(std::vector<nn::NamedTensor> parameters, const Holders& holders, int64_t bucket_bytes,
                           const FrozenUntil& frozen_until, const WorkOfWhole& work_of_whole) {
  const auto frozen = [&](const std::string& name) { return frozen_until ? frozen_until(name) : 0; };
  // Per group of holders, type, first update and kind of update; later layers first.
  struct Family {
    std::vector<Entry> entries;
    std::vector<size_t> places;  // of the parameters in the model
    std::vector<double> work;
  };
  std::map<std::tuple<std::string, int64_t, bool>, Family> families;
  for (size_t i = parameters.size(); i-- > 0;) {
    const nn::NamedTensor& p = parameters[i];
    const Communicator& group = holders(p.name);
    if (group.size() == 1) continue;
    const double work = work_of_whole ? work_of_whole(p) : 0;
    Family& family = families[{str(group.label(), p.value.dtype()), frozen(p.name), work > 0}];
    family.entries.push_back({.parameter = p});
    family.places.push_back(i);
    family.work.push_back(work);
  }
  for (auto& [key, family] : families) {
    std::vector<int64_t> elements;
    for (const Entry& e : family.entries) elements.push_back(e.parameter.value.numel());
    const nn::NamedTensor& any = family.entries[0].parameter;
    const Communicator& group = holders(any.name);
    if (std::get<bool>(key)) {
      const std::vector<int> owners = balanced_owners(family.work, group.size());
      for (size_t i = 0; i < owners.size(); ++i) family.entries[i].owner = owners[i];
    }
    size_t next = 0;
    for (size_t end : bucket_ends(elements, size_of(any.value.dtype()), bucket_bytes)) {
      Bucket& bucket = buckets_.emplace_back();
      bucket.holders = group;
      bucket.frozen_until = std::get<int64_t>(key);
      bucket.last = family.places[end];
      for (; next <= end; ++next) {
        bucket.entries.push_back(std::move(family.entries[next]));
        bucket.entries.back().at = {bucket.size, bucket.size + elements[next]};
        bucket.size += elements[next];
      }
    }
  }
  std::ranges::stable_sort(buckets_, [](const Bucket& a, const Bucket& b) {
    return std::pair(a.holders.label(), b.last) < std::pair(b.holders.label(), a.last);
  });
  for (size_t b = 0; b < buckets_.size(); ++b) {
    split(buckets_[b]);
    for (size_t e = 0; e < buckets_[b].entries.size(); ++e) position_[buckets_[b].entries[e].parameter.name] = {b, e};
    watch(b);
  }
  add_pieces(parameters, frozen);
}

// Which parts of the bucket and of its parameters each holder owns.
void DataParallel::split(Bucket& bucket) {
  const int holders = bucket.holders.size();
  bucket.parts = even_partition(bucket.size, holders);
  const bool whole = bucket.entries[0].owner >= 0;
  if (whole) bucket.parts.ranges.assign(static_cast<size_t>(holders), {});
  for (Entry& entry : bucket.entries) {
    const int64_t size = entry.at.size();
    if (whole && size > 0) bucket.parts.ranges[static_cast<size_t>(entry.owner)].push_back(entry.at);
    for (int r = 0; r < holders; ++r) {
      if (whole) {
        entry.parts.ranges.push_back({{0, r == entry.owner ? size : 0}});
        continue;
      }
      const Range own = bucket.parts.single(r);
      int64_t begin = std::clamp(own.begin, entry.at.begin, entry.at.end) - entry.at.begin;
      int64_t end = std::clamp(own.end, entry.at.begin, entry.at.end) - entry.at.begin;
      entry.parts.ranges.push_back({{begin, end}});
    }
  }
}

void DataParallel::add_pieces(const std::vector<nn::NamedTensor>& parameters, const FrozenUntil& frozen) {
  for (const nn::NamedTensor& p : parameters) {  // in the order of the model
    const bool trained = frozen(p.name) != nn::kNeverTrained;
    const auto at = position_.find(p.name);
    if (at == position_.end()) {
      alone_[p.name] = {p.value, frozen(p.name)};
      if (trained) pieces_.push_back(p);
      continue;
    }
    const Bucket& bucket = buckets_[at->second.first];
    const Entry& entry = bucket.entries[at->second.second];
    if (!trained || !entry.owned_by(bucket.holders.rank())) continue;
    Tensor piece = p.value.detach();
    if (entry.owner < 0) {
      const Range own = owned_range(p.name);
      Shape shape = p.value.shape();
      for (int i = 0; i < shape.rank(); ++i) shape[i] = i == 0 ? own.size() : 1;
      piece = flat(p.value).sliced(0, own.begin, own.end).reshaped(shape);
    }
    pieces_.push_back({p.name, require_grad(piece)});
  }
}

DataParallel::~DataParallel() {
  for (Bucket& bucket : buckets_) {
    for (Entry& entry : bucket.entries) entry.hook.remove();
  }
}

void DataParallel::watch(size_t b) {
  for (size_t e = 0; e < buckets_[b].entries.size(); ++e) {
    Entry& entry = buckets_[b].entries[e];
    entry.hook = on_grad(entry.parameter.value, [this, b, e](const Tensor&) { gradient_ready(b, e); });
  }
}

bool DataParallel::freeze(int64_t updates) {
  bool changed = false;
  for (auto& [name, alone] : alone_) {
    const bool frozen = updates < alone.frozen_until;
    changed = changed || requires_grad(alone.parameter) == frozen;
    require_grad(alone.parameter, !frozen);
  }
  for (size_t b = 0; b < buckets_.size(); ++b) {
    Bucket& bucket = buckets_[b];
    if (bucket.frozen == (updates < bucket.frozen_until)) continue;
    changed = true;
    bucket.frozen = !bucket.frozen;
    for (Entry& entry : bucket.entries) require_grad(entry.parameter.value, !bucket.frozen);
    if (!bucket.frozen) watch(b);
  }
  return changed;
}

void DataParallel::start() {
  for (Bucket& bucket : buckets_) {
    bucket.sent = bucket.frozen;
    bucket.missing = bucket.entries.size();
    for (Entry& entry : bucket.entries) entry.ready = false;
  }
  active_ = true;
}

void DataParallel::gradient_ready(size_t b, size_t e) {
  if (!active_) return;
  Bucket& bucket = buckets_[b];
  Entry& entry = bucket.entries[e];
  check(!bucket.sent, "data_parallel", [&] {
    return "a gradient of " + entry.parameter.name +
           " arrived after its bucket was sent: backward() was called twice between start() and finish()";
  });
  if (!entry.ready) --bucket.missing;
  entry.ready = true;
  send_in_order();
  for (Bucket& other : buckets_) {  // MPI moves data only while it is called
    if (other.sent && !other.frozen) other.work.poll();
  }
}

// Within a group in the same order on every rank, whatever order the gradients come in.
void DataParallel::send_in_order() {
  std::set<std::string> waiting;  // groups whose next bucket is not complete
  for (Bucket& bucket : buckets_) {
    if (bucket.sent || waiting.contains(bucket.holders.label())) continue;
    if (bucket.missing > 0) {
      waiting.insert(bucket.holders.label());
    } else {
      send(bucket);
    }
  }
}

void DataParallel::send(Bucket& bucket) {
  MemoryScope scope(MemoryUse::gradients);
  const Tensor& any = bucket.entries[0].parameter.value;
  Tensor vector = zeros({bucket.size}, accumulate_type(any.dtype()), any.device());
  for (Entry& entry : bucket.entries) {
    Tensor g = grad(entry.parameter.value);
    if (g) vector.sliced(0, entry.at.begin, entry.at.end).copy_(flat(g.contiguous()));
    zero_grad(entry.parameter.value);  // its memory serves the rest of the backward pass
  }
  bucket.work = bucket.holders.start_reduce_scatter(vector, 0, bucket.parts);
  bucket.sent = true;
}

void DataParallel::finish() {
  active_ = false;
  MemoryScope scope(MemoryUse::gradients);
  for (Bucket& bucket : buckets_) {
    if (!bucket.sent) send(bucket);
  }
  std::map<std::string, Tensor> gradients;
  for (Bucket& bucket : buckets_) {
    if (bucket.frozen) continue;
    take_own(bucket, bucket.work.wait(), gradients);
  }
  set_gradients(gradients);
}

// own: this rank's part of the bucket.
void DataParallel::take_own(const Bucket& bucket, const Tensor& own, std::map<std::string, Tensor>& gradients) const {
  const int me = bucket.holders.rank();
  int64_t at = 0;
  for (const Entry& entry : bucket.entries) {
    if (!entry.owned_by(me)) continue;
    const int64_t begin = std::exchange(at, at + entry.parts.size(me));
    gradients[entry.parameter.name] = own.sliced(0, begin, at);
  }
}

void DataParallel::set_gradients(const std::map<std::string, Tensor>& gradients) {
  for (const nn::NamedTensor& piece : pieces_) {
    auto g = gradients.find(piece.name);
    if (g != gradients.end() && g->second) set_grad(piece.value, g->second.reshaped(piece.value.shape()));
  }
}

void DataParallel::finish(TreeSum own, const std::vector<nn::NamedTensor>& parameters,
                          const std::vector<Range>& samples) {
  MemoryScope scope(MemoryUse::gradients);
  std::map<std::string, size_t> index;
  for (const nn::NamedTensor& p : parameters) index.emplace(p.name, index.size());
  std::vector<TreeNode> nodes;  // of all replicas
  std::vector<Range> of_replica;
  for (const Range& range : samples) {
    const std::vector<TreeNode> part = tree_nodes(range);
    nodes.insert(nodes.end(), part.begin(), part.end());
    of_replica.push_back({std::ssize(nodes) - std::ssize(part), std::ssize(nodes)});
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.frozen) continue;
    const int holders = bucket.holders.size(), each = holders / static_cast<int>(samples.size());
    Partition of_rank;  // of the nodes: the first holder of a replica sends its terms
    for (int r = 0; r < holders; ++r)
      of_rank.ranges.push_back({r % each == 0 ? of_replica.at(static_cast<size_t>(r / each)) : Range{}});
    const Tensor& any = bucket.entries[0].parameter.value;
    const DType type = accumulate_type(any.dtype());
    const Tensor terms = zeros({of_rank.size(bucket.holders.rank()), bucket.size}, type, any.device());
    for (int64_t k = 0; k < terms.dim(0); ++k) {
      for (const Entry& entry : bucket.entries) {
        const Tensor& g = own.sums()[static_cast<size_t>(k)].at(index.at(entry.parameter.name));
        if (g) terms.sliced(0, k, k + 1).reshaped({bucket.size}).sliced(0, entry.at.begin, entry.at.end).copy_(flat(g));
      }
    }
    bucket.work = bucket.holders.start_all_to_all(terms, 1, bucket.parts, 0, of_rank);
  }
  std::map<std::string, Tensor> gradients;
  for (Bucket& bucket : buckets_) {
    if (bucket.frozen) continue;
    const Tensor terms = bucket.work.wait();
    TreeSum all;
    for (int64_t k = 0; k < terms.dim(0); ++k) all.add(nodes.at(static_cast<size_t>(k)), {terms.sliced(0, k, k + 1)});
    take_own(bucket, flat(all.total().at(0)), gradients);
  }
  const TreeSum::Terms alone = alone_.empty() ? TreeSum::Terms() : own.total();  // only this rank has samples of them
  for (const auto& [name, one] : alone_) {
    if (!requires_grad(one.parameter)) continue;  // frozen
    const Tensor& g = alone.at(index.at(name));
    gradients[name] =
        g ? g : zeros(one.parameter.shape(), accumulate_type(one.parameter.dtype()), one.parameter.device());
  }
  set_gradients(gradients);
}

void DataParallel::gather(bool frozen) {
  std::vector<Work> works;
  std::vector<Bucket*> sent;
  for (Bucket& bucket : buckets_) {
    if (bucket.frozen && !frozen) continue;
    sent.push_back(&bucket);
    const int me = bucket.holders.rank();
    const Tensor& any = bucket.entries[0].parameter.value;
    const Tensor own = empty({bucket.parts.size(me)}, any.dtype(), any.device());
    int64_t at = 0;
    for (const Entry& entry : bucket.entries) {
      const Range part = entry.parts.single(me);
      if (part.size() == 0) continue;
      const int64_t begin = std::exchange(at, at + part.size());
      own.sliced(0, begin, at).copy_(flat(entry.parameter.value).sliced(0, part.begin, part.end));
    }
    works.push_back(bucket.holders.start_all_gather(own, 0, bucket.parts));
  }
  for (size_t b = 0; b < sent.size(); ++b) {
    Tensor all = works[b].wait();
    for (const Entry& entry : sent[b]->entries)
      flat(entry.parameter.value).copy_(all.sliced(0, entry.at.begin, entry.at.end));
  }
}

Range DataParallel::owned_range(const std::string& name) const {
  auto alone = alone_.find(name);
  if (alone != alone_.end()) return {0, alone->second.parameter.numel()};
  const auto at = position_.find(name);
  check(at != position_.end(), "data_parallel", [&] { return "there is no parameter " + name; });
  const Bucket& bucket = buckets_[at->second.first];
  return bucket.entries[at->second.second].parts.single(bucket.holders.rank());
}

}  // namespace braid::dist
