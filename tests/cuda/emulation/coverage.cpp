#include "tests/cuda/emulation/coverage.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "braid/tensor/error.h"
#include "tests/cuda/emulation/engine.h"

namespace braid::emulated {

namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T read_at(const std::string& bytes, size_t offset) {
  T value;
  check(offset + sizeof(T) <= bytes.size(), "coverage", [] { return std::string("the program's file is cut short"); });
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

uintptr_t load_address() {  // of this program, which is the first object
  uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;
      },
      &address);
  return address;
}

// "void ns::(anonymous namespace)::f<float, 2>(float*)" -> "f"
std::string plain_name(const std::string& signature) {
  static const std::regex pattern(R"((\w+)(?:<.*>)?\([^()]*(?:\([^()]*\)[^()]*)*\)$)");
  std::smatch match;
  return std::regex_search(signature, match, pattern) ? match.str(1) : "";
}

}  // namespace

std::set<std::string> kernels_in(const std::string& folder) {
  const std::string bounds = R"((?:__launch_bounds__\s*\([^()]*\)\s*)?)";
  const std::regex pattern(R"(__global__\s+)" + bounds + R"(void\s+)" + bounds + R"((\w+)\s*\()");
  std::set<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".cu") continue;
    const std::string text = content(entry.path().string());
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) names.insert(it->str(1));
  }
  return names;
}

std::vector<CompiledKernel> compiled_kernels(const std::set<std::string>& names) {
  const std::string program = content("/proc/self/exe");
  const auto header = read_at<Elf64_Ehdr>(program, 0);
  std::vector<CompiledKernel> found;
  const uintptr_t base = load_address();
  const auto section = [&](size_t i) { return read_at<Elf64_Shdr>(program, header.e_shoff + i * header.e_shentsize); };
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr strings = section(symbols.sh_link);
    for (size_t at = 0; at < symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(program, symbols.sh_offset + at);
      const char* mangled = program.data() + strings.sh_offset + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0 || std::strchr(mangled, '.')) continue;
      char* readable = abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
      if (!readable) continue;
      const std::string signature(readable);
      std::free(readable);
      const std::string name = plain_name(signature);
      if (!names.contains(name)) continue;
      const auto it = launches_of().find(reinterpret_cast<const void*>(base + symbol.st_value));
      found.push_back({name, signature, it == launches_of().end() ? 0 : it->second});
    }
  }
  return found;
}

}  // namespace braid::emulated
