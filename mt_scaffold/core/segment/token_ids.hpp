// The ids of codes with a pre-tokeniser: bytes, normal merged tokens, special tokens; and back from ids to bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "memory/output_buffer.hpp"
#include "segment/applier.hpp"

namespace mt_scaffold {

// A special token in text that may not contain it.
class SpecialTokenFound : public InputError {
 public:
  using InputError::InputError;
};

// How a call treats a special token in a text: as text, as the token, or as an error. The values are those of Python's
// Special (mt_scaffold.segment.ids).
enum class Special : uint8_t { kText, kAllowed, kRefused };

// Ids that codes have in another program, and how it prepares text.
struct Numbering {
  enum class Prefix : uint8_t { kNone, kAlways, kUnlessThere };

  std::vector<int32_t> ids;  // of each token in the order of TokenIds, special tokens last; -1: none
  std::vector<std::pair<int32_t, std::string>> others;  // ids that only decoding knows, and their bytes
  int32_t unknown = -1;           // the id of subwords without one, once for several in a row; -1 if all have one
  bool metaspace = false;         // U+2581 means a space
  Prefix prefix = Prefix::kNone;  // whether a space comes before the text, which decoding removes
  bool prefix_each = false;       // and before the text after a special token
  // The ids of special tokens that the space comes before if a text begins with one.
  std::vector<int32_t> after_prefix;
};

class TokenIds {
 public:
  // `merged`: the strings of the normal merged tokens in order of rank. `multiple`: the number of ids is rounded up to
  // a multiple of it.
  TokenIds(const std::vector<std::string>& merged, std::vector<std::string> special, uint32_t multiple,
           const Numbering* numbering = nullptr);

  uint32_t n_vocab() const { return static_cast<uint32_t>(entries_.size()); }
  // The bytes of an id; empty for padding.
  std::string bytes_of(size_t id) const { return bytes_of(entries_[id]); }
  // The bytes of a token → id.
  Dictionary dictionary() const;

  const std::vector<int32_t>& special_ids() const { return special_ids_; }
  const Numbering& numbering() const { return numbering_; }
  // Whether the space comes before this special token if a text begins with it.
  bool after_prefix(int32_t id) const {
    return std::find(numbering_.after_prefix.begin(), numbering_.after_prefix.end(), id) !=
           numbering_.after_prefix.end();
  }
  const std::vector<std::string>& special() const { return special_; }

  // Appends the text of `count` ids. `id_at(i)` is the i-th, as a 64-bit number. Calls `on_token(position)` for each id
  // with the position of its bytes in the output. Throws InputError for an id out of range.
  template <typename IdAt, typename OnToken>
  void decode(size_t count, IdAt&& id_at, OnToken&& on_token, OutputBuffer& output) const {
    bool at_start = numbering_.prefix != Numbering::Prefix::kNone;
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint64_t>(id_at(i));
      if (id >= entries_.size()) throw out_of_range(i, static_cast<int64_t>(id));
      const Entry& entry = entries_[id];
      char* const to = output.reserve(kInline + entry.length);
      on_token(output.size());
      if (at_start && !entry.special) {
        at_start = false;
        if (entry.length > 0 && entry.head[0] == ' ') {
          const std::string rest = bytes_of(id).substr(1);
          output.append(rest.data(), rest.size());
          continue;
        }
      }
      std::memcpy(to, entry.head, kInline);
      if (entry.length > kInline) std::memcpy(to + kInline, long_.data() + entry.rest, entry.length - kInline);
      output.advance(entry.length);
    }
  }

 private:
  static constexpr size_t kInline = 20;
  struct Entry {
    char head[kInline];
    uint32_t length, rest;
    bool special;  // or padding: no space before the text is removed from it
  };
  static_assert(sizeof(Entry) == 32);

  void add(std::string_view bytes, bool special);
  std::string bytes_of(const Entry& entry) const;
  InputError out_of_range(size_t position, int64_t id) const;

  void renumber();

  std::vector<Entry> entries_;
  std::string long_;  // the bytes of tokens after the first kInline
  std::vector<std::string> special_;
  std::vector<int32_t> special_ids_;
  Numbering numbering_;
  std::vector<Entry> ordinary_;  // in the order of numbering_.ids, which gives theirs
};

}  // namespace mt_scaffold
