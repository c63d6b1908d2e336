// How the subwords of a word are written: as text, or as ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "segment/isolate.hpp"
#include "segment/segmenter.hpp"
#include "segment/word_cache.hpp"
#include "text/hashing.hpp"

namespace mt_scaffold {

using Dictionary = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

// Subwords with separators or, of codes without an end-of-word marker, in GPT-2's notation.
class WordText {
 public:
  explicit WordText(const Segmenter& segmenter) : segmenter_(segmenter) {}

  void write(std::string_view word, const std::vector<Piece>& pieces, std::string& text) const;

 private:
  const Segmenter& segmenter_;
};

// Ids as int32: of subwords with separators or, without an end-of-word marker, of tokens wherever they are in a word.
class WordIds {
 public:
  // The dictionary's keys are subwords with the separator, or the bytes of tokens; other subwords become `unknown`.
  WordIds(const Segmenter& segmenter, std::shared_ptr<const Dictionary> dictionary, int32_t unknown);

  // A value of `unknown`: a subword without an id becomes its bytes, whose ids are their values.
  static constexpr int32_t kSpellOut = -1;

  // Whether of_word() may know words.
  bool of_tokens() const { return !id_of_token_.empty(); }
  // Writes the ids of a remembered word to `ids`, which has room for kMost, and returns their number; none if only
  // write() can. `merges`: the number of merges.
  static constexpr size_t kMost = kLongestRememberedWord + kTokensAtOnce;
  std::optional<size_t> of_word(std::string_view word, int32_t* ids, uint32_t& merges) const;
  void write(std::string_view word, const std::vector<Piece>& pieces, std::string& text) const;

  static constexpr int32_t kNoId = INT32_MIN;
  // The words of two bytes or more that are one token, with which a thread's cache starts: most new words of a text, if
  // the codes are large.
  const std::vector<WordCache::Word>& whole_words() const { return whole_words_; }

 private:
  // Appends the id of a subword by its `form`; of one that is not in the dictionary, `unknown_`, or the ids of its
  // bytes.
  void append(const std::string& form, std::string& text) const;

  const Segmenter& segmenter_;
  const std::shared_ptr<const Dictionary> dictionary_;
  // Without an end-of-word marker, the id of each token, kNoId for those not in the dictionary; and by token plus one,
  // with kNoId for kUnknown, or ~i for a token that expands to expanded_[i] ids, which follow there.
  std::vector<int32_t> id_of_token_, id_of_whole_token_, expanded_;
  std::vector<WordCache::Word> whole_words_;
  const int32_t unknown_;
};

}  // namespace mt_scaffold
