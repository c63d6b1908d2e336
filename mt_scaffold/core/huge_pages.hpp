// Memory for large tables that are read at random: in huge pages where the system has them, which saves much of the
// time that looking up addresses takes.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mt_scaffold {

// To be given back with std::free.
inline void* allocate_in_huge_pages(size_t bytes) {
  constexpr size_t kHugePage = size_t{1} << 21;
  const bool large = bytes >= kHugePage;
  void* memory = large ? std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage)
                       : std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (large) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(size_t count) { return static_cast<T*>(allocate_in_huge_pages(count * sizeof(T))); }
  void deallocate(T* memory, size_t) { std::free(memory); }

  template <typename Other>
  bool operator==(const HugePageAllocator<Other>&) const {
    return true;
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace mt_scaffold
