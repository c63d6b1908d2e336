// Hashes of words, strings and numbers, which differ from process to process.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>

namespace mt_scaffold {

// Drawn when the process starts, so that no text can be crafted whose words, tokens or pairs share a hash, which would
// take quadratic time. No result depends on them.
struct HashSeeds {
  uint64_t first, second;  // the second is odd
};
extern const HashSeeds kHashSeeds;

inline uint64_t fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// The factors are XORed in because a zero would hide the other one.
inline uint64_t mix(uint64_t a, uint64_t b) { return fold(a, b) ^ a ^ b; }

// A word with its hash and its first 16 bytes, zero-padded, for comparison as integers.
struct HashedWord {
  std::string_view text;
  uint64_t head[2];
  uint64_t hash;
};

// `text` must be readable for kPadding bytes past its end.
inline HashedWord hash_word(std::string_view text) {
  // Masks that keep the first `i` of 16 bytes, without a branch on the length of the word.
  static constexpr auto kMasks = [] {
    std::array<uint8_t, 32> bytes{};
    std::fill_n(bytes.begin(), 16, uint8_t{0xFF});
    return bytes;
  }();
  const auto keep = [](size_t bytes, auto& words) {
    uint64_t mask[std::size(words)];
    std::memcpy(mask, &kMasks[16 - (bytes < 16 ? bytes : 16)], sizeof mask);
    for (size_t i = 0; i < std::size(words); ++i) words[i] &= mask[i];
  };
  const HashSeeds seeds = kHashSeeds;
  HashedWord word{text, {0, 0}, 0};
  const size_t n = text.size();
  std::memcpy(word.head, text.data(), 16);
  keep(n, word.head);
  word.hash = mix(word.head[0] ^ seeds.first ^ n, word.head[1] ^ seeds.second);
  for (size_t i = 16; i < n; i += 8) {
    uint64_t chunk[1];
    std::memcpy(chunk, text.data() + i, 8);
    keep(n - i, chunk);
    word.hash = mix(word.hash ^ seeds.second, chunk[0] ^ seeds.first);
  }
  return word;
}

// The same for text without padding; the hashes differ.
inline uint64_t hash_string(std::string_view text) {
  uint64_t hash = kHashSeeds.first ^ text.size();
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t chunk = 0;
    std::memcpy(&chunk, text.data() + i, text.size() - i < 8 ? text.size() - i : 8);
    hash = mix(hash ^ kHashSeeds.second, chunk ^ kHashSeeds.first);
  }
  return hash;
}

inline uint64_t hash_number(uint64_t number) { return fold(number, kHashSeeds.second); }

inline uint64_t hash_pair(int32_t left, int32_t right) {
  return hash_number(static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right));
}

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return hash_string(text); }
};

struct NumberHash {
  size_t operator()(uint64_t number) const { return hash_number(number); }
};

using StringSet = std::unordered_set<std::string, StringHash>;

}  // namespace mt_scaffold
