#include "segment/applier.hpp"
#include "text/lines.hpp"

namespace mt_scaffold {

namespace {

void append_bytes(std::string_view bytes, OutputBuffer& output) {
  for (const char byte : bytes) {
    const int32_t id = static_cast<unsigned char>(byte);
    output.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
}

}  // namespace

void Applier::Documents::begin(uint64_t index) { start(*worker_, index); }

void Applier::Documents::append(std::string_view text, OutputBuffer& output) {
  applier_.refresh_table(*worker_);
  if (applier_.pretokeniser_) {
    applier_.append_line(*worker_, text, {0, 0}, output);
  } else {
    append_spaced(text, output);
  }
}

void Applier::Documents::append_spaced(std::string_view text, OutputBuffer& output) {
  const char* done = text.data();
  // Words with one space between any two, after what precedes them.
  const auto append_run = [&](const char* begin, const char* end) {
    append_bytes({done, static_cast<size_t>(begin - done)}, output);
    applier_.append_line(*worker_, {begin, static_cast<size_t>(end - begin)}, {0, 0}, output);
    done = end;
  };
  std::string_view line;
  for (Lines lines(text); lines.next(line);) {
    const Margins margins = line_margins(line.data(), line.data() + line.size());
    const char* run = line.data() + margins.leading;
    const char* const last = line.data() + line.size() - margins.trailing;
    for (const char* p = run; p < last;) {
      const char* const stop = word_end(p, last);
      const char* next = stop;
      while (next < last && *next == ' ') ++next;
      // A word that begins with a CR would be read as a margin.
      if (stop == last || next - stop > 1 || *next == '\r') {
        append_run(run, stop);
        run = next;
      }
      p = next;
    }
  }
  append_bytes({done, static_cast<size_t>(text.data() + text.size() - done)}, output);
}

}  // namespace mt_scaffold
