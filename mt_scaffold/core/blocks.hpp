// Input in blocks of whole lines, worked on by several threads, written out in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mt_scaffold {

// Something wrong in an input, with its place: becomes one line on stderr.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A read or write that the operating system refused.
class SystemError : public std::runtime_error {
 public:
  SystemError(int code, const std::string& name) : std::runtime_error(name), code(code) {}
  const int code;
};

// Another thread failed, or the user interrupted: whatever waits gives up.
class Stopped : public std::exception {};

class Source {
 public:
  virtual ~Source() = default;
  // Reads up to `size` bytes and returns how many; 0 at the end. May be called from any thread, one at a time.
  virtual size_t read(char* into, size_t size, const std::atomic<bool>& stop) = 0;
  // Whether more can be read at once: where not, what has been read is worked on first.
  virtual bool ready() const { return true; }
  // The name under which errors report this input.
  std::string name;
};

class FileSource : public Source {
 public:
  FileSource(int descriptor, std::string name);
  size_t read(char* into, size_t size, const std::atomic<bool>& stop) override;
  bool ready() const override;

 private:
  int descriptor_;
  bool may_block_;
};

class MemorySource : public Source {
 public:
  MemorySource(std::string_view text, std::string name) : rest_(text) { this->name = std::move(name); }
  size_t read(char* into, size_t size, const std::atomic<bool>& stop) override;

 private:
  std::string_view rest_;
};

class Sink {
 public:
  virtual ~Sink() = default;
  // Called by any thread, one at a time.
  virtual void write(const char* data, size_t size, const std::atomic<bool>& stop) = 0;
};

class FileSink : public Sink {
 public:
  FileSink(int descriptor, std::string name);
  void write(const char* data, size_t size, const std::atomic<bool>& stop) override;

 private:
  int descriptor_;
  std::string name_;
  bool may_block_;
};

// Whole lines of one input. Readable for kPadding bytes past the end.
struct Block {
  std::unique_ptr<char[]> buffer;
  size_t capacity = 0;
  size_t size = 0;
  uint64_t number = 0;         // position among the blocks of all inputs
  uint64_t first_line = 0;     // lines of this input before the block
  uint64_t first_offset = 0;   // bytes of this input before the block
  uint64_t global_offset = 0;  // bytes of all inputs before the block
  const std::string* name = nullptr;

  std::string_view text() const { return {buffer.get(), size}; }
  void reserve(size_t bytes);
  // The error for a byte at `position` of this block that is not UTF-8.
  InputError not_utf8(size_t position) const;
};

class BlockReader {
 public:
  static constexpr size_t kBlockSize = size_t{1} << 18;

  explicit BlockReader(std::vector<std::unique_ptr<Source>> sources) : sources_(std::move(sources)) {}
  // Fills `block` with the next whole lines; false at the end of the last input. Not thread-safe.
  bool next(Block& block, const std::atomic<bool>& stop);
  uint64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::unique_ptr<Source>> sources_;
  size_t current_ = 0;
  std::string carry_;  // the beginning of a line whose end has not been read
  uint64_t number_ = 0, line_ = 0, offset_ = 0, global_offset_ = 0;
  std::atomic<uint64_t> bytes_read_{0};
};

// Runs `work(worker)` for each of the workers, each on a thread of its own where the system gives so many, and throws
// what one of them has thrown.
void in_parallel(unsigned workers, const std::function<void(unsigned)>& work);

// Called on the calling thread several times a second while workers run; may throw to stop them.
using Tick = std::function<void(uint64_t bytes_read)>;

// Runs `work(worker, block)` over all blocks on `workers` threads. Blocks are handed out in order. Where one fails,
// no later block is handed out and the error of the earliest failing block is thrown.
void for_each_block(BlockReader& reader, unsigned workers, const std::function<void(unsigned, Block&)>& work,
                    const Tick& tick);

// Runs `work(worker, block, output)` likewise and writes the outputs in the order of the blocks.
void transform_blocks(BlockReader& reader, Sink& sink, unsigned workers,
                      const std::function<void(unsigned, Block&, std::string_view&)>& work, const Tick& tick);

}  // namespace mt_scaffold
