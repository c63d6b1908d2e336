#include "inference/merge_table.hpp"

#include <functional>

#include "text/text.hpp"

namespace mt_scaffold {

MergeTable::MergeTable(const Codes& codes)
    : alphabet(codes.header.alphabet()), texts(codes.merges.size() + 256), ranks(codes.merges.size()) {
  // Base symbols come first, so that most codes number the tokens of their merges in order.
  if (alphabet.bytes && !alphabet.end_of_word)
    for (int byte = 0; byte < 256; ++byte) texts.intern(std::string(1, static_cast<char>(byte)));
  for (const Merge& merge : codes.merges)
    for (const std::string& half : {std::cref(merge.left), std::cref(merge.right)})
      if (is_base_symbol(half, alphabet)) texts.intern(half);
  std::string text;
  for (const Merge& merge : codes.merges) {
    text.assign(merge.left).append(merge.right);
    const int32_t left = texts.intern(merge.left), right = texts.intern(merge.right), merged = texts.intern(text);
    scaffold.resize(texts.size());
    scaffold[static_cast<size_t>(merged)] = merge.scaffold;
    if (ranks.find(left, right) == kNoRank) ranks.set(left, right, static_cast<int32_t>(pair_of_rank.size()));
    pair_of_rank.push_back({left, right});
    merged_of_rank.push_back(merged);
  }
  for (const Split& split : codes.splits) {
    texts.intern(split.token);
    for (const std::string& piece : split.pieces) texts.intern(piece);
  }
  scaffold.resize(texts.size());
  for (size_t token = 0; token < texts.size(); ++token) {
    const std::string_view name = texts[static_cast<int32_t>(token)];
    if (!is_base_symbol(name, alphabet)) continue;
    uint32_t symbol = 0;
    const bool marked = first_symbol(name, alphabet, symbol) < name.size();
    auto& base = marked ? final_base : internal_base;
    if (base.size() <= symbol) base.resize(symbol + 1, kUnknown);
    base[symbol] = static_cast<int32_t>(token);
  }
}

void MergeTable::base_symbols(std::string_view word, std::vector<int32_t>& token, std::vector<uint32_t>& end) const {
  if (alphabet.bytes && !alphabet.end_of_word) {
    token.resize(word.size());
    end.resize(word.size());
    for (size_t i = 0; i < word.size(); ++i) {
      const auto symbol = static_cast<unsigned char>(word[i]);
      token[i] = symbol < internal_base.size() ? internal_base[symbol] : kUnknown;
      end[i] = static_cast<uint32_t>(i + 1);
    }
    return;
  }
  token.clear();
  end.clear();
  if (alphabet.bytes) {
    for_each_symbol(word, alphabet, [&](uint32_t symbol, bool marked) {
      const auto& base = marked ? final_base : internal_base;
      token.push_back(symbol < base.size() ? base[symbol] : kUnknown);
      end.push_back(static_cast<uint32_t>(token.size()));
    });
    return;
  }
  const auto* p = reinterpret_cast<const unsigned char*>(word.data());
  for (size_t i = 0; i < word.size();) {
    uint32_t code_point = 0;
    i += decode_code_point(p + i, word.size() - i, code_point);
    const auto& base = i == word.size() ? final_base : internal_base;
    token.push_back(code_point < base.size() ? base[code_point] : kUnknown);
    end.push_back(static_cast<uint32_t>(i));
  }
}

std::vector<std::string> MergeTable::normal_tokens() const {
  std::vector<std::string> tokens;
  std::vector<bool> seen(texts.size());
  for (const int32_t token : merged_of_rank) {
    const auto at = static_cast<size_t>(token);
    if (!seen[at] && !scaffold[at]) tokens.emplace_back(texts[token]);
    seen[at] = true;
  }
  return tokens;
}

}  // namespace mt_scaffold
