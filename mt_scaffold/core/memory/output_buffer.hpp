// A growing buffer for input, segmented text or ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "text/text.hpp"

namespace mt_scaffold {

struct ReleaseBuffer {
  bool own = true;

  void operator()(const char* data) const {
    if (own) delete[] data;
  }
};

// Grows without zeroing; writable and readable for kPadding bytes past its end.
class OutputBuffer {
 public:
  OutputBuffer() = default;
  // Writes to memory owned by the caller while it has room.
  OutputBuffer(char* memory, size_t capacity) : data_(memory, ReleaseBuffer{false}), capacity_(capacity) {}

  char* reserve(size_t bytes) {
    if (size_ + bytes + kPadding > capacity_) grow(bytes);
    return data_.get() + size_;
  }
  void advance(size_t bytes) { size_ += bytes; }
  void append(const char* data, size_t bytes) {
    std::memcpy(reserve(bytes), data, bytes);
    size_ += bytes;
  }
  void append(char c) {
    *reserve(1) = c;
    ++size_;
  }
  void clear() { size_ = 0; }
  void drop_last(size_t bytes) { size_ -= bytes; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  std::string_view view() const { return {data_.get(), size_}; }

 private:
  void grow(size_t bytes) {
    capacity_ = std::max(size_ + bytes + kPadding, capacity_ * 2);
    std::unique_ptr<char[], ReleaseBuffer> larger(new char[capacity_]);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
  }

  std::unique_ptr<char[], ReleaseBuffer> data_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace mt_scaffold
