// The ids of a document's words, most of which are in the thread's caches.
#include <algorithm>
#include <cstring>

#include "segment/applier.hpp"
#include "segment/applier_worker.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kAhead = 32;                    // words whose memory is fetched before it is needed
constexpr size_t kCopied = WordCache::kMostIds;  // ids at once

// A word that is not in the thread's cache, and where a gap is left for its ids.
struct Missing {
  HashedWord word;
  int32_t* gap;
};

// No word has more ids than bytes.
size_t gap_of(size_t length) { return std::max(length, kCopied); }

// Moves ids to a place before them. What follows them may change, as far as ids are copied at once.
void move_down(const int32_t* from, const int32_t* end, int32_t* to) {
  for (; from < end; from += kCopied, to += kCopied) {
    int32_t ids[kCopied];
    std::memcpy(ids, from, sizeof ids);
    std::memcpy(to, ids, sizeof ids);
  }
}

}  // namespace

void Applier::append_ids(Worker& worker, std::string_view text, OutputBuffer& output) {
  if (!worker.cache) worker.cache = std::make_unique<WordCache>();
  WordCache& cache = *worker.cache;
  const WordTable& table = *worker.table;
  // Gaps are closed after each batch.
  const size_t most = text.size() + Pretokeniser::kBatch * kCopied;
  auto* const begin = reinterpret_cast<int32_t*>(output.reserve(most * sizeof(int32_t)));
  int32_t* to = begin;
  Missing missing[Pretokeniser::kBatch];
  size_t missed = 0;

  // Writes the ids of missing words into their gaps, closes these and remembers the words.
  const auto fill_gaps = [&](int32_t* const end) {
    for (size_t k = 0; k < missed; ++k) {
      missing[k].word = hash_word(missing[k].word.text);
      table.prefetch_slot(missing[k].word.hash);
    }
    for (size_t k = 0; k < missed; ++k) table.prefetch_entry(missing[k].word.hash);
    int32_t* at = missing[0].gap;
    for (size_t k = 0; k < missed; ++k) {
      const HashedWord& word = missing[k].word;
      const int32_t* const after = missing[k].gap + gap_of(word.text.size());
      const WordEntry* entry = table.find(WordTable::word_key(word));
      if (!entry) entry = entry_of_new_word(worker, word);
      const size_t count = entry->output_length / sizeof(int32_t);
      std::memcpy(at, entry->output(), kCopied * sizeof *at);
      if (count > kCopied) [[unlikely]]
        std::memcpy(at, entry->output(), count * sizeof *at);
      if (word.text.size() <= WordCache::kLongest && count <= WordCache::kMostIds)
        cache.add(WordCache::key(word.text.data(), word.text.size()), at, count);
      at += count;
      const int32_t* const next = k + 1 < missed ? missing[k + 1].gap : end;
      move_down(after, next, at);
      at += next - after;
    }
    missed = 0;
    return at;
  };

  const auto write_batch = [&](const char* const from, const char* const* ends, size_t size) {
    const WordCache::View view = cache.view();
    WordCache::Place places[kAhead];
    int32_t* at = to;
    const auto place = [&](size_t i) {
      const char* const p = i > 0 ? ends[i - 1] : from;
      places[i % kAhead] = view.place(WordCache::key(p, static_cast<size_t>(ends[i] - p)));
    };
    const auto write = [&](size_t i) {
      if (const auto* const entry = places[i % kAhead].find()) [[likely]] {
        std::memcpy(at, entry->ids, kCopied * sizeof *at);
        at += entry->count();
      } else {
        const char* const p = i > 0 ? ends[i - 1] : from;
        const auto length = static_cast<size_t>(ends[i] - p);
        missing[missed].word.text = {p, length};
        missing[missed++].gap = at;
        at += gap_of(length);
      }
    };
    const size_t ahead = std::min(size, kAhead);
    for (size_t i = 0; i < ahead; ++i) place(i);
    for (size_t i = ahead; i < size; ++i) {
      write(i - ahead);
      place(i);
    }
    for (size_t i = size - ahead; i < size; ++i) write(i);
    to = missed > 0 ? fill_gaps(at) : at;
  };
  pretokeniser_->for_each_batch(text.data(), text.data() + text.size(), write_batch);
  output.advance(static_cast<size_t>(to - begin) * sizeof(int32_t));
}

}  // namespace mt_scaffold
