#include "braid/dlpack.h"

#include <boost/test/unit_test.hpp>
#include <thread>

#include "braid/tensor/from_memory.h"
#include "tests/support/compare.h"

using namespace braid;
using namespace braid::test;

BOOST_AUTO_TEST_SUITE(dlpack)

namespace {

std::vector<double> values(const Tensor& x) { return x.to_vector<double>(); }

// What another library hands over: (2, 3) of f32, with a deleter that counts.
template <class Managed>
struct Foreign {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  int deleted = 0;
  Managed managed{};
  Foreign() {
    DLTensor& x = managed.dl_tensor;
    x.data = data;
    x.device = {kDLCPU, 0};
    x.ndim = 2;
    x.dtype = {kDLFloat, 32, 1};
    x.shape = shape;
    x.strides = strides;
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
  }
};
using Versioned = Foreign<DLManagedTensorVersioned>;

template <class Change>
void rejects(Change&& change, const std::string& part) {
  Versioned foreign;
  change(foreign);
  BOOST_TEST(throws_with([&] { from_dlpack(&foreign.managed); }, "[from_dlpack] "));
  BOOST_TEST(throws_with([&] { from_dlpack(&foreign.managed); }, part));
  BOOST_TEST(foreign.deleted == 0);  // it is still the caller's
}

template <class Managed>
void check_import() {
  Foreign<Managed> foreign;
  {
    Tensor row;
    {
      Tensor x = from_dlpack(&foreign.managed);
      BOOST_TEST(is_close(values(x), {0, 1, 2, 3, 4, 5}, 0));
      x.fill(9);
      BOOST_TEST(foreign.data[5] == 9.0f);
      row = x.sliced(0, 0, 1);
    }
    BOOST_TEST(foreign.deleted == 0);
  }
  BOOST_TEST(foreign.deleted == 1);
  foreign.managed.deleter = nullptr;
  from_dlpack(&foreign.managed);
}

}  // namespace

BOOST_AUTO_TEST_CASE(memory_of_another_library_is_shared) {
  check_import<DLManagedTensorVersioned>();
  check_import<DLManagedTensor>();
}

BOOST_AUTO_TEST_CASE(strides_offsets_and_flags) {
  Versioned foreign;
  DLTensor& x = foreign.managed.dl_tensor;
  foreign.shape[0] = 3, foreign.shape[1] = 2;
  foreign.strides[0] = 1, foreign.strides[1] = 3;
  x.byte_offset = 8;
  BOOST_TEST(is_close(values(from_dlpack(&foreign.managed)), {2, 5, 3, 6, 4, 7}, 0));
  x.strides = nullptr;
  BOOST_TEST(is_close(values(from_dlpack(&foreign.managed)), {2, 3, 4, 5, 6, 7}, 0));
  x.ndim = 0;
  x.shape = nullptr;
  BOOST_TEST(from_dlpack(&foreign.managed).item() == 2);
  foreign.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  Tensor read_only = from_dlpack(&foreign.managed);
  BOOST_TEST(throws_with([&] { read_only.fill(1); }, "[fill] the memory of this tensor is read-only"));
  x.device.device_type = kDLCUDAHost;
  BOOST_TEST((from_dlpack(&foreign.managed).device() == kCpu));
  BOOST_TEST(foreign.deleted == 4);
}

BOOST_AUTO_TEST_CASE(types_in) {
  struct Row {
    uint8_t code, bits;
    DType dtype;
  };
  for (const Row row : {Row{kDLFloat, 64, DType::f64}, Row{kDLFloat, 32, DType::f32}, Row{kDLFloat, 16, DType::f16},
                        Row{kDLBfloat, 16, DType::bf16}, Row{kDLInt, 64, DType::i64}, Row{kDLInt, 32, DType::i32},
                        Row{kDLUInt, 8, DType::u8}, Row{kDLBool, 8, DType::u8}}) {
    Versioned foreign;
    foreign.shape[0] = 1;
    foreign.managed.dl_tensor.dtype = {row.code, row.bits, 1};
    BOOST_TEST(str(from_dlpack(&foreign.managed).dtype()) == str(row.dtype));
  }
}

BOOST_AUTO_TEST_CASE(what_a_tensor_cannot_be_is_named) {
  const auto type = [](uint8_t code, uint8_t bits, uint16_t lanes) {
    return [=](Versioned& x) { x.managed.dl_tensor.dtype = {code, bits, lanes}; };
  };
  rejects(type(kDLInt, 16, 1), "the elements are int16: expected float64");
  rejects(type(kDLUInt, 32, 1), "uint32");
  rejects(type(kDLComplex, 64, 1), "complex64");
  rejects(type(kDLFloat8_e5m2, 8, 1), "type 12 of 8 bits");
  rejects(type(kDLFloat, 32, 4), "vectors of 4 float32");
  const auto device = [](int kind, int index) {
    return [=](Versioned& x) { x.managed.dl_tensor.device = {static_cast<DLDeviceType>(kind), index}; };
  };
  rejects(device(kDLMetal, 0), "a device of type 8 (kDLMetal)");
  rejects(device(kDLCUDAManaged, 0), "type 13 (kDLCUDAManaged)");
  rejects(device(77, 0), "a device of type 77: expected");
  rejects(device(kDLCUDA, 99), "the tensor is on GPU 99");
  rejects([](Versioned& x) { x.managed.dl_tensor.ndim = 9; }, "a tensor of rank 9: expected 0 to");
  rejects([](Versioned& x) { x.managed.dl_tensor.ndim = -1; }, "a tensor of rank -1");
  rejects([](Versioned& x) { x.managed.dl_tensor.shape = nullptr; }, "the pointer to the shape is null");
  rejects([](Versioned& x) { x.shape[0] = -2; }, "a size is negative");
  rejects([](Versioned& x) { x.strides[1] = -1; }, "stride -1 of axis 1 is negative");
  rejects([](Versioned& x) { x.managed.dl_tensor.data = nullptr; }, "a null pointer has no elements");
  rejects([](Versioned& x) { x.managed.dl_tensor.byte_offset = 3; }, "the address is no multiple of 4");
  rejects([](Versioned& x) { x.managed.version = {2, 7}; }, "the layout of DLPack 2.7: expected 1.x");
  BOOST_TEST(throws_with([] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }, "the tensor is null"));
}

BOOST_AUTO_TEST_CASE(tensors_go_out_with_their_memory) {
  DLManagedTensorVersioned* out = nullptr;
  const void* data = nullptr;
  {
    const Tensor x = from_values({0, 1, 2, 3, 4, 5}, {2, 3}).transposed().sliced(0, 1, 3);  // (2, 2), strides 1 and 3
    data = x.raw();
    out = to_dlpack(x);
  }
  const DLTensor& t = out->dl_tensor;
  BOOST_TEST(out->version.major == 1u);
  BOOST_TEST(out->flags == 0u);
  BOOST_TEST((static_cast<const char*>(t.data) + t.byte_offset == data));
  BOOST_TEST(t.ndim == 2);
  BOOST_TEST((t.shape[0] == 2 && t.shape[1] == 2 && t.strides[0] == 1 && t.strides[1] == 3));
  BOOST_TEST((t.dtype.code == kDLFloat && t.dtype.bits == 32 && t.dtype.lanes == 1));
  BOOST_TEST((t.device.device_type == kDLCPU && t.device.device_id == 0));
  Tensor back = from_dlpack(out);  // the tensor that was dropped above lives on
  BOOST_TEST(is_close(values(back), {1, 4, 2, 5}, 0));
  std::thread([last = std::move(back)]() mutable { last = Tensor(); }).join();
}

BOOST_AUTO_TEST_CASE(every_type_goes_there_and_back) {
  for (const DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8}) {
    const Tensor x = from_values({1, 2, 3, 4, 5, 250}, {2, 1, 3}, t);
    for (const Tensor& y : {from_dlpack(to_dlpack(x)), from_dlpack(to_dlpack_unversioned(x))}) {
      BOOST_TEST(str(y.dtype()) == str(t));
      BOOST_TEST(str(y.shape()) == "(2, 1, 3)");
      BOOST_TEST((y.raw() == x.raw()));
    }
    const Tensor none = from_dlpack(to_dlpack(zeros({0, 3}, t))), one = from_dlpack(to_dlpack(full({}, 7, t)));
    BOOST_TEST(str(none.shape()) == "(0, 3)");
    BOOST_TEST(one.item() == 7);
  }
  DLManagedTensorVersioned* empty = to_dlpack(zeros({0, 3}));
  BOOST_TEST(empty->dl_tensor.data == nullptr);
  empty->deleter(empty);
}

BOOST_AUTO_TEST_CASE(what_may_only_be_read_says_so) {
  const float data[2] = {1, 2};
  const Tensor lent = from_memory(data, {2});
  DLManagedTensorVersioned* out = to_dlpack(lent);
  BOOST_TEST(out->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  out->deleter(out);
  BOOST_TEST(
      throws_with([&] { to_dlpack_unversioned(lent); }, "as its owner lent it, and this envelope cannot say so"));
  BOOST_TEST(throws_with([] { to_dlpack(zeros({2}, DType::f32, kMeta)); }, "[to_dlpack] a tensor on the device meta"));
}

BOOST_AUTO_TEST_SUITE_END()
