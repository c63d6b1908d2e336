// The lock of all state that outlives a call and that several threads change, such as the tables of words.
#pragma once

#include <mutex>

namespace mt_scaffold {

// One for the process, so that fork() can wait for it: a child finds it free and what it guards whole, whatever the
// threads did that it lacks. Held briefly, by no call into Python, and never twice.
extern std::mutex shared_state;

}  // namespace mt_scaffold
