// A group of threads.
#pragma once

#include <thread>
#include <vector>

namespace mt_scaffold {

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

}  // namespace mt_scaffold
