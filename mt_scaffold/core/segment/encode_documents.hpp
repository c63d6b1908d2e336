// Text → ids: documents in memory or the lines of a stream, on several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/blocks.hpp"
#include "memory/reserved_memory.hpp"
#include "segment/applier.hpp"
#include "segment/token_ids.hpp"
#include "text/find_tokens.hpp"
#include "text/given_text.hpp"
#include "text/pretokeniser.hpp"

namespace mt_scaffold {

struct EncodedDocuments {
  std::vector<int64_t> offsets;  // where the ids of each document begin, and the end
  ReservedMemory ids;            // of all documents, in order, as unsigned integers
};

struct EncodedLines {
  uint64_t lines = 0, ids = 0, bytes = 0;  // bytes: of the lines
};

// Finds the special tokens that a call allows or refuses; `ids` must outlive this.
struct SpecialFinders {
  SpecialFinders(const TokenIds& ids, const std::vector<Special>& special)
      : allowed(ids.special(), [&](size_t number) { return special[number] == Special::kAllowed; }),
        refused(ids.special(), [&](size_t number) { return special[number] == Special::kRefused; }) {}

  TokenFinder allowed, refused;
};

class IdEncoder {
 public:
  // `applier` must return ids; `pretokeniser` is its own.
  IdEncoder(std::shared_ptr<Applier> applier, std::shared_ptr<const TokenIds> ids,
            std::shared_ptr<const Pretokeniser> pretokeniser);

  // Appends the ids (int32) of one text, in this thread. `special`: null refuses all special tokens.
  // Otherwise as encode().
  void encode_one(const GivenText& text, const std::vector<Special>* special, uint64_t index, const Draw& draw,
                  OutputBuffer& output) const;

  // Under dropout the random numbers of a document depend on (seed, epoch, its index) alone; its index is its position
  // unless `indices` are given. `width`: the bytes of an id, 2 or 4. `append`: an id after each document, unless
  // negative. Throws SpecialTokenFound for one that is refused, and InputError for a lone surrogate, with the text's
  // name by `name_of`.
  EncodedDocuments encode(const std::vector<GivenText>& texts, const std::vector<Special>& special,
                          const std::vector<uint64_t>& indices, size_t width, int32_t append, const Draw& draw,
                          unsigned workers, const std::function<std::string(size_t)>& name_of, const Tick& tick) const;

  // Encodes each line of a text, without its LF, and writes ids of `width` bytes and the number of ids of each line
  // (int32). `first`: the index of the first line. `append`: an id after each line, unless negative.
  EncodedLines encode_lines(BlockReader& reader, Sink& ids, Sink& sizes, const std::vector<Special>& special,
                            uint64_t first, size_t width, int32_t append, const Draw& draw, unsigned workers,
                            const Tick& tick) const;

 private:
  struct Unit;
  size_t last_cut(std::string_view text) const;
  size_t last_cut(const GivenText& text, size_t begin, size_t end) const;
  std::vector<Unit> plan(const std::vector<GivenText>& texts, bool cut) const;

  const std::shared_ptr<Applier> applier_;
  const std::shared_ptr<const TokenIds> ids_;
  const std::shared_ptr<const Pretokeniser> pretokeniser_;
  const SpecialFinders refusing_;  // refuses all special tokens, as most calls do
  size_t longest_special_ = 0;     // bytes
};

}  // namespace mt_scaffold
