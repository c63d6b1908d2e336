#include "segment/token_ids.hpp"

#include <algorithm>
#include <cstring>

#include "text/text.hpp"

namespace mt_scaffold {

namespace {

// Decoding has an entry for every id up to the largest.
constexpr int32_t kMostIds = 1 << 24;

}  // namespace

TokenIds::TokenIds(const std::vector<std::string>& merged, std::vector<std::string> special, uint32_t multiple,
                   const Numbering* numbering)
    : special_(std::move(special)) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add({&c, 1}, false);
  }
  for (const std::string& token : merged) add(token, false);
  const auto ordinary = static_cast<int32_t>(entries_.size());
  for (const std::string_view token : special_) {
    special_ids_.push_back(static_cast<int32_t>(entries_.size()));
    add(token, true);
  }
  ordinary_.assign(entries_.begin(), entries_.begin() + ordinary);
  if (numbering) {
    numbering_ = *numbering;
    renumber();
  }
  while (entries_.size() % std::max<uint32_t>(multiple, 1) != 0) add("", true);
}

void TokenIds::add(std::string_view bytes, bool special) {
  Entry entry{{}, static_cast<uint32_t>(bytes.size()), 0, special};
  std::memcpy(entry.head, bytes.data(), std::min(bytes.size(), kInline));
  if (bytes.size() > kInline) {
    entry.rest = static_cast<uint32_t>(long_.size());
    long_ += bytes.substr(kInline);
  }
  entries_.push_back(entry);
}

void TokenIds::renumber() {
  if (numbering_.ids.size() != entries_.size())
    throw InputError("there are " + std::to_string(numbering_.ids.size()) + " ids for " +
                     std::to_string(entries_.size()) + " tokens");
  int32_t last = -1;
  const auto take = [&last](int32_t id, int32_t least) {
    if (id < least || id >= kMostIds) throw InputError("the id " + std::to_string(id) + " is out of range");
    last = std::max(last, id);
  };
  // Ordinary tokens and `unknown` may be -1, for no id.
  take(numbering_.unknown, -1);
  for (size_t i = 0; i < numbering_.ids.size(); ++i) take(numbering_.ids[i], i < ordinary_.size() ? -1 : 0);
  for (const auto& [id, bytes] : numbering_.others) take(id, 0);
  const std::vector<Entry> own = std::move(entries_);
  entries_.assign(static_cast<size_t>(last) + 1, Entry{{}, 0, 0, true});
  for (const auto& [id, bytes] : numbering_.others) {
    add(bytes, false);
    entries_[static_cast<size_t>(id)] = entries_.back();
    entries_.pop_back();
  }
  for (size_t i = 0; i < own.size(); ++i)
    if (numbering_.ids[i] >= 0) entries_[static_cast<size_t>(numbering_.ids[i])] = own[i];
  for (size_t i = 0; i < special_.size(); ++i) {
    special_ids_[i] = numbering_.ids[ordinary_.size() + i];
    if (after_prefix(special_ids_[i])) entries_[static_cast<size_t>(special_ids_[i])].special = false;
  }
}

std::string TokenIds::bytes_of(const Entry& entry) const {
  std::string bytes(entry.head, std::min<size_t>(entry.length, kInline));
  if (entry.length > kInline) bytes.append(long_, entry.rest, entry.length - kInline);
  return bytes;
}

Dictionary TokenIds::dictionary() const {
  Dictionary dictionary;
  dictionary.reserve(ordinary_.size());
  for (size_t i = 0; i < ordinary_.size(); ++i) {
    const int32_t id = numbering_.ids.empty() ? static_cast<int32_t>(i) : numbering_.ids[i];
    dictionary.emplace(bytes_of(ordinary_[i]), id < 0 ? numbering_.unknown : id);
  }
  return dictionary;
}

InputError TokenIds::out_of_range(size_t position, int64_t id) const {
  const bool shown = id != INT64_MIN && id != INT64_MAX;  // integers that do not fit into 64 bits become one of these
  return InputError((shown ? "id " + std::to_string(id) : "an id of more than 63 bits") + " at position " +
                    std::to_string(position) + " is out of range: these codes have ids 0 to " +
                    std::to_string(entries_.size() - 1) +
                    "; decode with the codes and special tokens that the ids were made with");
}

}  // namespace mt_scaffold
