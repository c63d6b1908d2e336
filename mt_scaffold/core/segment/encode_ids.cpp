#include "segment/encode_ids.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#include "text/lines.hpp"

namespace mt_scaffold {

namespace {

// Documents are handed to the threads in units of about this many bytes.
constexpr size_t kUnit = size_t{1} << 18;

// Encodes text with the special tokens of one call, in one thread.
class Texts {
 public:
  Texts(Applier& applier, const TokenIds& ids, const std::vector<Special>& special, const Dropout& dropout)
      : session_(applier, dropout),
        ids_(ids),
        allowed_(ids.special(), special, Special::kAllowed),
        refused_(ids.special(), special, Special::kRefused) {}

  void begin(uint64_t index) { session_.begin(index); }

  // Appends int32 ids. `name` names the text, whose first `before` bytes are not a part of `text`, if it holds a
  // special token that is refused. `continued`: more of a text comes before it.
  template <typename Name>
  void append(std::string_view text, size_t before, Name&& name, OutputBuffer& output, bool continued = false) {
    if (const auto refused = refused_.find(text, 0); refused.position != std::string_view::npos)
      throw SpecialTokenFound(name() + "the text holds the special token '" + ids_.special()[refused.index] +
                              "' at byte offset " + std::to_string(before + refused.position) +
                              "; allow it, to encode it as that token, or do not disallow it, to encode it as text");
    for (size_t from = 0; from < text.size();) {
      const auto found = allowed_.find(text, from);
      const size_t stop = std::min(found.position, text.size());
      if (stop > from) append_text(text.substr(from, stop - from), before + from == 0 && !continued, output);
      if (found.position == std::string_view::npos) break;
      append_id(ids_.special_ids()[found.index], output);
      from = stop + ids_.special()[found.index].size();
    }
  }

  static void append_id(int32_t id, OutputBuffer& output) {
    output.append(reinterpret_cast<const char*>(&id), sizeof id);
  }

 private:
  // Appends the ids of text without special tokens; `first`: nothing precedes it in its document.
  void append_text(std::string_view text, bool first, OutputBuffer& output) {
    const Numbering& numbering = ids_.numbering();
    const size_t begin = output.size() / sizeof(int32_t);
    if (numbering.metaspace) {
      constexpr std::string_view kSpace = "\xE2\x96\x81";
      const bool there = text.starts_with(' ') || text.starts_with(kSpace);
      const bool wanted = numbering.prefix == Numbering::Prefix::kAlways ||
                          (numbering.prefix == Numbering::Prefix::kUnlessThere && !there);
      spaced_.assign(wanted && (first || numbering.prefix_each) ? 1 : 0, ' ');
      if (numbering.words) {
        append_words(text);
      }
      for (size_t from = numbering.words ? text.size() : 0; from < text.size();) {
        const size_t found = std::min(text.find(kSpace, from), text.size());
        spaced_.append(text.substr(from, found - from));
        if (found < text.size()) spaced_ += ' ';
        from = found + kSpace.size();
      }
      text = spaced_;
    }
    session_.append(text, output);
    if (numbering.unknown >= 0) join_unknown(begin, numbering.unknown, output);
  }

  void append_words(std::string_view text) {
    spaced_.clear();
    bool within = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool marker = text.substr(i).starts_with("\xE2\x96\x81");
      if (marker || text[i] == ' ' || (text[i] >= '\t' && text[i] <= '\r')) {
        within = false;
        if (marker) i += 2;
        continue;
      }
      if (!within) spaced_ += ' ';
      within = true;
      spaced_ += text[i];
    }
  }

  // Leaves one of several unknown ids in a row; `begin`: where to look.
  static void join_unknown(size_t begin, int32_t unknown, OutputBuffer& output) {
    const size_t end = output.size() / sizeof(int32_t);
    int32_t* const ids = reinterpret_cast<int32_t*>(output.reserve(0) - output.size());
    size_t kept = begin;
    for (size_t i = begin; i < end; ++i)
      if (ids[i] != unknown || kept == begin || ids[kept - 1] != unknown) ids[kept++] = ids[i];
    output.drop_last((end - kept) * sizeof(int32_t));
  }

  Applier::Documents session_;
  std::string spaced_;
  const TokenIds& ids_;
  const SpecialFinder allowed_, refused_;
};

void narrow(const int32_t* from, size_t count, size_t width, char* to) {
  if (width == sizeof(int32_t)) {
    if (count > 0) std::memcpy(to, from, count * width);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<uint16_t>(from[i]);
    std::memcpy(to + i * sizeof id, &id, sizeof id);
  }
}

const int32_t* as_ids(const OutputBuffer& buffer) { return reinterpret_cast<const int32_t*>(buffer.view().data()); }

}  // namespace

// Documents first to last, or a part of the document `first`.
struct IdEncoder::Unit {
  size_t first, last;
  size_t begin, end;  // of the last document
};

IdEncoder::IdEncoder(std::shared_ptr<Applier> applier, std::shared_ptr<const TokenIds> ids,
                     std::shared_ptr<const Pretokeniser> pretokeniser)
    : applier_(std::move(applier)), ids_(std::move(ids)), pretokeniser_(std::move(pretokeniser)) {}

// The last position of `text` where it may be cut in two without a change of its ids, or 0.
size_t IdEncoder::last_cut(std::string_view text) const {
  // Without a pre-tokeniser, everything around a line end stands for itself.
  size_t cut = pretokeniser_ ? pretokeniser_->last_certain_cut(text, 0) : text.rfind('\n') + 1;
  const auto within_special = [&](const std::string& token) {
    const size_t from = cut > token.size() ? cut - token.size() + 1 : 0;
    const size_t found = text.substr(0, cut + token.size() - 1).find(token, from);
    return found < cut && cut < found + token.size();
  };
  while (cut > 0 && std::any_of(ids_->special().begin(), ids_->special().end(), within_special)) {
    text = text.substr(0, cut - 1);
    cut = pretokeniser_ ? pretokeniser_->last_certain_cut(text, 0) : text.rfind('\n') + 1;
  }
  return cut;
}

std::vector<IdEncoder::Unit> IdEncoder::plan(const std::vector<std::string_view>& texts, bool cut) const {
  std::vector<Unit> units;
  size_t first = 0, bytes = 0;
  const auto close = [&](size_t end) {
    if (first < end) units.push_back({first, end, 0, texts[end - 1].size()});
    first = end;
    bytes = 0;
  };
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    if (cut && text.size() >= 2 * kUnit) {
      close(i);
      size_t begin = 0;
      for (size_t size = kUnit; begin + size + kUnit < text.size();) {
        const size_t length = last_cut(text.substr(begin, size));
        if (length == 0) {
          size *= 2;
          continue;
        }
        units.push_back({i, i + 1, begin, begin + length});
        begin += length;
        size = kUnit;
      }
      units.push_back({i, i + 1, begin, text.size()});
      first = i + 1;
      continue;
    }
    bytes += text.size() + 16;
    if (bytes >= kUnit) close(i + 1);
  }
  close(texts.size());
  return units;
}

EncodedDocuments IdEncoder::encode(const std::vector<std::string_view>& texts, const std::vector<Special>& special,
                                   const std::vector<uint64_t>& indices, int32_t append, const Dropout& dropout,
                                   unsigned workers, const std::function<std::string(size_t)>& name_of,
                                   bool continued) const {
  const std::vector<Unit> units = plan(texts, !dropout.any());
  workers = std::max(1u, static_cast<unsigned>(std::min<size_t>(workers, units.size())));
  EncodedDocuments result;
  result.offsets.assign(texts.size() + 1, 0);
  result.buffers_.resize(workers);
  result.pieces_.resize(units.size());

  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t failed = units.size();
  std::exception_ptr failure;
  const auto work = [&](unsigned worker) {
    OutputBuffer& output = result.buffers_[worker];
    Texts session(*applier_, *ids_, special, dropout);
    // Units are handed out in order, so that the earliest failure is always found.
    for (size_t i = next++; i < units.size(); i = next++) {
      const Unit& unit = units[i];
      const size_t before = output.size() / sizeof(int32_t);
      size_t seen = before;
      try {
        for (size_t k = unit.first; k < unit.last; ++k) {
          session.begin(indices.empty() ? k : indices[k]);
          const size_t begin = k + 1 == unit.last ? unit.begin : 0;
          const std::string_view text = k + 1 == unit.last ? texts[k].substr(begin, unit.end - begin) : texts[k];
          session.append(text, begin, [&] { return name_of(k); }, output, continued);
          const bool ends = k + 1 < unit.last || unit.end == texts[k].size();
          if (ends && append >= 0) Texts::append_id(append, output);
          const size_t now = output.size() / sizeof(int32_t);
          // The parts of a document are summed below.
          if (ends && (k + 1 < unit.last || unit.begin == 0)) result.offsets[k + 1] = static_cast<int64_t>(now - seen);
          seen = now;
        }
      } catch (...) {
        std::lock_guard lock(mutex);
        if (i < failed) {
          failed = i;
          failure = std::current_exception();
        }
        next = units.size();
        return;
      }
      result.pieces_[i] = {worker, before, seen - before};
    }
  };
  if (workers == 1) {
    work(0);
  } else {
    in_parallel(workers, work);
  }
  if (failure) std::rethrow_exception(failure);
  for (size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = units[i];
    if (unit.begin != 0 || unit.end != texts[unit.last - 1].size())
      result.offsets[unit.last] += static_cast<int64_t>(result.pieces_[i].count);
  }
  for (size_t i = 1; i < result.offsets.size(); ++i) result.offsets[i] += result.offsets[i - 1];
  return result;
}

void EncodedDocuments::copy(char* to, size_t width, unsigned workers) const {
  std::vector<size_t> starts(pieces_.size() + 1, 0);
  for (size_t i = 0; i < pieces_.size(); ++i) starts[i + 1] = starts[i] + pieces_[i].count;
  std::atomic<size_t> next{0};
  const auto work = [&](unsigned) {
    for (size_t i = next++; i < pieces_.size(); i = next++) {
      const Piece& piece = pieces_[i];
      narrow(as_ids(buffers_[piece.worker]) + piece.begin, piece.count, width, to + starts[i] * width);
    }
  };
  if (workers <= 1 || pieces_.size() <= 1) {
    work(0);
  } else {
    in_parallel(workers, work);
  }
}

namespace {

// Takes the sizes of a block's lines apart from their ids.
class SplitSink : public Sink {
 public:
  SplitSink(Sink& ids, Sink& sizes) : ids_(ids), sizes_(sizes) {}
  // The output of one block: the bytes of the sizes (uint64), the sizes, the ids.
  void write(const char* data, size_t size, const std::atomic<bool>& stop) override {
    uint64_t bytes;
    std::memcpy(&bytes, data, sizeof bytes);
    sizes_.write(data + sizeof bytes, bytes, stop);
    ids_.write(data + sizeof bytes + bytes, size - sizeof bytes - bytes, stop);
  }

 private:
  Sink &ids_, &sizes_;
};

}  // namespace

uint64_t IdEncoder::encode_lines(BlockReader& reader, Sink& ids, Sink& sizes, const std::vector<Special>& special,
                                 uint64_t first, size_t width, int32_t append, const Dropout& dropout,
                                 unsigned workers, const Tick& tick) const {
  struct alignas(128) State {
    std::unique_ptr<Texts> texts;
    std::vector<int32_t> sizes;
    OutputBuffer ids, output;
    uint64_t bytes = 0;
  };
  std::vector<State> states(workers);
  for (State& state : states) state.texts = std::make_unique<Texts>(*applier_, *ids_, special, dropout);
  SplitSink sink(ids, sizes);
  transform_blocks(
      reader, sink, workers,
      [&](unsigned number, Block& block, std::string_view& result) {
        State& state = states[number];
        state.sizes.clear();
        state.ids.clear();
        state.output.clear();
        uint64_t index = block.first_line;
        size_t seen = 0;
        std::string_view line;
        for (Lines lines(block.text()); lines.next(line); ++index) {
          state.texts->begin(first + index);
          state.texts->append(
              line, 0, [&] { return *block.name + ": line " + std::to_string(index + 1) + ": "; }, state.ids);
          if (append >= 0) Texts::append_id(append, state.ids);
          state.bytes += line.size();
          const size_t now = state.ids.size() / sizeof(int32_t);
          state.sizes.push_back(static_cast<int32_t>(now - seen));
          seen = now;
        }
        const uint64_t bytes = state.sizes.size() * sizeof(int32_t);
        state.output.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
        if (bytes > 0) state.output.append(reinterpret_cast<const char*>(state.sizes.data()), bytes);
        char* to = state.output.reserve(seen * width);
        narrow(as_ids(state.ids), seen, width, to);
        state.output.advance(seen * width);
        result = state.output.view();
      },
      tick);
  uint64_t bytes = 0;
  for (const State& state : states) bytes += state.bytes;
  return bytes;
}

}  // namespace mt_scaffold
