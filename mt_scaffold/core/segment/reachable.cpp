#include "segment/reachable.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "io/interruption.hpp"
#include "text/alphabet.hpp"

namespace mt_scaffold {

namespace {

size_t bytes_of(const Interner& texts) {
  size_t bytes = 0;
  for (size_t token = 0; token < texts.size(); ++token) bytes += texts[static_cast<int32_t>(token)].size();
  return bytes;
}

}  // namespace

std::vector<bool> mergeable_tokens(const MergeTable& table, const std::vector<Split>& splits, bool in_order) {
  const size_t lines = table.merged_of_rank.size();
  std::vector<bool> found(table.texts.size());
  for (size_t token = 0; token < found.size(); ++token)
    found[token] = is_base_symbol(table.texts[static_cast<int32_t>(token)], table.alphabet);
  const auto follow = [&](size_t line) {
    const MergeTable::Pair pair = table.pair_of_rank[line];
    if (found[static_cast<size_t>(pair.left)] && found[static_cast<size_t>(pair.right)])
      found[static_cast<size_t>(table.merged_of_rank[line])] = true;
  };
  if (!in_order) {
    // Tokens are shorter than what they are merged into.
    std::vector<size_t> shortest_first(lines);
    std::iota(shortest_first.begin(), shortest_first.end(), size_t{0});
    const auto size_of = [&](size_t line) { return table.texts[table.merged_of_rank[line]].size(); };
    std::stable_sort(shortest_first.begin(), shortest_first.end(),
                     [&](size_t a, size_t b) { return size_of(a) < size_of(b); });
    for (const size_t line : shortest_first) follow(line);
    return found;
  }
  auto split = splits.begin();
  for (size_t line = 0; line < lines; ++line) {
    follow(line);
    for (; split != splits.end() && split->after <= line + 1; ++split)
      found[static_cast<size_t>(table.texts.find(split->token))] = false;
  }
  return found;
}

Reachable::Reachable(const MergeTable& table, std::string separator, const std::vector<bool>& tokens,
                     const Expansions& expansions)
    : table_(table),
      separator_(std::move(separator)),
      expansions_(expansions),
      children_(bytes_of(table.texts) + 1),
      nodes_(1),
      seen_tokens_(table.texts.size(), 7) {
  // Merges, too, make the last symbol of a word, inside words that spell out "</w>".
  std::vector<bool> made(table.texts.size());
  for (size_t line = 0; line < table.pair_of_rank.size() && !tokens.empty(); ++line) {
    const MergeTable::Pair pair = table.pair_of_rank[line];
    if (tokens[static_cast<size_t>(pair.left)] && tokens[static_cast<size_t>(pair.right)])
      made[static_cast<size_t>(table.merged_of_rank[line])] = true;
  }
  for (size_t token = 0; token < tokens.size(); ++token) {
    const std::string_view text = table.texts[static_cast<int32_t>(token)];
    if (!tokens[token] || (is_base_symbol(text, table.alphabet) && !made[token])) continue;
    seen_tokens_[token] = 0;
    const bool is_inside = !text.ends_with(kEndOfWord);
    int32_t node = 0;
    nodes_[0].unseen += is_inside;
    for (const char byte : text) {
      int32_t child = children_.find(node, static_cast<unsigned char>(byte));
      if (child == PairTable::kNone) {
        child = static_cast<int32_t>(nodes_.size());
        children_.set(node, static_cast<unsigned char>(byte), child);
        nodes_.emplace_back();
      }
      node = child;
      nodes_[static_cast<size_t>(node)].unseen += is_inside;
    }
    nodes_[static_cast<size_t>(node)].token = static_cast<int32_t>(token);
    longest_ = std::max(longest_, text.size());
  }
}

void Reachable::add(std::string_view word, bool ends_word) {
  const Alphabet alphabet = table_.alphabet;
  std::string marked(word);
  if (alphabet.end_of_word) marked += kEndOfWord;
  std::vector<size_t> path;  // from the root of the trie
  const bool spells_end = word.find(kEndOfWord) != std::string_view::npos;
  size_t steps = 0;
  for (size_t begin = 0; begin < word.size();) {
    uint32_t symbol = 0;
    const size_t next = begin + first_symbol(word.substr(begin), alphabet, symbol);
    if (is_new(seen_symbols_, symbol, next == word.size(), ends_word))
      add_whole(word.substr(begin, next - begin), next == word.size() && ends_word);
    path.assign(1, 0);
    // Walking on where all was seen before, long tokens in a long word take their product.
    for (size_t to = begin; to + 1 < word.size() && (spells_end || nodes_[path.back()].unseen > 0);) {
      may_interrupt(++steps);
      const int32_t node = children_.find(static_cast<int32_t>(path.back()), static_cast<unsigned char>(word[to++]));
      if (node == PairTable::kNone) break;
      path.push_back(static_cast<size_t>(node));
      const int32_t token = nodes_[path.back()].token;
      if (token == MergeTable::kUnknown || !is_new(seen_tokens_, static_cast<uint32_t>(token), false, ends_word))
        continue;
      for (const size_t above : path) nodes_[above].unseen -= !table_.texts[token].ends_with(kEndOfWord);
      add_token(token, word.substr(begin, to - begin), expansions_.inner, false);
    }
    // The last symbol ends after its marker.
    may_interrupt(++steps);
    const std::string_view rest = std::string_view(marked).substr(begin);
    const int32_t last = rest.size() > longest_ ? MergeTable::kUnknown : table_.texts.find(rest);
    if (last != MergeTable::kUnknown && is_new(seen_tokens_, static_cast<uint32_t>(last), true, ends_word))
      add_token(last, word.substr(begin), expansions_.last.empty() ? expansions_.inner : expansions_.last, ends_word);
    begin = next;
  }
}

void Reachable::add_token(int32_t token, std::string_view text, const std::vector<Expansion>& all, bool ends_word) {
  const Expansion& pieces = all[static_cast<size_t>(token)];
  for (size_t k = 0; k + 1 < pieces.size(); ++k) {
    const size_t size = table_.texts[pieces[k]].size();
    add_whole(text.substr(0, size), false);
    text.remove_prefix(size);
  }
  add_whole(text, ends_word);
}

void Reachable::add_whole(std::string_view text, bool ends_word) {
  std::string form(text);
  if (!ends_word && table_.alphabet.end_of_word) form += separator_;
  if (seen_forms_.insert(form).second) forms_.push_back(std::move(form));
}

bool Reachable::is_new(std::vector<uint8_t>& seen, uint32_t number, bool at_end, bool ends_word) {
  if (number >= seen.size()) seen.resize(number + 1);
  const auto place = static_cast<uint8_t>(!at_end ? 1 : ends_word ? 2 : 4);
  if (seen[number] & place) return false;
  seen[number] |= place;
  return true;
}

}  // namespace mt_scaffold
