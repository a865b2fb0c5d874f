#include "braid/tensor/dlpack.h"

#include <algorithm>
#include <memory>

#include "braid/tensor/called_op.h"
#include "braid/tensor/dlpack_abi.h"
#include "braid/tensor/from_memory.h"

namespace braid {

namespace {

constexpr const char *kFromDlpack = "from_dlpack", *kToDlpack = "to_dlpack";

struct DlpackType {
  DType dtype;
  uint8_t code, bits;
};
constexpr DlpackType kDlpackTypes[] = {
    {DType::f64, kDLFloat, 64}, {DType::f32, kDLFloat, 32}, {DType::bf16, kDLBfloat, 16}, {DType::f16, kDLFloat, 16},
    {DType::i64, kDLInt, 64},   {DType::i32, kDLInt, 32},   {DType::u8, kDLUInt, 8},      {DType::u8, kDLBool, 8}};

// "int16", "complex128", "type 20 of 6 bits"
std::string type_name(const DLDataType& type) {
  constexpr const char* names[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  std::string name = type.code < std::size(names) ? str(names[type.code], int{type.bits})
                                                  : str("type ", int{type.code}, " of ", int{type.bits}, " bits");
  return type.lanes == 1 ? name : str("vectors of ", int{type.lanes}, " ", name);
}

DType dtype_of_dlpack(const DLDataType& type) {
  for (const DlpackType& known : kDlpackTypes)
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return known.dtype;
  fail(kFromDlpack, str("the elements are ", type_name(type),
                        ": expected float64, float32, bfloat16, float16, int64, int32, uint8 or bool; convert them "
                        "where the tensor comes from"));
}

Device device_of_dlpack(const DLDevice& device) {
  constexpr const char* names[] = {
      "",          "kDLCPU",    "kDLCUDA",    "kDLCUDAHost", "kDLOpenCL",   "",          "",
      "kDLVulkan", "kDLMetal",  "kDLVPI",     "kDLROCM",     "kDLROCMHost", "kDLExtDev", "kDLCUDAManaged",
      "kDLOneAPI", "kDLWebGPU", "kDLHexagon", "kDLMAIA",     "kDLTrn"};
  if (device.device_type == kDLCPU || device.device_type == kDLCUDAHost) return kCpu;
  if (device.device_type == kDLCUDA) {
    const int count = cuda_device_count();
    check(device.device_id >= 0 && device.device_id < count, kFromDlpack, [&] {
      return str("the tensor is on GPU ", device.device_id, ", and this process sees ", count,
                 ": move it to the CPU where it comes from");
    });
    return {Device::Kind::cuda, static_cast<int16_t>(device.device_id)};
  }
  const auto type = static_cast<int64_t>(device.device_type);
  const bool known = type > 0 && type < std::ssize(names) && *names[type];
  fail(kFromDlpack,
       str("the tensor is on a device of type ", type, known ? " (" : "", known ? names[type] : "", known ? ")" : "",
           ": expected kDLCPU, kDLCUDAHost or kDLCUDA; move it to the CPU where it "
           "comes from"));
}

Shape sizes_of(const int64_t* values, int rank) {
  Shape sizes;
  for (int a = 0; a < rank; ++a) sizes.push_back(values[a]);
  return sizes;
}

template <class Managed>
Tensor from_managed(Managed* managed, bool writable) {
  const CalledOp called(kFromDlpack);
  const DLTensor& x = managed->dl_tensor;
  check(x.ndim >= 0 && x.ndim <= Shape::max_rank, kFromDlpack,
        [&] { return str("a tensor of rank ", x.ndim, ": expected 0 to ", Shape::max_rank, "; reshape it first"); });
  check(x.ndim == 0 || x.shape, kFromDlpack, "the pointer to the shape is null");
  const DType dtype = dtype_of_dlpack(x.dtype);
  const Device device = device_of_dlpack(x.device);
  const Shape shape = sizes_of(x.shape, x.ndim);
  const Strides strides = x.strides ? sizes_of(x.strides, x.ndim) : Strides{};
  void* data = x.data ? static_cast<char*>(x.data) + x.byte_offset : nullptr;
  const Release release = [managed] {
    if (managed->deleter) managed->deleter(managed);
  };
  return writable ? from_memory(data, shape, strides, dtype, release, device)
                  : from_memory(static_cast<const void*>(data), shape, strides, dtype, release, device);
}

// What a consumer holds, with all that it points to.
template <class Managed>
struct Export {
  Managed managed{};
  int64_t shape[Shape::max_rank], strides[Shape::max_rank];
  Tensor x;
};

template <class Managed>
Managed* export_tensor(const Tensor& tensor) {
  auto out = std::make_unique<Export<Managed>>();
  out->x = tensor.detach();
  const Tensor& x = out->x;
  const Device device = x.device();
  check(device.kind != Device::Kind::meta, kToDlpack, "a tensor on the device meta has no values");
  if (device.kind == Device::Kind::cuda) synchronize(device);
  std::ranges::copy(x.shape(), out->shape);
  std::ranges::copy(x.is_contiguous() ? contiguous_strides(x.shape()) : x.strides(), out->strides);
  const DlpackType* type = std::ranges::find(kDlpackTypes, x.dtype(), &DlpackType::dtype);
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->manager_ctx); };
  DLTensor& y = out->managed.dl_tensor;
  y.data = x.numel() > 0 ? const_cast<void*>(x.raw()) : nullptr;
  y.device = {device.kind == Device::Kind::cuda ? kDLCUDA : kDLCPU, device.index};
  y.ndim = x.rank();
  y.dtype = {type->code, type->bits, 1};
  y.shape = out->shape;
  y.strides = out->strides;
  y.byte_offset = 0;
  return &out.release()->managed;
}

// Whether a consumer may write: not where that would make a derivative wrong, nor to what was lent for reading.
bool may_be_written(const Tensor& x) { return !x.has_history() && x.storage().writable(); }

}  // namespace

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  check(managed != nullptr, kFromDlpack, "the pointer to the tensor is null");
  check(managed->version.major == DLPACK_MAJOR_VERSION, kFromDlpack, [&] {
    return str("the tensor has the layout of DLPack ", managed->version.major, ".", managed->version.minor,
               ": expected ", DLPACK_MAJOR_VERSION, ".x; ask the producer for that version");
  });
  return from_managed(managed, (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) == 0);
}

Tensor from_dlpack(DLManagedTensor* managed) {
  check(managed != nullptr, kFromDlpack, "the pointer to the tensor is null");
  return from_managed(managed, true);
}

DLManagedTensorVersioned* to_dlpack(const Tensor& x) {
  auto* managed = export_tensor<DLManagedTensorVersioned>(x);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = may_be_written(x) ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
  return managed;
}

DLManagedTensor* to_dlpack_unversioned(const Tensor& x) {
  check(may_be_written(x), "to_dlpack_unversioned", [&] {
    return str("the tensor may only be read, ",
               x.has_history() ? "as the result of a recorded op" : "as its owner lent it",
               ", and this envelope cannot say so: use to_dlpack(x), or pass x.detach().clone()");
  });
  return export_tensor<DLManagedTensor>(x);
}

}  // namespace braid
