// Segmenting text: each word is segmented once, remembered, and looked up from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "blocks.hpp"
#include "dropout.hpp"
#include "isolate.hpp"
#include "output_buffer.hpp"
#include "segmenter.hpp"
#include "word_counts.hpp"
#include "word_table.hpp"

namespace mt_scaffold {

using Dictionary = std::unordered_map<std::string, int32_t>;

// All methods may be called by several threads at once.
class Applier {
 public:
  // Gives subwords as text or, with a dictionary, as int32 ids (`unknown` for those it lacks).
  Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate, TableLimits limits,
          std::shared_ptr<const Dictionary> dictionary, int32_t unknown);
  ~Applier();

  // Segments a text. Under dropout, a line's random numbers depend on (seed, epoch, index of the line) alone.
  void apply(BlockReader& reader, Sink& sink, unsigned workers, const Dropout& dropout, const Tick& tick);

  // Segments one line without its LF. With `keep_margins`, leading and trailing CRs and spaces are copied.
  std::string segment_line(std::string_view line, bool keep_margins, const Dropout& dropout, uint64_t index);

  struct Ids {
    OutputBuffer ids;              // int32
    std::vector<int64_t> offsets;  // where each line begins, and the end
  };
  // Encodes lines, with or without their LF. `indices` replace the lines' positions under dropout, unless empty.
  Ids encode(const std::vector<std::string>& lines, const std::vector<uint64_t>& indices, const Dropout& dropout);

  // The counts of the subwords of counted words, in the order in which they first occur in the segmented text.
  WordCounts count_subwords(const WordCounts& counts);

 private:
  class Worker;  // the state of one thread

  // A worker for one call, kept afterwards for its room in the table of words.
  class Lease {
   public:
    Lease(Applier& applier, const Dropout& dropout);
    ~Lease();
    Worker& operator*() const { return *worker_; }

   private:
    Applier& applier_;
    std::unique_ptr<Worker> worker_;
  };

  static constexpr size_t kValid = ~size_t{0};
  // Appends the subwords of a line, which must be readable for kPadding bytes past its end. Returns kValid, or the
  // position of the first byte that is not UTF-8.
  size_t append_line(Worker& worker, std::string_view line, Margins margins, uint64_t index, OutputBuffer& output);
  template <bool kDropout>
  size_t append_line_as(Worker& worker, std::string_view line, Margins margins, uint64_t index, OutputBuffer& output);

  const WordEntry* entry_of_new_word(Worker& worker, const HashedWord& word);
  // Segments a word in which dropout drops a merge.
  void segment_with_drops(Worker& worker, const WordEntry* entry, const HashedWord& word, OutputBuffer& output);
  uint32_t segment_word(Worker& worker, std::string_view word, Decisions* decisions);
  void refresh_table(Worker& worker);

  const std::shared_ptr<const Segmenter> segmenter_;
  const Isolate isolate_;
  const TableLimits limits_;
  const std::shared_ptr<const Dictionary> dictionary_;
  const int32_t unknown_;

  std::mutex table_mutex_;
  std::shared_ptr<WordTable> table_;

  std::mutex idle_mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace mt_scaffold
