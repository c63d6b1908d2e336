#include "count/count_words.hpp"

#include <vector>

#include "text/lines.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

// One thread's part of the work, padded against false sharing.
class alignas(128) Counter {
 public:
  Counter(const Counting& counting, SharedCounts& shared, size_t first_part)
      : pretokeniser_(counting.pretokeniser),
        any_bytes_(counting.any_bytes || counting.pretokeniser),
        whole_inputs_(counting.whole_inputs),
        endings_(counting.pretokeniser ? nullptr : counting.endings),
        shared_(shared),
        first_part_(first_part) {}

  void count(const Block& block) {
    block_ = &block;
    if (endings_) endings_->look(block);
    const char* const begin = block.text().data();
    // Words are hashed in batches, so that the table's memory is prefetched before it is needed. The batch is local:
    // the size of a member would be loaded and stored for every word.
    HashedWord ahead[kAhead];
    size_t batched = 0;
    const auto on_word = [&](std::string_view word) {
      ahead[batched] = hash_word(word);
      own_.prefetch(ahead[batched].hash);
      if (++batched == kAhead) {
        add_batch(ahead, kAhead);
        batched = 0;
      }
    };
    if (!block.document_ends.empty()) {
      size_t from = 0;
      for (const size_t to : block.document_ends) {
        count_document(begin + from, begin + to, on_word);
        from = to;
      }
    } else if (whole_inputs_) {
      // Further blocks of a document do not count as documents.
      lines_ += block.first_offset == 0;
      pretokeniser_->for_each_word(begin, begin + block.text().size(), on_word);
    } else {
      count_lines(block.text(), on_word);
    }
    add_batch(ahead, batched);
  }

  void finish() { shared_.take(own_, first_part_); }

  // Lines or documents with at least one word.
  uint64_t lines() const { return lines_; }

 private:
  static constexpr size_t kAhead = 32;

  template <typename OnWord>
  void count_document(const char* begin, const char* end, OnWord&& on_word) {
    if (!pretokeniser_) return count_lines({begin, static_cast<size_t>(end - begin)}, on_word);
    lines_ += begin < end;
    pretokeniser_->for_each_word(begin, end, on_word);
  }

  template <typename OnWord>
  void count_lines(std::string_view text, OnWord&& on_word) {
    std::string_view line;
    for (Lines lines(text); lines.next(line);) {
      const char* const begin = line.data();
      const char* const end = begin + line.size();
      if (pretokeniser_) {
        lines_ += begin < end;
        pretokeniser_->for_each_word(begin, end, on_word);
        continue;
      }
      const Margins margins = line_margins(begin, end);
      lines_ += begin + margins.leading < end - margins.trailing;
      for_each_word(begin + margins.leading, end - margins.trailing, on_word);
    }
  }

  void add_batch(const HashedWord* words, size_t size) {
    const char* const begin = block_->text().data();
    const uint64_t offset = block_->global_offset;
    for (size_t i = 0; i < size; ++i) {
      const auto position = static_cast<size_t>(words[i].text.data() - begin);
      if (!own_.add(words[i], 1, offset + position, any_bytes_))
        throw block_->not_utf8(position + first_invalid_byte(words[i].text));
    }
    if (shared_.must_take(own_)) shared_.take(own_, first_part_);
  }

  const Pretokeniser* const pretokeniser_;
  const bool any_bytes_, whole_inputs_;
  WordEndings* const endings_;
  SharedCounts& shared_;
  const size_t first_part_;
  const Block* block_ = nullptr;
  WordCounter own_;
  uint64_t lines_ = 0;
};

}  // namespace

CountedWords count_words(BlockReader& reader, unsigned workers, const Counting& counting, const MemoryLimit& limit,
                         const Tick& tick) {
  if (counting.endings) counting.endings->begin_text();
  if (counting.whole_inputs)
    reader.cut_with([&](std::string_view text, size_t searched) {
      return counting.pretokeniser->last_certain_cut(text, searched);
    });
  SharedCounts shared(limit, workers);
  std::vector<Counter> own;
  own.reserve(workers);
  for (unsigned worker = 0; worker < workers; ++worker)
    own.emplace_back(counting, shared, WordCounts::kParts * worker / workers);
  for_each_block(reader, workers, [&](unsigned worker, Block& block) { own[worker].count(block); }, tick);
  for_each_number(workers, workers, [&](size_t worker) { own[worker].finish(); });
  uint64_t lines = 0;
  for (const Counter& each : own) lines += each.lines();
  return shared.finish(lines);
}

}  // namespace mt_scaffold
