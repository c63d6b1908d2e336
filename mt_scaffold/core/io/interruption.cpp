#include "io/interruption.hpp"

namespace mt_scaffold {

thread_local const Interruptible::Check* Interruptible::current_ = nullptr;

}  // namespace mt_scaffold
