// The loop over words: through the table of segmented words and, for most ids, the thread's cache before it.
#include <algorithm>
#include <cstring>
#include <variant>

#include "io/interruption.hpp"
#include "segment/applier.hpp"
#include "segment/applier_worker.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kSlotsAhead = 8;                // the same for missing words, from the slot to the entry
constexpr size_t kCopied = WordCache::kMostIds;  // ids at once
constexpr size_t kFilled = 8;                    // ids at once of a missing word
constexpr unsigned kBatchesAside = 31;           // batches that pass by a cache with more misses than hits

// No word has more ids than bytes.
size_t gap_of(size_t length) { return std::max(length, kFilled); }

// Moves ids to lower addresses, kCopied at a time, so that up to kCopied - 1 ids after the last may change.
void move_down(const int32_t* from, const int32_t* end, int32_t* to) {
  for (; from < end; from += kCopied, to += kCopied) {
    int32_t ids[kCopied];
    std::memcpy(ids, from, sizeof ids);
    std::memcpy(to, ids, sizeof ids);
  }
}

// The tables for words that are not in the cache.
struct Known {
  const WordTable& table;
  const WholeWords& whole;

  // Fetches the memory of a word that is in the table, or else of one that is a token.
  void prefetch_ids(uint64_t hash) const {
    if (!table.prefetch_entry(hash)) [[unlikely]]
      whole.prefetch(hash);
  }
};

// A batch of words, and the state of looking them up.
struct Batch {
  const char* from;
  const char* const* ends;
  size_t size;
  WordCache::View cache;
  const Known* known;
  MissingWord* missing;
  size_t missed;
};

__attribute__((always_inline)) inline std::string_view word_of(const Batch& batch, size_t i) {
  const char* const from = i > 0 ? batch.ends[i - 1] : batch.from;
  return {from, static_cast<size_t>(batch.ends[i] - from)};
}

template <typename Instructions>
__attribute__((always_inline)) inline WordCache::Place place_of(const Batch& batch, size_t i) {
  const std::string_view word = word_of(batch, i);
  return batch.cache.place<Instructions>(WordCache::key(word.data(), word.size()));
}

// Leaves a gap for the ids of the next missing word, which are fetched from the table meanwhile. Returns its end.
[[gnu::noinline]] int32_t* leave_gap(const Known& known, std::string_view word, MissingWord* missing, size_t missed,
                                     int32_t* to) {
  missing[missed] = {hash_word(word), to};
  known.table.prefetch_slot(missing[missed].word.hash);
  if (missed >= kSlotsAhead) known.prefetch_ids(missing[missed - kSlotsAhead].word.hash);
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
  return leave_gap(*batch.known, word_of(batch, i), batch.missing, batch.missed++, to);
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

void check_now_and_then(size_t batches) {
  if (batches % 64 == 0) Interruptible::check();
}

inline void emit(OutputBuffer& output, const char* data, size_t length) {
  char* to = output.reserve(length);
  std::memcpy(to, data, 32);  // both sides are padded, and most words fit
  if (length > 32) std::memcpy(to + 32, data + 32, length - 32);
  output.advance(length);
}

}  // namespace

// Segments a word and returns the number of decisions that dropout makes on it; its output goes to worker.text.
uint32_t Applier::segment_word(Worker& worker, std::string_view word, Decisions* decisions) {
  uint32_t replacements = 0;
  std::vector<Piece>& pieces = worker.pieces;
  if (!isolate_) {
    replacements = segmenter_->segment(word, pieces, worker.scratch, decisions);
  } else {
    pieces.clear();
    uint32_t begin = 0;
    for (const WordPart& part : isolate_(word)) {
      if (part.glossary) {
        pieces.push_back({begin, begin + part.length});
      } else {
        replacements +=
            segmenter_->segment(word.substr(begin, part.length), worker.part_pieces, worker.scratch, decisions);
        for (const Piece& piece : worker.part_pieces) pieces.push_back({begin + piece.begin, begin + piece.end});
      }
      begin += part.length;
    }
  }
  std::visit([&](const auto& output) { output.write(word, pieces, worker.text); }, output_);
  return replacements;
}

// Segments a word that is not in the table; null if it is not UTF-8. The entry is valid until the next call.
const WordEntry* Applier::entry_of_new_word(Worker& worker, const HashedWord& word) {
  // So that positions, and ids in bytes, fit into 32 bits.
  constexpr size_t kLongestWord = (size_t{1} << 30) - 1;
  constexpr size_t kFewMerges = 8;  // one for this many bytes
  if (!segmenter_->alphabet().bytes && first_invalid_byte(word.text) != word.text.size()) return nullptr;
  if (word.text.size() > kLongestWord)
    throw InputError("a word of " + std::to_string(word.text.size()) + " bytes; no word may have 2^30 or more");
  int32_t ids[WordIds::kMost];
  uint32_t decisions = 0;
  std::string_view output;
  bool remembered = word.text.size() <= kLongestRememberedWord;
  const auto* const as_ids = std::get_if<WordIds>(&output_);
  if (const auto count = as_ids ? as_ids->of_word(word.text, ids, decisions) : std::nullopt) {
    output = {reinterpret_cast<const char*>(ids), *count * sizeof *ids};
    // A long word with few merges takes no longer than fetching its many ids would.
    remembered = word.text.size() <= WordCache::kLongest || decisions > word.text.size() / kFewMerges;
  } else {
    decisions = segment_word(worker, word.text, nullptr);
    output = worker.text;
  }
  if (remembered)
    if (const WordEntry* entry = worker.table->insert(worker.arena, word, decisions, output)) return entry;
  if (output.size() >> 32 != 0) throw InputError("a word becomes 2^32 bytes or more; use a shorter separator");
  worker.long_entry.clear();
  auto* entry = new (worker.long_entry.reserve(sizeof(WordEntry) + output.size())) WordEntry;
  *entry = {{0, 0}, 0, static_cast<uint32_t>(output.size()), decisions, 0};
  std::memcpy(entry->output(), output.data(), output.size());
  return entry;
}

template <bool kDropout, typename WordAt>
const char* Applier::append_words(Worker& worker, size_t count, const WordAt& word_at, OutputBuffer& output) {
  const bool text = std::holds_alternative<WordText>(output_);
  const WordTable& table = *worker.table;
  auto& words = worker.hashed;
  size_t hashed = 0;
  const auto hash_up_to = [&](size_t end) {
    for (end = std::min(end, count); hashed < end; ++hashed) {
      HashedWord& word = words[hashed % (2 * kAhead)];
      word = hash_word(word_at(hashed));
      table.prefetch_slot(word.hash);
    }
  };
  hash_up_to(kAhead);
  for (size_t begin = 0; begin < count; begin += kAhead) {
    const size_t end = std::min(begin + kAhead, count);
    for (size_t i = begin; i < end; ++i) table.prefetch_entry(words[i % (2 * kAhead)].hash);
    hash_up_to(end + kAhead);
    for (size_t i = begin; i < end; ++i) {
      const HashedWord& word = words[i % (2 * kAhead)];
      const WordEntry* entry = table.find(word);
      if (!entry) {
        entry = entry_of_new_word(worker, word);
        if (!entry) return word.text.data() + first_invalid_byte(word.text);
      }
      if (kDropout && worker.survivors < entry->decisions) {
        Decisions decisions(worker.survivors, worker.law, worker.random);
        segment_word(worker, word.text, &decisions);
        output.append(worker.text.data(), worker.text.size());
      } else {
        if (kDropout) worker.survivors -= entry->decisions;
        emit(output, entry->output(), entry->output_length);
      }
      if (text) output.append(' ');
    }
  }
  return nullptr;
}

template <typename WordAt>
const char* Applier::append_given(Worker& worker, size_t count, const WordAt& word_at, OutputBuffer& output) {
  return worker.draw.any() ? append_words<true>(worker, count, word_at, output)
                           : append_words<false>(worker, count, word_at, output);
}

void Applier::append_word(Worker& worker, std::string_view word, OutputBuffer& output) {
  if (append_given(worker, 1, [&](size_t) { return word; }, output)) refuse_unless_utf8(word);
}

// With gaps for the words that the cache lacks, filled once the next batch is found: they are fetched meanwhile.
void Applier::append_ids(Worker& worker, std::string_view text, OutputBuffer& output) {
  if (!worker.cache) {
    worker.cache = std::make_unique<WordCache>(kKind.hash);
    worker.missing.resize(Pretokeniser::kBatch);
  }
  WordCache& cache = *worker.cache;
  const WordTable& table = *worker.table;
  const WholeWords& whole = std::get<WordIds>(output_).whole_words();
  const Known known{table, whole};
  // The gaps of a batch are closed before the next one is written.
  constexpr size_t kGaps = Pretokeniser::kBatch * kFilled;
  static_assert(kGaps * sizeof(int32_t) + kPadding <= kMargin);
  auto* written = reinterpret_cast<int32_t*>(output.reserve((text.size() + kGaps) * sizeof(int32_t)));
  int32_t* to = written;
  MissingWord* const missing = worker.missing.data();
  size_t missed = 0, batches = 0;

  // Writes the ids of missing words into their gaps, closes the gaps and remembers the words.
  const auto fill_gaps = [&] {
    if (missed == 0) return;
    const int32_t* const end = to;
    to = missing[0].gap;
    for (size_t k = 0; k < missed; ++k) {
      const HashedWord& word = missing[k].word;
      const int32_t* const after = missing[k].gap + gap_of(word.text.size());
      const int32_t* const next = k + 1 < missed ? missing[k + 1].gap : end;
      const WordEntry* entry = table.find(word);
      const int32_t id = entry ? WordIds::kNoId : whole.find(word, WordIds::kNoId);
      // Not at its first occurrence, unless it is a token: most words of some texts never recur.
      const bool remembered = entry || id != WordIds::kNoId;
      size_t count = 1;
      if (id != WordIds::kNoId) {
        *to = id;
      } else {
        if (!entry) entry = entry_of_new_word(worker, word);
        count = entry->output_length / sizeof(int32_t);
        std::memcpy(to, entry->output(), kFilled * sizeof *to);
        if (count > kFilled) [[unlikely]]
          std::memcpy(to, entry->output(), count * sizeof *to);
      }
      if (remembered && word.text.size() <= WordCache::kLongest && count <= WordCache::kMostIds)
        cache.add(WordCache::key(word.text.data(), word.text.size()), to, count);
      to += count;
      move_down(after, next, to);
      to += next - after;
    }
    missed = 0;
  };
  const auto advance = [&] {
    output.advance(static_cast<size_t>(to - written) * sizeof(int32_t));
    written = to;
  };

  pretokeniser_->for_each_batch(
      text.data(), text.data() + text.size(), [&](const char* from, const char* const* ends, size_t size) {
        check_now_and_then(++batches);
        fill_gaps();
        Batch batch{from, ends, size, cache.view(), &known, missing, 0};
        if (worker.batches_aside > 0) {
          --worker.batches_aside;
          advance();
          append_words<false>(worker, size, [&](size_t i) { return word_of(batch, i); }, output);
          to = written = reinterpret_cast<int32_t*>(output.reserve(0));
          return;
        }
        to = kKind.write(batch, to);
        missed = batch.missed;
        for (size_t k = missed - std::min(missed, kSlotsAhead); k < missed; ++k)
          known.prefetch_ids(missing[k].word.hash);
        // A text of more distinct words than the cache holds tries it now and then.
        if (cache.full() && missed > size / 2) worker.batches_aside = kBatchesAside;
      });
  fill_gaps();
  advance();
}

const char* Applier::append_line(Worker& worker, std::string_view line, Margins margins, OutputBuffer& output) {
  const char* const begin = line.data();
  const char* const last = begin + line.size() - margins.trailing;
  const auto* const ids = std::get_if<WordIds>(&output_);
  const char* bad = nullptr;
  bool any = false;
  size_t batches = 0;
  if (pretokeniser_) {
    if (ids && !worker.draw.any()) {
      append_ids(worker, line, output);
      return nullptr;
    }
    pretokeniser_->for_each_batch(begin, begin + line.size(), [&](const char* from, const char* const* ends, size_t n) {
      check_now_and_then(++batches);
      any = true;
      const auto word_at = [&](size_t i) {
        const char* const at = i > 0 ? ends[i - 1] : from;
        return std::string_view(at, static_cast<size_t>(ends[i] - at));
      };
      append_given(worker, n, word_at, output);
    });
  } else {
    if (!ids) output.append(begin, margins.leading);
    auto& words = worker.words;
    for (const char* p = begin + margins.leading; p < last && !bad;) {
      check_now_and_then(++batches);
      size_t n = 0;
      while (p < last && n < Pretokeniser::kBatch) {
        const char* const stop = word_end(p, last);
        if (stop > p) words[n++] = {p, static_cast<size_t>(stop - p)};
        p = stop + 1;
      }
      any |= n > 0;
      bad = append_given(worker, n, [&](size_t i) { return words[i]; }, output);
    }
  }
  if (ids || bad) return bad;
  if (any) output.drop_last(1);
  if (!pretokeniser_) output.append(last, margins.trailing);
  return nullptr;
}

}  // namespace mt_scaffold
