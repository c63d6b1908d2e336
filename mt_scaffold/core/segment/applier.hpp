// Segmenting text: each word is segmented once, remembered, and looked up from then on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "count/word_counts.hpp"
#include "inference/dropout.hpp"
#include "io/blocks.hpp"
#include "io/word_endings.hpp"
#include "memory/output_buffer.hpp"
#include "segment/isolate.hpp"
#include "segment/segmenter.hpp"
#include "segment/word_table.hpp"
#include "text/hashing.hpp"
#include "text/pretokeniser.hpp"

namespace mt_scaffold {

using Dictionary = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

// All methods may be called by several threads at once.
class Applier {
 public:
  // Outputs subwords as text or, with a dictionary, as int32 ids (`unknown` for other subwords). The dictionary's keys
  // are subwords with the separator; for codes with a pre-tokeniser, which then must be given, the bytes of tokens.
  Applier(std::shared_ptr<const Segmenter> segmenter, Isolate isolate, std::shared_ptr<const Pretokeniser> pretokeniser,
          TableLimits limits, std::shared_ptr<const Dictionary> dictionary, int32_t unknown);
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

  // A value of `unknown`: a subword without an id becomes its bytes, whose ids are their values, plus 256 at the end of
  // a word that has an end-of-word marker.
  static constexpr int32_t kSpellOut = -1;

  // The room, in bytes, that Documents::append() reserves beyond an id of four bytes per byte of text.
  static constexpr size_t kMargin = size_t{1} << 13;

  // Encodes documents one after the other, in one thread.
  class Documents;

  // The counts of the subwords of counted words, in the order in which they first occur in the segmented text. This,
  // reachable() and segment_words() throw InputError for a word that must be UTF-8 and is not.
  WordCounts count_subwords(const WordCounts& counts);

 private:
  static constexpr int32_t kNoId = INT32_MIN;
  class Worker;  // the state of one thread

  // How a word is written: as subwords with separators, or in GPT-2's notation without; as the ids of subwords with
  // separators, or of tokens, wherever they are in a word.
  enum class Output { kSubwords, kNotation, kIdsOfSubwords, kIdsOfTokens };
  static Output output_of(const Segmenter& segmenter, bool ids);
  bool writes_text() const { return output_ == Output::kSubwords || output_ == Output::kNotation; }
  // Whether a word must be UTF-8 and is not.
  bool is_refused(std::string_view word) const {
    return !segmenter_->alphabet().bytes && first_invalid_byte(word) != word.size();
  }

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

  static constexpr size_t kValid = ~size_t{0};
  // Appends the subwords of a line, which must be readable for kPadding bytes past its end. Returns kValid, or the
  // position of the first byte that is not UTF-8.
  size_t append_line(Worker& worker, std::string_view line, Margins margins, OutputBuffer& output);
  // Appends the subwords of each word of `words.next(word)`, readable for kPadding bytes past its end. Returns kValid,
  // or the position of the first byte that is not UTF-8 in the text that begins at `begin`.
  template <typename Words>
  size_t append_words(Worker& worker, Words words, const char* begin, OutputBuffer& output);
  template <bool kDropout, typename Words>
  size_t append_words_as(Worker& worker, Words words, const char* begin, OutputBuffer& output);

  // Appends the ids of a document's words; nothing is drawn.
  void append_ids(Worker& worker, std::string_view text, OutputBuffer& output);
  const WordEntry* entry_of_new_word(Worker& worker, const HashedWord& word);
  // Writes the ids of a word to `ids`, which has room for kMostIds, and returns their number; none if only
  // segment_word() can. `merges`: the number of merges.
  static constexpr size_t kMostIds = kLongestRememberedWord + kTokensAtOnce;
  std::optional<size_t> ids_of_word(std::string_view word, int32_t* ids, uint32_t& merges) const;
  uint32_t segment_word(Worker& worker, std::string_view word, Decisions* decisions);
  // Writes worker.pieces of a word to worker.text.
  void write_pieces(Worker& worker, std::string_view word) const;
  // Appends the id of a subword by its `form`; of one that is not in the dictionary, `unknown_`, or the ids of the
  // bytes of `piece`. `final`: it ends a word with an end-of-word marker.
  void append_id_of(const std::string& form, std::string_view piece, bool final, std::string& text) const;
  void refresh_table(Worker& worker);
  void collect_ids_of_tokens();

  const std::shared_ptr<const Segmenter> segmenter_;
  const Isolate isolate_;
  const std::shared_ptr<const Pretokeniser> pretokeniser_;
  const Output output_;
  const TableLimits limits_;
  const std::shared_ptr<const Dictionary> dictionary_;
  // With kIdsOfTokens, the id of each token, kNoId for those not in the dictionary; and by token plus one, with kNoId
  // for kUnknown and for tokens that expand.
  std::vector<int32_t> id_of_token_, id_of_whole_token_;
  const int32_t unknown_;

  // Guarded by shared_state. Workers in use by other threads at a fork are missing in the child.
  std::shared_ptr<WordTable> table_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

class Applier::Documents {
 public:
  // The applier must have a dictionary, and codes whose symbols are bytes.
  Documents(Applier& applier, const Draw& draw) : applier_(applier), worker_(applier, draw) {}

  // Begins a document: under dropout its ids depend on (seed, epoch, index) alone.
  void begin(uint64_t index);
  // Appends the ids (int32) of a part of the document, which must be readable for kPadding bytes past its end. Words do
  // not span parts.
  void append(std::string_view text, OutputBuffer& output);

 private:
  // With </w>, a single space between two words is implied; every other byte around words has an id.
  void append_spaced(std::string_view text, OutputBuffer& output);

  Applier& applier_;
  const Lease worker_;
};

}  // namespace mt_scaffold
