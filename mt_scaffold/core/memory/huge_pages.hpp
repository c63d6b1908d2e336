// Huge pages for large tables, whose random accesses would otherwise miss the TLB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace mt_scaffold {

constexpr size_t kHugePage = size_t{1} << 21;

// The memory that a block takes. From three quarters of a huge page on it is whole ones: a power of two wastes nothing.
inline size_t size_in_huge_pages(size_t bytes) {
  return bytes < kHugePage / 4 * 3 ? bytes : (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

#if defined(__linux__) && defined(MADV_HUGEPAGE)
// Maps `size` bytes, whole huge pages, at the beginning of one.
inline char* map_huge_pages(size_t size, int flags = 0) {
  void* mapped = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const begin = static_cast<char*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (before > 0) munmap(begin, before);
  if (before < kHugePage) munmap(begin + before + size, kHugePage - before);
  madvise(begin + before, size, MADV_HUGEPAGE);
  return begin + before;
}
#endif

// Large blocks are mapped separately and returned to the system as a whole; malloc would keep them as holes.
inline void* allocate_in_huge_pages(size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (const size_t size = size_in_huge_pages(bytes); size >= kHugePage) return map_huge_pages(size);
#endif
  void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory) throw std::bad_alloc();
  return memory;
}

// `bytes` as requested from allocate_in_huge_pages().
inline void free_in_huge_pages(void* memory, size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (const size_t size = size_in_huge_pages(bytes); size >= kHugePage) {
    munmap(memory, size);
    return;
  }
#endif
  std::free(memory);
}

template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename Other>
  HugePageAllocator(const HugePageAllocator<Other>&) {}

  T* allocate(size_t count) { return static_cast<T*>(allocate_in_huge_pages(count * sizeof(T))); }
  void deallocate(T* memory, size_t count) { free_in_huge_pages(memory, count * sizeof(T)); }

  template <typename Other>
  bool operator==(const HugePageAllocator<Other>&) const {
    return true;
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace mt_scaffold
