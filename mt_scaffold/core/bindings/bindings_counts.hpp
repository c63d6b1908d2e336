// Counted words as Python sees them.
#pragma once

#include <memory>
#include <utility>

#include "bindings/bindings_text.hpp"
#include "count/word_counts.hpp"

namespace mt_scaffold {

// Copy-on-write, so that counts do not change while another thread reads them. The GIL guards the pointer and all
// copies of it.
class PyWordCounts {
 public:
  PyWordCounts() : PyWordCounts(WordCounts()) {}
  explicit PyWordCounts(WordCounts counts) : counts_(std::make_shared<WordCounts>(std::move(counts))) {}
  PyWordCounts(PyWordCounts&&) = default;

  const WordCounts& get() const { return *shared(); }
  // For readers that release the GIL.
  const std::shared_ptr<WordCounts>& shared() const {
    if (!counts_) throw nb::value_error("these counts were used up by learning; count the words again");
    return counts_;
  }
  WordCounts& to_change() {
    if (shared().use_count() > 1) {
      WordCounts copy;
      copy.merge(*counts_);
      counts_ = std::make_shared<WordCounts>(std::move(copy));
    }
    return *counts_;
  }
  WordCounts take() {
    WordCounts taken = std::move(to_change());
    counts_.reset();
    return taken;
  }

 private:
  std::shared_ptr<WordCounts> counts_;  // null once taken
};

}  // namespace mt_scaffold
