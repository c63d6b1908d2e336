// The ids of a document's words, most of which are in the thread's caches.
#include <algorithm>
#include <cstring>

#include "io/interruption.hpp"
#include "segment/applier.hpp"
#include "segment/applier_worker.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kAhead = 64;                    // words whose memory is fetched before it is needed
constexpr size_t kSlotsAhead = 8;                // the same for missing words, from the slot to the entry
constexpr size_t kCopied = WordCache::kMostIds;  // ids at once

// No word has more ids than bytes.
size_t gap_of(size_t length) { return std::max(length, kCopied); }

// Moves ids to lower addresses, kCopied at a time, so that up to kCopied - 1 ids after the last may change.
void move_down(const int32_t* from, const int32_t* end, int32_t* to) {
  for (; from < end; from += kCopied, to += kCopied) {
    int32_t ids[kCopied];
    std::memcpy(ids, from, sizeof ids);
    std::memcpy(to, ids, sizeof ids);
  }
}

// A batch of words, and the state of looking them up.
struct Batch {
  const char* from;
  const char* const* ends;
  size_t size;
  WordCache::View cache;
  const WordTable* table;
  MissingWord* missing;
  size_t missed;
};

__attribute__((always_inline)) inline const char* start_of(const Batch& batch, size_t i) {
  return i > 0 ? batch.ends[i - 1] : batch.from;
}

template <typename Instructions>
__attribute__((always_inline)) inline WordCache::Place place_of(const Batch& batch, size_t i) {
  const char* const p = start_of(batch, i);
  return batch.cache.place<Instructions>(WordCache::key(p, static_cast<size_t>(batch.ends[i] - p)));
}

// Leaves a gap for the ids of the next missing word, which are fetched from the table meanwhile. Returns its end.
[[gnu::noinline]] int32_t* leave_gap(const WordTable& table, std::string_view word, MissingWord* missing, size_t missed,
                                     int32_t* to) {
  missing[missed] = {hash_word(word), to};
  table.prefetch_slot(missing[missed].word.hash);
  if (missed >= kSlotsAhead) table.prefetch_entry(missing[missed - kSlotsAhead].word.hash);
  return to + gap_of(word.size());
}

// Writes the ids of word `i`, or leaves a gap for them. Returns their end.
template <typename Instructions>
__attribute__((always_inline)) inline int32_t* write_word(Batch& batch, const WordCache::Place& place, size_t i,
                                                          int32_t* to) {
  const WordCache::Found found = WordCache::find<Instructions>(place);
  if (found.ids) [[likely]] {
    std::memcpy(to, found.ids, kCopied * sizeof *to);
    return to + found.count;
  }
  const char* const p = start_of(batch, i);
  return leave_gap(*batch.table, {p, static_cast<size_t>(batch.ends[i] - p)}, batch.missing, batch.missed++, to);
}

template <typename Instructions>
__attribute__((always_inline)) inline int32_t* write_batch_with(Batch& given, int32_t* to) {
  Batch batch = given;  // a copy that the compiler keeps in registers
  WordCache::Place places[kAhead];
  const size_t size = batch.size, ahead = std::min(size, kAhead);
  for (size_t i = 0; i < ahead; ++i) places[i] = place_of<Instructions>(batch, i);
  for (size_t i = ahead; i < size; ++i) {
    WordCache::Place& place = places[i % kAhead];
    to = write_word<Instructions>(batch, place, i - ahead, to);
    place = place_of<Instructions>(batch, i);
  }
  for (size_t i = size - ahead; i < size; ++i) to = write_word<Instructions>(batch, places[i % kAhead], i, to);
  given.missed = batch.missed;
  return to;
}

int32_t* write_batch(Batch& batch, int32_t* to) { return write_batch_with<WordCache::Portable>(batch, to); }

#if defined(__SSE2__)
MT_SCAFFOLD_AVX2 int32_t* write_batch_avx2(Batch& batch, int32_t* to) {
  return write_batch_with<WordCache::Avx2>(batch, to);
}
#endif

struct Kind {
  int32_t* (*write)(Batch& batch, int32_t* to);
  WordCache::Hash hash;
};

// The fastest kind on this processor.
Kind fastest_kind() {
#if defined(__SSE2__)
  if (may_use_avx2()) return {write_batch_avx2, WordCache::Avx2::hash};
#endif
  return {write_batch, WordCache::Portable::hash};
}

// Not static in a function: a child forked during its initialisation would wait for it forever.
const Kind kKind = fastest_kind();

}  // namespace

std::optional<size_t> Applier::ids_of_word(std::string_view word, int32_t* ids, uint32_t& merges) const {
  if (word.size() > kLongestRememberedWord) return {};
  int32_t tokens[kMostIds];
  const std::optional<size_t> found = segmenter_->tokens_of(word, tokens);
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
  if (least != kNoId) [[likely]]
    return count;
  size_t written = 0;
  const auto add = [&](int32_t token) {
    ids[written] = id_of_token_[static_cast<size_t>(token)];
    return ids[written++] != kNoId;
  };
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i] == MergeTable::kUnknown) return {};
    const Expansion& expansion = segmenter_->expansion(tokens[i]);
    if (expansion.empty() ? !add(tokens[i]) : !std::all_of(expansion.begin(), expansion.end(), add)) return {};
  }
  return written;
}

void Applier::collect_ids_of_tokens() {
  const Interner& texts = segmenter_->texts();
  id_of_token_.assign(texts.size(), kNoId);
  id_of_whole_token_.assign(texts.size() + 1, kNoId);
  for (size_t token = 0; token < texts.size(); ++token) {
    const auto number = static_cast<int32_t>(token);
    if (const auto found = dictionary_->find(texts[number]); found != dictionary_->end())
      id_of_token_[token] = found->second;
    if (segmenter_->expansion(number).empty()) id_of_whole_token_[token + 1] = id_of_token_[token];
  }
}

void Applier::append_ids(Worker& worker, std::string_view text, OutputBuffer& output) {
  if (!worker.cache) {
    worker.cache = std::make_unique<WordCache>(kKind.hash);
    worker.missing.resize(Pretokeniser::kBatch);
  }
  WordCache& cache = *worker.cache;
  const WordTable& table = *worker.table;
  // The gaps of a batch are closed before the next one is written.
  constexpr size_t kGaps = Pretokeniser::kBatch * kCopied;
  static_assert(kGaps * sizeof(int32_t) + kPadding <= kMargin);
  const size_t most = text.size() + kGaps;
  auto* const begin = reinterpret_cast<int32_t*>(output.reserve(most * sizeof(int32_t)));
  int32_t* to = begin;
  MissingWord* const missing = worker.missing.data();

  // Writes the ids of missing words into their gaps, closes the gaps and remembers the words.
  const auto fill_gaps = [&](size_t missed, int32_t* const end) {
    int32_t* at = missing[0].gap;
    for (size_t k = 0; k < missed; ++k) {
      const HashedWord& word = missing[k].word;
      const int32_t* const after = missing[k].gap + gap_of(word.text.size());
      const int32_t* const next = k + 1 < missed ? missing[k + 1].gap : end;
      const WordEntry* entry = table.find(WordTable::word_key(word));
      const bool again = entry;
      if (!entry) entry = entry_of_new_word(worker, word);
      const size_t count = entry->output_length / sizeof(int32_t);
      std::memcpy(at, entry->output(), kCopied * sizeof *at);
      if (count > kCopied) [[unlikely]]
        std::memcpy(at, entry->output(), count * sizeof *at);
      // Not at its first occurrence: most words of some texts never recur.
      if (again && word.text.size() <= WordCache::kLongest && count <= WordCache::kMostIds)
        cache.add(WordCache::key(word.text.data(), word.text.size()), at, count);
      at += count;
      move_down(after, next, at);
      at += next - after;
    }
    return at;
  };

  size_t missed = 0, batches = 0;
  const auto on_batch = [&](const char* from, const char* const* ends, size_t size) {
    may_interrupt(++batches);
    // Only now: the words have been prefetched while this batch was being found.
    if (missed > 0) to = fill_gaps(missed, to);
    Batch batch{from, ends, size, cache.view(), &table, missing, 0};
    to = kKind.write(batch, to);
    missed = batch.missed;
    for (size_t k = missed - std::min(missed, kSlotsAhead); k < missed; ++k) table.prefetch_entry(missing[k].word.hash);
  };
  pretokeniser_->for_each_batch(text.data(), text.data() + text.size(), on_batch);
  if (missed > 0) to = fill_gaps(missed, to);
  output.advance(static_cast<size_t>(to - begin) * sizeof(int32_t));
}

}  // namespace mt_scaffold
