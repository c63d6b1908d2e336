#include "inference/merges_one_by_one.hpp"

#include <algorithm>
#include <array>

#include "text/instructions.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kLongest = MergesOneByOne::kLongest;

// A key is the rank of the symbol at a place with the next one, then the place: the least is the next to be merged.
// Keys from kNone up have no rank; and the place kLongest, before and after each word, is in no key that has one.
using Key = uint32_t;
constexpr int kPlaceBits = 7;
constexpr Key kNone = ~Key{0} << kPlaceBits;
constexpr size_t kBlock = 16;
static_assert(kLongest == size_t{1} << kPlaceBits);

// `number`: of a pair, which is its rank plus one, or 0.
inline Key key_of(uint32_t number, size_t place) { return (number - 1) << kPlaceBits | static_cast<Key>(place); }

constexpr auto kPlaces = [] {
  std::array<uint8_t, kLongest + 1> places{};
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<uint8_t>(i);
  return places;
}();

// The keys of all places, in memory that holds whole blocks.
class Portable {
 public:
  Portable(Key* keys, size_t places) : keys_(keys), size_(room(places)) {}

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

class InMemoryAvx2 : public Portable {
 public:
  using Portable::Portable;
  MT_SCAFFOLD_AVX2 Key least() const {
    const auto* at = reinterpret_cast<const __m256i*>(keys_);
    __m256i found = _mm256_load_si256(at);
    for (size_t i = 1; i < size_ / 8; ++i) found = _mm256_min_epu32(found, _mm256_load_si256(at + i));
    return least_of(found);
  }
};

// Reading what has just been written in smaller parts would take the processor as long as the rest of a step.
template <size_t kBlocks>
class InRegistersAvx2 {
 public:
  static size_t room(size_t) { return kBlocks * 8; }

  MT_SCAFFOLD_AVX2 InRegistersAvx2(const Key* keys, size_t) {
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks_[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(keys) + i);
      places_[i] =
          _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(static_cast<int>(i * 8)));
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

template <size_t kBlocks>
class InRegistersAvx512 {
 public:
  static size_t room(size_t) { return kBlocks * kBlock; }

  MT_SCAFFOLD_AVX512 InRegistersAvx512(const Key* keys, size_t) {
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks_[i] = _mm512_load_si512(keys + i * kBlock);
      places_[i] = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                    _mm512_set1_epi32(static_cast<int>(i * kBlock)));
    }
  }

  MT_SCAFFOLD_AVX512 void set(size_t place, Key key) {
    const __m512i at = _mm512_set1_epi32(static_cast<int>(place));
    for (size_t i = 0; i < kBlocks; ++i)
      blocks_[i] = _mm512_mask_set1_epi32(blocks_[i], _mm512_cmpeq_epi32_mask(places_[i], at), static_cast<int>(key));
  }
  MT_SCAFFOLD_AVX512 Key least() const {
    __m512i found = blocks_[0];
    for (size_t i = 1; i < kBlocks; ++i) found = _mm512_min_epu32(found, blocks_[i]);
    return least_of(_mm256_min_epu32(_mm512_castsi512_si256(found), _mm512_extracti64x4_epi64(found, 1)));
  }

 private:
  __m512i blocks_[kBlocks], places_[kBlocks];
};

#endif

}  // namespace

MergesOneByOne::MergesOneByOne(const MergeTable& table)
    : ranks_(table.ranks), fits_(table.merged_of_rank.size() < size_t{1} << (32 - kPlaceBits)) {
  if (!fits_) return;
  merged_of_number_.push_back(MergeTable::kUnknown);
  merged_of_number_.insert(merged_of_number_.end(), table.merged_of_rank.begin(), table.merged_of_rank.end());
  if (!table.alphabet.bytes || table.alphabet.end_of_word) return;
  number_of_bytes_.resize(size_t{1} << 16);
  const std::vector<int32_t>& base = table.internal_base;  // up to the last byte that is in a merge
  for (size_t left = 0; left < base.size(); ++left)
    for (size_t right = 0; right < base.size(); ++right)
      number_of_bytes_[left << 8 | right] = ranks_.number(base[left], base[right]);
}

template <typename Keys>
__attribute__((always_inline)) inline bool MergesOneByOne::merge(std::string_view word, Symbols& symbols) const {
  const size_t n = symbols.token.size();
  alignas(64) Key keys[kLongest + kBlock];
  // merged: what the pair at a place becomes. The place kLongest is before the word, and the place n after it.
  int32_t token[kLongest + 1], merged[kLongest + 1];
  uint8_t next[kLongest + 1], previous[kLongest + 1];
  const auto key_at = [&](size_t place, uint32_t number) {
    // Fetched now, while the lowest rank is looked for.
    merged[place] = merged_of_number_[number];
    return key_of(number, place);
  };
  // Every symbol is a byte, also where another inference has taken the word apart again.
  if (!number_of_bytes_.empty() && n == word.size()) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(word.data());
    for (size_t i = 0; i + 1 < n; ++i)
      keys[i] = key_at(i, number_of_bytes_[static_cast<size_t>(bytes[i]) << 8 | bytes[i + 1]]);
  } else {
    for (size_t i = 0; i + 1 < n; ++i) keys[i] = key_at(i, ranks_.number(symbols.token[i], symbols.token[i + 1]));
  }
  std::fill(keys + n - 1, keys + Keys::room(n), kNone);
  std::copy_n(symbols.token.begin(), n, token);
  token[n] = token[kLongest] = MergeTable::kUnknown;
  std::copy_n(kPlaces.begin() + 1, n, next);
  std::copy_n(kPlaces.begin(), n, previous + 1);
  previous[0] = kLongest;
  Keys left_to_do(keys, n);
  // No branch in a step depends on the word.
  for (Key key; (key = left_to_do.least()) < kNone;) {
    const size_t left = key & (kLongest - 1), right = next[left], after = next[right], before = previous[left];
    const int32_t made = merged[left];
    token[left] = made;
    next[left] = static_cast<uint8_t>(after);
    previous[after] = static_cast<uint8_t>(left);
    const Key here = key_at(left, ranks_.number(made, token[after]));
    const Key changed = key_at(before, ranks_.number(token[before], made));
    left_to_do.set(right, kNone);
    left_to_do.set(left, here);
    left_to_do.set(before, changed);
    if (std::min(here, changed) >> kPlaceBits < key >> kPlaceBits) [[unlikely]]
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
  return merge<Portable>(word, symbols);
}

#if defined(__SSE2__)
MT_SCAFFOLD_AVX2
__attribute__((flatten)) bool MergesOneByOne::merge_with_avx2(std::string_view word, Symbols& symbols) const {
  switch ((symbols.token.size() - 1) / 8) {
    case 0:
      return merge<InRegistersAvx2<1>>(word, symbols);
    case 1:
      return merge<InRegistersAvx2<2>>(word, symbols);
    case 2:
    case 3:
      return merge<InRegistersAvx2<4>>(word, symbols);
    default:
      return merge<InMemoryAvx2>(word, symbols);
  }
}

MT_SCAFFOLD_AVX512
__attribute__((flatten)) bool MergesOneByOne::merge_with_avx512(std::string_view word, Symbols& symbols) const {
  switch ((symbols.token.size() - 1) / kBlock) {
    case 1:
      return merge<InRegistersAvx512<2>>(word, symbols);
    case 2:
    case 3:
      return merge<InRegistersAvx512<4>>(word, symbols);
    default:
      return merge<InRegistersAvx512<8>>(word, symbols);
  }
}

// Not made in the function: a child that was forked meanwhile would wait for it to be made.
static const bool kAvx512 = may_use_avx512(), kAvx2 = kAvx512 || may_use_avx2();
#endif

bool MergesOneByOne::apply(std::string_view word, Symbols& symbols) const {
  const size_t n = symbols.token.size();
  if (n < 2) return true;
  if (n > kLongest || !fits_) return false;
#if defined(__SSE2__)
  if (kAvx512 && n > kBlock) return merge_with_avx512(word, symbols);
  if (kAvx2) return merge_with_avx2(word, symbols);
#endif
  return merge_portably(word, symbols);
}

}  // namespace mt_scaffold
