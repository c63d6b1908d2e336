// Input in blocks of whole lines, processed by several threads and written in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "io/interruption.hpp"
#include "memory/output_buffer.hpp"

namespace mt_scaffold {

class Source {
 public:
  explicit Source(std::string name, bool on_caller = false) : name(std::move(name)), on_caller(on_caller) {}
  virtual ~Source() = default;
  // Reads up to `size` bytes and returns the count, 0 at the end. Called by any thread, one at a time.
  virtual size_t read(char* into, size_t size) = 0;
  // Whether read() will not block; otherwise the data read so far is processed first.
  virtual bool ready() const { return true; }
  // Whether the input is documents: read_documents() is called instead of read().
  virtual bool has_documents() const { return false; }
  // Appends some documents to `text` and their ends to `ends`; false after the last one.
  virtual bool read_documents(OutputBuffer& text, std::vector<size_t>& ends);
  // The name of the input in error messages.
  const std::string name;
  // Whether it is used only by the thread that made the call, whose signals end a read that blocks: Python's streams.
  const bool on_caller;
};

class FileSource : public Source {
 public:
  static constexpr int kNone = -1;

  // `taken`: bytes that come first, which `owner` keeps; those already read from the descriptor, or all, with kNone.
  FileSource(int descriptor, std::string name, std::string_view taken = {}, std::shared_ptr<void> owner = nullptr);
  size_t read(char* into, size_t size) override;
  bool ready() const override;

 private:
  const int descriptor_;
  const bool may_block_;
  std::string_view taken_;
  const std::shared_ptr<void> owner_;
};

class Sink {
 public:
  explicit Sink(bool on_caller = false) : on_caller(on_caller) {}
  virtual ~Sink() = default;
  // Called by any thread, one at a time.
  virtual void write(const char* data, size_t size) = 0;
  // As a source's.
  const bool on_caller;
};

class FileSink : public Sink {
 public:
  FileSink(int descriptor, std::string name);
  void write(const char* data, size_t size) override;

 private:
  int descriptor_;
  std::string name_;
  bool may_block_;
};

// Whole lines of one input, or a part cut by LastCut, readable for kPadding bytes past the end.
struct Block {
  OutputBuffer data;
  uint64_t first_line = 0;     // lines of this input before the block
  uint64_t first_offset = 0;   // bytes of this input before the block
  uint64_t global_offset = 0;  // bytes of all inputs before the block
  const std::string* name = nullptr;
  // The ends of documents, if the input has documents in place of lines.
  std::vector<size_t> document_ends;

  std::string_view text() const { return data.view(); }
  // Describes `position` of this block: "NAME: line N", or "NAME: document N".
  std::string place(size_t position) const;
  // The error for the byte at `position` of this block, which is not UTF-8.
  InputError not_utf8(size_t position) const;
};

// Returns the size of the longest prefix of `text` that may be a separate block; 0 if there is none. `searched`: the
// number of its first bytes that have been searched before, in vain.
using LastCut = std::function<size_t(std::string_view text, size_t searched)>;

class BlockReader {
 public:
  static constexpr size_t kBlockSize = size_t{1} << 18;

  explicit BlockReader(std::vector<std::unique_ptr<Source>> sources) : sources_(std::move(sources)) {}
  // Fills `block` with the next whole lines; false after the last input. Not thread-safe.
  bool next(Block& block);
  bool on_caller() const;
  // Cuts inputs with `last_cut` instead of after their LFs.
  void cut_with(LastCut last_cut) { last_cut_ = std::move(last_cut); }
  uint64_t bytes_read() const { return bytes_read_.load(std::memory_order_relaxed); }

 private:
  std::vector<std::unique_ptr<Source>> sources_;
  size_t current_ = 0;
  LastCut last_cut_;
  // Appends whole lines of a source, all that is left if it ends; false then.
  bool read_lines(Source& source, OutputBuffer& text);

  std::string carry_;  // an incomplete line, read with the previous block
  uint64_t line_ = 0, offset_ = 0, global_offset_ = 0;
  std::atomic<uint64_t> bytes_read_{0};
};

// Runs `work(worker, number)` for all numbers below `count` on `workers` threads, handing them out in order. After it,
// `turn(worker, number)` is called in the order of the numbers, then `after(worker, number)`. The error of the lowest
// failing number is thrown. A single worker is the calling thread.
using OnNumber = std::function<void(unsigned worker, size_t number)>;
void for_each_in_order(size_t count, unsigned workers, const OnNumber& work, const OnNumber& turn,
                       const OnNumber& after, const Tick& tick);

// The same without turns and ticks.
void for_each_number(size_t count, unsigned workers, const std::function<void(size_t number)>& work);

// Runs `work(worker, block)` over all blocks on `workers` threads, handing blocks out in order. After a failure no
// further block is handed out, and the error of the earliest failing block is thrown.
void for_each_block(BlockReader& reader, unsigned workers, const std::function<void(unsigned, Block&)>& work,
                    const Tick& tick);

// As for_each_block, with `work(worker, block, output)`; writes the outputs in the order of their blocks.
void transform_blocks(BlockReader& reader, Sink& sink, unsigned workers,
                      const std::function<void(unsigned, Block&, std::string_view&)>& work, const Tick& tick);

}  // namespace mt_scaffold
