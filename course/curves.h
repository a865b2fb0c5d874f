// The losses of a milestone, step by step: two curves on the screen, and in the CSV file that the program was called
// with as braid plot reads them.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace course {

class Curves {
 public:
  // own, other: what the curves are called; every: steps between lines on the screen.
  Curves(int argc, char** argv, std::string own, std::string other, int every)
      : own_(std::move(own)), other_(std::move(other)), every_(every) {
    if (argc != 2) std::fprintf(stderr, "expected one argument: the CSV file to write\n"), std::exit(2);
    file_ = std::fopen(argv[1], "w");
    if (!file_) std::fprintf(stderr, "cannot write %s\n", argv[1]), std::exit(1);
    std::fprintf(file_, "run,step,loss\n");
  }
  ~Curves() { std::fclose(file_); }
  Curves(const Curves&) = delete;

  void add(int step, double own, double other) {
    if (step == 1) first_ = own;
    last_ = own, apart_ = std::fmax(apart_, std::fabs(own - other));
    std::fprintf(file_, "%s,%d,%.9g\n%s,%d,%.9g\n", own_.c_str(), step, own, other_.c_str(), step, other);
    if (step == 1 || step % every_ == 0)
      std::printf("step %3d   %s %.6f   %s %.6f\n", step, own_.c_str(), own, other_.c_str(), other);
  }
  double first() const { return first_; }  // of the own curve
  double last() const { return last_; }
  double apart() const { return apart_; }  // the largest difference of the two

 private:
  std::string own_, other_;
  int every_;
  std::FILE* file_ = nullptr;
  double first_ = 0, last_ = 0, apart_ = 0;
};

}  // namespace course
