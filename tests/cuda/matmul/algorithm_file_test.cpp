// The file of measured algorithms: made when absent, only read when present, rejected when it is foreign or damaged.
#include "braid/cuda/matmul/algorithm_file.h"

#include <boost/test/unit_test.hpp>

#include "braid/tensor/error.h"
#include "braid/tensor/io/atomic_file.h"
#include "braid/tensor/io/reader.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace braid;
using namespace braid::test;
using cuda::AlgorithmFile;

namespace {

const std::string kGpuName = "NVIDIA H100 80GB HBM3";
constexpr int64_t kVersion = 130000;

cuda::ProductKey key(int64_t first) {
  cuda::ProductKey key{};
  for (size_t i = 0; i < key.size(); ++i) key[i] = first + static_cast<int64_t>(i);
  return key;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cuda_algorithm_file)

BOOST_AUTO_TEST_CASE(is_made_once_and_read_afterwards) {
  const TempFolder folder;
  const std::string path = folder / "matmul.json";
  const cuda::Algorithm one{1, 2, 3, 4, 5, 6, 7, UINT64_MAX}, two{8, 0, 0, 0, 0, 0, 0, 9};
  AlgorithmFile made(path, kGpuName, kVersion);
  BOOST_TEST(made.measures());
  BOOST_TEST(!made.find(key(1)));
  made.add(key(1), one, 41.5);
  made.add(key(-300), two, 0.25);
  const AlgorithmFile read(path, kGpuName, kVersion);
  BOOST_TEST(!read.measures());
  BOOST_REQUIRE(read.find(key(1)));
  BOOST_TEST((*read.find(key(1)) == one));
  BOOST_TEST((*read.find(key(-300)) == two));
  BOOST_TEST(!read.find(key(2)));
  const std::string text = io::read_text_file(path, 1 << 20);
  AlgorithmFile again(folder / "again.json", kGpuName, kVersion);  // the same products, the same bytes
  again.add(key(-300), two, 0.25);
  again.add(key(1), one, 41.5);
  BOOST_TEST(io::read_text_file(folder / "again.json", 1 << 20) == text);
}

BOOST_AUTO_TEST_CASE(a_full_file_takes_no_other_product_and_can_be_read) {
  const TempFolder folder;
  const std::string path = folder / "matmul.json";
  AlgorithmFile file(path, kGpuName, kVersion, 2);
  BOOST_TEST(file.measures());
  for (int i = 1; i <= 3; ++i) BOOST_TEST(file.add(key(i), {}, 1) == (i < 3));
  BOOST_TEST(!file.measures());
  BOOST_TEST(file.add(key(2), {7}, 1));  // measured again
  const AlgorithmFile read(path, kGpuName, kVersion, 2);
  BOOST_REQUIRE(read.find(key(2)));
  BOOST_TEST(read.find(key(2))->at(0) == 7u);
  BOOST_TEST(!read.find(key(3)));
}

BOOST_AUTO_TEST_CASE(of_another_gpu_or_library_is_rejected) {
  const TempFolder folder;
  const std::string path = folder / "matmul.json";
  AlgorithmFile(path, kGpuName, kVersion).add(key(1), {}, 1);
  BOOST_TEST(throws_with([&] { AlgorithmFile(path, "NVIDIA H200", kVersion); },
                         path + " was measured on NVIDIA H100 80GB HBM3 with cuBLASLt 130000, here is NVIDIA H200 with "
                                "cuBLASLt 130000: set BRAID_MATMUL_ALGORITHMS to a file of this GPU"));
  BOOST_TEST(throws_with([&] { AlgorithmFile(path, kGpuName, kVersion + 1); }, "here is NVIDIA H100 80GB HBM3 with"));
}

BOOST_AUTO_TEST_CASE(that_is_damaged_is_rejected) {
  const TempFolder folder;
  const std::string path = folder / "matmul.json", head = R"({"gpu": "NVIDIA H100 80GB HBM3", "cublaslt": 130000)",
                    keys = R"("key": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19])",
                    words = R"("algorithm": ["0x0","0x1","0x2","0x3","0x4","0x5","0x6","0x7"])",
                    whole = "{" + keys + ", " + words + R"(, "microseconds": 3})";
  const auto rejects = [&](const std::string& text, const std::string& message) {
    io::write_file(path, text);
    BOOST_TEST(throws_with([&] { AlgorithmFile(path, kGpuName, kVersion); }, message), text);
  };
  const auto product = [&](const std::string& text) { return head + ", \"products\": [" + text + "]}"; };
  io::write_file(path, product(whole));
  BOOST_TEST(AlgorithmFile(path, kGpuName, kVersion).find(key(1)));
  rejects("", path);
  rejects("[]", path + ": expected an object with 'gpu'");
  rejects(R"({"gpu": 3, "cublaslt": 130000})", "gpu: expected the name of a GPU");
  rejects(R"({"gpu": "x", "cublaslt": 18446744073709551615})", "cublaslt: expected an integer of 64 bits");
  rejects(head + "}", "expected an object with 'products'");
  rejects(head + R"(, "products": {}})", "products: expected a list of at most 20000");
  rejects(product("3"), "products[0]: expected an object with 'key'");
  rejects(product(R"({"key": [1, 2]})"), "products[0].key: expected 19 elements");
  rejects(product("{" + keys + R"(, "algorithm": ["0x0"]})"), "products[0].algorithm: expected 8 elements");
  rejects(product("{" + keys + R"(, "algorithm": ["0","0","0","0","0","0","0","0"]})"),
          "products[0].algorithm[0]: expected a word of 64 bits as \"0x...\"; delete the file to measure anew");
  rejects(product("{" + keys + ", " + words + R"(, "microseconds": -1})"), "products[0].microseconds: expected a time");
  rejects(product(whole + ", " + whole), "products[1]: expected every product once");
}

BOOST_AUTO_TEST_SUITE_END()
