#include "io/shared_state.hpp"

#include <pthread.h>

namespace mt_scaffold {

std::mutex shared_state;

namespace {

void lock() { shared_state.lock(); }
void unlock() { shared_state.unlock(); }

// Once, when the library is loaded: a second registration would lock twice.
[[maybe_unused]] const int registered = pthread_atfork(lock, unlock, unlock);

}  // namespace

}  // namespace mt_scaffold
