#include "applier.hpp"

#include <algorithm>

namespace mt_scaffold {

namespace {

// What comes of more drops in one word is seldom met again: looking for it costs more than it saves.
constexpr size_t kRememberedDrops = 2;

// Answers as a path of earlier drops says, then as the running count of survivors says.
class DropPath : public Decisions {
 public:
  // `draw` gives the next count of survivors when the running one is used up; without it, everything survives.
  DropPath(const std::vector<uint64_t>& path, uint64_t* survivors, const DropoutLaw* law, RandomStream* random)
      : path_(path), survivors_(survivors), law_(law), random_(random) {}

  bool survives() override {
    if (step_ < path_.size()) {
      if (taken_ < path_[step_]) {
        ++taken_;
        return true;
      }
      ++step_;
      taken_ = 0;
      return false;
    }
    if (!survivors_) return ++after_path_, true;
    if (*survivors_ > 0) return --*survivors_, true;
    *survivors_ = law_->survivors_before_drop(*random_);
    return false;
  }

  uint32_t after_path() const { return after_path_; }

 private:
  const std::vector<uint64_t>& path_;
  size_t step_ = 0;
  uint64_t taken_ = 0;
  uint64_t* survivors_;
  const DropoutLaw* law_;
  RandomStream* random_;
  uint32_t after_path_ = 0;
};

}  // namespace

void OutputBuffer::grow(size_t bytes) {
  capacity_ = std::max(size_ + bytes + kPadding, capacity_ * 2);
  std::unique_ptr<char[]> larger(new char[capacity_]);
  if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
}

// Far enough apart from another thread's that neither waits for the other's cache lines.
class alignas(128) Applier::Worker {
 public:
  explicit Worker(const Dropout& dropout) : dropout(dropout), law(dropout.p), random(0, 0, 0) {}

  Dropout dropout;
  DropoutLaw law;
  RandomStream random;
  uint64_t survivors = 0;  // decisions of this line that survive before the next drop
  std::vector<uint64_t> path;

  std::shared_ptr<WordTable> table;
  WordTable::Arena arena;

  std::shared_ptr<Segmenter::Scratch> scratch = Segmenter::make_scratch();
  std::vector<Piece> pieces, part_pieces;
  std::string text;  // the output of the last word segmented
  OutputBuffer long_entry, output;
};

Applier::Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate, TableLimits limits,
                 std::shared_ptr<const Dictionary> dictionary, int32_t unknown)
    : segmenter_(std::move(segmenter)),
      isolate_(std::move(isolate)),
      limits_(limits),
      dictionary_(std::move(dictionary)),
      unknown_(unknown),
      table_(std::make_shared<WordTable>(limits)) {}

Applier::WorkerPointer Applier::make_worker(const Dropout& dropout) {
  return {new Worker(dropout), [](Worker* worker) { delete worker; }};
}

void Applier::set_dropout(Worker& worker, const Dropout& dropout) {
  if (worker.dropout.p != dropout.p) worker.law = DropoutLaw(dropout.p);
  worker.dropout = dropout;
}

// A crowded table is replaced; it lives on until every thread has finished its block with it.
void Applier::refresh_table(Worker& worker) {
  if (worker.table && !worker.table->crowded()) return;
  std::lock_guard lock(table_mutex_);
  if (table_->crowded()) table_ = table_->next();
  worker.table = table_;
  worker.arena = {};  // a later store may lie where the one of this arena was
}

// Leaves the word's output in worker.text and returns how many decisions dropout takes over it.
uint32_t Applier::segment_word(Worker& worker, std::string_view word, Decisions* decisions) {
  uint32_t replacements = 0;
  std::vector<Piece>& pieces = worker.pieces;
  if (!isolate_) {
    replacements = segmenter_->segment(word, pieces, *worker.scratch, decisions);
  } else {
    pieces.clear();
    uint32_t begin = 0;
    for (const WordPart& part : isolate_(word)) {
      if (part.glossary) {
        pieces.push_back({begin, begin + part.length});
      } else {
        replacements +=
            segmenter_->segment(word.substr(begin, part.length), worker.part_pieces, *worker.scratch, decisions);
        for (const Piece& piece : worker.part_pieces) pieces.push_back({begin + piece.begin, begin + piece.end});
      }
      begin += part.length;
    }
  }
  std::string& text = worker.text;
  text.clear();
  std::string form;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view piece = word.substr(pieces[i].begin, pieces[i].end - pieces[i].begin);
    const bool last = i + 1 == pieces.size();
    if (dictionary_) {
      form.assign(piece);
      if (!last) form += segmenter_->separator();
      const auto found = dictionary_->find(form);
      const int32_t id = found == dictionary_->end() ? unknown_ : found->second;
      text.append(reinterpret_cast<const char*>(&id), sizeof id);
    } else {
      text += piece;
      if (!last) text.append(segmenter_->separator()).append(1, ' ');
    }
  }
  return replacements;
}

// Segments a word that the table lacks; null where it is not UTF-8. The entry lives at least until the next call.
const WordEntry* Applier::entry_of_new_word(Worker& worker, const HashedWord& word) {
  if (first_invalid_byte(word.text) != word.text.size()) return nullptr;
  const uint32_t decisions = segment_word(worker, word.text, nullptr);
  if (word.text.size() <= kLongestRememberedWord) {
    const WordTable::Key key = WordTable::word_key(word);
    if (const WordEntry* entry = worker.table->insert(worker.arena, key, decisions, worker.text)) return entry;
  }
  worker.long_entry.clear();
  auto* entry = new (worker.long_entry.reserve(sizeof(WordEntry) + worker.text.size())) WordEntry;
  *entry = {{0, 0}, 0, static_cast<uint32_t>(worker.text.size()), decisions, 0};
  std::memcpy(entry->output(), worker.text.data(), worker.text.size());
  return entry;
}

namespace {

inline void emit(OutputBuffer& output, const char* data, size_t length) {
  char* to = output.reserve(length);
  std::memcpy(to, data, 32);  // both sides are padded: most words take one step
  if (length > 32) std::memcpy(to + 32, data + 32, length - 32);
  output.advance(length);
}

}  // namespace

void Applier::segment_with_drops(Worker& worker, const WordEntry* entry, const HashedWord& word, OutputBuffer& output) {
  worker.path.clear();
  const bool remembered = entry->key_length != 0;
  while (remembered && worker.survivors < entry->decisions && worker.path.size() < kRememberedDrops) {
    const WordTable::Key key = WordTable::drop_key(entry, worker.survivors);
    worker.path.push_back(worker.survivors);
    worker.survivors = worker.law.survivors_before_drop(worker.random);
    const WordEntry* after = worker.table->find(key);
    if (!after) {
      DropPath path(worker.path, nullptr, nullptr, nullptr);
      segment_word(worker, word.text, &path);
      after = worker.table->insert(worker.arena, key, path.after_path(), worker.text);
    }
    if (!after) break;
    entry = after;
    if (worker.survivors >= entry->decisions) {
      worker.survivors -= entry->decisions;
      emit(output, entry->output(), entry->output_length);
      return;
    }
  }
  // Not in the table: go through the decisions one by one.
  DropPath path(worker.path, &worker.survivors, &worker.law, &worker.random);
  segment_word(worker, word.text, &path);
  output.append(worker.text.data(), worker.text.size());
}

template <bool kDropout>
size_t Applier::segment_line_as(Worker& worker, std::string_view line, Margins margins, uint64_t sentence,
                                OutputBuffer& output) {
  const char* const begin = line.data();
  const char* const last = begin + line.size() - margins.trailing;
  const bool text = dictionary_ == nullptr;
  WordTable& table = *worker.table;
  if constexpr (kDropout) {
    worker.random = RandomStream(worker.dropout.seed, worker.dropout.epoch, sentence);
    worker.survivors = worker.law.survivors_before_drop(worker.random);
  }
  if (text && margins.leading > 0) output.append(begin, margins.leading);
  bool any = false;
  const char* p = begin + margins.leading;
  while (p < last) {
    // Some words at a time, so that the table's memory is on its way before it is needed.
    constexpr size_t kAhead = 16;
    HashedWord words[kAhead];
    size_t count = 0;
    for (; p < last && count < kAhead; ++p) {
      const char* stop = word_end(p, last);
      if (stop == p) continue;
      words[count] = hash_word({p, static_cast<size_t>(stop - p)});
      table.prefetch_slot(words[count].hash);
      ++count;
      p = stop;
    }
    for (size_t i = 0; i < count; ++i) table.prefetch_entry(words[i].hash);
    for (size_t i = 0; i < count; ++i) {
      const HashedWord& word = words[i];
      const WordEntry* entry = table.find(WordTable::word_key(word));
      if (!entry) {
        entry = entry_of_new_word(worker, word);
        if (!entry) return static_cast<size_t>(word.text.data() - begin) + first_invalid_byte(word.text);
      }
      if (kDropout && worker.survivors < entry->decisions) {
        segment_with_drops(worker, entry, word, output);
      } else {
        if (kDropout) worker.survivors -= entry->decisions;
        emit(output, entry->output(), entry->output_length);
      }
      if (text) {
        *output.reserve(1) = ' ';
        output.advance(1);
        any = true;
      }
    }
  }
  if (any) output.drop_last(1);
  if (text && margins.trailing > 0) output.append(last, margins.trailing);
  return kValid;
}

size_t Applier::segment_line(Worker& worker, std::string_view line, Margins margins, uint64_t sentence,
                             OutputBuffer& output) {
  refresh_table(worker);
  return worker.dropout.p > 0 ? segment_line_as<true>(worker, line, margins, sentence, output)
                              : segment_line_as<false>(worker, line, margins, sentence, output);
}

void Applier::apply(BlockReader& reader, Sink& sink, unsigned workers, const Dropout& dropout, const Tick& tick) {
  std::vector<std::unique_ptr<Worker, void (*)(Worker*)>> states;
  for (unsigned i = 0; i < workers; ++i) states.push_back(make_worker(dropout));
  transform_blocks(
      reader, sink, workers,
      [&](unsigned index, Block& block, std::string_view& result) {
        Worker& worker = *states[index];
        OutputBuffer& output = worker.output;
        output.clear();
        const char* const begin = block.buffer.get();
        const char* const end = begin + block.size;
        uint64_t sentence = block.first_line;
        refresh_table(worker);
        for (const char* line = begin; line < end; ++sentence) {
          const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line));
          const char* line_end = found ? static_cast<const char*>(found) : end;
          const std::string_view text(line, static_cast<size_t>(line_end - line));
          const Margins margins = line_margins(line, line_end);
          const size_t bad = dropout.p > 0 ? segment_line_as<true>(worker, text, margins, sentence, output)
                                           : segment_line_as<false>(worker, text, margins, sentence, output);
          if (bad != kValid) throw block.not_utf8(static_cast<size_t>(line - begin) + bad);
          if (found) output.append("\n", 1);
          line = line_end + 1;
        }
        result = output.view();
      },
      tick);
}

}  // namespace mt_scaffold
