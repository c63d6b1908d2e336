// The table of segmented words: read and extended by many threads, bounded in memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include "io/shared_state.hpp"
#include "memory/huge_pages.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

// A word's output, and the number of decisions that dropout makes on it.
struct WordEntry {
  uint64_t key[2];
  uint32_t key_length;
  uint32_t output_length;
  uint32_t decisions;
  uint32_t hash;

  // The output, followed by the key if that is longer than 16 bytes. At least 32 bytes are readable.
  const char* output() const { return reinterpret_cast<const char*>(this + 1); }
  char* output() { return reinterpret_cast<char*>(this + 1); }
};
static_assert(sizeof(WordEntry) == 32);

struct TableLimits {
  size_t max_words = size_t{1} << 20;
  // Per table: a full one may stay in use while threads move on to its empty successor.
  size_t max_bytes = size_t{96} << 20;
};

// Its owner replaces a crowded table by a larger one with the same entries or, at the limits, by an empty one, which
// bounds memory and favours the words of recent text. Until then, further words are not remembered.
class WordTable {
 public:
  explicit WordTable(const TableLimits& limits) : WordTable(limits, kFirstSlots, std::make_shared<Store>()) {}
  WordTable(const WordTable&) = delete;
  WordTable& operator=(const WordTable&) = delete;

  // Whether a word found no room, so that the owner should switch to next().
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

  std::shared_ptr<WordTable> next() const {
    const size_t slots = mask_ + 1;
    if (store_->full.load(std::memory_order_relaxed) || slots >= limits_.max_words * 2)
      return std::make_shared<WordTable>(limits_);
    auto larger = std::shared_ptr<WordTable>(new WordTable(limits_, slots * 4, store_));
    constexpr size_t kAhead = 16;
    for (size_t from = 0; from < slots; ++from) {
      prefetch_entry(from + kAhead);
      const uint64_t slot = slots_[from].load(std::memory_order_acquire);
      if (slot == 0) continue;
      size_t to = entry_of(slot)->hash & larger->mask_;
      while (larger->slots_[to].load(std::memory_order_relaxed) != 0) to = (to + 1) & larger->mask_;
      larger->slots_[to].store(slot, std::memory_order_relaxed);
      larger->words_.fetch_add(1, std::memory_order_relaxed);
    }
    return larger;
  }

  // To be called in this order ahead of find(): the slot, then the entry it most likely refers to.
  void prefetch_slot(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }
  void prefetch_entry(uint64_t hash) const {
    __builtin_prefetch(entry_of(slots_[hash & mask_].load(std::memory_order_relaxed)));
  }

  const WordEntry* find(const HashedWord& word) const {
    for (size_t i = word.hash & mask_;; i = (i + 1) & mask_) {
      const uint64_t slot = slots_[i].load(std::memory_order_acquire);
      if (slot == 0) return nullptr;
      if (matches(slot, word)) return entry_of(slot);
    }
  }

  // One thread's room for new entries; an entry lives as long as any table that refers to it.
  struct Arena {
    char* free = nullptr;
    size_t left = 0;
    const void* store = nullptr;
  };

  // Adds an entry. Returns it, or the one that another thread has added meanwhile, or null if there is no room.
  const WordEntry* insert(Arena& arena, const HashedWord& word, uint32_t decisions, std::string_view output) {
    const size_t spilled = word.text.size() > 16 ? word.text.size() : 0;
    const size_t bytes = (sizeof(WordEntry) + output.size() + spilled + kLine - 1) / kLine * kLine;
    // Half of the slots stay free, give or take one per thread.
    if (words_.load(std::memory_order_relaxed) >= (mask_ + 1) / 2 || !reserve(arena, bytes)) {
      crowded_.store(true, std::memory_order_relaxed);
      return nullptr;
    }
    auto* entry = new (arena.free) WordEntry{{word.head[0], word.head[1]},
                                             static_cast<uint32_t>(word.text.size()),
                                             static_cast<uint32_t>(output.size()),
                                             decisions,
                                             static_cast<uint32_t>(word.hash)};
    std::memcpy(entry->output(), output.data(), output.size());
    if (spilled) std::memcpy(entry->output() + output.size(), word.text.data(), spilled);
    const auto pointer = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(entry));
    if (pointer >> kPointerBits != 0) return nullptr;
    const uint64_t added = pointer | (word.hash & ~kPointerMask);
    for (size_t i = word.hash & mask_;; i = (i + 1) & mask_) {
      uint64_t slot = slots_[i].load(std::memory_order_acquire);
      if (slot == 0 && slots_[i].compare_exchange_strong(slot, added, std::memory_order_acq_rel)) break;
      if (matches(slot, word)) return entry_of(slot);
    }
    arena.free += bytes;
    arena.left -= bytes;
    words_.fetch_add(1, std::memory_order_relaxed);
    return entry;
  }

 private:
  static constexpr size_t kFirstSlots = size_t{1} << 16;
  static constexpr int kPointerBits = 48;  // the bits above hold bits of the hash
  static constexpr uint64_t kPointerMask = (uint64_t{1} << kPointerBits) - 1;
  static constexpr size_t kLine = 64;  // entries are aligned to cache lines
  static constexpr size_t kLargestChunk = size_t{1} << 21, kSmallestChunk = size_t{1} << 16;

  struct Free {
    size_t bytes;
    void operator()(char* chunk) const { free_in_huge_pages(chunk, bytes); }
  };
  // The memory of the entries, shared by a table and its larger successors.
  struct Store {
    std::vector<std::unique_ptr<char, Free>> chunks;  // guarded by shared_state, as is their size
    size_t bytes = 0;
    std::atomic<bool> full{false};
  };

  WordTable(const TableLimits& limits, size_t slots, std::shared_ptr<Store> store)
      : limits_(limits), mask_(slots - 1), store_(std::move(store)), slots_(slots) {}

  static const WordEntry* entry_of(uint64_t slot) {
    return reinterpret_cast<const WordEntry*>(static_cast<uintptr_t>(slot & kPointerMask));
  }

  static bool matches(uint64_t slot, const HashedWord& word) {
    if ((slot ^ word.hash) >> kPointerBits != 0) return false;
    const WordEntry* entry = entry_of(slot);
    const size_t size = word.text.size();
    if (entry->key[0] != word.head[0] || entry->key[1] != word.head[1] || entry->key_length != size) return false;
    return size <= 16 || std::memcmp(entry->output() + entry->output_length, word.text.data(), size) == 0;
  }

  bool reserve(Arena& arena, size_t bytes) {
    if (arena.store == store_.get() && bytes <= arena.left) return true;
    std::lock_guard lock(shared_state);
    // Each thread fills a separate chunk; chunks shrink as the memory runs out, so that many threads still get one.
    const size_t left = limits_.max_bytes - store_->bytes;
    const size_t size = std::max({std::min(std::bit_floor(left / 16), kLargestChunk), kSmallestChunk, bytes});
    if (size > left) {
      store_->full.store(true, std::memory_order_relaxed);
      return false;
    }
    auto* chunk = static_cast<char*>(allocate_in_huge_pages(size));
    store_->chunks.emplace_back(chunk, Free{size});
    store_->bytes += size;
    arena = {chunk, size, store_.get()};
    return true;
  }

  const TableLimits limits_;
  const size_t mask_;
  const std::shared_ptr<Store> store_;
  HugeVector<std::atomic<uint64_t>> slots_;
  std::atomic<size_t> words_{0};
  std::atomic<bool> crowded_{false};
};

}  // namespace mt_scaffold
