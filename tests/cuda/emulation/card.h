// What the emulated card is. Tests of bad use make it another one for a while.
#pragma once
#include <string>

#include "braid/cuda/runtime/runtime.h"

namespace braid::emulated {

struct Card {
  cuda::Properties properties;  // memory: what tensors can have
  int count = 1;                // cards in the machine
  std::string failure = "";     // of a kernel that ran: the next call that waits for the card reports it
};
Card& card();

class OtherCard {  // the card is as it was when this dies
 public:
  OtherCard() : before_(card()) {}
  ~OtherCard() { card() = before_; }
  OtherCard(const OtherCard&) = delete;
  OtherCard& operator=(const OtherCard&) = delete;
  Card* operator->() { return &card(); }

 private:
  Card before_;
};

}  // namespace braid::emulated
