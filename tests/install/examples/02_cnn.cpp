// A convolutional network on images of the shape of Fashion-MNIST's, 28 x 28 in 10 classes: here a bright bar at one of
// ten heights, in noise. Batches are made ahead by two threads.
#include <braid/autograd.h>
#include <braid/nn.h>

#include <cstdio>
using namespace braid;

// Class c is bright in the rows 2 c to 2 c + 3.  (n) i64 -> (n, 1, 28, 28)
static Tensor images(const Tensor& classes, RandomKey key) {
  const Tensor first = reshape(2 * classes, {-1, 1, 1, 1}), row = reshape(arange(28), {28, 1});
  const Tensor bar = cast((row >= first) & (row < first + 4), DType::f32);  // (n, 1, 28, 1)
  return bar + 0.5 * randn({classes.numel(), 1, 28, 28}, key);
}

int main() {
  const RandomKey key{.seed = 1};
  nn::Sequential net(nn::Conv2d(1, 8, {3, 3}, {.same = true, .bias = false}, child(key, 1)), nn::BatchNorm(8), relu,
                     nn::MaxPool2d{{2, 2}},  // (B, 8, 14, 14)
                     nn::Conv2d(8, 16, {3, 3}, {.same = true}, child(key, 2)), relu, nn::MaxPool2d{{2, 2}},
                     nn::Flatten{},  // (B, 16 7 7)
                     nn::Dropout(0.1), nn::Linear(16 * 7 * 7, 10, {.bias = true}, child(key, 3)));
  nn::AdamW optimizer(nn::parameters(net), {.lr = 2e-3});
  const Tensor classes = arange(400) % 10;
  const nn::Batches batches({images(classes, child(key, "train")), classes},
                            {.size = 40, .shuffle = true, .seed = 2, .workers = 2});
  for (int epoch = 1, step = 0; epoch <= 3; ++epoch) {
    Tensor loss;
    for (const std::vector<Tensor>& batch : batches.epoch(epoch)) {
      loss = cross_entropy(net(batch[0], nn::Mode::train, child(key, ++step)), batch[1], {.label_smoothing = 0.05});
      backward(loss);
      optimizer.step();
      optimizer.zero_grad();
    }
    std::printf("epoch %d loss %.3f\n", epoch, loss.item());
  }
  const NoGrad off;
  const Tensor expected = arange(200) % 10, found = argmax(net(images(expected, child(key, "test"))));
  const int right = static_cast<int>(sum(eq(found, expected)).item());
  std::printf("%d of 200 new images are recognised\n", right);
  return right >= 190 ? 0 : 1;
}
