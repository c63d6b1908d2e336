// The lock of all state that outlives a call and is changed by several threads, such as the tables of words.
#pragma once

#include <pthread.h>

#include <mutex>

namespace mt_scaffold {

// One for the process, so that fork() can wait for it: a child finds it free and the guarded state intact, whatever
// the parent's other threads were doing. Held briefly, never during a call into Python, and never twice.
inline std::mutex shared_state;

// Registered once, when the library is loaded: a second registration would lock twice.
[[maybe_unused]] inline const int registered_for_fork =
    pthread_atfork([] { shared_state.lock(); }, [] { shared_state.unlock(); }, [] { shared_state.unlock(); });

}  // namespace mt_scaffold
