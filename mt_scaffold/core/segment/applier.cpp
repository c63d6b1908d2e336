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

// A worker with larger buffers, after a long word, is not kept.
constexpr size_t kMostKept = size_t{4} << 20;

InputError not_utf8(size_t line, std::string_view text, const char* bad) {
  return InputError("line " + std::to_string(line + 1) + ", byte offset " + std::to_string(bad - text.data()) + ": " +
                    hex_byte(*bad) + " is not UTF-8; encode the text as UTF-8 first");
}

}  // namespace

Applier::Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate,
                 std::shared_ptr<const Pretokeniser> pretokeniser, TableLimits limits, Output output)
    : segmenter_(std::move(segmenter)),
      isolate_(std::move(isolate)),
      pretokeniser_(std::move(pretokeniser)),
      output_(std::move(output)),
      table_(std::make_shared<WordTable>(limits)) {}

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
  if (worker_->draw.dropout != draw.dropout) worker_->decisions = Decisions(draw.dropout);
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

void Applier::refuse_unless_utf8(std::string_view word) const {
  if (segmenter_->alphabet().bytes || first_invalid_byte(word) == word.size()) return;
  throw InputError("the word '" + notation_of(word) +
                   "' is not UTF-8, which codes of characters need; convert the text to UTF-8, or use codes of bytes");
}

void Applier::start(Worker& worker, uint64_t index) {
  if (worker.draw.any()) worker.decisions.start({worker.draw.seed, worker.draw.epoch, index});
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
          const char* const bad = append_line(worker, line, margins_of(line), worker.output);
          if (bad) throw block.not_utf8(static_cast<size_t>(bad - block.text().data()));
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
  const char* const bad = append_line(*worker, text, keep_margins ? margins_of(text) : Margins{0, 0}, output);
  if (bad) throw not_utf8(0, text, bad);
}

std::string Applier::segment_words(const std::vector<std::string>& words, const Draw& draw) {
  const Lease worker(*this, draw);
  OutputBuffer output;
  refresh_table(*worker);
  start(*worker, 0);
  std::string copy;
  for (const std::string& word : words)
    if (!word.empty()) append_word(*worker, padded(word, copy), output);
  if (output.size() > 0) output.drop_last(1);
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
    const char* const bad = append_line(*worker, text, margins_of(text), result.ids);
    if (bad) throw not_utf8(i, text, bad);
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
    append_word(*worker, padded(entry.word, copy), output);
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
    refuse_unless_utf8(word);
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
  if (!segmenter_->alphabet().end_of_word)
    for (std::string& form : forms) form = notation_of(form);
  return forms;
}

}  // namespace mt_scaffold
