// Segmenting text: each word is segmented once, remembered, and looked up from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "count/word_counts.hpp"
#include "inference/dropout.hpp"
#include "io/blocks.hpp"
#include "io/word_endings.hpp"
#include "memory/output_buffer.hpp"
#include "segment/isolate.hpp"
#include "segment/segmenter.hpp"
#include "segment/word_ids.hpp"
#include "segment/word_table.hpp"
#include "text/pretokeniser.hpp"

namespace mt_scaffold {

// All methods may be called by several threads at once.
class Applier {
 public:
  // `output` refers to the segmenter. `pretokeniser`: null if spaces separate words.
  using Output = std::variant<WordText, WordIds>;
  Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate, std::shared_ptr<const Pretokeniser> pretokeniser,
          TableLimits limits, Output output);
  Applier(const Applier&) = delete;
  ~Applier();

  // Segments a text. A line's random numbers, under dropout, depend on (seed, epoch, index of the line) alone.
  // `endings` counts among words between spaces.
  void apply(BlockReader& reader, Sink& sink, unsigned workers, const Draw& draw, const Tick& tick,
             WordEndings* endings = nullptr);

  // Appends the subwords of one line without its LF. With `keep_margins`, leading and trailing CRs and spaces are
  // copied, unless words come from a pre-tokeniser: nothing is a margin then.
  void segment_line(std::string_view line, bool keep_margins, const Draw& draw, uint64_t index, OutputBuffer& output);

  // Segments given words, which are not split any further.
  std::string segment_words(const std::vector<std::string>& words, const Draw& draw);

  struct Ids {
    OutputBuffer ids;              // int32
    std::vector<int64_t> offsets;  // where each line begins, and the end
  };
  // Encodes lines, with or without their LF, which is part of the text if words come from a pre-tokeniser. `indices`,
  // unless empty, replace the lines' positions under dropout.
  Ids encode(const std::vector<std::string>& lines, const std::vector<uint64_t>& indices, const Draw& draw);

  // Every subword that segmenting counted words with this draw can make, in no particular order.
  std::vector<std::string> reachable(const WordCounts& counts, const Draw& draw) const;

  // The room, in bytes, that Documents::append() reserves beyond an id of four bytes per byte of text.
  static constexpr size_t kMargin = size_t{9} << 10;

  // Encodes documents one after the other, in one thread.
  class Documents;

  // The counts of the subwords of counted words, in the order in which they first occur in the segmented text. This,
  // reachable() and segment_words() throw InputError for a word that must be UTF-8 and is not.
  WordCounts count_subwords(const WordCounts& counts);

 private:
  class Worker;  // the state of one thread

  // Throws InputError for a word that must be UTF-8 and is not.
  void refuse_unless_utf8(std::string_view word) const;

  // A worker for one call, kept afterwards for its room in the table of words.
  class Lease {
   public:
    Lease(Applier& applier, const Draw& draw);
    ~Lease();
    Worker& operator*() const { return *worker_; }

   private:
    Applier& applier_;
    std::unique_ptr<Worker> worker_;
  };

  // Starts the random numbers of a line or document.
  static void start(Worker& worker, uint64_t index);

  // Appends the output of a line, which must be readable for kPadding bytes past its end. Returns null, or the first
  // byte that is not UTF-8.
  const char* append_line(Worker& worker, std::string_view line, Margins margins, OutputBuffer& output);
  // The same for a word, which may hold spaces, and a space after it. Throws InputError if it must be UTF-8 and is not.
  void append_word(Worker& worker, std::string_view word, OutputBuffer& output);
  // Appends the output of each word, in text followed by a space. `next_word(std::string_view& word)` returns whether
  // there was another word, which must be readable for kPadding bytes past its end. Returns null, or the first byte
  // that is not UTF-8.
  template <typename NextWord>
  const char* append_words(Worker& worker, NextWord&& next_word, OutputBuffer& output);
  // The same for the first words of `worker.hashed`.
  template <bool kDropout>
  const char* append_hashed(Worker& worker, size_t count, OutputBuffer& output);
  // Appends the ids of a document's words; nothing is drawn.
  void append_ids(Worker& worker, std::string_view text, OutputBuffer& output);
  const WordEntry* entry_of_new_word(Worker& worker, const HashedWord& word);
  uint32_t segment_word(Worker& worker, std::string_view word, Decisions* decisions);
  void refresh_table(Worker& worker);

  const std::shared_ptr<const Segmenter> segmenter_;
  const Isolate isolate_;
  const std::shared_ptr<const Pretokeniser> pretokeniser_;
  const Output output_;
  // Guarded by shared_state. Workers in use by other threads at a fork are missing in the child.
  std::shared_ptr<WordTable> table_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

class Applier::Documents {
 public:
  // The applier must write ids, and have a pre-tokeniser.
  Documents(Applier& applier, const Draw& draw) : applier_(applier), worker_(applier, draw) {}

  // Begins a document: under dropout its ids depend on (seed, epoch, index) alone.
  void begin(uint64_t index) { start(*worker_, index); }
  // Appends the ids (int32) of a part of the document, which must be readable for kPadding bytes past its end. Words do
  // not span parts.
  void append(std::string_view text, OutputBuffer& output) {
    applier_.refresh_table(*worker_);
    applier_.append_line(*worker_, text, {0, 0}, output);
  }

 private:
  Applier& applier_;
  const Lease worker_;
};

}  // namespace mt_scaffold
