// Ending work on one long word or line when the user interrupts it.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace mt_scaffold {

// Makes a check the calling thread's as long as this lives: it throws where the thread's work is to end.
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
  static thread_local const Check* current_;

  const Check check_;
  const Check* const before_;
};

// To be called in loops over what may be long, with the number of the step: now and then it checks.
inline void may_interrupt(size_t step) {
  constexpr size_t kSteps = size_t{1} << 14;
  if (step % kSteps == kSteps - 1) [[unlikely]]
    Interruptible::check();
}

}  // namespace mt_scaffold
