#include "inference/merges_one_by_one.hpp"

#include <algorithm>
#include <array>

#include "text/instructions.hpp"

namespace mt_scaffold {

namespace {

constexpr int32_t kNoRank = MergeTable::kNoRank;
constexpr size_t kLongest = MergesOneByOne::kLongest;

// A key is the rank of the symbol at a place with the next one, then the place: the least is the next to be merged.
using Key = uint32_t;
constexpr int kPlaceBits = 7;
constexpr Key kNone = ~Key{0};
constexpr size_t kBlock = 8;
static_assert(kLongest == size_t{1} << kPlaceBits);

inline Key key_of(int32_t rank, size_t place) {
  return rank == kNoRank ? kNone : static_cast<Key>(rank) << kPlaceBits | static_cast<Key>(place);
}

constexpr auto kPlaces = [] {
  std::array<uint8_t, kLongest + 1> places{};
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint8_t>(i);
  return places;
}();

// The keys of all places, in memory that holds whole blocks.
class InMemory {
 public:
  InMemory(Key* keys, size_t places) : keys_(keys), size_(room(places)) {}

  static size_t room(size_t places) { return (places + kBlock - 1) / kBlock * kBlock; }

  void set(size_t place, Key key) { keys_[place] = key; }
  Key least() const {
    Key found = kNone;
    for (size_t i = 0; i < size_; ++i) found = std::min(found, keys_[i]);
    return found;
  }

 protected:
  Key* const keys_;
  const size_t size_;
};

#if defined(__SSE2__)

MT_SCAFFOLD_AVX2 inline Key least_of(__m256i keys) {
  __m128i four = _mm_min_epu32(_mm256_castsi256_si128(keys), _mm256_extracti128_si256(keys, 1));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
  return static_cast<Key>(_mm_cvtsi128_si32(four));
}

class InMemoryAvx2 : public InMemory {
 public:
  using InMemory::InMemory;
  MT_SCAFFOLD_AVX2 Key least() const {
    const auto* at = reinterpret_cast<const __m256i*>(keys_);
    __m256i found = _mm256_load_si256(at);
    for (size_t i = 1; i < size_ / kBlock; ++i) found = _mm256_min_epu32(found, _mm256_load_si256(at + i));
    return least_of(found);
  }
};

// Reading what has just been written in smaller parts would take the processor as long as the rest of a step.
template <size_t kBlocks>
class InRegisters {
 public:
  static size_t room(size_t) { return kBlocks * kBlock; }

  MT_SCAFFOLD_AVX2 InRegisters(const Key* keys, size_t) {
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks_[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(keys) + i);
      places_[i] =
          _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(static_cast<int>(i * kBlock)));
    }
  }

  MT_SCAFFOLD_AVX2 void set(size_t place, Key key) {
    const __m256i at = _mm256_set1_epi32(static_cast<int>(place)), keys = _mm256_set1_epi32(static_cast<int>(key));
    for (size_t i = 0; i < kBlocks; ++i)
      blocks_[i] = _mm256_blendv_epi8(blocks_[i], keys, _mm256_cmpeq_epi32(places_[i], at));
  }
  MT_SCAFFOLD_AVX2 Key least() const {
    __m256i found = blocks_[0];
    for (size_t i = 1; i < kBlocks; ++i) found = _mm256_min_epu32(found, blocks_[i]);
    return least_of(found);
  }

 private:
  __m256i blocks_[kBlocks], places_[kBlocks];
};

#endif

}  // namespace

MergesOneByOne::MergesOneByOne(const MergeTable& table)
    : table_(table), fits_(table.merged_of_rank.size() < size_t{1} << (32 - kPlaceBits)) {
  if (!table.alphabet.bytes || table.alphabet.end_of_word || table.internal_base.size() < 256) return;
  rank_of_bytes_.resize(size_t{1} << 16);
  for (size_t left = 0; left < 256; ++left)
    for (size_t right = 0; right < 256; ++right)
      rank_of_bytes_[left << 8 | right] = table.ranks.find(table.internal_base[left], table.internal_base[right]);
}

template <typename Keys>
__attribute__((always_inline)) inline bool MergesOneByOne::merge(std::string_view word, Symbols& symbols) const {
  const size_t n = symbols.token.size();
  alignas(32) Key keys[kLongest];
  int32_t token[kLongest], merged[kLongest];           // merged: what the pair at a place becomes
  uint8_t next[kLongest + 1], previous[kLongest + 1];  // the last place is that after the word
  const auto rank_at = [&](size_t place, int32_t rank) {
    // Fetched now, while the lowest rank is looked for.
    merged[place] = rank == kNoRank ? 0 : table_.merged_of_rank[static_cast<size_t>(rank)];
    return key_of(rank, place);
  };
  // Every symbol is a byte, also where another inference has taken the word apart again.
  if (!rank_of_bytes_.empty() && n == word.size()) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(word.data());
    for (size_t i = 0; i + 1 < n; ++i)
      keys[i] = rank_at(i, rank_of_bytes_[static_cast<size_t>(bytes[i]) << 8 | bytes[i + 1]]);
  } else {
    for (size_t i = 0; i + 1 < n; ++i) keys[i] = rank_at(i, table_.ranks.find(symbols.token[i], symbols.token[i + 1]));
  }
  std::fill(keys + n - 1, keys + Keys::room(n), kNone);
  std::copy_n(symbols.token.begin(), n, token);
  std::copy_n(kPlaces.begin() + 1, n, next);
  std::copy_n(kPlaces.begin(), n, previous + 1);
  Keys left_to_do(keys, n);
  for (Key key; (key = left_to_do.least()) != kNone;) {
    const size_t left = key & (kLongest - 1), right = next[left], after = next[right];
    const int32_t made = merged[left];
    token[left] = made;
    next[left] = static_cast<uint8_t>(after);
    previous[after] = static_cast<uint8_t>(left);
    left_to_do.set(right, kNone);
    Key lowest = kNone;
    if (after < n) lowest = rank_at(left, table_.ranks.find(made, token[after]));
    left_to_do.set(left, lowest);
    if (left > 0) {
      const size_t before = previous[left];
      const Key changed = rank_at(before, table_.ranks.find(token[before], made));
      left_to_do.set(before, changed);
      lowest = std::min(lowest, changed);
    }
    if (lowest >> kPlaceBits < key >> kPlaceBits) [[unlikely]]
      return false;
  }
  size_t size = 0;
  for (size_t i = 0; i < n; i = next[i], ++size) {
    symbols.token[size] = token[i];
    symbols.end[size] = symbols.end[next[i] - size_t{1}];
  }
  symbols.token.resize(size);
  symbols.end.resize(size);
  return true;
}

bool MergesOneByOne::merge_portably(std::string_view word, Symbols& symbols) const {
  return merge<InMemory>(word, symbols);
}

#if defined(__SSE2__)
MT_SCAFFOLD_AVX2
__attribute__((flatten)) bool MergesOneByOne::merge_with_avx2(std::string_view word, Symbols& symbols) const {
  switch ((symbols.token.size() - 1) / kBlock) {
    case 0:
      return merge<InRegisters<1>>(word, symbols);
    case 1:
      return merge<InRegisters<2>>(word, symbols);
    case 2:
    case 3:
      return merge<InRegisters<4>>(word, symbols);
    default:
      return merge<InMemoryAvx2>(word, symbols);
  }
}

// Not made in the function: a child that was forked meanwhile would wait for it to be made.
static const bool kAvx2 = may_use_avx512() || may_use_avx2();
#endif

bool MergesOneByOne::apply(std::string_view word, Symbols& symbols) const {
  const size_t n = symbols.token.size();
  if (n < 2) return true;
  if (n > kLongest || !fits_) return false;
#if defined(__SSE2__)
  if (kAvx2) return merge_with_avx2(word, symbols);
#endif
  return merge_portably(word, symbols);
}

}  // namespace mt_scaffold
