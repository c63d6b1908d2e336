// Progress of calls that run for long, and their interruption, even within one long word or line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace mt_scaffold {

// Called on the caller's thread several times a second with the bytes or merges done so far; may throw to stop the run.
using Tick = std::function<void(uint64_t done)>;

// Marks an exception by which the caller ends a call, whatever errors other threads may still meet.
class Interruption {};

// Gives the calling thread a check for its lifetime; the check throws to end the thread's work.
class Interruptible {
 public:
  using Check = std::function<void()>;

  explicit Interruptible(Check check) : check_(std::move(check)), before_(current_) { current_ = &check_; }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { current_ = before_; }

  static void check() {
    if (current_) (*current_)();
  }

 private:
  static inline thread_local constinit const Check* current_ = nullptr;

  const Check check_;
  const Check* const before_;
};

// Call it with the number of the step in loops that may be long: it checks now and then.
inline void may_interrupt(size_t step) {
  constexpr size_t kSteps = size_t{1} << 14;
  if (step % kSteps == kSteps - 1) [[unlikely]]
    Interruptible::check();
}

}  // namespace mt_scaffold
