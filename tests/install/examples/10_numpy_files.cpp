// NumPy files in and out: a plane is fitted to points. points.npz holds x (n, 2) and y (n), as
// numpy.savez("points.npz", x=x, y=y) writes them; without an argument the program makes one. fit.npz is for
// numpy.load.
//
//   10_numpy_files [points.npz]
#include <braid/autograd.h>
#include <braid/tensor.h>

#include <cmath>
#include <cstdio>
#include <vector>
using namespace braid;

// The plain arrays that a program of any kind has become tensors without a copy.
static void make_points(const std::string& path) {
  const int64_t n = 400;
  std::vector<double> x;
  std::vector<float> y;
  for (int i = 0; i < n; ++i) {
    const double east = i % 20 / 20.0, north = i / 20 / 20.0;
    x.insert(x.end(), {east, north});
    y.push_back(static_cast<float>(3 * east - 2 * north + 0.5 + 0.01 * std::sin(7.0 * i)));
  }
  io::save_npz(path, {{"x", from_memory(x.data(), {n, 2})}, {"y", from_memory(y.data(), {n})}}, {.compressed = true});
}

int main(int count, char** arguments) try {
  const std::string path = count > 1 ? arguments[1] : "points.npz";
  if (count < 2) make_points(path);
  const io::NpzFile file(path);
  for (const std::string& name : file.names()) {
    const Tensor array = file.load(name);
    std::printf("%s: %s %s\n", name.c_str(), str(array.dtype()).c_str(), str(array.shape()).c_str());
  }

  const Tensor x = cast(file.load("x"), DType::f64), y = cast(file.load("y"), DType::f64);
  const Tensor ones = full({x.dim(0), 1}, 1, DType::f64);
  const Tensor features = concat({x, ones}, 1);                        // (n, 3)
  const Tensor weights = lstsq(features, unsqueeze(y, 1));             // (3, 1)
  const Tensor residuals = y - squeeze(matmul(features, weights), 1);  // (n)
  io::save_npz("fit.npz", {{"weights", weights}, {"residuals", residuals}});
  io::save_npy("residuals.npy", residuals);

  const Tensor again = io::load_npy("residuals.npy");
  double largest = 0;
  for (const double r : as_span<double>(again)) largest = std::fmax(largest, std::fabs(r));
  const std::span<const double> w = as_span<double>(weights);
  std::printf("y = %.2f x0 %+.2f x1 %+.2f, residuals up to %.3f\n", w[0], w[1], w[2], largest);
  return largest < 0.02 ? 0 : 1;
} catch (const Error& e) {  // a file that is damaged, of another type or not there: the message says what to do
  std::fprintf(stderr, "%s\n", e.what());
  return static_cast<int>(e.kind());
}
