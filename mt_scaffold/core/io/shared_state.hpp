// The lock of all state that outlives a call and is changed by several threads, such as the tables of words.
#pragma once

#include <mutex>

namespace mt_scaffold {

// One for the process, so that fork() can wait for it: a child finds it free and the guarded state intact, whatever
// the parent's other threads were doing. Held briefly, never during a call into Python, and never twice.
extern std::mutex shared_state;

}  // namespace mt_scaffold
