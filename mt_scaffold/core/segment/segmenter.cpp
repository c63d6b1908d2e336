#include "segment/segmenter.hpp"

#include "io/interruption.hpp"

namespace mt_scaffold {

Segmenter::Segmenter(const Codes& codes, std::string separator, const StringSet* vocabulary)
    : header_(codes.header),
      separator_(std::move(separator)),
      table_(codes),
      inference_(make_inference(table_, codes)),
      splits_(codes.splits),
      expansions_(expand(table_, separator_, vocabulary)),
      expands_(expansions_.inner.size()) {
  for (const auto* by_token : {&expansions_.inner, &expansions_.last})
    for (size_t token = 0; token < by_token->size(); ++token)
      if (!(*by_token)[token].empty()) expands_[token] = 1;
}

Reachable Segmenter::reachable(bool every) const {
  const std::vector<bool> none;
  return {table_, separator_, every ? none : mergeable_tokens(table_, splits_, header_.picky), expansions_};
}

std::vector<std::string> Segmenter::surface_forms(bool isolates) const {
  std::vector<std::string> forms;
  StringSet seen;
  const auto add = [&](std::string form) {
    if (seen.insert(form).second) forms.push_back(std::move(form));
  };
  if (!table_.alphabet.end_of_word) {
    for (uint32_t byte = 0; byte < 256; ++byte) add({static_cast<char>(byte)});
    for (std::string& token : table_.normal_tokens()) add(std::move(token));
    return forms;
  }
  // Base symbols in both positions, because dropout can leave any of them unmerged.
  const auto add_base = [&](const std::vector<int32_t>& base) {
    for (uint32_t symbol = 0; symbol < base.size(); ++symbol) {
      if (base[symbol] == MergeTable::kUnknown) continue;
      std::string text;
      append_symbol(text, symbol, table_.alphabet);
      add(text + separator_);
      add(text);
    }
  };
  add_base(table_.internal_base);
  add_base(table_.final_base);
  // In a text that spells out "</w>", a token inside a word can end in it.
  std::vector<bool> spelled_out(table_.texts.size());
  const auto may_be_inside = [&](int32_t token) {
    const std::string_view text = table_.texts[token];
    return !text.ends_with(kEndOfWord) || text == kEndOfWord || spelled_out[static_cast<size_t>(token)];
  };
  for (bool more = true; more;) {
    more = false;
    table_.ranks.for_each([&](int32_t, int32_t right, int32_t rank) {
      if (!may_be_inside(right)) return;
      const int32_t merged = table_.merged_of_rank[static_cast<size_t>(rank)];
      if (may_be_inside(merged)) return;
      spelled_out[static_cast<size_t>(merged)] = more = true;
    });
  }
  for (int32_t token = 0; token < static_cast<int32_t>(table_.texts.size()); ++token) {
    if (table_.scaffold[static_cast<size_t>(token)]) continue;
    const std::string_view text = table_.texts[token];
    if (may_be_inside(token)) add(std::string(text) + separator_);
    if (!text.ends_with(kEndOfWord) || text == kEndOfWord) continue;
    const std::string stem(text.substr(0, text.size() - kEndOfWord.size()));
    if (isolates) add(stem + separator_);
    add(stem);
  }
  return forms;
}

uint32_t Segmenter::segment(std::string_view word, std::vector<Piece>& pieces, Scratch& scratch,
                            Decisions* decisions) const {
  std::vector<int32_t>& token = scratch.symbols.token;
  std::vector<uint32_t>& end = scratch.symbols.end;
  size_t base_symbols = word.size();
  uint32_t merges;
  token.resize(base_symbols + kTokensAtOnce);
  if (const auto count = decisions ? std::nullopt : inference_->tokens_of(word, token.data())) {
    merges = static_cast<uint32_t>(base_symbols - *count);
    token.resize(*count);
    end.resize(*count);
    uint32_t at = 0;
    for (size_t i = 0; i < *count; ++i)
      end[i] = at += token[i] == MergeTable::kUnknown ? 1 : static_cast<uint32_t>(table_.texts[token[i]].size());
  } else {
    table_.base_symbols(word, token, end);
    base_symbols = token.size();
    merges = inference_->apply(scratch.symbols, scratch.long_word, decisions);
  }
  pieces.clear();
  uint32_t begin = 0;
  for (size_t i = 0; i < token.size(); ++i) {
    may_interrupt(i);
    int32_t piece = token[i];
    if (piece != MergeTable::kUnknown && base_symbols > 1 && expands_[static_cast<size_t>(piece)]) {
      const bool last = i + 1 == token.size() && !expansions_.last.empty();
      const auto& expansion = (last ? expansions_.last : expansions_.inner)[static_cast<size_t>(token[i])];
      for (size_t k = 0; k + 1 < expansion.size(); ++k) {
        const auto piece_end = begin + static_cast<uint32_t>(table_.texts[expansion[k]].size());
        pieces.push_back({begin, piece_end, expansion[k]});
        begin = piece_end;
      }
      if (!expansion.empty()) piece = expansion.back();
    }
    pieces.push_back({begin, end[i], piece});
    begin = end[i];
  }
  return merges;
}

}  // namespace mt_scaffold
