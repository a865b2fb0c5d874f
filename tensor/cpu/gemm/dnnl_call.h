// What every call of oneDNN needs. Only where BRAID_HAVE_DNNL is defined.
#pragma once

namespace braid::cpu {

// While it lives, the calling thread may call oneDNN, which then uses this thread alone: Debian's oneDNN starts OpenMP
// threads of its own otherwise. Afterwards the thread has as many OpenMP threads as the program had set for it.
class DnnlCall {
 public:
  // Throws OutOfMemory where the system does not give 64 MiB: oneDNN uses what it allocates without a look whether it
  // got it, and the process would end by a signal. It costs a microsecond. Another thread can still take the memory
  // meanwhile. what: "a matrix product", for the message.
  explicit DnnlCall(const char* what);
  ~DnnlCall();
  DnnlCall(const DnnlCall&) = delete;

 private:
  int before_;
};

}  // namespace braid::cpu
