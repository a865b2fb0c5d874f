// A buffer of six numbers, seen as a matrix, its transpose, a slice and a repeated row.
#include <braid/autograd.h>

#include <cstdio>
using namespace braid;

namespace {

void show(const char* name, const Tensor& x) {
  std::printf("%-12s", name);
  for (const int64_t size : x.shape()) std::printf(" %ld", static_cast<long>(size));
  std::printf(" | strides");
  for (const int64_t stride : x.strides()) std::printf(" %ld", static_cast<long>(stride));
  std::printf(" | contiguous %s | elements", x.is_contiguous() ? "yes" : "no ");
  for (const double value : x.to_vector<double>()) std::printf(" %g", value);
  std::printf("\n");
}

}  // namespace

int main() {
  Tensor matrix = from_values({0, 1, 2, 3, 4, 5}, {2, 3});
  show("matrix", matrix);
  show("transposed", matrix.transposed(0, 1));
  show("column 1", matrix.sliced(1, 1, 2));
  show("row, twice", matrix.sliced(0, 0, 1).expanded({2, 3}));

  matrix.sliced(1, 1, 2).fill(9);  // a view is the buffer: the matrix changes
  show("matrix", matrix);
  const Tensor copy = matrix.transposed(0, 1).contiguous();  // a copy in row-major order of the new axes
  show("copied", copy);
  std::printf("same buffer: view %d, copy %d\n", matrix.transposed(0, 1).shares_storage(matrix),
              copy.shares_storage(matrix));
}
