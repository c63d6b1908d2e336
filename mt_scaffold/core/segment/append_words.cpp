// The loop over words: through the table of segmented words and, for most ids, the thread's cache before it.
#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "segment/applier.hpp"
#include "segment/applier_worker.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kCopied = WordCache::kMostIds;            // ids at once
constexpr size_t kFilled = 8;                              // ids at once of a missing word
constexpr size_t kCopiedBytes = 32;                        // bytes at once of a word's output in the table
constexpr size_t kWordsAside = 31 * Pretokeniser::kBatch;  // that bypass a cache with more misses than hits

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

// A batch of words, and the state of looking them up.
struct Batch {
  const char* from;
  const char* const* ends;
  size_t size;
  WordCache::View cache;
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

// Writes the ids of word `i`, or leaves a gap for them. Returns their end.
template <typename Instructions>
__attribute__((always_inline)) inline int32_t* write_word(Batch& batch, const WordCache::Place& place, size_t i,
                                                          int32_t* to) {
  const WordCache::Found found = WordCache::find<Instructions>(place);
  if (found.ids) [[likely]] {
    std::memcpy(to, found.ids, kCopied * sizeof *to);
    return to + found.count;
  }
  // No call: before one, GCC leaves AVX registers in a state in which older instructions stall on some processors.
  const std::string_view word = word_of(batch, i);
  MissingWord& missing = batch.missing[batch.missed++];
  missing.word.text = word;
  missing.gap = to;
  return to + gap_of(word.size());
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

#if defined(__SSE2__)
MT_SCAFFOLD_AVX2 int32_t* write_batch_avx2(Batch& batch, int32_t* to) {
  return write_batch_with<WordCache::Avx2>(batch, to);
}
#endif

// With the fastest instructions of this processor.
int32_t* write_batch(Batch& batch, int32_t* to) {
#if defined(__SSE2__)
  if (kUseAvx2) return write_batch_avx2(batch, to);
#endif
  return write_batch_with<WordCache::Portable>(batch, to);
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
  if (output.size() >> 32 != 0) throw InputError("a word becomes 2^32 bytes or more");
  worker.long_entry.clear();
  auto* entry = new (worker.long_entry.reserve(sizeof(WordEntry) + output.size())) WordEntry;
  *entry = {{0, 0}, 0, static_cast<uint32_t>(output.size()), decisions, 0};
  std::memcpy(entry->output(), output.data(), output.size());
  return entry;
}

template <typename NextWord>
const char* Applier::append_words(Worker& worker, NextWord&& next_word, OutputBuffer& output) {
  const WordTable& table = *worker.table;
  while (true) {
    size_t count = 0, bytes = 0;
    for (std::string_view word; count < kAhead && next_word(word); ++count) {
      worker.hashed[count] = hash_word(word);
      table.prefetch_slot(worker.hashed[count].hash);
      bytes += word.size();
    }
    worker.check_before(bytes);
    for (size_t i = 0; i < count; ++i) table.prefetch_entry(worker.hashed[i].hash);
    const char* const bad =
        worker.draw.any() ? append_hashed<true>(worker, count, output) : append_hashed<false>(worker, count, output);
    if (bad || count < kAhead) return bad;
  }
}

template <bool kDropout>
const char* Applier::append_hashed(Worker& worker, size_t count, OutputBuffer& output) {
  const size_t space = std::holds_alternative<WordText>(output_) ? 1 : 0;
  for (const HashedWord *word = worker.hashed.data(), *const end = word + count; word < end; ++word) {
    const WordEntry* entry = worker.table->find(*word);
    if (!entry) {
      entry = entry_of_new_word(worker, *word);
      if (!entry) return word->text.data() + first_invalid_byte(word->text);
    }
    const char* from = entry->output();
    size_t length = entry->output_length;
    if (kDropout && !worker.decisions.all_survive(entry->decisions)) {
      segment_word(worker, word->text, &worker.decisions);
      length = worker.text.size();
      worker.text.append(kCopiedBytes, '\0');
      from = worker.text.data();
    }
    char* to = output.reserve(length + 1);
    std::memcpy(to, from, kCopiedBytes);  // both sides are padded, and most words fit
    if (length > kCopiedBytes) std::memcpy(to + kCopiedBytes, from + kCopiedBytes, length - kCopiedBytes);
    to[length] = ' ';
    output.advance(length + space);
  }
  return nullptr;
}

void Applier::append_word(Worker& worker, std::string_view word, OutputBuffer& output) {
  bool more = true;
  const auto once = [&](std::string_view& next) { return next = word, std::exchange(more, false); };
  if (append_words(worker, once, output)) refuse_unless_utf8(word);
}

// With gaps for the words that the cache lacks, filled once the next batch is found: they are fetched meanwhile.
void Applier::append_ids(Worker& worker, std::string_view text, OutputBuffer& output) {
  if (!worker.cache) {
    worker.missing.resize(Pretokeniser::kBatch);
    worker.cache = std::make_unique<WordCache>(std::get<WordIds>(output_).whole_words());
  }
  WordCache& cache = *worker.cache;
  const WordTable& table = *worker.table;
  // The gaps of a batch are closed before the next one is written.
  constexpr size_t kGaps = Pretokeniser::kBatch * kFilled;
  static_assert(kGaps * sizeof(int32_t) + kPadding <= kMargin);
  auto* written = reinterpret_cast<int32_t*>(output.reserve((text.size() + kGaps) * sizeof(int32_t)));
  int32_t* to = written;
  MissingWord* const missing = worker.missing.data();
  size_t missed = 0;

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
      // Not at its first occurrence: most words of some texts never recur.
      const bool remembered = entry && word.text.size() <= WordCache::kLongest;
      if (!entry) entry = entry_of_new_word(worker, word);
      const size_t count = entry->output_length / sizeof(int32_t);
      std::memcpy(to, entry->output(), kFilled * sizeof *to);
      if (count > kFilled) [[unlikely]]
        std::memcpy(to, entry->output(), count * sizeof *to);
      if (remembered && count <= WordCache::kMostIds)
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
        worker.check_before(static_cast<size_t>(ends[size - 1] - from));
        fill_gaps();
        Batch batch{from, ends, size, cache.view(), missing, 0};
        if (worker.words_aside > 0) {
          worker.words_aside -= std::min(size, worker.words_aside);
          advance();
          size_t i = 0;
          append_words(worker, [&](auto& word) { return i < size && (word = word_of(batch, i++), true); }, output);
          to = written = reinterpret_cast<int32_t*>(output.reserve(0));
          return;
        }
        to = write_batch(batch, to);
        missed = batch.missed;
        for (size_t k = 0; k < missed; ++k) {
          missing[k].word = hash_word(missing[k].word.text);
          table.prefetch_slot(missing[k].word.hash);
        }
        for (size_t k = 0; k < missed; ++k) table.prefetch_entry(missing[k].word.hash);
        worker.words_looked_up += size;
        worker.words_missed += missed;
        if (worker.words_looked_up < Pretokeniser::kBatch) return;
        // A text of more distinct words than the cache holds tries it now and then.
        if (cache.full() && worker.words_missed > worker.words_looked_up / 2) worker.words_aside = kWordsAside;
        worker.words_looked_up = worker.words_missed = 0;
      });
  fill_gaps();
  advance();
}

const char* Applier::append_line(Worker& worker, std::string_view line, Margins margins, OutputBuffer& output) {
  const char* const begin = line.data();
  const char* const last = begin + line.size() - margins.trailing;
  const auto* const ids = std::get_if<WordIds>(&output_);
  const char* bad = nullptr;
  size_t written = output.size();
  if (pretokeniser_) {
    if (ids && !worker.draw.any()) {
      append_ids(worker, line, output);
      return nullptr;
    }
    pretokeniser_->for_each_batch(begin, begin + line.size(), [&](const char* from, const char* const* ends, size_t n) {
      const char* const* const last_end = ends + n;
      const auto next = [&](std::string_view& word) {
        if (ends == last_end) return false;
        word = {from, static_cast<size_t>(*ends - from)};
        from = *ends++;
        return true;
      };
      append_words(worker, next, output);
    });
  } else {
    if (!ids) output.append(begin, margins.leading);
    written = output.size();
    const char* p = begin + margins.leading;
    const auto next = [&](std::string_view& word) {
      while (p < last && *p == ' ') ++p;
      if (p >= last) return false;
      const char* const stop = word_end(p, last);
      word = {p, static_cast<size_t>(stop - p)};
      p = stop + 1;
      return true;
    };
    bad = append_words(worker, next, output);
  }
  if (ids || bad) return bad;
  if (output.size() > written) output.drop_last(1);
  if (!pretokeniser_) output.append(last, margins.trailing);
  return nullptr;
}

}  // namespace mt_scaffold
