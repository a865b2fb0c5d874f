// A convolutional network on images of the shape of Fashion-MNIST's, 28 x 28 in 10 classes: here a bright bar at one of
// ten heights, in noise.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

// Image i is of class i % 10: 1 in the rows 2 c to 2 c + 3 of class c.
static Tensor images(int64_t n, RandomKey key) {
  std::vector<float> bar(10 * 28, 0.0f);  // (class, row)
  for (size_t c = 0; c < 10; ++c)
    for (size_t row = 2 * c; row < 2 * c + 4; ++row) bar[c * 28 + row] = 1.0f;
  std::vector<int64_t> classes;
  for (int64_t i = 0; i < n; ++i) classes.push_back(i % 10);
  const Tensor rows = index_select(from_vector(bar, {10, 28}), from_vector(classes, {n}));
  return reshape(rows, {n, 1, 28, 1}) + 0.5 * randn({n, 1, 28, 28}, key);  // (n, 1, 28, 28)
}

int main() {
  const RandomKey key{.seed = 1};
  const int64_t n = 400;
  const Tensor x = images(n, child(key, "images"));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(i % 10);

  nn::Sequential net(nn::Conv2d(1, 8, {3, 3}, {.same = true, .bias = false}, child(key, 1)), nn::BatchNorm(8), relu,
                     nn::MaxPool2d{{2, 2}},  // (B, 8, 14, 14)
                     nn::Conv2d(8, 16, {3, 3}, {.padding = {1, 1}}, child(key, 2)), relu, nn::MaxPool2d{{2, 2}},
                     nn::Flatten{},  // (B, 16 7 7)
                     nn::Dropout(0.1), nn::Linear(16 * 7 * 7, 10, {.bias = true}, child(key, 3)));
  nn::AdamW optimizer(nn::parameters(net), {.lr = 2e-3});
  const nn::Batches batches({x, from_vector(labels, {n})}, {.size = 40, .shuffle = true, .seed = 2, .workers = 2});
  int64_t step = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    double last = 0;
    for (const std::vector<Tensor>& batch : batches.epoch(epoch)) {
      const Tensor logits = net(batch[0], nn::Mode::train, child(key, ++step));
      const Tensor loss = cross_entropy(logits, batch[1], {.label_smoothing = 0.05});
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
      last = loss.item();
    }
    std::printf("epoch %d loss %.3f\n", static_cast<int>(epoch) + 1, last);
  }
  const NoGrad off;
  const std::vector<int64_t> found = argmax(net(images(200, child(key, "test")))).to_vector<int64_t>();
  int right = 0;
  for (size_t i = 0; i < found.size(); ++i) right += found[i] == static_cast<int64_t>(i % 10) ? 1 : 0;
  std::printf("%d of 200 new images are recognised\n", right);
}
