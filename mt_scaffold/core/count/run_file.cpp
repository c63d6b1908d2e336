#include "count/run_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "errors.hpp"
#include "io/blocks.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

constexpr size_t kWriteBuffer = size_t{1} << 18;
constexpr size_t kLongestNumber = 10;
constexpr uint64_t kWordsPerTick = 1 << 14;

void append_number(std::string& to, uint64_t number) {
  for (; number >= 0x80; number >>= 7) to += static_cast<char>(number | 0x80);
  to += static_cast<char>(number);
}

int open_unnamed(const std::string& folder) {
#if defined(O_TMPFILE)
  const int unnamed = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0) return unnamed;
#endif
  // Not every file system supports O_TMPFILE.
  std::string name = folder + "/mt-scaffold-counts-XXXXXX";
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) throw SystemError(errno, folder);
  unlink(name.c_str());
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

}  // namespace

RunFile::RunFile(std::string folder) : folder_(std::move(folder)), descriptor_(open_unnamed(folder_)) {}

RunFile::~RunFile() { close(descriptor_); }

// A word is written as the size of the prefix shared with the previous word, the size of the rest, the rest, the count
// and the first occurrence.
void RunFile::add_run(SortedWords& words, const Tick& tick) {
  const uint64_t begin = bytes_;
  std::string buffer, last;
  buffer.reserve(kWriteBuffer + 4 * kLongestNumber);
  for (uint64_t done = 0; words.next(); ++done) {
    if (tick && done % kWordsPerTick == 0) tick(done);
    const WordCount& entry = words.entry();
    const size_t most = std::min(last.size(), entry.word.size());
    const auto shared = static_cast<size_t>(
        std::mismatch(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(most), entry.word.begin()).first -
        last.begin());
    append_number(buffer, shared);
    append_number(buffer, entry.word.size() - shared);
    buffer.append(entry.word.substr(shared));
    append_number(buffer, entry.count);
    append_number(buffer, entry.first_seen);
    last.resize(shared);
    last.append(entry.word.substr(shared));
    if (buffer.size() >= kWriteBuffer) write(buffer);
  }
  write(buffer);
  if (bytes_ > begin) runs_.push_back({begin, bytes_});
}

void RunFile::write(std::string& buffer) {
  try {
    FileSink(descriptor_, folder_).write(buffer.data(), buffer.size());
  } catch (const SystemError& error) {
    if (error.code != ENOSPC && error.code != EDQUOT && error.code != EFBIG) throw;
    throw InputError(folder_ + ": " + std::strerror(error.code) +
                     " for the counts that exceed the memory; set MT_SCAFFOLD_TMP to a folder with more room, or "
                     "raise --max-memory");
  }
  bytes_ += buffer.size();
  buffer.clear();
}

class RunFile::Reader : public SortedWords {
 public:
  Reader(const RunFile& file, const Run& run, size_t buffer)
      : file_(file), next_(run.begin), end_(run.end), size_(std::max(buffer, 8 * kLongestNumber)) {}

  bool next() override {
    if (at_ == filled_ && next_ == end_) return false;
    if (!buffer_) buffer_.reset(new char[size_]);
    const size_t shared = number();
    size_t rest = number();
    word_.reserve(shared + rest + kPadding);
    word_.resize(shared);
    while (rest > 0) {
      if (at_ == filled_) fill();
      const size_t count = std::min(rest, filled_ - at_);
      word_.append(buffer_.get() + at_, count);
      at_ += count;
      rest -= count;
    }
    const uint64_t count = number();
    entry_ = {word_, count, number()};
    return true;
  }

 private:
  uint64_t number() {
    if (filled_ - at_ < kLongestNumber) fill();
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(buffer_[at_++]);
      number |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return number;
    }
  }

  // Keeps the unused bytes and fills the rest of the buffer.
  void fill() {
    std::memmove(buffer_.get(), buffer_.get() + at_, filled_ - at_);
    filled_ -= at_;
    at_ = 0;
    while (filled_ < size_ && next_ < end_) {
      const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size_ - filled_, end_ - next_));
      const ssize_t count = pread(file_.descriptor_, buffer_.get() + filled_, wanted, static_cast<off_t>(next_));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) throw SystemError(count < 0 ? errno : EIO, file_.folder_);
      filled_ += static_cast<size_t>(count);
      next_ += static_cast<uint64_t>(count);
    }
  }

  const RunFile& file_;
  uint64_t next_, end_;  // the unread part of the file
  const size_t size_;
  std::unique_ptr<char[]> buffer_;
  size_t at_ = 0, filled_ = 0;
  std::string word_;
};

void RunFile::append_streams(std::vector<std::unique_ptr<SortedWords>>& streams, size_t buffer) const {
  for (const Run& run : runs_) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(buffer, run.end - run.begin));
    streams.push_back(std::make_unique<Reader>(*this, run, size));
  }
}

}  // namespace mt_scaffold
