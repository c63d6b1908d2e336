// Progress reports from long-running calls.
#pragma once

#include <cstdint>
#include <functional>

namespace mt_scaffold {

// Called on the caller's thread several times a second with the bytes or merges done so far; may throw to stop the run.
using Tick = std::function<void(uint64_t done)>;

}  // namespace mt_scaffold
