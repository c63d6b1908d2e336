#include "io/blocks.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "io/interruption.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

bool may_block(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode);
}

// Polls, so that an idle pipe does not keep an interrupted run from ending.
void wait_for(int descriptor, short event, const std::atomic<bool>& stop) {
  struct pollfd waiting = {descriptor, event, 0};
  while (poll(&waiting, 1, 50) <= 0) {
    if (stop.load(std::memory_order_relaxed)) throw Stopped();
  }
}

}  // namespace

bool Source::read_documents(std::string&, std::vector<size_t>&) { return false; }

FileSource::FileSource(int descriptor, std::string name, std::string taken)
    : descriptor_(descriptor), may_block_(may_block(descriptor)), taken_(std::move(taken)) {
  this->name = std::move(name);
}

size_t FileSource::read(char* into, size_t size, const std::atomic<bool>& stop) {
  if (!taken_.empty()) {
    const size_t count = std::min(size, taken_.size());
    std::memcpy(into, taken_.data(), count);
    taken_.erase(0, count);
    return count;
  }
  while (true) {
    if (may_block_) wait_for(descriptor_, POLLIN, stop);
    const ssize_t count = ::read(descriptor_, into, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR && errno != EAGAIN) throw SystemError(errno, name);
    if (stop.load(std::memory_order_relaxed)) throw Stopped();
  }
}

bool FileSource::ready() const {
  struct pollfd waiting = {descriptor_, POLLIN, 0};
  return !taken_.empty() || !may_block_ || poll(&waiting, 1, 0) != 0;
}

size_t MemorySource::read(char* into, size_t size, const std::atomic<bool>&) {
  const size_t count = std::min(size, rest_.size());
  std::memcpy(into, rest_.data(), count);
  rest_.remove_prefix(count);
  return count;
}

FileSink::FileSink(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), may_block_(may_block(descriptor)) {}

void FileSink::write(const char* data, size_t size, const std::atomic<bool>& stop) {
  while (size > 0) {
    if (may_block_) wait_for(descriptor_, POLLOUT, stop);
    // POLLOUT guarantees room for PIPE_BUF bytes only.
    const ssize_t count = ::write(descriptor_, data, may_block_ ? std::min<size_t>(size, PIPE_BUF) : size);
    if (count < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      throw SystemError(errno, name_);
    }
    data += count;
    size -= static_cast<size_t>(count);
  }
}

void Block::reserve(size_t bytes) {
  if (bytes + kPadding <= capacity) return;
  const size_t grown = std::max(bytes, capacity * 2) + kPadding;
  std::unique_ptr<char[]> larger(new char[grown]);
  if (size > 0) std::memcpy(larger.get(), buffer.get(), size);
  buffer = std::move(larger);
  capacity = grown;
}

std::string Block::place(size_t position) const {
  const bool documents = !document_ends.empty();
  const auto before =
      documents ? std::upper_bound(document_ends.begin(), document_ends.end(), position) - document_ends.begin()
                : std::count(buffer.get(), buffer.get() + position, '\n');
  return *name + (documents ? ": document " : ": line ") +
         std::to_string(first_line + static_cast<uint64_t>(before) + 1);
}

InputError Block::not_utf8(size_t position) const {
  if (!document_ends.empty()) {
    const auto document = std::upper_bound(document_ends.begin(), document_ends.end(), position);
    const size_t begin = document == document_ends.begin() ? 0 : document[-1];
    return InputError(place(position) + ", byte offset " + std::to_string(position - begin) + ": " +
                      hex_byte(buffer[position]) + " is not UTF-8; convert it to UTF-8 first");
  }
  return InputError(place(position) + ", byte offset " + std::to_string(first_offset + position) + ": " +
                    hex_byte(buffer[position]) + " is not UTF-8; convert the file to UTF-8 first");
}

namespace {

size_t after_last_line(std::string_view text, size_t searched) {
  const size_t last = text.substr(searched).rfind('\n');
  return last == std::string_view::npos ? 0 : searched + last + 1;
}

}  // namespace

bool BlockReader::next(Block& block, const std::atomic<bool>& stop) {
  while (current_ < sources_.size()) {
    Source& source = *sources_[current_];
    block.size = 0;
    block.document_ends.clear();
    if (source.has_documents()) {
      if (next_documents(source, block)) return true;
      ++current_;
      line_ = offset_ = 0;
      continue;
    }
    block.reserve(std::max(kBlockSize, carry_.size() + kBlockSize / 2));
    std::memcpy(block.buffer.get(), carry_.data(), carry_.size());
    block.size = carry_.size();
    carry_.clear();
    bool ended = false;
    size_t whole_lines = 0;  // bytes up to the last cut
    while (true) {
      if (block.size + kPadding >= block.capacity) {
        if (whole_lines > 0) break;
        block.reserve(block.capacity * 2);  // a line longer than the block
      }
      // One line may be a whole file.
      if (stop.load(std::memory_order_relaxed)) throw Stopped();
      const size_t count = source.read(block.buffer.get() + block.size, block.capacity - kPadding - block.size, stop);
      if (count == 0) {
        ended = true;
        break;
      }
      bytes_read_.fetch_add(count, std::memory_order_relaxed);
      const size_t searched = block.size;
      block.size += count;
      const size_t cut = last_cut_ ? last_cut_(block.text(), searched) : after_last_line(block.text(), searched);
      if (cut > 0) whole_lines = cut;
      if (whole_lines > 0 && (block.size >= kBlockSize / 2 || !source.ready())) break;
    }
    if (!ended) {
      carry_.assign(block.buffer.get() + whole_lines, block.size - whole_lines);
      block.size = whole_lines;
    }
    block.number = number_;
    block.first_line = line_;
    block.first_offset = offset_;
    block.global_offset = global_offset_;
    block.name = &source.name;
    std::memset(block.buffer.get() + block.size, 0, kPadding);
    line_ += static_cast<uint64_t>(std::count(block.buffer.get(), block.buffer.get() + block.size, '\n'));
    offset_ += block.size;
    global_offset_ += block.size;
    if (ended) {
      ++current_;
      line_ = offset_ = 0;
    }
    if (block.size > 0) {
      ++number_;
      return true;
    }
  }
  return false;
}

bool BlockReader::next_documents(Source& source, Block& block) {
  documents_.clear();
  if (!source.read_documents(documents_, block.document_ends)) return false;
  block.reserve(documents_.size());
  std::memcpy(block.buffer.get(), documents_.data(), documents_.size());
  std::memset(block.buffer.get() + documents_.size(), 0, kPadding);
  block.size = documents_.size();
  block.number = number_++;
  block.first_line = line_;
  block.first_offset = offset_;
  block.global_offset = global_offset_;
  block.name = &source.name;
  line_ += block.document_ends.size();
  offset_ += block.size;
  global_offset_ += block.size;
  bytes_read_.fetch_add(block.size, std::memory_order_relaxed);
  return true;
}

namespace {

// Joins its threads on destruction, like std::jthread, which Apple's library does not have.
class Threads {
 public:
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() { join(); }

  // Calls `work` with the number of the thread. Throws std::system_error if no thread can be started.
  template <typename Work>
  void start(const Work& work) {
    threads_.emplace_back(work, size());
  }
  unsigned size() const { return static_cast<unsigned>(threads_.size()); }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

// Shared by the workers: whose turn it is to read and to write, and the first failure.
struct Shift {
  std::mutex reading;
  std::mutex state;
  std::condition_variable changed;
  std::atomic<bool> stop{false};
  bool exhausted = false;
  uint64_t next_to_write = 0;
  unsigned running = 0;
  uint64_t failed_block = ~uint64_t{0};
  std::exception_ptr failure;

  void fail(uint64_t block, std::exception_ptr error) {
    std::lock_guard lock(state);
    if (!failure || block < failed_block) {
      failure = std::move(error);
      failed_block = block;
    }
    changed.notify_all();
  }
};

void run_workers(BlockReader& reader, unsigned workers, const Tick& tick, Shift& shift,
                 const std::function<void(unsigned, Block&)>& work) {
  auto worker = [&](unsigned index) {
    const Interruptible interruptible([&] {
      if (shift.stop.load(std::memory_order_relaxed)) throw Stopped();
    });
    Block block;
    while (true) {
      {
        std::lock_guard lock(shift.reading);
        bool failed;
        {
          std::lock_guard state(shift.state);
          failed = static_cast<bool>(shift.failure);
        }
        if (shift.exhausted || failed || shift.stop) break;
        try {
          if (!reader.next(block, shift.stop)) {
            shift.exhausted = true;
            break;
          }
        } catch (...) {
          shift.exhausted = true;
          // A reading error ranks after those of all blocks read before it.
          shift.fail(~uint64_t{0} - 1, std::current_exception());
          break;
        }
      }
      try {
        work(index, block);
      } catch (...) {
        shift.fail(block.number, std::current_exception());
        break;
      }
    }
    std::lock_guard lock(shift.state);
    --shift.running;
    shift.changed.notify_all();
  };

  shift.running = workers;
  Threads threads;
  try {
    while (threads.size() < workers) threads.start(worker);
  } catch (const std::system_error& error) {
    // At a limit on threads or memory, those that started do all the work.
    if (threads.size() == 0) throw SystemError(error.code().value(), "starting a thread");
    std::lock_guard lock(shift.state);
    shift.running -= workers - threads.size();
  }
  std::exception_ptr interruption;
  {
    std::unique_lock lock(shift.state);
    while (shift.running > 0) {
      shift.changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return shift.running == 0; });
      if (shift.running == 0 || interruption) continue;
      lock.unlock();
      try {
        tick(reader.bytes_read());
      } catch (...) {
        interruption = std::current_exception();
        shift.stop = true;
        shift.changed.notify_all();
      }
      lock.lock();
    }
  }
  threads.join();
  if (interruption) std::rethrow_exception(interruption);
  if (shift.failure) std::rethrow_exception(shift.failure);
}

}  // namespace

void in_parallel(unsigned workers, const std::function<void(unsigned)>& work) {
  std::mutex mutex;
  std::exception_ptr failure;
  const auto attempt = [&](unsigned worker) {
    try {
      work(worker);
    } catch (...) {
      std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    Threads threads;
    try {
      while (threads.size() + 1 < workers) threads.start(attempt);
    } catch (const std::system_error&) {  // this thread does the rest
    }
    for (unsigned worker = threads.size(); worker < workers; ++worker) attempt(worker);
  }
  if (failure) std::rethrow_exception(failure);
}

void for_each_block(BlockReader& reader, unsigned workers, const std::function<void(unsigned, Block&)>& work,
                    const Tick& tick) {
  Shift shift;
  run_workers(reader, workers, tick, shift, work);
}

void transform_blocks(BlockReader& reader, Sink& sink, unsigned workers,
                      const std::function<void(unsigned, Block&, std::string_view&)>& work, const Tick& tick) {
  Shift shift;
  run_workers(reader, workers, tick, shift, [&](unsigned index, Block& block) {
    std::string_view output;
    work(index, block, output);
    {
      std::unique_lock lock(shift.state);
      shift.changed.wait(
          lock, [&] { return shift.next_to_write == block.number || shift.stop || shift.failed_block < block.number; });
      if (shift.next_to_write != block.number) throw Stopped();
    }
    sink.write(output.data(), output.size(), shift.stop);
    std::lock_guard lock(shift.state);
    ++shift.next_to_write;
    shift.changed.notify_all();
  });
}

}  // namespace mt_scaffold
