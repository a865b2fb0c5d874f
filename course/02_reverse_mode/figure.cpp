// The graph of y = a b + a: values forward, gradients backward, both computed by Braid.
#include <braid/autograd.h>

#include "course/drawing.h"

using course::Color;
using namespace braid;

namespace {

std::string number(const Tensor& x) { return std::to_string(static_cast<int>(x.item())); }

void node(course::Drawing& out, double x, double y, const std::string& name, const Tensor& value,
          const Tensor& gradient) {
  out.box(x, y, 92, 62, "", Color::ink, 0.04);
  out.text(x + 46, y + 20, name, Color::ink, "middle");
  out.text(x + 46, y + 38, "value " + number(value), Color::blue, "middle");
  out.text(x + 46, y + 55, "gradient " + number(gradient), Color::orange, "middle");
}

}  // namespace

int main(int argc, char** argv) {
  Tensor a = from_values({2}, {1}, DType::f64), b = from_values({3}, {1}, DType::f64);
  require_grad(a), require_grad(b);
  const Tensor c = a * b, y = c + a;
  const std::vector<Tensor> d = grad(y, {a, b, c, y});
  course::Drawing out(640, 250, "The graph of y = a b + a: values flow to the right, gradients to the left");
  node(out, 20, 40, "a", a, d[0]);
  node(out, 20, 150, "b", b, d[1]);
  node(out, 260, 110, "c = a b", c, d[2]);
  node(out, 520, 40, "y = c + a", y, d[3]);
  out.arrow(112, 60, 518, 60);
  out.arrow(112, 92, 258, 130);
  out.arrow(112, 182, 258, 156);
  out.arrow(352, 130, 518, 92);
  out.text(310, 50, "dy 1 = " + number(d[3]), Color::orange, "middle");
  out.text(180, 98, "dc b = " + number(no_grad([&] { return d[2] * b; })), Color::orange, "start");
  out.text(180, 196, "dc a = " + number(no_grad([&] { return d[2] * a; })), Color::orange, "start");
  out.text(440, 130, "dy 1 = " + number(d[3]), Color::orange, "start");
  out.text(330, 238, "along an arrow: what its end sends back to its start; a receives two and adds them", Color::soft,
           "middle");
  out.save(argc, argv);
}
