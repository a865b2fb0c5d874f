#include "braid/cuda/attention/cudnn_graph.h"

#include <algorithm>

#include "braid/tensor/error.h"

namespace braid::cuda {

namespace {

using Raw = cudnnBackendDescriptor_t;
using Name = cudnnBackendAttributeName_t;

template <class T>
constexpr cudnnBackendAttributeType_t kType = CUDNN_TYPE_INT64;
template <>
constexpr cudnnBackendAttributeType_t kType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
constexpr cudnnBackendAttributeType_t kType<Raw> = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
constexpr cudnnBackendAttributeType_t kType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
constexpr cudnnBackendAttributeType_t kType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
constexpr cudnnBackendAttributeType_t kType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
constexpr cudnnBackendAttributeType_t kType<cudnnReduceTensorOp_t> = CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
template <>
constexpr cudnnBackendAttributeType_t kType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
constexpr cudnnBackendAttributeType_t kType<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;

Descriptor make(cudnnBackendDescriptorType_t type) {
  Raw raw = nullptr;
  check(cudnnBackendCreateDescriptor(type, &raw));
  return Descriptor(raw);
}

template <class T>
void set(Raw descriptor, Name name, std::span<const T> values) {
  check(cudnnBackendSetAttribute(descriptor, name, kType<T>, static_cast<int64_t>(values.size()), values.data()));
}
template <class T>
void set(Raw descriptor, Name name, const T& value) {
  set(descriptor, name, std::span<const T>(&value, 1));
}

// How many values the attribute has; `values` receives as many of them as it has room for.
template <class T>
int64_t get(Raw descriptor, Name name, std::span<T> values) {
  int64_t count = 0;
  check(
      cudnnBackendGetAttribute(descriptor, name, kType<T>, static_cast<int64_t>(values.size()), &count, values.data()));
  return count;
}

// The plans that cuDNN proposes for the operations, the best first.
std::vector<Descriptor> proposals(Raw operations, const CudnnDevice& device) {
  const Descriptor heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
  set(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  if (device.description) set(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.description);
  check(cudnnBackendFinalize(heuristics.get()));
  const int64_t count = get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, std::span<Raw>());
  std::vector<Descriptor> configurations;
  std::vector<Raw> raw;
  for (int64_t i = 0; i < count; ++i) {
    configurations.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configurations.back().get());
  }
  const int64_t found = get(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, std::span<Raw>(raw));
  configurations.resize(static_cast<size_t>(std::min(found, count)));
  return configurations;
}

bool is_deterministic(Raw configuration) {
  const Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  Raw raw = engine.get();
  get(configuration, CUDNN_ATTR_ENGINECFG_ENGINE, std::span<Raw>(&raw, 1));
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes;
  const int64_t count =
      get(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, std::span<cudnnBackendNumericalNote_t>(notes));
  for (int64_t i = 0; i < count; ++i) {
    if (notes[static_cast<size_t>(i)] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
  }
  return true;
}

}  // namespace

void check(cudnnStatus_t status, const std::source_location& where) {
  if (status == CUDNN_STATUS_SUCCESS) [[likely]]
    return;
  std::array<char, 1000> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  failed_call(str("cuDNN: ", cudnnGetErrorString(status), " (", text.data(), ")"), where);
}

Raw CudnnGraph::begin(cudnnBackendDescriptorType_t type) {
  parts_.push_back(make(type));
  return parts_.back().get();
}

CudnnGraph::Node CudnnGraph::tensor(int64_t id, cudnnDataType_t type, const Dims& shape, const Dims& strides,
                                    bool is_virtual, bool by_value) {
  const Raw raw = begin(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set(raw, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  set(raw, CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  set(raw, CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(shape));
  set(raw, CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(strides));
  set(raw, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
  set(raw, CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
  set(raw, CUDNN_ATTR_TENSOR_IS_BY_VALUE, by_value);
  check(cudnnBackendFinalize(raw));
  return {raw, shape, strides};
}

CudnnGraph::Node CudnnGraph::memory(int64_t id, cudnnDataType_t type, const Dims& shape, const Dims& strides) {
  return tensor(id, type, shape, strides, false, false);
}
CudnnGraph::Node CudnnGraph::number(cudnnDataType_t type, uint32_t bits) {
  numbers_.push_back({next_id_++, bits});
  return tensor(numbers_.back().id, type, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true);
}
CudnnGraph::Node CudnnGraph::between(const Dims& s, cudnnDataType_t type) {
  return tensor(next_id_++, type, s, {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}, true, false);
}

void CudnnGraph::operation(cudnnBackendDescriptorType_t type, std::initializer_list<std::pair<Name, Raw>> operands) {
  const Raw raw = begin(type);
  for (const auto& [name, descriptor] : operands) {
    if (descriptor) set(raw, name, descriptor);
  }
  check(cudnnBackendFinalize(raw));
  operations_.push_back(raw);
}

CudnnGraph::Node CudnnGraph::product(const Node& a, const Node& b, const Node& to) {
  const Raw how = begin(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, kFloat);
  check(cudnnBackendFinalize(how));
  operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_MATMUL_DESC, how},
                                                        {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.tensor},
                                                        {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.tensor},
                                                        {CUDNN_ATTR_OPERATION_MATMUL_CDESC, to.tensor}});
  return to;
}

CudnnGraph::Node CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node& y, const Node& to,
                                       const Node& where, cudnnDataType_t arithmetic, int64_t axis) {
  const Raw how = begin(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(how, CUDNN_ATTR_POINTWISE_MODE, mode);
  set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic);
  if (axis >= 0) set(how, CUDNN_ATTR_POINTWISE_AXIS, axis);
  check(cudnnBackendFinalize(how));
  operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how},
                                                           {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.tensor},
                                                           {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, y.tensor},
                                                           {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, where.tensor},
                                                           {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to.tensor}});
  return to;
}
CudnnGraph::Node CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node& y, const Node& to) {
  return pointwise(mode, x, y, to, {}, kFloat, -1);
}
CudnnGraph::Node CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Node& x, const Node& y, cudnnDataType_t type,
                                       cudnnDataType_t arithmetic) {
  return pointwise(mode, x, y, between(x.shape, type), {}, arithmetic, -1);
}
CudnnGraph::Node CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Node& x) {
  return pointwise(mode, x, {}, between(x.shape), {}, kFloat, -1);
}
CudnnGraph::Node CudnnGraph::index(const Node& like, int64_t axis) {
  return pointwise(CUDNN_POINTWISE_GEN_INDEX, like, {}, between(like.shape, CUDNN_DATA_INT32), {}, kFloat, axis);
}
CudnnGraph::Node CudnnGraph::select(const Node& where, const Node& x, const Node& y) {
  return pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, y, between(x.shape), where, kFloat, -1);
}

CudnnGraph::Node CudnnGraph::reduce(cudnnReduceTensorOp_t op, const Node& x, const Node& to) {
  const Raw how = begin(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(how, CUDNN_ATTR_REDUCTION_OPERATOR, op);
  set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, kFloat);
  check(cudnnBackendFinalize(how));
  operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, how},
                                                           {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.tensor},
                                                           {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to.tensor}});
  return to;
}

CudnnGraph::Node CudnnGraph::transposed(const Node& x, cudnnDataType_t type) {
  Dims shape = x.shape, strides = x.strides;
  std::swap(shape[2], shape[3]);
  std::swap(strides[2], strides[3]);
  const Node to = tensor(next_id_++, type, shape, strides, true, false);
  operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
            {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.tensor}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to.tensor}});
  return to;
}

void CudnnGraph::build(const CudnnDevice& device) {
  const Raw operations = begin(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (device.handle) set(operations, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device.handle);
  set(operations, CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Raw>(operations_));
  check(cudnnBackendFinalize(operations));
  std::string reason = "it proposes none";
  for (Descriptor& configuration : proposals(operations, device)) {
    if (!is_deterministic(configuration.get())) continue;
    Descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (device.handle) set(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device.handle);
    if (device.description) set(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.description);
    set(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration.get());
    try {
      check(cudnnBackendFinalize(plan.get()));
    } catch (const Error& error) {
      reason = error.what();
      continue;
    }
    get(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, std::span<int64_t>(&workspace_, 1));
    parts_.push_back(std::move(configuration));
    plan_ = std::move(plan);
    return;
  }
  fail("cudnn", "there is no plan for these shapes: " + reason);
}

void CudnnGraph::run(cudnnHandle_t handle, Pointers tensors, void* workspace) const {
  for (const Number& number : numbers_) tensors.emplace_back(number.id, const_cast<uint32_t*>(&number.bits));
  std::vector<int64_t> ids;
  std::vector<void*> addresses;
  for (const auto& [id, address] : tensors) {
    ids.push_back(id);
    addresses.push_back(address);
  }
  const Descriptor pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  set(pack.get(), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids));
  // void* is also what descriptors and handles are, so that its name as a type of attributes stands here.
  const auto pointers = [&](Name name, std::span<void* const> values) {
    check(cudnnBackendSetAttribute(pack.get(), name, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(values.size()),
                                   values.data()));
  };
  pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses);
  pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {&workspace, 1});
  check(cudnnBackendFinalize(pack.get()));
  check(cudnnBackendExecute(handle, plan_.get(), pack.get()));
}

}  // namespace braid::cuda
