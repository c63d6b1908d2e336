#include "count/counted_words.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <algorithm>
#include <utility>

#include "io/blocks.hpp"

namespace mt_scaffold {

namespace {

// A thread merges its own counts into the shared ones at this many word types, so that memory grows with the types of
// the text and not with the threads.
constexpr size_t kOwnWords = size_t{1} << 18;
// Under a limit: the shares of the shared tables and of the threads' own counts, in sixteenths of the limit less
// kProcessBytes. Blocks of text and sorting take the rest.
constexpr size_t kTables = 9, kOwn = 2;
// The most memory per word that a thread's own counts take, including the copy that hands them over.
constexpr size_t kOwnWordBytes = 240;
// A part's runs are merged into one before there are too many to read at once.
constexpr size_t kMostRuns = 16;
constexpr size_t kLeastBuffer = size_t{1} << 12, kMostBuffer = size_t{1} << 18;

size_t buffer_size(uint64_t memory, size_t streams) {
  if (memory == 0) return kMostBuffer;
  return std::clamp<size_t>(memory / 4 / std::max<size_t>(streams, 1), kLeastBuffer, kMostBuffer);
}

void return_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace

uint64_t CountedWords::bytes_on_disk() const {
  uint64_t bytes = 0;
  for (const auto& file : files_) bytes += file->bytes();
  return bytes;
}

std::unique_ptr<SortedWords> CountedWords::sorted() {
  auto streams = std::exchange(count_files_, {});
  if (in_memory_.size() > 0) streams.push_back(std::make_unique<SortedEntries>(in_memory_));
  size_t runs = 0;
  for (const auto& file : files_) runs += file->runs();
  for (const auto& file : files_) file->append_streams(streams, buffer_size(limit_.bytes, runs));
  return std::make_unique<MergedWords>(std::move(streams));
}

void CountedWords::add(std::unique_ptr<CountFileReader> file) {
  from_files_ = true;
  count_files_.push_back(std::move(file));
}

void CountedWords::set_aside(const Tick& tick) {
  auto file = std::make_unique<RunFile>(limit_.folder);
  MergedWords merged(std::exchange(count_files_, {}));
  file->add_run(merged, tick);
  add(std::move(file));
}

SharedCounts::SharedCounts(const MemoryLimit& limit, unsigned workers)
    : limit_(limit), workers_(workers), most_own_words_(kOwnWords) {
  if (limit.bytes == 0) return;
  const uint64_t usable = limit.bytes > 2 * kProcessBytes ? limit.bytes - kProcessBytes : limit.bytes / 2;
  const uint64_t own = usable / 16 * kOwn / workers;
  most_own_words_ = std::clamp<size_t>(own / kOwnWordBytes, 1024, kOwnWords);
  most_own_bytes_ = std::max<size_t>(own, StringArena::kChunk);
  part_bytes_ = usable / 16 * kTables / WordCounts::kParts;
  for (size_t part = 0; part < WordCounts::kParts; ++part) counts_.part(part).limit_to(part_bytes_);
}

void SharedCounts::take(WordCounter& own, size_t first_part) {
  std::vector<std::vector<WordCount>> by_part(WordCounts::kParts);
  own.for_each(
      [&](const WordCount& entry) { by_part[WordCounts::part_of(hash_word(entry.word).hash)].push_back(entry); });
  for (size_t i = 0; i < WordCounts::kParts; ++i) {
    const size_t part = (first_part + i) % WordCounts::kParts;
    std::lock_guard lock(mutexes_[part]);
    for (const WordCount& entry : by_part[part]) {
      counts_.part(part).add_counted(hash_word(entry.word), entry);
      if (counts_.part(part).full()) spill(part);
    }
  }
  own = WordCounter();
}

void SharedCounts::spill(size_t part) {
  WordCounter& table = counts_.part(part);
  if (table.size() > 0) {
    if (!files_[part]) files_[part] = std::make_unique<RunFile>(limit_.folder);
    SortedEntries words(table);
    files_[part]->add_run(words);
  }
  table = WordCounter();
  table.limit_to(part_bytes_);
  if (files_[part] && files_[part]->runs() > kMostRuns) {
    auto merged = std::make_unique<RunFile>(limit_.folder);
    std::vector<std::unique_ptr<SortedWords>> streams;
    const size_t memory = limit_.bytes / workers_;
    files_[part]->append_streams(streams, buffer_size(memory, kMostRuns * WordCounts::kParts));
    MergedWords words(std::move(streams));
    merged->add_run(words);
    files_[part] = std::move(merged);
  }
}

CountedWords SharedCounts::finish(uint64_t lines) {
  CountedWords counted(limit_);
  const bool any_on_disk = std::any_of(files_.begin(), files_.end(), [](const auto& file) { return file != nullptr; });
  const uint64_t sorting = counts_.bytes() + counts_.size() * SortedEntries::kBytes;
  if (any_on_disk || (limit_.bytes > 0 && sorting > limit_.bytes / 4 * 3)) {
    for_each_number(WordCounts::kParts, workers_, [&](size_t part) { spill(part); });
    for (auto& file : files_)
      if (file) counted.add(std::move(file));
    counts_ = WordCounts();
    return_memory();
  }
  for (size_t part = 0; part < WordCounts::kParts; ++part) counts_.part(part).limit_to(WordCounter::kUnlimited);
  counted.in_memory() = std::move(counts_);
  counted.in_memory().lines = lines;
  return counted;
}

}  // namespace mt_scaffold
