// Address space for the largest possible output, of which only the written part takes memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "memory/huge_pages.hpp"

namespace mt_scaffold {

class ReservedMemory {
 public:
  explicit ReservedMemory(size_t bytes) : memory_(nullptr, Free{0}) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes >= kMapped) {
      const size_t size = std::max(size_in_huge_pages(bytes), kReused);
      char* const unused = size == kReused ? unused_.exchange(nullptr) : nullptr;
      memory_ = {unused ? unused : map_huge_pages(size, MAP_NORESERVE), Free{size}};
      return;
    }
#endif
    memory_.reset(static_cast<char*>(std::malloc(std::max<size_t>(bytes, 1))));
    if (!memory_) throw std::bad_alloc();
  }

  char* data() const { return memory_.get(); }

  // Returns everything after the first `bytes` to the system.
  void shrink(size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size_t& mapped = memory_.get_deleter().mapped; mapped > 0) {
      if (mapped == kReused && bytes <= kCopied) {
        ReservedMemory copy(bytes);
        std::memcpy(copy.data(), data(), bytes);
        std::swap(memory_, copy.memory_);
        return;
      }
      char* none = nullptr;
      if (mapped == kReused && lent_.compare_exchange_strong(none, data())) {
        // An earlier call may have written more.
        const size_t kept = (bytes + kHugePage - 1) / kHugePage * kHugePage;
        if (kept < mapped) madvise(data() + kept, mapped - kept, MADV_DONTNEED);
        return;
      }
      constexpr size_t kPage = 1 << 16;  // no system's pages are larger
      const size_t kept = (std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
      if (kept < mapped) munmap(data() + kept, mapped - kept);
      mapped = std::min(kept, mapped);
      return;
    }
#endif
    char* const whole = memory_.release();
    void* const smaller = std::realloc(whole, std::max<size_t>(bytes, 1));
    memory_.reset(smaller ? static_cast<char*>(smaller) : whole);
  }

 private:
  // Smaller blocks come from malloc, which keeps their pages from call to call.
  static constexpr size_t kMapped = size_t{3} << 20;
  // The size of the smaller ones of the other blocks. One that is no longer used is kept for the next call, as clearing
  // new pages takes 6 % of the time of a text whose words are known.
  static constexpr size_t kReused = size_t{16} << 20;
  // One result at a time keeps all of its block; of others, the rest goes back to the system. Small ones are copied.
  static constexpr size_t kCopied = size_t{1} << 19;
  static inline std::atomic<char*> unused_{nullptr}, lent_{nullptr};

  struct Free {
    size_t mapped;  // 0: from malloc

    void operator()(char* memory) const {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
      if (mapped == kReused) {
        char *none = nullptr, *lent = memory;
        lent_.compare_exchange_strong(lent, nullptr);
        if (unused_.compare_exchange_strong(none, memory)) return;
      }
      if (mapped > 0) {
        munmap(memory, mapped);
        return;
      }
#endif
      std::free(memory);
    }
  };

  std::unique_ptr<char, Free> memory_;
};

}  // namespace mt_scaffold
