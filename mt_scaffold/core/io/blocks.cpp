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
#include <future>
#include <mutex>
#include <system_error>

#include "io/interruption.hpp"
#include "text/text.hpp"

namespace mt_scaffold {

namespace {

bool may_block(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode);
}

// Polls, so that an idle pipe does not keep an interrupted run from ending.
void wait_for(int descriptor, short event) {
  struct pollfd waiting = {descriptor, event, 0};
  while (poll(&waiting, 1, 50) <= 0) Interruptible::check();
}

}  // namespace

bool Source::read_documents(OutputBuffer&, std::vector<size_t>&) { return false; }

FileSource::FileSource(int descriptor, std::string name, std::string_view taken, std::shared_ptr<void> owner)
    : Source(std::move(name)),
      descriptor_(descriptor),
      may_block_(descriptor != kNone && may_block(descriptor)),
      taken_(taken),
      owner_(std::move(owner)) {}

size_t FileSource::read(char* into, size_t size) {
  if (!taken_.empty()) {
    const size_t count = std::min(size, taken_.size());
    std::memcpy(into, taken_.data(), count);
    taken_.remove_prefix(count);
    return count;
  }
  if (descriptor_ == kNone) return 0;
  while (true) {
    if (may_block_) wait_for(descriptor_, POLLIN);
    const ssize_t count = ::read(descriptor_, into, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR && errno != EAGAIN) throw SystemError(errno, name);
    Interruptible::check();
  }
}

bool FileSource::ready() const {
  struct pollfd waiting = {descriptor_, POLLIN, 0};
  return !taken_.empty() || !may_block_ || poll(&waiting, 1, 0) != 0;
}

FileSink::FileSink(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), may_block_(may_block(descriptor)) {}

void FileSink::write(const char* data, size_t size) {
  while (size > 0) {
    if (may_block_) wait_for(descriptor_, POLLOUT);
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

std::string Block::place(size_t position) const {
  const bool documents = !document_ends.empty();
  const auto before =
      documents ? std::upper_bound(document_ends.begin(), document_ends.end(), position) - document_ends.begin()
                : std::count(text().begin(), text().begin() + static_cast<std::ptrdiff_t>(position), '\n');
  return *name + (documents ? ": document " : ": line ") +
         std::to_string(first_line + static_cast<uint64_t>(before) + 1);
}

InputError Block::not_utf8(size_t position) const {
  const bool documents = !document_ends.empty();
  uint64_t offset = first_offset + position;
  if (documents) {
    const auto document = std::upper_bound(document_ends.begin(), document_ends.end(), position);
    offset = position - (document == document_ends.begin() ? 0 : document[-1]);
  }
  return InputError(place(position) + ", byte offset " + std::to_string(offset) + ": " + hex_byte(text()[position]) +
                    " is not UTF-8; convert " + (documents ? "it" : "the file") + " to UTF-8 first");
}

namespace {

size_t after_last_line(std::string_view text, size_t searched) {
  const size_t last = text.substr(searched).rfind('\n');
  return last == std::string_view::npos ? 0 : searched + last + 1;
}

}  // namespace

bool BlockReader::on_caller() const {
  return std::any_of(sources_.begin(), sources_.end(), [](const auto& source) { return source->on_caller; });
}

bool BlockReader::next(Block& block) {
  while (current_ < sources_.size()) {
    Source& source = *sources_[current_];
    const bool documents = source.has_documents();
    block.data.clear();
    block.document_ends.clear();
    const bool more =
        documents ? source.read_documents(block.data, block.document_ends) : read_lines(source, block.data);
    const std::string_view text = block.text();
    block.first_line = line_;
    block.first_offset = offset_;
    block.global_offset = global_offset_;
    block.name = &source.name;
    if (documents) bytes_read_.fetch_add(text.size(), std::memory_order_relaxed);
    line_ += documents ? block.document_ends.size() : static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
    offset_ += text.size();
    global_offset_ += text.size();
    if (!more) {
      ++current_;
      line_ = offset_ = 0;
    }
    if (!text.empty() || !block.document_ends.empty()) return true;
  }
  return false;
}

bool BlockReader::read_lines(Source& source, OutputBuffer& text) {
  text.reserve(std::max(kBlockSize, carry_.size() + kBlockSize / 2));
  text.append(carry_.data(), carry_.size());
  carry_.clear();
  size_t whole_lines = 0;  // bytes up to the last cut
  while (true) {
    if (text.size() + kPadding >= text.capacity()) {
      if (whole_lines > 0) break;
      text.reserve(1);  // a line longer than the block
    }
    // One line may be a whole file.
    Interruptible::check();
    const size_t searched = text.size();
    const size_t count = source.read(text.reserve(0), text.capacity() - kPadding - searched);
    if (count == 0) return false;
    bytes_read_.fetch_add(count, std::memory_order_relaxed);
    text.advance(count);
    const size_t cut = last_cut_ ? last_cut_(text.view(), searched) : after_last_line(text.view(), searched);
    if (cut > 0) whole_lines = cut;
    if (whole_lines > 0 && (text.size() >= kBlockSize / 2 || !source.ready())) break;
  }
  carry_ = text.view().substr(whole_lines);
  text.drop_last(carry_.size());
  return true;
}

namespace {

// Shared by the caller and the workers of a call: whose turn it is to read and to write, and the first failure.
class Shift {
 public:
  // Hands out tasks to `workers` threads, numbered in their order: `next(worker)`, one call at a time, prepares the
  // next one, or returns false if there is none, and `work(worker, number)` does it. Meanwhile the caller does their
  // jobs and calls `tick` with `done()`.
  void run(unsigned workers, const Tick& tick, const std::function<uint64_t()>& done,
           const std::function<bool(unsigned)>& next, const OnNumber& work);

  // Runs `job` for a worker, if need be on the caller's thread.
  void call(bool on_caller, const std::function<void()>& job) {
    if (!on_caller) return job();
    Job posted{job};
    std::unique_lock lock(state_);
    jobs_.push_back(&posted);
    changed_.notify_all();
    changed_.wait(lock, [&] { return posted.done || (stop_ && !posted.taken); });
    if (!posted.done) std::erase(jobs_, &posted);
    if (!posted.done) throw Stopped();
    if (posted.error) std::rethrow_exception(posted.error);
  }

  // Calls `turn()` once all tasks with lower numbers had their turns.
  template <typename Turn>
  void in_turn(size_t number, Turn&& turn) {
    {
      std::unique_lock lock(state_);
      changed_.wait(lock, [&] { return turn_ == number || stop_ || failed_ < number; });
      if (turn_ != number) throw Stopped();
    }
    turn();
    std::lock_guard lock(state_);
    ++turn_;
    changed_.notify_all();
  }

 private:
  struct Job {
    const std::function<void()>& work;
    bool taken = false, done = false;
    std::exception_ptr error = nullptr;
  };

  // Whether there is another task, whose number is set. A failure of `next` ranks after those of all tasks before it.
  bool take(const std::function<bool(unsigned)>& next, unsigned worker, size_t& number) {
    std::lock_guard one_at_a_time(reading_);
    {
      std::lock_guard lock(state_);
      if (exhausted_ || failure_ || stop_) return false;
    }
    number = tasks_++;
    try {
      exhausted_ = !next(worker);
    } catch (...) {
      exhausted_ = true;
      fail(number);
    }
    return !exhausted_;
  }
  // Notes the exception that is being handled.
  void fail(size_t number) {
    std::lock_guard lock(state_);
    if (!failure_ || number < failed_) {
      failure_ = std::current_exception();
      failed_ = number;
    }
    changed_.notify_all();
  }
  void interrupt() {
    std::lock_guard lock(state_);
    if (!interruption_) interruption_ = std::current_exception();
    stop_ = true;
    changed_.notify_all();
  }
  void do_job(Job& job) {
    try {
      job.work();
    } catch (const Interruption&) {
      job.error = std::make_exception_ptr(Stopped());
      interrupt();
    } catch (...) {
      job.error = std::current_exception();
    }
    std::lock_guard lock(state_);
    job.done = true;
    changed_.notify_all();
  }

  std::mutex reading_, state_;
  std::condition_variable changed_;
  std::atomic<bool> stop_{false};
  bool exhausted_ = false;
  size_t tasks_ = 0, turn_ = 0, failed_ = ~size_t{0};
  unsigned running_ = 0;
  std::vector<Job*> jobs_;
  std::exception_ptr failure_, interruption_;
};

void Shift::run(unsigned workers, const Tick& tick, const std::function<uint64_t()>& done,
                const std::function<bool(unsigned)>& next, const OnNumber& work) {
  const auto worker = [&](unsigned index) {
    const Interruptible interruptible([&] {
      if (stop_.load(std::memory_order_relaxed)) throw Stopped();
    });
    for (size_t number; take(next, index, number);) {
      try {
        work(index, number);
      } catch (...) {
        fail(number);
        break;
      }
    }
    std::lock_guard lock(state_);
    --running_;
    changed_.notify_all();
  };
  running_ = workers;
  std::vector<std::future<void>> threads;  // which their destruction waits for
  threads.reserve(workers);
  try {
    for (unsigned index = 0; index < workers; ++index) threads.push_back(std::async(std::launch::async, worker, index));
  } catch (const std::exception& error) {
    // At a limit on threads or memory, those that started do all the work.
    if (threads.empty()) {
      if (const auto* const system = dynamic_cast<const std::system_error*>(&error))
        throw SystemError(system->code().value(), "starting a thread");
      throw;
    }
    std::lock_guard lock(state_);
    running_ -= workers - static_cast<unsigned>(threads.size());
  }
  constexpr auto kPeriod = std::chrono::milliseconds(50);
  auto due = std::chrono::steady_clock::now() + kPeriod;
  std::unique_lock lock(state_);
  while (running_ > 0) {
    changed_.wait_until(lock, due, [&] { return running_ == 0 || (!jobs_.empty() && !stop_); });
    if (running_ == 0) break;
    Job* const job = jobs_.empty() || stop_ ? nullptr : jobs_.front();
    if (job) {
      job->taken = true;
      jobs_.erase(jobs_.begin());
    }
    lock.unlock();
    if (job) do_job(*job);
    if (const auto now = std::chrono::steady_clock::now(); now >= due) {
      due = now + kPeriod;
      try {
        if (!stop_) tick(done());
      } catch (...) {
        interrupt();
      }
    }
    lock.lock();
  }
  lock.unlock();
  threads.clear();
  if (interruption_) std::rethrow_exception(interruption_);
  if (failure_) std::rethrow_exception(failure_);
}

void over_blocks(Shift& shift, BlockReader& reader, unsigned workers, const Tick& tick,
                 const std::function<void(unsigned, size_t, Block&)>& work) {
  const bool on_caller = reader.on_caller();
  std::vector<Block> blocks(workers);
  const auto next = [&](unsigned worker) {
    bool found = false;
    shift.call(on_caller, [&] { found = reader.next(blocks[worker]); });
    return found;
  };
  shift.run(
      workers, tick, [&] { return reader.bytes_read(); }, next,
      [&](unsigned worker, size_t number) { work(worker, number, blocks[worker]); });
}

}  // namespace

void for_each_in_order(size_t count, unsigned workers, const OnNumber& work, const OnNumber& turn,
                       const OnNumber& after, const Tick& tick) {
  if (workers == 1) {
    for (size_t number = 0; number < count; ++number) {
      Interruptible::check();
      for (const OnNumber* each : {&work, &turn, &after}) (*each)(0, number);
    }
    return;
  }
  Shift shift;
  std::atomic<size_t> next{0};
  shift.run(
      workers, tick, [&] { return next.load(); }, [&](unsigned) { return next++ < count; },
      [&](unsigned worker, size_t number) {
        work(worker, number);
        shift.in_turn(number, [&] { turn(worker, number); });
        after(worker, number);
      });
}

void for_each_number(size_t count, unsigned workers, const std::function<void(size_t number)>& work) {
  const OnNumber nothing = [](unsigned, size_t) {};
  for_each_in_order(count, workers, [&](unsigned, size_t number) { work(number); }, nothing, nothing, [](uint64_t) {});
}

void for_each_block(BlockReader& reader, unsigned workers, const std::function<void(unsigned, Block&)>& work,
                    const Tick& tick) {
  Shift shift;
  over_blocks(shift, reader, workers, tick, [&](unsigned worker, size_t, Block& block) { work(worker, block); });
}

void transform_blocks(BlockReader& reader, Sink& sink, unsigned workers,
                      const std::function<void(unsigned, Block&, std::string_view&)>& work, const Tick& tick) {
  Shift shift;
  const bool on_caller = sink.on_caller;
  over_blocks(shift, reader, workers, tick, [&](unsigned worker, size_t number, Block& block) {
    std::string_view output;
    work(worker, block, output);
    shift.in_turn(number, [&] { shift.call(on_caller, [&] { sink.write(output.data(), output.size()); }); });
  });
}

}  // namespace mt_scaffold
