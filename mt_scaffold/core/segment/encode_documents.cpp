#include "segment/encode_documents.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "segment/imported_spaces.hpp"
#include "text/lines.hpp"

namespace mt_scaffold {

namespace {

// Documents are handed to the threads in units of about this many bytes.
constexpr size_t kUnit = size_t{1} << 18;

// Encodes text with the special tokens of one call, in one thread.
class TextEncoder {
 public:
  TextEncoder(Applier& applier, const TokenIds& ids, const SpecialFinders& finders, const Draw& draw)
      : words_(applier, draw), spaced_(ids.numbering()), ids_(ids), finders_(finders) {}

  void begin(uint64_t index) { words_.begin(index); }

  // Appends int32 ids of a text, which must be readable for kPadding bytes past its end. `first`: nothing precedes it.
  // `where` returns the name of the text and the bytes before this part, to report a refused special token.
  template <typename Where>
  void append(std::string_view text, bool first, Where&& where, OutputBuffer& output) {
    finders_.refused.find(text, [&](size_t found, size_t number) {
      const std::pair<std::string, size_t> place = where();
      throw SpecialTokenFound((place.first.empty() ? "" : place.first + ": ") + "the text holds the special token '" +
                              ids_.special()[number] + "' at byte offset " + std::to_string(place.second + found) +
                              "; allow it, to encode it as that token, or do not disallow it, to encode it as text");
    });
    size_t from = 0;
    finders_.allowed.find(text, [&](size_t found, size_t number) {
      if (found > from) append_text(text.substr(from, found - from), first && from == 0, output);
      const int32_t id = ids_.special_ids()[number];
      if (first && found == 0 && ids_.after_prefix(id)) append_text({}, true, output);
      append_id(id, output);
      from = found + ids_.special()[number].size();
    });
    if (from < text.size()) append_text(text.substr(from), first && from == 0, output);
  }

  static void append_id(int32_t id, OutputBuffer& output) {
    output.append(reinterpret_cast<const char*>(&id), sizeof id);
  }

 private:
  // Appends the ids of text without special tokens; `first`: nothing precedes it in its document.
  void append_text(std::string_view text, bool first, OutputBuffer& output) {
    const int32_t unknown = ids_.numbering().unknown;
    const size_t begin = output.size() / sizeof(int32_t);
    words_.append(spaced_(text, first), output);
    if (unknown >= 0) join_unknown(begin, unknown, output);
  }

  // Reduces each run of unknown ids from `begin` on to one.
  static void join_unknown(size_t begin, int32_t unknown, OutputBuffer& output) {
    const size_t end = output.size() / sizeof(int32_t);
    int32_t* const ids = reinterpret_cast<int32_t*>(output.reserve(0) - output.size());
    size_t kept = begin;
    for (size_t i = begin; i < end; ++i)
      if (ids[i] != unknown || kept == begin || ids[kept - 1] != unknown) ids[kept++] = ids[i];
    output.drop_last((end - kept) * sizeof(int32_t));
  }

  Applier::Documents words_;
  ImportedSpaces spaced_;
  const TokenIds& ids_;
  const SpecialFinders& finders_;
};

void narrow(const int32_t* from, size_t count, size_t width, char* to) {
  if (width == sizeof(int32_t)) {
    // The ids may be there already.
    if (count > 0 && to != reinterpret_cast<const char*>(from)) std::memcpy(to, from, count * width);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const auto id = static_cast<uint16_t>(from[i]);
    std::memcpy(to + i * sizeof id, &id, sizeof id);
  }
}

[[noreturn]] void throw_surrogate(const std::string& name) {
  throw InputError(name + " holds a lone surrogate, which is not a character; remove it, or pass bytes");
}

// The UTF-8 of a part of a text, readable for kPadding bytes past its end; without data if it holds a lone surrogate.
std::string_view utf8_of(const GivenText& text, size_t begin, size_t end, OutputBuffer& copy) {
  if (text.kind == GivenText::Kind::kUtf8 && end + kPadding <= text.size) return {text.data + begin, end - begin};
  copy.clear();
  const GivenText part = text.part(begin, end);
  char* const to = copy.reserve(part.size * part.widest());
  const char* const after = to_utf8(part, to);
  return after ? std::string_view(to, static_cast<size_t>(after - to)) : std::string_view();
}

const int32_t* as_ids(const OutputBuffer& buffer) { return reinterpret_cast<const int32_t*>(buffer.view().data()); }

}  // namespace

// The documents from `first` up to `last`, exclusive; or a part of the document `first`.
struct IdEncoder::Unit {
  size_t first, last;
  size_t begin, end;  // of the last document
};

IdEncoder::IdEncoder(std::shared_ptr<Applier> applier, std::shared_ptr<const TokenIds> ids,
                     std::shared_ptr<const Pretokeniser> pretokeniser)
    : applier_(std::move(applier)),
      ids_(std::move(ids)),
      pretokeniser_(std::move(pretokeniser)),
      refusing_(*ids_, std::vector(ids_->special().size(), Special::kRefused)) {
  for (const std::string& token : ids_->special()) longest_special_ = std::max(longest_special_, token.size());
}

// The last position where any text that begins with `text` may be cut in two without changing its ids; 0 if none.
size_t IdEncoder::last_cut(std::string_view text) const {
  size_t cut =
      pretokeniser_->last_certain_cut(text.substr(0, text.size() - std::min(longest_special_, text.size())), 0);
  const auto within_special = [&](const std::string& token) {
    const size_t from = cut > token.size() ? cut - token.size() + 1 : 0;
    const size_t found = text.substr(0, cut + token.size() - 1).find(token, from);
    return found < cut && cut < found + token.size();
  };
  while (cut > 0 && std::any_of(ids_->special().begin(), ids_->special().end(), within_special))
    cut = pretokeniser_->last_certain_cut(text.substr(0, cut - 1), 0);
  return cut < longest_special_ ? 0 : cut;  // a special token may begin before `text`
}

// The same for the units of a text from `begin` up to `end`, which is not its end; the result counts from `begin`.
size_t IdEncoder::last_cut(const GivenText& text, size_t begin, size_t end) const {
  if (text.kind == GivenText::Kind::kUtf8) return last_cut({text.data + begin, end - begin});
  size_t units = end - std::min(end - begin, 4096 + 2 * longest_special_);
  OutputBuffer copy;
  const size_t cut = last_cut(utf8_of(text, units, end, copy));
  if (cut == 0) return 0;
  for (size_t bytes = 0; bytes < cut; ++units) {
    char utf8[4 + kPadding];
    bytes += static_cast<size_t>(to_utf8(text.part(units, units + 1), utf8) - utf8);
  }
  return units - begin;
}

std::vector<IdEncoder::Unit> IdEncoder::plan(const std::vector<GivenText>& texts, bool cut) const {
  std::vector<Unit> units;
  size_t first = 0, bytes = 0;
  const auto close = [&](size_t end) {
    if (first < end) units.push_back({first, end, 0, texts[end - 1].size});
    first = end;
    bytes = 0;
  };
  for (size_t i = 0; i < texts.size(); ++i) {
    const GivenText& text = texts[i];
    if (cut && text.size >= 2 * kUnit) {
      close(i);
      size_t begin = 0;
      for (size_t size = kUnit; begin + size + kUnit < text.size;) {
        const size_t length = last_cut(text, begin, begin + size);
        if (length == 0) {
          size *= 2;
          continue;
        }
        units.push_back({i, i + 1, begin, begin + length});
        begin += length;
        size = kUnit;
      }
      units.push_back({i, i + 1, begin, text.size});
      first = i + 1;
      continue;
    }
    bytes += text.size + 16;
    if (bytes >= kUnit) close(i + 1);
  }
  close(texts.size());
  return units;
}

void IdEncoder::encode_one(const GivenText& text, const std::vector<Special>* special, uint64_t index, const Draw& draw,
                           OutputBuffer& output) const {
  std::optional<SpecialFinders> own;
  if (special) own.emplace(*ids_, *special);
  TextEncoder encoder(*applier_, *ids_, own ? *own : refusing_, draw);
  encoder.begin(index);
  char room[size_t{1} << 12];
  OutputBuffer copy(room, sizeof room);
  const auto append = [&](size_t begin, size_t end) {
    const std::string_view utf8 = utf8_of(text, begin, end, copy);
    if (!utf8.data()) throw_surrogate("the text");
    const auto where = [&] {
      OutputBuffer before;
      return std::pair{std::string(), utf8_of(text, 0, begin, before).size()};
    };
    encoder.append(utf8, begin == 0, where, output);
  };
  if (text.size < 2 * kUnit) return append(0, text.size);
  for (const Unit& unit : plan({text}, !draw.any())) append(unit.begin, unit.end);
}

EncodedDocuments IdEncoder::encode(const std::vector<GivenText>& texts, const std::vector<Special>& special,
                                   const std::vector<uint64_t>& indices, size_t width, int32_t append, const Draw& draw,
                                   unsigned workers, const std::function<std::string(size_t)>& name_of,
                                   const Tick& tick) const {
  const std::vector<Unit> units = plan(texts, !draw.any());
  workers = std::max(1u, static_cast<unsigned>(std::min<size_t>(workers, units.size())));
  // A byte has at most one id, or two with a space before it; `append` and a space add one each per text.
  size_t most = 2 * texts.size();
  for (const GivenText& text : texts) most += text.size * text.widest() * (ids_->numbering().metaspace ? 2 : 1);
  // A single worker writes its ids in place.
  const size_t margin = workers == 1 && width == sizeof(int32_t) ? Applier::kMargin : 0;
  const size_t room = most * width + margin;
  EncodedDocuments result{std::vector<int64_t>(texts.size() + 1, 0), ReservedMemory(room)};
  char* const to = result.ids.data();
  size_t written = 0;  // bytes

  struct alignas(128) Own {
    std::unique_ptr<TextEncoder> encoder;
    OutputBuffer copy, ids;
    char* place = nullptr;
  };
  std::vector<Own> owned(workers);
  std::vector<size_t> counts(units.size(), 0);  // of the ids of parts of texts
  const SpecialFinders finders(*ids_, special);
  const auto work = [&](unsigned worker, size_t i) {
    Own& own = owned[worker];
    if (!own.encoder) own.encoder = std::make_unique<TextEncoder>(*applier_, *ids_, finders, draw);
    own.ids.clear();
    if (margin > 0) own.ids = OutputBuffer(to + written, room - written);
    const Unit& unit = units[i];
    size_t seen = 0;
    for (size_t k = unit.first; k < unit.last; ++k) {
      own.encoder->begin(indices.empty() ? k : indices[k]);
      const size_t begin = k + 1 == unit.last ? unit.begin : 0;
      const size_t end = k + 1 == unit.last ? unit.end : texts[k].size;
      const std::string_view text = utf8_of(texts[k], begin, end, own.copy);
      if (!text.data()) throw_surrogate(name_of(k));
      const auto where = [&] {
        OutputBuffer before;
        return std::pair{name_of(k), utf8_of(texts[k], 0, begin, before).size()};
      };
      own.encoder->append(text, begin == 0, where, own.ids);
      const bool ends = end == texts[k].size;
      if (ends && append >= 0) TextEncoder::append_id(append, own.ids);
      const size_t now = own.ids.size() / sizeof(int32_t);
      if (begin == 0 && ends) {
        result.offsets[k + 1] = static_cast<int64_t>(now - seen);
      } else {
        counts[i] = now - seen;
      }
      seen = now;
    }
  };
  const auto count = [&](unsigned worker) { return owned[worker].ids.size() / sizeof(int32_t); };
  const auto take_place = [&](unsigned worker, size_t) {
    owned[worker].place = to + written;
    written += count(worker) * width;
  };
  const auto place = [&](unsigned worker, size_t) {
    narrow(as_ids(owned[worker].ids), count(worker), width, owned[worker].place);
  };
  for_each_in_order(units.size(), workers, work, take_place, place, tick);
  for (size_t i = 0; i < units.size(); ++i) result.offsets[units[i].last] += static_cast<int64_t>(counts[i]);
  for (size_t i = 1; i < result.offsets.size(); ++i) result.offsets[i] += result.offsets[i - 1];
  result.ids.shrink(written);
  return result;
}

namespace {

// Separates the sizes of a block's lines from their ids.
class SplitSink : public Sink {
 public:
  SplitSink(Sink& ids, Sink& sizes) : Sink(ids.on_caller || sizes.on_caller), ids_(ids), sizes_(sizes) {}
  // The output of one block: the bytes of the sizes (uint64), the sizes, the ids.
  void write(const char* data, size_t size) override {
    uint64_t bytes;
    std::memcpy(&bytes, data, sizeof bytes);
    sizes_.write(data + sizeof bytes, bytes);
    ids_.write(data + sizeof bytes + bytes, size - sizeof bytes - bytes);
  }

 private:
  Sink &ids_, &sizes_;
};

}  // namespace

EncodedLines IdEncoder::encode_lines(BlockReader& reader, Sink& ids, Sink& sizes, const std::vector<Special>& special,
                                     uint64_t first, size_t width, int32_t append, const Draw& draw, unsigned workers,
                                     const Tick& tick) const {
  struct alignas(128) State {
    std::unique_ptr<TextEncoder> encoder;
    std::vector<int32_t> sizes;
    OutputBuffer ids, output;
    EncodedLines done;
  };
  const SpecialFinders finders(*ids_, special);
  std::vector<State> states(workers);
  for (State& state : states) state.encoder = std::make_unique<TextEncoder>(*applier_, *ids_, finders, draw);
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
          state.encoder->begin(first + index);
          const auto where = [&] { return std::pair{*block.name + ": line " + std::to_string(index + 1), size_t{0}}; };
          state.encoder->append(line, true, where, state.ids);
          if (append >= 0) TextEncoder::append_id(append, state.ids);
          state.done.bytes += line.size();
          const size_t now = state.ids.size() / sizeof(int32_t);
          if (now - seen > INT32_MAX) throw InputError(where().first + ": more than 2^31 ids in a line");
          state.sizes.push_back(static_cast<int32_t>(now - seen));
          seen = now;
        }
        state.done.lines += state.sizes.size();
        state.done.ids += seen;
        const uint64_t bytes = state.sizes.size() * sizeof(int32_t);
        state.output.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
        if (bytes > 0) state.output.append(reinterpret_cast<const char*>(state.sizes.data()), bytes);
        char* to = state.output.reserve(seen * width);
        narrow(as_ids(state.ids), seen, width, to);
        state.output.advance(seen * width);
        result = state.output.view();
      },
      tick);
  EncodedLines done;
  for (const State& state : states) {
    done.lines += state.done.lines;
    done.ids += state.done.ids;
    done.bytes += state.done.bytes;
  }
  return done;
}

}  // namespace mt_scaffold
