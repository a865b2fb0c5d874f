#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/gguf_format.h"

namespace braid::io {

namespace {

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_text(std::string& to, const std::string& value) {
  put(to, static_cast<uint64_t>(value.size()));
  to += value;
}

struct PutValue {
  std::string& to;

  void operator()(int64_t x) {
    check(x >= 0 && x <= UINT32_MAX, "write_gguf", [&] { return str(x, " does not fit u32"); });
    put(to, gguf::Value::u32), put(to, static_cast<uint32_t>(x));
  }
  void operator()(double x) { put(to, gguf::Value::f32), put(to, static_cast<float>(x)); }
  void operator()(bool x) { put(to, gguf::Value::boolean), put(to, static_cast<uint8_t>(x)); }
  void operator()(const std::string& x) { put(to, gguf::Value::text), put_text(to, x); }
  void operator()(const std::vector<int64_t>& x) {
    list(gguf::Value::i32, x, [&](int64_t n) {
      check(n >= INT32_MIN && n <= INT32_MAX, "write_gguf", [&] { return str(n, " does not fit i32"); });
      put(to, static_cast<int32_t>(n));
    });
  }
  void operator()(const std::vector<double>& x) {
    list(gguf::Value::f32, x, [&](double n) { put(to, static_cast<float>(n)); });
  }
  void operator()(const std::vector<std::string>& x) {
    list(gguf::Value::text, x, [&](const std::string& n) { put_text(to, n); });
  }
  template <class T, class F>
  void list(gguf::Value::Type type, const std::vector<T>& x, F each) {
    put(to, gguf::Value::array), put(to, type), put(to, static_cast<uint64_t>(x.size()));
    for (const T& n : x) each(n);
  }
};

// The blocks of a matrix.
std::string blocks_of(const GroupWeight& w) {
  std::string bytes;
  const uint8_t* q = w.values.data<uint8_t>();
  for (int64_t g = 0; g < w.scale.numel(); ++g, q += kGroup) {
    put(bytes, w.scale.data<float16>()[g].bits);
    for (int64_t i = 0; i < 4 * w.bits; ++i)
      put(bytes, static_cast<uint8_t>(w.bits == 8 ? q[i] - 128 : (q[i] - 120) | (q[i + 16] - 120) << 4));
  }
  return bytes;
}

}  // namespace

void write_gguf(const std::string& path, const std::vector<std::pair<std::string, GgufValue>>& metadata,
                const std::vector<GgufSource>& tensors) {
  std::string head;
  put(head, gguf::kMagic), put(head, uint32_t{3});
  put(head, static_cast<uint64_t>(tensors.size())), put(head, static_cast<uint64_t>(metadata.size()));
  for (const auto& [key, value] : metadata) put_text(head, key), std::visit(PutValue{head}, value);
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  for (const GgufSource& t : tensors) {
    const GgufType* type = find_gguf_type(t.type);
    check(type && t.shape.rank() >= 1 && t.shape[-1] % type->block == 0, "write_gguf",
          [&] { return str(t.name, " ", t.shape, " cannot be of type ", t.type); });
    put_text(head, t.name), put(head, static_cast<uint32_t>(t.shape.rank()));
    for (int a = t.shape.rank() - 1; a >= 0; --a) put(head, static_cast<uint64_t>(t.shape[a]));
    put(head, type->id), put(head, static_cast<uint64_t>(offset));
    sizes.push_back(numel(t.shape) / type->block * type->bytes);
    offset = gguf::padded(offset + sizes.back(), gguf::kAlignment);
  }
  AtomicFile file(path);
  const std::string zeros(gguf::kAlignment, '\0');
  const auto align = [&] { file.write(zeros.data(), gguf::padded(file.size(), gguf::kAlignment) - file.size()); };
  file.write(head);
  align();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const GgufSource& t = tensors[i];
    const int64_t before = file.size();
    if (t.groups) {
      file.write(blocks_of(t.groups()));
    } else {
      const Tensor x = t.make().detach().to(kCpu).contiguous();
      check(gguf::plain_type(*find_gguf_type(t.type)) == x.dtype(), "write_gguf",
            [&] { return t.name + " has another type"; });
      file.write(x.raw(), x.numel() * size_of(x.dtype()));
    }
    check(file.size() - before == sizes[i], "write_gguf", [&] { return t.name + " is not what was announced"; });
    align();
  }
  file.commit();
}

}  // namespace braid::io
