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

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(size_t count) {
    constexpr size_t kHugePage = size_t{1} << 21;
    const size_t bytes = count * sizeof(T);
    if (bytes < 2 * kHugePage) {
      if (void* memory = std::malloc(bytes)) return static_cast<T*>(memory);
      throw std::bad_alloc();
    }
    void* memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
    if (!memory) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }

  template <typename Other>
  bool operator==(const HugePageAllocator<Other>&) const {
    return true;
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace mt_scaffold
