#include "count/count_file.hpp"

#include <charconv>

#include "errors.hpp"
#include "text/notation.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

constexpr std::string_view kFirstWord = "#counts:";
constexpr std::string_view kVersion = "#version:";
constexpr std::string_view kEnd = "#end ";
constexpr size_t kRead = size_t{1} << 16;
constexpr uint64_t kWordsPerTick = 1 << 14;

// Takes a number off the end of `text`, with the space before it; false if there is none.
bool take_number(std::string_view& text, uint64_t& number) {
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos) return false;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + space + 1, end, number);
  text.remove_suffix(text.size() - space);
  return error == std::errc() && stopped == end;
}

}  // namespace

CountTotals write_count_file(SortedWords& words, const CodesHeader& header, Sink& sink, const Tick& tick) {
  CountTotals totals;
  std::string text = std::string(kFirstWord) + format_header(header).substr(kVersion.size()) + "\n";
  for (uint64_t done = 0; words.next(); ++done) {
    if (done % kWordsPerTick == 0) tick(done);
    const WordCount& entry = words.entry();
    ++totals.types;
    if (__builtin_add_overflow(totals.occurrences, entry.count, &totals.occurrences))
      throw InputError("the text has 2^64 words or more; count its shards without merging them");
    if (header.bytes) {
      append_notation(text, entry.word);
    } else {
      text.append(entry.word);
    }
    text.append(1, ' ').append(std::to_string(entry.count)).append(1, '\n');
    if (text.size() >= kRead) {
      sink.write(text.data(), text.size());
      text.clear();
    }
  }
  text.append(kEnd).append(std::to_string(totals.types)).append(1, ' ');
  text.append(std::to_string(totals.occurrences)).append(1, '\n');
  sink.write(text.data(), text.size());
  return totals;
}

CountFileReader::CountFileReader(std::unique_ptr<Source> source) : source_(std::move(source)) {
  std::string_view line;
  if (!next_line(line) || !line.starts_with(kFirstWord))
    throw error("not a count file; expected '" + std::string(kFirstWord) + "' and how the words were counted");
  try {
    header_ = parse_header(std::string(kVersion) + std::string(line.substr(kFirstWord.size())));
  } catch (const InputError&) {
    throw error("counted in a way that this mt-scaffold does not know; update it, or count the text again");
  }
}

InputError CountFileReader::error(const std::string& problem) const {
  return InputError(name() + ": line " + std::to_string(std::max<uint64_t>(line_, 1)) + ": " + problem);
}

bool CountFileReader::next() {
  std::string_view line;
  if (ended_) return false;
  if (!next_line(line)) {
    ++line_;
    throw error("the file ends without its last line ('#end ...'); is it complete?");
  }
  std::string_view written = line;
  uint64_t count = 0;
  if (!take_number(written, count) || written.empty()) throw error("expected a word, one space and its count");
  if (written.find(' ') != std::string_view::npos) {
    check_end(line);
    return false;
  }
  if (count == 0) throw error("a count of 0; write count files with count-words only");
  word_.clear();
  if (header_.bytes) {
    if (!append_from_notation(word_, written)) throw error("the word is not in GPT-2's notation of bytes");
  } else {
    if (first_invalid_byte(written) != written.size()) throw error("the word is not UTF-8");
    word_.append(written);
  }
  word_.reserve(word_.size() + kPadding);
  if (totals_.types > 0 && std::string_view(last_word_) >= std::string_view(word_))
    throw error("the words are not in order of their bytes; write count files with count-words only");
  last_word_ = word_;
  entry_ = {word_, count, totals_.types++};
  if (__builtin_add_overflow(totals_.occurrences, count, &totals_.occurrences))
    throw error("the counts sum to 2^64 or more");
  return true;
}

void CountFileReader::check_end(std::string_view line) {
  uint64_t types = 0, occurrences = 0;
  if (!line.starts_with(kEnd) || !take_number(line, occurrences) || !take_number(line, types) || line != "#end")
    throw error("expected a word, one space and its count");
  if (types != totals_.types || occurrences != totals_.occurrences)
    throw error("the file has " + std::to_string(totals_.types) + " words with " + std::to_string(totals_.occurrences) +
                " occurrences, not the " + std::to_string(types) + " with " + std::to_string(occurrences) +
                " that its last line gives; is it complete?");
  std::string_view rest;
  if (next_line(rest)) throw error("text after the last line ('#end ...'); merge count files with count-words --merge");
  ended_ = true;
}

bool CountFileReader::next_line(std::string_view& line) {
  while (true) {
    const size_t end = buffer_.find('\n', at_);
    if (end != std::string::npos) {
      line = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      ++line_;
      return true;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    const size_t before = buffer_.size();
    buffer_.resize(before + kRead);
    const size_t count = source_->read(buffer_.data() + before, kRead);
    buffer_.resize(before + count);
    if (count == 0) {
      if (before == 0) return false;
      ++line_;
      throw error("the line has no line end; is the file complete?");
    }
  }
}

}  // namespace mt_scaffold
