#include "segment/applier.hpp"

#include <cstring>
#include <utility>

#include "errors.hpp"
#include "io/interruption.hpp"
#include "io/shared_state.hpp"
#include "segment/applier_worker.hpp"
#include "text/lines.hpp"
#include "text/notation.hpp"

namespace mt_scaffold {

namespace {

// A copy of a line that is readable for kPadding bytes past its end.
std::string_view padded(std::string_view line, std::string& copy) {
  copy.assign(line).append(kPadding, '\0');
  return {copy.data(), line.size()};
}

Margins margins_of(std::string_view line) { return line_margins(line.data(), line.data() + line.size()); }

// The sources of words return one after the other, readable for kPadding bytes past its end: here, those between ASCII
// spaces.
class SpacedWords {
 public:
  SpacedWords(const char* begin, const char* end) : p_(begin), end_(end) {}

  bool next(std::string_view& word) {
    while (p_ < end_) {
      const char* const begin = p_;
      const char* const stop = word_end(begin, end_);
      p_ = stop + 1;
      if (stop == begin) continue;
      word = {begin, static_cast<size_t>(stop - begin)};
      return true;
    }
    return false;
  }

 private:
  const char* p_;
  const char* const end_;
};

// Words that follow each other, given their ends.
class SplitWords {
 public:
  SplitWords(const char* begin, const std::vector<size_t>& ends) : text_(begin), ends_(ends) {}

  bool next(std::string_view& word) {
    if (i_ == ends_.size()) return false;
    word = {text_ + begin_, ends_[i_] - begin_};
    begin_ = ends_[i_++];
    return true;
  }

 private:
  const char* const text_;
  const std::vector<size_t>& ends_;
  size_t begin_ = 0, i_ = 0;
};

// A worker with larger buffers, after a long word, is not kept.
constexpr size_t kMostKept = size_t{4} << 20;

constexpr size_t kFewMerges = 8;  // one for this many bytes

// So that positions, and ids in bytes, fit into 32 bits.
constexpr size_t kLongestWord = (size_t{1} << 30) - 1;

InputError word_not_utf8(std::string_view word) {
  return InputError("the word '" + notation_of(word) +
                    "' is not UTF-8, which codes of characters need; convert the text to UTF-8, or use codes of bytes");
}

InputError not_utf8(size_t line, std::string_view text, size_t position) {
  return InputError("line " + std::to_string(line + 1) + ", byte offset " + std::to_string(position) + ": " +
                    hex_byte(text[position]) + " is not UTF-8; encode the text as UTF-8 first");
}

}  // namespace

Applier::Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate,
                 std::shared_ptr<const Pretokeniser> pretokeniser, TableLimits limits,
                 std::shared_ptr<const Dictionary> dictionary, int32_t unknown)
    : segmenter_(std::move(segmenter)),
      isolate_(std::move(isolate)),
      pretokeniser_(std::move(pretokeniser)),
      output_(output_of(*segmenter_, dictionary != nullptr)),
      limits_(limits),
      dictionary_(std::move(dictionary)),
      unknown_(unknown),
      table_(std::make_shared<WordTable>(limits)) {
  if (output_ == Output::kIdsOfTokens) collect_ids_of_tokens();
}

Applier::Output Applier::output_of(const Segmenter& segmenter, bool ids) {
  if (segmenter.alphabet().end_of_word) return ids ? Output::kIdsOfSubwords : Output::kSubwords;
  return ids ? Output::kIdsOfTokens : Output::kNotation;
}

Applier::~Applier() = default;

Applier::Lease::Lease(Applier& applier, const Draw& draw) : applier_(applier) {
  {
    std::lock_guard lock(shared_state);
    if (!applier.idle_.empty()) {
      worker_ = std::move(applier.idle_.back());
      applier.idle_.pop_back();
    }
  }
  if (!worker_) {
    worker_ = std::make_unique<Worker>(draw);
    return;
  }
  if (worker_->draw.dropout != draw.dropout) worker_->law = DropoutLaw(draw.dropout);
  worker_->draw = draw;
}

Applier::Lease::~Lease() {
  if (worker_->bytes() > kMostKept) return;
  std::lock_guard lock(shared_state);
  applier_.idle_.push_back(std::move(worker_));
}

// Replaces a crowded table, which other threads keep until they finish their block.
void Applier::refresh_table(Worker& worker) {
  if (worker.table && !worker.table->crowded()) return;
  std::lock_guard lock(shared_state);
  if (table_->crowded()) table_ = table_->next();
  worker.table = table_;
  worker.arena = {};  // a new store may have the address of the one that this arena belongs to
}

// Segments a word that is not in the table; null if it is not UTF-8. The entry is valid until the next call.
const WordEntry* Applier::entry_of_new_word(Worker& worker, const HashedWord& word) {
  if (is_refused(word.text)) return nullptr;
  if (word.text.size() > kLongestWord)
    throw InputError("a word of " + std::to_string(word.text.size()) + " bytes; no word may have 2^30 or more");
  const WordTable::Key key = WordTable::word_key(word);
  if (output_ == Output::kIdsOfTokens) {
    int32_t ids[kMostIds];
    uint32_t merges;
    if (const auto count = ids_of_word(word.text, ids, merges)) {
      const std::string_view output(reinterpret_cast<const char*>(ids), *count * sizeof *ids);
      // A long word with few merges takes no longer than fetching its many ids would.
      const bool cheap = word.text.size() > WordCache::kLongest && merges <= word.text.size() / kFewMerges;
      if (cheap) return worker.passing_entry(merges, output);
      if (const WordEntry* entry = worker.table->insert(worker.arena, key, merges, output)) return entry;
    }
  }
  const uint32_t decisions = segment_word(worker, word.text, nullptr);
  if (word.text.size() <= kLongestRememberedWord) {
    if (const WordEntry* entry = worker.table->insert(worker.arena, key, decisions, worker.text)) return entry;
  }
  if (worker.text.size() >> 32 != 0) throw InputError("a word becomes 2^32 bytes or more; use a shorter separator");
  return worker.passing_entry(decisions, worker.text);
}

namespace {

inline void emit(OutputBuffer& output, const char* data, size_t length) {
  char* to = output.reserve(length);
  std::memcpy(to, data, 32);  // both sides are padded, and most words fit
  if (length > 32) std::memcpy(to + 32, data + 32, length - 32);
  output.advance(length);
}

}  // namespace

template <bool kDropout, typename Words>
size_t Applier::append_words_as(Worker& worker, Words words, const char* begin, OutputBuffer& output) {
  const bool text = writes_text();
  WordTable& table = *worker.table;
  bool any = false;
  for (size_t batches = 0;; ++batches) {
    if (batches % 1024 == 1023) [[unlikely]]
      Interruptible::check();
    // In batches, so that the table's memory is prefetched before it is needed.
    constexpr size_t kAhead = 16;
    HashedWord batch[kAhead];
    size_t count = 0;
    for (std::string_view word; count < kAhead && words.next(word); ++count) {
      batch[count] = hash_word(word);
      table.prefetch_slot(batch[count].hash);
    }
    if (count == 0) break;
    for (size_t i = 0; i < count; ++i) table.prefetch_entry(batch[i].hash);
    for (size_t i = 0; i < count; ++i) {
      const HashedWord& word = batch[i];
      const WordEntry* entry = table.find(WordTable::word_key(word));
      if (!entry) {
        entry = entry_of_new_word(worker, word);
        if (!entry) return static_cast<size_t>(word.text.data() - begin) + first_invalid_byte(word.text);
      }
      if (kDropout && worker.survivors < entry->decisions) {
        Decisions decisions(worker.survivors, worker.law, worker.random);
        segment_word(worker, word.text, &decisions);
        output.append(worker.text.data(), worker.text.size());
      } else {
        if (kDropout) worker.survivors -= entry->decisions;
        emit(output, entry->output(), entry->output_length);
      }
      if (text) {
        output.append(' ');
        any = true;
      }
    }
  }
  if (any) output.drop_last(1);
  return kValid;
}

template <typename Words>
size_t Applier::append_words(Worker& worker, Words words, const char* begin, OutputBuffer& output) {
  return worker.draw.any() ? append_words_as<true>(worker, words, begin, output)
                           : append_words_as<false>(worker, words, begin, output);
}

void Applier::start(Worker& worker, uint64_t index) {
  if (!worker.draw.any()) return;
  worker.random = RandomStream(worker.draw.seed, worker.draw.epoch, index);
  worker.survivors = worker.law.survivors_before_drop(worker.random);
}

size_t Applier::append_line(Worker& worker, std::string_view line, Margins margins, OutputBuffer& output) {
  const char* const begin = line.data();
  if (output_ == Output::kIdsOfTokens && !worker.draw.any()) {
    append_ids(worker, line, output);
    return kValid;
  }
  if (pretokeniser_) {
    worker.word_ends.clear();
    pretokeniser_->for_each_word(begin, begin + line.size(), [&](std::string_view word) {
      worker.word_ends.push_back(static_cast<size_t>(word.data() - begin) + word.size());
    });
    return append_words(worker, SplitWords(begin, worker.word_ends), begin, output);
  }
  const bool text = writes_text();
  const char* const last = begin + line.size() - margins.trailing;
  if (text && margins.leading > 0) output.append(begin, margins.leading);
  const size_t bad = append_words(worker, SpacedWords(begin + margins.leading, last), begin, output);
  if (bad == kValid && text && margins.trailing > 0) output.append(last, margins.trailing);
  return bad;
}

void Applier::apply(BlockReader& reader, Sink& sink, unsigned workers, const Draw& draw, const Tick& tick,
                    WordEndings* endings) {
  std::vector<std::unique_ptr<Worker>> states;
  for (unsigned i = 0; i < workers; ++i) states.push_back(std::make_unique<Worker>(draw));
  transform_blocks(
      reader, sink, workers,
      [&](unsigned number, Block& block, std::string_view& result) {
        Worker& worker = *states[number];
        worker.output.clear();
        if (endings && !pretokeniser_) endings->look(block);
        refresh_table(worker);
        uint64_t index = block.first_line;
        std::string_view line;
        for (Lines lines(block.text()); lines.next(line); ++index) {
          start(worker, index);
          const size_t bad = append_line(worker, line, margins_of(line), worker.output);
          if (bad != kValid) throw block.not_utf8(static_cast<size_t>(line.data() - block.text().data()) + bad);
          if (lines.ended_by_lf()) worker.output.append('\n');
        }
        result = worker.output.view();
      },
      tick);
}

void Applier::segment_line(std::string_view line, bool keep_margins, const Draw& draw, uint64_t index,
                           OutputBuffer& output) {
  char room[size_t{1} << 12];
  OutputBuffer copy(room, sizeof room);
  copy.append(line.data(), line.size());
  const std::string_view text = copy.view();
  const Lease worker(*this, draw);
  refresh_table(*worker);
  start(*worker, index);
  const size_t bad = append_line(*worker, text, keep_margins ? margins_of(text) : Margins{0, 0}, output);
  if (bad != kValid) throw not_utf8(0, text, bad);
}

std::string Applier::segment_words(const std::vector<std::string>& words, const Draw& draw) {
  std::string text;
  std::vector<size_t> ends;
  for (const std::string& word : words) {
    if (is_refused(word)) throw word_not_utf8(word);
    text += word;
    if (!word.empty()) ends.push_back(text.size());
  }
  text.append(kPadding, '\0');
  const Lease worker(*this, draw);
  OutputBuffer output;
  refresh_table(*worker);
  start(*worker, 0);
  append_words(*worker, SplitWords(text.data(), ends), text.data(), output);
  return std::string(output.view());
}

Applier::Ids Applier::encode(const std::vector<std::string>& lines, const std::vector<uint64_t>& indices,
                             const Draw& draw) {
  Ids result;
  result.offsets.push_back(0);
  std::string copy;
  const Lease worker(*this, draw);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (!pretokeniser_ && line.ends_with('\n')) line.remove_suffix(1);
    const std::string_view text = padded(line, copy);
    refresh_table(*worker);
    start(*worker, indices.empty() ? i : indices[i]);
    const size_t bad = append_line(*worker, text, margins_of(text), result.ids);
    if (bad != kValid) throw not_utf8(i, text, bad);
    result.offsets.push_back(static_cast<int64_t>(result.ids.size() / sizeof(int32_t)));
  }
  return result;
}

WordCounts Applier::count_subwords(const WordCounts& counts) {
  WordCounts result;
  const Lease worker(*this, Draw());
  OutputBuffer output;
  std::string copy;
  uint64_t position = 0;
  for (const WordCount& entry : counts.in_order()) {
    output.clear();
    refresh_table(*worker);
    const std::string_view word = padded(entry.word, copy);
    if (append_words(*worker, SplitWords(word.data(), {word.size()}), word.data(), output) != kValid)
      throw word_not_utf8(word);
    const std::string_view pieces = output.view();
    for_each_word(pieces.data(), pieces.data() + pieces.size(), [&](std::string_view piece) {
      result.add(hash_word(piece), entry.count, position++, segmenter_->alphabet().bytes);
    });
  }
  return result;
}

std::vector<std::string> Applier::reachable(const WordCounts& counts, const Draw& draw) const {
  Reachable found = segmenter_->reachable(draw.dropout >= 1);
  counts.for_each([&](const WordCount& entry) {
    const std::string_view word = entry.word;
    if (is_refused(word)) throw word_not_utf8(word);
    if (!isolate_) return found.add(word, true);
    uint32_t begin = 0;
    for (const WordPart& part : isolate_(word)) {
      const bool ends_word = begin + part.length == word.size();
      const std::string_view text = word.substr(begin, part.length);
      part.glossary ? found.add_whole(text, ends_word) : found.add(text, ends_word);
      begin += part.length;
    }
  });
  std::vector<std::string> forms = found.forms();
  if (output_ == Output::kNotation)
    for (std::string& form : forms) form = notation_of(form);
  return forms;
}

}  // namespace mt_scaffold
