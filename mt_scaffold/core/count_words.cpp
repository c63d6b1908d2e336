#include "count_words.hpp"

#include <vector>

#include "lines.hpp"
#include "text.hpp"

namespace mt_scaffold {

namespace {

// One thread's part of the work.
class Counter {
 public:
  Counter(const Counting& counting, SharedCounts& shared, size_t first_part)
      : pretokeniser_(counting.pretokeniser),
        any_bytes_(counting.any_bytes || counting.pretokeniser),
        whole_inputs_(counting.whole_inputs),
        shared_(shared),
        first_part_(first_part) {}

  void count(const Block& block) {
    block_ = &block;
    const char* const begin = block.text().data();
    if (!block.document_ends.empty()) {
      size_t from = 0;
      for (const size_t to : block.document_ends) {
        count_document(begin + from, begin + to);
        from = to;
      }
    } else if (whole_inputs_) {
      // Further blocks of a document do not count as documents.
      lines_ += block.first_offset == 0;
      pretokeniser_->for_each_word(begin, begin + block.size, [this](std::string_view word) { add(word); });
    } else {
      count_lines(block.text());
    }
    add_batch();
  }

  void finish() { shared_.take(own_, first_part_); }

  // Lines or documents with a word.
  uint64_t lines() const { return lines_; }

 private:
  // Words are hashed in batches, so that the table's memory is prefetched before it is needed.
  static constexpr size_t kAhead = 32;

  void count_document(const char* begin, const char* end) {
    if (!pretokeniser_) return count_lines({begin, static_cast<size_t>(end - begin)});
    lines_ += begin < end;
    pretokeniser_->for_each_word(begin, end, [this](std::string_view word) { add(word); });
  }

  void count_lines(std::string_view text) {
    std::string_view line;
    for (Lines lines(text); lines.next(line);) {
      const char* const begin = line.data();
      const char* const end = begin + line.size();
      if (pretokeniser_) {
        count_document(begin, end);
        continue;
      }
      const Margins margins = line_margins(begin, end);
      lines_ += begin + margins.leading < end - margins.trailing;
      for_each_word(begin + margins.leading, end - margins.trailing, [this](std::string_view word) { add(word); });
    }
  }

  void add(std::string_view word) {
    ahead_[batched_] = hash_word(word);
    own_.prefetch(ahead_[batched_].hash);
    if (++batched_ == kAhead) add_batch();
  }

  void add_batch() {
    for (size_t i = 0; i < batched_; ++i) {
      const auto position = static_cast<size_t>(ahead_[i].text.data() - block_->text().data());
      if (!own_.add(ahead_[i], 1, block_->global_offset + position, any_bytes_))
        throw block_->not_utf8(position + first_invalid_byte(ahead_[i].text));
    }
    batched_ = 0;
    if (own_.size() > shared_.most_own_words()) shared_.take(own_, first_part_);
  }

  const Pretokeniser* const pretokeniser_;
  const bool any_bytes_, whole_inputs_;
  SharedCounts& shared_;
  const size_t first_part_;
  const Block* block_ = nullptr;
  WordCounter own_;
  uint64_t lines_ = 0;
  size_t batched_ = 0;
  HashedWord ahead_[kAhead];
};

}  // namespace

CountedWords count_words(BlockReader& reader, unsigned workers, const Counting& counting, const MemoryLimit& limit,
                         const Tick& tick) {
  if (counting.whole_inputs)
    reader.cut_with([&](std::string_view text, size_t searched) {
      return counting.pretokeniser->last_certain_cut(text, searched);
    });
  // Padded against false sharing.
  struct alignas(128) Own {
    Counter counter;
  };
  SharedCounts shared(limit, workers);
  std::vector<Own> own;
  own.reserve(workers);
  for (unsigned worker = 0; worker < workers; ++worker)
    own.push_back({Counter(counting, shared, WordCounts::kParts * worker / workers)});
  for_each_block(reader, workers, [&](unsigned worker, Block& block) { own[worker].counter.count(block); }, tick);
  in_parallel(workers, [&](unsigned worker) { own[worker].counter.finish(); });
  uint64_t lines = 0;
  for (const Own& each : own) lines += each.counter.lines();
  return shared.finish(lines);
}

}  // namespace mt_scaffold
