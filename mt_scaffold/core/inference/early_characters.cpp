#include "inference/early_characters.hpp"

#include <algorithm>

namespace mt_scaffold {

namespace {

constexpr int32_t kNever = MergeTable::kNoRank;

uint32_t byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

bool continues(uint32_t byte) { return (byte & 0xC0) == 0x80; }

// The size of the character that begins at `i`: 2 or 3 bytes, or 1 for anything else.
size_t size_of_character(std::string_view text, size_t i) {
  const uint32_t first = byte_at(text, i);
  if (first < 0xC0 || i + 1 >= text.size() || !continues(byte_at(text, i + 1))) return 1;
  if (first < 0xE0) return 2;
  return first < 0xF0 && i + 2 < text.size() && continues(byte_at(text, i + 2)) ? 3 : 1;
}

uint32_t number_of_two(std::string_view text, size_t i) {
  return (byte_at(text, i) & 0x1F) << 6 | (byte_at(text, i + 1) & 0x3F);
}

uint32_t number_of_three(std::string_view text, size_t i) {
  return (byte_at(text, i) & 0xF) << 12 | (byte_at(text, i + 1) & 0x3F) << 6 | (byte_at(text, i + 2) & 0x3F);
}

}  // namespace

EarlyCharacters::EarlyCharacters(const MergeTable& table)
    : of_two_(size_t{1} << 11),
      of_three_(size_t{1} << 16),
      lowest_of_last_(size_t{1} << 16, kNever),
      lowest_of_first_(size_t{1} << 16, kNever),
      token_of_byte_(256, MergeTable::kUnknown) {
  std::copy(table.internal_base.begin(), table.internal_base.end(), token_of_byte_.begin());
  std::vector<int32_t> first_use(table.texts.size(), kNever);  // by token: the lowest rank of a merge of it
  table.ranks.for_each([&](int32_t left, int32_t right, int32_t rank) {
    const auto take = [&](int32_t& lowest) { lowest = std::min(lowest, rank); };
    take(first_use[static_cast<size_t>(left)]);
    take(first_use[static_cast<size_t>(right)]);
    const std::string_view before = table.texts[left], after = table.texts[right];
    const uint32_t edge = byte_at(before, before.size() - 1) << 8 | byte_at(after, 0);
    if (before.size() < 3 && continues(byte_at(before, 0))) take(lowest_of_last_[edge]);
    if (after.size() == 1 || (after.size() == 2 && byte_at(after, 0) >= 0xE0)) take(lowest_of_first_[edge]);
  });
  for (const int32_t token : table.merged_of_rank)
    add(table, table.texts[token], first_use[static_cast<size_t>(token)]);
}

void EarlyCharacters::add(const MergeTable& table, std::string_view text, int32_t first_use) {
  const auto is_character = [&](size_t bytes) { return text.size() == bytes && size_of_character(text, 0) == bytes; };
  const auto token = [&](size_t i) { return token_of_byte_[byte_at(text, i)]; };
  const auto merged = [&](int32_t rank) { return table.merged_of_rank[static_cast<size_t>(rank)]; };
  const auto made = [&](int32_t rank, int32_t last) {
    return Character{merged(rank), first_use < last ? kNever : last};
  };
  if (is_character(2)) {
    const int32_t rank = table.ranks.find(token(0), token(1));
    if (rank != kNever) of_two_[number_of_two(text, 0)] = made(rank, rank);
  } else if (is_character(3)) {
    const int32_t first = table.ranks.find(token(0), token(1)), last = table.ranks.find(token(1), token(2));
    const int32_t rank = std::min(first, last);
    if (rank == kNever) return;
    const int32_t then =
        first < last ? table.ranks.find(merged(rank), token(2)) : table.ranks.find(token(0), merged(rank));
    if (then != kNever) of_three_[number_of_three(text, 0)] = made(then, std::max(rank, then));
  }
}

size_t EarlyCharacters::tokens_of(std::string_view word, int32_t* tokens) const {
  const auto across = [&](const std::vector<int32_t>& lowest, size_t end) {
    return end == 0 || end == word.size() ? kNever : lowest[byte_at(word, end - 1) << 8 | byte_at(word, end)];
  };
  int32_t* to = tokens;
  for (size_t i = 0; i < word.size();) {
    const size_t size = size_of_character(word, i);
    if (size > 1) {
      const Character& character = size == 2 ? of_two_[number_of_two(word, i)] : of_three_[number_of_three(word, i)];
      if (character.last_rank < std::min(across(lowest_of_first_, i), across(lowest_of_last_, i + size))) {
        *to++ = character.token;
        i += size;
        continue;
      }
    }
    const size_t end = i + size;
    for (; i < end; ++i) *to++ = token_of_byte_[byte_at(word, i)];
  }
  return static_cast<size_t>(to - tokens);
}

}  // namespace mt_scaffold
