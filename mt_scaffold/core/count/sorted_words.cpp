#include "count/sorted_words.hpp"

#include <algorithm>

namespace mt_scaffold {

MergedWords::MergedWords(std::vector<std::unique_ptr<SortedWords>> streams) : streams_(std::move(streams)) {
  for (const auto& stream : streams_)
    if (stream->next()) heap_.push_back({sort_prefix(stream->entry().word), stream.get()});
  for (size_t i = heap_.size() / 2; i-- > 0;) sift_down(i);
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
    add_count(entry_, same.count);
    entry_.first_seen = std::min(entry_.first_seen, same.first_seen);
  }
  return true;
}

void MergedWords::advance() {
  Head& top = heap_[0];
  if (top.stream->next()) {
    top.prefix = sort_prefix(top.stream->entry().word);
  } else {
    top = heap_.back();
    heap_.pop_back();
  }
  sift_down(0);
}

void MergedWords::sift_down(size_t index) {
  if (index >= heap_.size()) return;
  const Head moved = heap_[index];
  while (true) {
    size_t child = 2 * index + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], moved)) break;
    heap_[index] = heap_[child];
    index = child;
  }
  heap_[index] = moved;
}

SortedEntries::SortedEntries(std::vector<WordCount> entries) : entries_(std::move(entries)) {
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

void add_count(WordCount& to, uint64_t count) {
  if (__builtin_add_overflow(to.count, count, &to.count)) throw counts_too_high(to.word);
}

}  // namespace mt_scaffold
