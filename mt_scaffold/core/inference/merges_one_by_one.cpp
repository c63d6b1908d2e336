#include "inference/merges_one_by_one.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "io/interruption.hpp"
#include "text/instructions.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kLongest = MergesOneByOne::kLongest;

// A key is the rank of the pair that begins at a place, then the place: the pair with the least key is merged next.
// Keys from kNone up have no rank. The place kBefore precedes every word; no key with a rank has it.
using Key = uint32_t;
constexpr int kPlaceBits = 7;
constexpr size_t kBefore = (size_t{1} << kPlaceBits) - 1;
constexpr Key kNone = ~Key{0} << kPlaceBits;
constexpr size_t kBlock = 16;
static_assert(kLongest < kBefore);

// `number`: the rank of a pair plus one, or 0.
inline Key key_of(uint32_t number, size_t place) { return (number - 1) << kPlaceBits | static_cast<Key>(place); }

// The places where symbols begin and the one after the last symbol, as bits.
template <typename Bits>
class Places {
 public:
  explicit Places(size_t symbols) : bits_((Bits{2} << symbols) - 1) {}

  // The next two places, of which the first is removed.
  std::pair<size_t, size_t> remove_after(size_t place) {
    const Bits later = bits_ >> 1 >> place, left = later & (later - 1);
    bits_ ^= (later ^ left) << 1 << place;
    return {place + 1 + lowest(later), place + 1 + lowest(left)};
  }
  // kBefore if there is none.
  size_t previous(size_t place) const { return (highest(bits_ & ((Bits{1} << place) - 1))) & kBefore; }

  size_t count() const { return popcount(bits_) - 1; }
  // Removes the first and returns it.
  size_t take() {
    const size_t place = lowest(bits_);
    bits_ &= bits_ - 1;
    return place;
  }

 private:
  // If there is no bit: the number of bits, and -1.
  static size_t lowest(uint64_t bits) { return static_cast<size_t>(std::countr_zero(bits)); }
  static size_t highest(uint64_t bits) { return size_t{63} - static_cast<size_t>(std::countl_zero(bits)); }
  static size_t popcount(uint64_t bits) { return static_cast<size_t>(std::popcount(bits)); }
  static size_t lowest(unsigned __int128 bits) {
    const auto low = static_cast<uint64_t>(bits);
    return low != 0 ? lowest(low) : 64 + lowest(static_cast<uint64_t>(bits >> 64));
  }
  static size_t highest(unsigned __int128 bits) {
    const auto high = static_cast<uint64_t>(bits >> 64);
    return high != 0 ? 64 + highest(high) : highest(static_cast<uint64_t>(bits));
  }
  static size_t popcount(unsigned __int128 bits) {
    return popcount(static_cast<uint64_t>(bits)) + popcount(static_cast<uint64_t>(bits >> 64));
  }

  Bits bits_;
};
// The most symbols whose places fit into 64 bits.
constexpr size_t kInOneRegister = 62;

// The keys of all places, in memory.
class Portable {
 public:
  static uint32_t number(const PairTable& ranks, int32_t left, int32_t right) { return ranks.number(left, right); }
  static constexpr size_t kRoom = kLongest;

  // `keys` has room for whole blocks; its first `places` keys are set.
  Portable(Key* keys, size_t places) : keys_(keys), size_((places + kBlock - 1) / kBlock * kBlock) {
    std::fill(keys + places, keys + size_, kNone);
  }

  void set(size_t place, Key key) { keys_[place] = key; }
  void remove(size_t a, size_t b, size_t c) { keys_[a] = keys_[b] = keys_[c] = kNone; }
  Key least() const {
    Key found = kNone;
    for (size_t i = 0; i < size_; ++i) found = std::min(found, keys_[i]);
    return found;
  }

 private:
  Key* const keys_;
  const size_t size_;
};

#if defined(__SSE2__)

// Loading vectors right after storing one of their elements would stall for as long as the rest of a step takes.
template <size_t kBlocks>
class InRegistersAvx2 {
 public:
  MT_SCAFFOLD_AVX2 static uint32_t number(const PairTable& ranks, int32_t left, int32_t right) {
    return ranks.number_avx2(left, right);
  }
  static constexpr size_t kRoom = kBlocks * 8;

  MT_SCAFFOLD_AVX2 InRegistersAvx2(const Key* keys, size_t places) {
    const __m256i all = _mm256_set1_epi32(static_cast<int>(places)), none = _mm256_set1_epi32(static_cast<int>(kNone));
    for (size_t i = 0; i < kBlocks; ++i) {
      places_[i] =
          _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(static_cast<int>(i * 8)));
      const __m256i given = _mm256_load_si256(reinterpret_cast<const __m256i*>(keys) + i);
      blocks_[i] = _mm256_blendv_epi8(none, given, _mm256_cmpgt_epi32(all, places_[i]));
    }
  }

  MT_SCAFFOLD_AVX2 void set(size_t place, Key key) {
    const __m256i keys = _mm256_set1_epi32(static_cast<int>(key));
    for (size_t i = 0; i < kBlocks; ++i) blocks_[i] = _mm256_blendv_epi8(blocks_[i], keys, at(i, place));
  }
  MT_SCAFFOLD_AVX2 void remove(size_t a, size_t b, size_t c) {
    for (size_t i = 0; i < kBlocks; ++i)
      blocks_[i] = _mm256_or_si256(_mm256_or_si256(blocks_[i], at(i, a)), _mm256_or_si256(at(i, b), at(i, c)));
  }
  MT_SCAFFOLD_AVX2 Key least() const {
    __m256i found = blocks_[0];
    for (size_t i = 1; i < kBlocks; ++i) found = _mm256_min_epu32(found, blocks_[i]);
    return least_of(found);
  }

 private:
  MT_SCAFFOLD_AVX2 __m256i at(size_t block, size_t place) const {
    return _mm256_cmpeq_epi32(places_[block], _mm256_set1_epi32(static_cast<int>(place)));
  }

  __m256i blocks_[kBlocks], places_[kBlocks];
};

#endif

}  // namespace

MergesOneByOne::MergesOneByOne(const MergeTable& table)
    : ranks_(table.ranks),
      merged_of_rank_(table.merged_of_rank),
      fits_(merged_of_rank_.size() < size_t{1} << (32 - kPlaceBits)),
      before_merged_(merged_of_rank_.empty() ? 0 : merged_of_rank_[0] - 1),
      in_order_(std::ranges::adjacent_find(merged_of_rank_, [](int32_t a, int32_t b) { return a + 1 != b; }) ==
                merged_of_rank_.end()) {
  if (!fits_) return;
  if (!table.alphabet.bytes || table.alphabet.end_of_word) return;
  joined_.resize(size_t{1} << 16);
  number_of_bytes_.resize(size_t{1} << 16);
  token_of_byte_.resize(256, MergeTable::kUnknown);
  const std::vector<int32_t>& base = table.internal_base;  // up to the last byte that is in a merge
  std::copy(base.begin(), base.end(), token_of_byte_.begin());
  characters_.emplace(table);
  ranks_.for_each([&](int32_t left, int32_t right, int32_t) {
    const auto before = static_cast<unsigned char>(table.texts[left].back());
    const auto after = static_cast<unsigned char>(table.texts[right].front());
    joined_[static_cast<size_t>(after) << 8 | before] = 1;
  });
  for (size_t left = 0; left < base.size(); ++left)
    for (size_t right = 0; right < base.size(); ++right)
      number_of_bytes_[left << 8 | right] = ranks_.number(base[left], base[right]);
}

// A word being merged. The token of a place is that of the symbol that begins there.
template <typename Keys, typename Bits>
class MergesOneByOne::Word {
 public:
  __attribute__((always_inline)) Word(const MergesOneByOne& merges, size_t symbols)
      : merges_(merges), symbols_(symbols), places_(symbols) {}

  // Sets the symbols of all places.
  __attribute__((always_inline)) void begin(const int32_t* tokens) {
    std::copy_n(tokens, symbols_, token_);
    for (size_t i = 0; i + 1 < symbols_; ++i)
      keys_[i] = key_of(Keys::number(merges_.ranks_, tokens[i], tokens[i + 1]), i);
  }
  __attribute__((always_inline)) void begin(const char* text) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text);
    const auto set = [&](size_t i) __attribute__((always_inline)) {
      token_[i] = merges_.token_of_byte_[bytes[i]];
      keys_[i] = key_of(merges_.number_of_bytes_[static_cast<size_t>(bytes[i]) << 8 | bytes[i + 1]], i);
    };
    if constexpr (Keys::kRoom <= kAllPlaces) {
      // No branch depends on the length; keys beyond it are ignored.
      for (size_t i = 0; i < Keys::kRoom; ++i) set(i);
      token_[symbols_ - 1] = merges_.token_of_byte_[bytes[symbols_ - 1]];
    } else {
      for (size_t i = 0; i < symbols_; ++i) set(i);
    }
  }

  // Merges until no pair is left. Returns false if a merge makes a pair of a lower rank than its own.
  __attribute__((always_inline)) bool merge() {
    token_[symbols_] = token_[kBefore] = MergeTable::kUnknown;
    Keys keys(keys_, symbols_ - 1);
    // A step waits for two look-ups, and meanwhile finds the least other key.
    for (Key key = keys.least(); key < kNone;) {
      const size_t left = key & kBefore, before = places_.previous(left);
      const auto [right, after] = places_.remove_after(left);
      const int32_t made = token_[left] = merges_.merged_by((key >> kPlaceBits) + 1);
      keys.remove(before, left, right);
      const Key other = keys.least();
      const Key here = key_of(Keys::number(merges_.ranks_, made, token_[after]), left);
      const Key changed = key_of(Keys::number(merges_.ranks_, token_[before], made), before);
      keys.set(left, here);
      keys.set(before, changed);
      const Key fresh = std::min(here, changed);
      if (fresh >> kPlaceBits < key >> kPlaceBits) [[unlikely]]
        return false;
      // A branch in place of min(): if the processor predicts it, the next step does not wait for the look-ups. The asm
      // keeps the compiler from making it a conditional move.
      key = other;
      if (fresh < other) {
        asm volatile("" : "+r"(key));
        key = fresh;
      }
    }
    return true;
  }

  // Reduces `symbols` to those that are left, or writes their tokens. Returns their number.
  __attribute__((always_inline)) size_t finish(Symbols& symbols) {
    const size_t size = places_.count();
    for (size_t i = 0; i < size; ++i) {
      const size_t place = places_.take();
      symbols.token[i] = token_[place];
      if (i > 0) symbols.end[i - 1] = symbols.end[place - 1];
    }
    symbols.end[size - 1] = symbols.end.back();
    symbols.token.resize(size);
    symbols.end.resize(size);
    return size;
  }
  __attribute__((always_inline)) size_t finish(int32_t* tokens) {
    const size_t size = places_.count();
    // No branch depends on the number of tokens if it is small. With no bits left, take() returns 64, or 128, which
    // becomes 0.
    if constexpr (sizeof(Bits) == 8) token_[64] = MergeTable::kUnknown;
    for (size_t i = 0; i < kTokensAtOnce; ++i) tokens[i] = token_[places_.take() & kBefore];
    for (size_t i = kTokensAtOnce; i < size; ++i) tokens[i] = token_[places_.take()];
    return size;
  }

 private:
  static constexpr size_t kAllPlaces = 16;

  const MergesOneByOne& merges_;
  const size_t symbols_;
  Places<Bits> places_;
  alignas(64) Key keys_[kLongest + kBlock];
  int32_t token_[kBefore + 1];
};

template <typename Keys, typename Bits, typename From, typename To>
__attribute__((always_inline)) inline std::optional<size_t> MergesOneByOne::merge(const From* from, size_t n,
                                                                                  To&& to) const {
  Word<Keys, Bits> word(*this, n);
  word.begin(from);
  if (!word.merge()) return {};
  return word.finish(to);
}

template <typename From, typename To>
std::optional<size_t> MergesOneByOne::merge_portably(const From* from, size_t n, To&& to) const {
  if (n <= kInOneRegister) return merge<Portable, uint64_t>(from, n, to);
  return merge<Portable, unsigned __int128>(from, n, to);
}

#if defined(__SSE2__)
template <typename From, typename To>
MT_SCAFFOLD_AVX2
    __attribute__((flatten)) std::optional<size_t> MergesOneByOne::merge_with_avx2(const From* from, size_t n,
                                                                                   To&& to) const {
  switch ((n - 2) / 8) {
    case 0:
      return merge<InRegistersAvx2<1>, uint64_t>(from, n, to);
    case 1:
      return merge<InRegistersAvx2<2>, uint64_t>(from, n, to);
    case 2:
    case 3:
      return merge<InRegistersAvx2<4>, uint64_t>(from, n, to);
    default:
      return merge_portably(from, n, to);
  }
}
#endif

template <typename From, typename To>
std::optional<size_t> MergesOneByOne::merge_with_fastest(const From* from, size_t n, To&& to) const {
#if defined(__SSE2__)
  if (kUseAvx2) return merge_with_avx2(from, n, to);
#endif
  return merge_portably(from, n, to);
}

// `word` must be readable for kPadding bytes past its end.
static bool is_ascii(std::string_view word) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < word.size(); i += sizeof bytes) {
    uint64_t some;
    std::memcpy(&some, word.data() + i, sizeof some);
    const size_t beyond = i + sizeof some - std::min(word.size(), i + sizeof some);
    bytes |= some << beyond * 8;  // the last byte is the highest
  }
  return (bytes & 0x8080808080808080) == 0;
}

bool MergesOneByOne::apply(Symbols& symbols) const {
  const size_t n = symbols.token.size();
  if (n < 2) return true;
  return n <= kLongest && fits_ && merge_with_fastest(symbols.token.data(), n, symbols);
}

std::optional<size_t> MergesOneByOne::tokens_of(std::string_view word, int32_t* tokens) const {
  const size_t n = word.size();
  if (n < 2 || number_of_bytes_.empty()) return {};
  if (n <= kLongest && is_ascii(word)) return merge_with_fastest(word.data(), n, tokens);
  // Cuts the word where no merge joins its bytes: most bytes of a script that the codes were not learned on are alone.
  const auto* const bytes = reinterpret_cast<const unsigned char*>(word.data());
  const auto joined = [&](size_t i) {
    uint16_t both;
    std::memcpy(&both, bytes + i, sizeof both);
    return joined_[both];
  };
  int32_t* to = tokens;
  for (size_t begin = 0, steps = 0; begin < n;) {
    may_interrupt(++steps);
    constexpr size_t kAtOnce = 8;
    if (begin + kAtOnce < n) {
      uint8_t any = 0;
      for (size_t i = 0; i < kAtOnce; ++i) any |= joined(begin + i);
      if (any == 0) {
        for (size_t i = 0; i < kAtOnce; ++i) *to++ = token_of_byte_[bytes[begin++]];
        continue;
      }
    }
    size_t end = begin + 1;
    while (end < n && joined(end - 1)) ++end;
    const uint32_t pair =
        end == begin + 2 ? number_of_bytes_[static_cast<size_t>(bytes[begin]) << 8 | bytes[begin + 1]] : 0;
    if (pair != 0) {
      *to++ = merged_by(pair);
    } else if (end <= begin + 2) {
      for (size_t i = begin; i < end; ++i) *to++ = token_of_byte_[bytes[i]];
    } else if (const auto count = tokens_of_part(word.substr(begin, end - begin), to)) {
      to += *count;
    } else {
      return {};
    }
    begin = end;
  }
  std::fill_n(to, kTokensAtOnce, MergeTable::kUnknown);
  return static_cast<size_t>(to - tokens);
}

std::optional<size_t> MergesOneByOne::tokens_of_part(std::string_view part, int32_t* tokens) const {
  if (part.size() > kLongest) return {};
  std::array<int32_t, kLongest> symbols;
  const size_t count = characters_->tokens_of(part, symbols.data());
  if (count > 1) return merge_with_fastest(symbols.data(), count, tokens);
  *tokens = symbols[0];
  return 1;
}

}  // namespace mt_scaffold
