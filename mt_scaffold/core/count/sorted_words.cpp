#include "count/sorted_words.hpp"

#include <algorithm>

namespace mt_scaffold {

MergedWords::MergedWords(std::vector<std::unique_ptr<SortedWords>> streams) : streams_(std::move(streams)) {
  for (const auto& stream : streams_) push(stream.get());
}

bool MergedWords::next() {
  if (heap_.empty()) return false;
  const WordCount& first = heap_[0].stream->entry();
  word_.reserve(first.word.size() + kPadding);
  word_.assign(first.word);
  const uint64_t prefix = heap_[0].prefix;
  entry_ = {word_, first.count, first.first_seen};
  for (advance(); !heap_.empty() && heap_[0].prefix == prefix; advance()) {
    const WordCount& same = heap_[0].stream->entry();
    if (same.word != entry_.word) break;
    add_count(entry_.count, same.count, entry_.word);
    entry_.first_seen = std::min(entry_.first_seen, same.first_seen);
  }
  return true;
}

void MergedWords::advance() {
  std::pop_heap(heap_.begin(), heap_.end(), Head::later);
  SortedWords* const stream = heap_.back().stream;
  heap_.pop_back();
  push(stream);
}

void MergedWords::push(SortedWords* stream) {
  if (!stream->next()) return;
  heap_.push_back({sort_prefix(stream->entry().word), stream});
  std::push_heap(heap_.begin(), heap_.end(), Head::later);
}

void SortedEntries::sort() {
  places_.reserve(entries_.size());
  for (const WordCount& entry : entries_) places_.push_back({sort_prefix(entry.word), &entry});
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : a.entry->word < b.entry->word;
  });
}

bool SortedEntries::next() {
  if (at_ == places_.size()) return false;
  entry_ = *places_[at_++].entry;
  return true;
}

}  // namespace mt_scaffold
