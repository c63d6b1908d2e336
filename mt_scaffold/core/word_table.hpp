// The table of words that have been segmented: read and extended by many threads, bounded in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include "text.hpp"

namespace mt_scaffold {

// What is remembered of a word: its output, and how many decisions dropout takes over it.
struct WordEntry {
  uint64_t key[2];
  uint32_t key_length;
  uint32_t output_length;
  uint32_t decisions;

  // The output, and behind it a key of more than 16 bytes; followed by kPadding bytes.
  const char* output() const { return reinterpret_cast<const char*>(this + 1) - kTail; }
  char* output() { return reinterpret_cast<char*>(this + 1) - kTail; }

 private:
  // The struct is padded to 32 bytes; the output begins right behind the last field.
  static constexpr size_t kTail = 4;
};
static_assert(sizeof(WordEntry) == 32);

struct TableLimits {
  size_t max_words = size_t{1} << 20;
  size_t max_bytes = size_t{192} << 20;
};

// When the table is full nothing more is added; its owner then starts an empty one, so that memory stays bounded
// and the words remembered are those of the text at hand.
class WordTable {
 public:
  explicit WordTable(const TableLimits& limits) : limits_(limits) {
    size_t slots = 1024;
    while (slots < limits.max_words * 2) slots *= 2;
    mask_ = slots - 1;
    // calloc: pages that no word has hashed to yet take no memory.
    slots_ = static_cast<std::atomic<uint64_t>*>(std::calloc(slots, sizeof(std::atomic<uint64_t>)));
    if (!slots_) throw std::bad_alloc();
  }
  ~WordTable() { std::free(slots_); }
  WordTable(const WordTable&) = delete;
  WordTable& operator=(const WordTable&) = delete;

  // A key that is not a word: the entry that a drop leads on from, and the decisions that survived before the drop.
  static constexpr uint32_t kDropKey = ~uint32_t{0};

  struct Key {
    uint64_t head[2];
    uint32_t length;
    uint64_t hash;
    std::string_view text;  // of words of more than 16 bytes
  };
  static Key word_key(const HashedWord& word) {
    return {{word.head[0], word.head[1]}, static_cast<uint32_t>(word.text.size()), word.hash, word.text};
  }
  static Key drop_key(const WordEntry* before, uint64_t survivors) {
    const auto from = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(before));
    const uint64_t hash = mix(from ^ 0xA0761D6478BD642FULL, survivors ^ 0xE7037ED1A0B428DBULL);
    return {{from, survivors}, kDropKey, hash ^ hash >> 32, {}};
  }

  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

  const WordEntry* find(const Key& key) const {
    for (size_t i = key.hash & mask_;; i = (i + 1) & mask_) {
      const uint64_t slot = slots_[i].load(std::memory_order_acquire);
      if (slot == 0) return nullptr;
      if (matches(slot, key)) return entry_of(slot);
    }
  }

  // One thread's store of entries; what it holds lives as long as the table.
  struct Arena {
    char* free = nullptr;
    size_t left = 0;
  };

  // Adds an entry and returns it, or the one that another thread has added meanwhile, or null where there is no room.
  const WordEntry* insert(Arena& arena, const Key& key, uint32_t decisions, std::string_view output) {
    const size_t spilled = key.length > 16 && key.length != kDropKey ? key.length : 0;
    const size_t bytes = (sizeof(WordEntry) + output.size() + spilled + kLine - 1) / kLine * kLine;
    if (words_.load(std::memory_order_relaxed) >= limits_.max_words || !reserve(arena, bytes)) {
      full_.store(true, std::memory_order_relaxed);
      return nullptr;
    }
    auto* entry = new (arena.free) WordEntry;
    entry->key[0] = key.head[0];
    entry->key[1] = key.head[1];
    entry->key_length = key.length;
    entry->output_length = static_cast<uint32_t>(output.size());
    entry->decisions = decisions;
    std::memcpy(entry->output(), output.data(), output.size());
    if (spilled) std::memcpy(entry->output() + output.size(), key.text.data(), spilled);
    const auto pointer = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(entry));
    if (pointer >> kPointerBits != 0) return nullptr;
    const uint64_t added = pointer | (key.hash & ~kPointerMask);
    for (size_t i = key.hash & mask_;; i = (i + 1) & mask_) {
      uint64_t slot = slots_[i].load(std::memory_order_acquire);
      if (slot == 0 && slots_[i].compare_exchange_strong(slot, added, std::memory_order_acq_rel)) break;
      if (matches(slot, key)) return entry_of(slot);
    }
    arena.free += bytes;
    arena.left -= bytes;
    words_.fetch_add(1, std::memory_order_relaxed);
    return entry;
  }

  bool full() const { return full_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kPointerBits = 48;  // the bits above hold the same bits of the hash
  static constexpr uint64_t kPointerMask = (uint64_t{1} << kPointerBits) - 1;
  static constexpr size_t kLine = 64;  // an entry begins a cache line
  static constexpr size_t kChunk = size_t{1} << 18;

  static const WordEntry* entry_of(uint64_t slot) {
    return reinterpret_cast<const WordEntry*>(static_cast<uintptr_t>(slot & kPointerMask));
  }

  static bool matches(uint64_t slot, const Key& key) {
    if ((slot ^ key.hash) >> kPointerBits != 0) return false;
    const WordEntry* entry = entry_of(slot);
    if (entry->key[0] != key.head[0] || entry->key[1] != key.head[1] || entry->key_length != key.length) return false;
    return key.length <= 16 || key.length == kDropKey ||
           std::memcmp(entry->output() + entry->output_length, key.text.data(), key.length) == 0;
  }

  bool reserve(Arena& arena, size_t bytes) {
    if (bytes <= arena.left) return true;
    const size_t size = std::max(kChunk, bytes);
    if (bytes_.fetch_add(size, std::memory_order_relaxed) + size > limits_.max_bytes) return false;
    auto* chunk = static_cast<char*>(std::aligned_alloc(kLine, (size + kPadding + kLine - 1) / kLine * kLine));
    if (!chunk) return false;
    std::lock_guard lock(chunks_mutex_);
    chunks_.emplace_back(chunk);
    arena = {chunk, size};
    return true;
  }

  struct Free {
    void operator()(char* chunk) const { std::free(chunk); }
  };

  const TableLimits limits_;
  size_t mask_;
  std::atomic<uint64_t>* slots_;
  std::atomic<size_t> words_{0}, bytes_{0};
  std::atomic<bool> full_{false};
  std::mutex chunks_mutex_;
  std::vector<std::unique_ptr<char, Free>> chunks_;
};

}  // namespace mt_scaffold
