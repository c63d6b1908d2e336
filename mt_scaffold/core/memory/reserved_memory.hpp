// Address space for the largest possible output, of which only the written part takes memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "memory/huge_pages.hpp"

namespace mt_scaffold {

class ReservedMemory {
 public:
  ReservedMemory() = default;
  explicit ReservedMemory(size_t bytes) : size_(std::max<size_t>(bytes, 1)) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size_ >= kMapped) {
      size_ = (size_ + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
      void* mapped = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) throw std::bad_alloc();
      memory_ = static_cast<char*>(mapped);
      data_ = memory_ + -reinterpret_cast<uintptr_t>(mapped) % kHugePage;
      madvise(mapped, size_, MADV_HUGEPAGE);
      return;
    }
#endif
    memory_ = data_ = static_cast<char*>(std::malloc(size_));
    if (!memory_) throw std::bad_alloc();
  }
  ReservedMemory(ReservedMemory&& other) noexcept { *this = std::move(other); }
  ReservedMemory& operator=(ReservedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ReservedMemory() {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size_ >= kMapped) {
      munmap(memory_, size_);
      return;
    }
#endif
    std::free(memory_);
  }

  char* data() const { return data_; }

  // Returns everything after the first `bytes` to the system.
  void shrink(size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size_ >= kMapped) {
      constexpr size_t kPage = 1 << 16;  // no system's pages are larger
      const size_t kept = std::max(kMapped, (static_cast<size_t>(data_ - memory_) + bytes + kPage - 1) / kPage * kPage);
      if (kept < size_) {
        munmap(memory_ + kept, size_ - kept);
        size_ = kept;
      }
      return;
    }
#endif
    size_ = std::max<size_t>(bytes, 1);
    if (void* smaller = std::realloc(memory_, size_)) memory_ = data_ = static_cast<char*>(smaller);
  }

 private:
  // Smaller blocks come from malloc, which keeps their pages from call to call.
  static constexpr size_t kMapped = size_t{3} << 20;

  char *memory_ = nullptr, *data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mt_scaffold
