#include "segment/word_ids.hpp"

#include <algorithm>
#include <iterator>

#include "errors.hpp"
#include "io/interruption.hpp"
#include "text/notation.hpp"

namespace mt_scaffold {

void WordText::write(std::string_view word, const std::vector<Piece>& pieces, std::string& text) const {
  const bool notation = !segmenter_.alphabet().end_of_word;
  const size_t separators = notation ? 0 : pieces.size() * (segmenter_.separator().size() + 1);
  if ((word.size() + separators) >> 32 != 0)
    throw InputError("a word becomes 2^32 bytes or more; use a shorter separator");
  text.clear();
  for (size_t i = 0; i < pieces.size(); ++i) {
    may_interrupt(i);
    const std::string_view piece = word.substr(pieces[i].begin, pieces[i].end - pieces[i].begin);
    if (notation) {
      append_notation(text, piece);
    } else {
      text += piece;
    }
    if (i + 1 == pieces.size()) continue;
    if (!notation) text += segmenter_.separator();
    text += ' ';
  }
}

WordIds::WordIds(const Segmenter& segmenter, std::shared_ptr<const Dictionary> dictionary, int32_t unknown)
    : segmenter_(segmenter), dictionary_(std::move(dictionary)), unknown_(unknown) {
  if (segmenter.alphabet().end_of_word) return;
  const Interner& texts = segmenter.texts();
  id_of_token_.assign(texts.size(), kNoId);
  id_of_whole_token_.assign(texts.size() + 1, kNoId);
  for (size_t token = 0; token < texts.size(); ++token) {
    const auto number = static_cast<int32_t>(token);
    if (const auto found = dictionary_->find(texts[number]); found != dictionary_->end())
      id_of_token_[token] = found->second;
  }
  for (size_t token = 0; token < texts.size(); ++token) {
    int32_t& id = id_of_whole_token_[token + 1];
    const Expansion& expansion = segmenter.expansion(static_cast<int32_t>(token));
    const auto id_of = [&](int32_t part) { return id_of_token_[static_cast<size_t>(part)]; };
    if (expansion.empty()) {
      id = id_of_token_[token] < 0 ? kNoId : id_of_token_[token];  // a dictionary may have any ids
    } else if (std::ranges::find(expansion, kNoId, id_of) == expansion.end()) {
      id = ~static_cast<int32_t>(expanded_.size());
      expanded_.push_back(static_cast<int32_t>(expansion.size()));
      std::ranges::transform(expansion, std::back_inserter(expanded_), id_of);
    }
  }
  int32_t ids[kMost];
  uint32_t merges;
  for (size_t token = 0; token < texts.size(); ++token) {
    const std::string_view text = texts[static_cast<int32_t>(token)];
    if (id_of_whole_token_[token + 1] < 0 || text.size() > WordCache::kLongest) continue;
    if (of_word(text, ids, merges) == 1) whole_words_.push_back({WordCache::key(text.data(), text.size()), ids[0]});
  }
}

std::optional<size_t> WordIds::of_word(std::string_view word, int32_t* ids, uint32_t& merges) const {
  if (!of_tokens() || word.size() > kLongestRememberedWord) return {};
  int32_t tokens[kMost];
  const std::optional<size_t> found = segmenter_.tokens_of(word, tokens);
  if (!found) return {};
  const size_t count = *found;
  merges = static_cast<uint32_t>(word.size() - count);
  int32_t least = 0;
  const auto write = [&](size_t i) { return ids[i] = id_of_whole_token_[static_cast<size_t>(tokens[i] + 1)]; };
  for (size_t i = 0; i < kTokensAtOnce; ++i) {
    const int32_t id = write(i);
    least = std::min(least, i < count ? id : 0);
  }
  for (size_t i = kTokensAtOnce; i < count; ++i) least = std::min(least, write(i));
  if (least >= 0) [[likely]]
    return count;
  size_t written = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = id_of_whole_token_[static_cast<size_t>(tokens[i] + 1)];
    if (id == kNoId) return {};
    if (id >= 0) {
      ids[written++] = id;
    } else {
      const int32_t* const expanded = &expanded_[static_cast<size_t>(~id)];
      std::copy_n(expanded + 1, *expanded, ids + written);
      written += static_cast<size_t>(*expanded);
    }
  }
  return written;
}

void WordIds::write(std::string_view word, const std::vector<Piece>& pieces, std::string& text) const {
  text.clear();
  std::string form;
  for (size_t i = 0; i < pieces.size(); ++i) {
    may_interrupt(i);
    const Piece& piece = pieces[i];
    const auto token = static_cast<size_t>(piece.token);
    if (token < id_of_token_.size() && id_of_token_[token] != kNoId) {
      text.append(reinterpret_cast<const char*>(&id_of_token_[token]), sizeof(int32_t));
      continue;
    }
    const std::string_view subword = word.substr(piece.begin, piece.end - piece.begin);
    form.assign(subword);
    if (i + 1 < pieces.size() && !of_tokens()) form += segmenter_.separator();
    append(form, text);
  }
}

void WordIds::append(const std::string& form, std::string& text) const {
  const auto append_id = [&](int32_t id) { text.append(reinterpret_cast<const char*>(&id), sizeof id); };
  if (const auto found = dictionary_->find(form); found != dictionary_->end()) return append_id(found->second);
  if (unknown_ != kSpellOut) return append_id(unknown_);
  for (const char byte : form) append_id(static_cast<unsigned char>(byte));
}

}  // namespace mt_scaffold
